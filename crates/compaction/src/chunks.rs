//! Finds runs of word and joining characters that are more than a plain word.
//!
//! Sixteen bytes are compared at a time and the results are kept as bits: which bytes belong to a chunk, and which mark
//! their chunk for examination. Chunks without a mark are never visited. A marked chunk may turn out to be nothing, but
//! no anchor is missed.

use std::ops::Range;

use wide::u8x16;

const WORD_BYTES: usize = u64::BITS as usize;
const STEP: usize = 16;
/// Words of bits processed at once; the sets fit on the stack and in the fastest cache.
const WORDS: usize = 32;
const WINDOW: usize = WORDS * WORD_BYTES;

/// Lower-case letters.
pub(crate) const LOWER: u16 = 1;
/// Capitals.
pub(crate) const UPPER: u16 = 2;
/// Digits.
pub(crate) const DIGIT: u16 = 4;
/// `_`
pub(crate) const UNDERSCORE: u16 = 8;
/// `/`
pub(crate) const SLASH: u16 = 16;
/// `.`
pub(crate) const DOT: u16 = 32;
/// `-`
pub(crate) const DASH: u16 = 64;
/// `:`
pub(crate) const COLON: u16 = 128;
/// Signs that separate a name from a value or a place: `= & ? # % @ + ~`.
pub(crate) const SIGN: u16 = 256;
/// The number of classes; the set of each is at the index of its bit.
const CLASSES: usize = 9;

/// The sets of one window.
struct Window {
    /// Bytes of each class.
    classes: [[u64; CLASSES]; WORDS],
    /// Bytes that belong to a chunk.
    chunk: [u64; WORDS],
    /// Bytes that mark their chunk for examination.
    mark: [u64; WORDS],
}

/// Calls `visit` with every chunk of at most `longest` bytes that contains a digit, an underscore, an inner joining sign or the hump of a
/// camelCase name, in order, and with the classes of its bytes.
pub(crate) fn marked_chunks(bytes: &[u8], longest: usize, mut visit: impl FnMut(Range<usize>, u16)) {
    let mut from = 0;
    while from < bytes.len() {
        let end = bytes.len().min(from + WINDOW);
        let follows = bytes.get(end).copied();
        let window = Window::read(&bytes[from..end], follows);
        let length = end - from;
        let mut at = 0;
        let mut next_from = end;
        while let Some(mark) = window.next_mark(at) {
            let chunk = window.chunk_around(mark, at, length);
            at = chunk.end;
            if chunk.end == length && end < bytes.len() {
                // The chunk may extend beyond the window: restart from its beginning, or skip it entirely.
                let next = if chunk.start > 0 { chunk.start } else { end_of_chunk(bytes, end) };
                next_from = if chunk.start > 0 { from + next } else { next };
                break;
            }
            if chunk.len() <= longest {
                visit(from + chunk.start..from + chunk.end, window.classes_of(&chunk));
            }
        }
        // An unmarked word at the end of the window may get its mark in the next.
        if next_from == end && end < bytes.len() && window.is_in_chunk(length - 1) {
            let start = window.chunk_around(length - 1, at, length).start;
            next_from = if start > 0 { from + start } else { end_of_chunk(bytes, end) };
        }
        from = next_from;
    }
}

/// Returns the end of the chunk around `at`. A chunk longer than a window is data and skipped.
fn end_of_chunk(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !is_chunk_byte(*byte)).unwrap_or(rest.len())
}

fn is_chunk_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_/.-:=&?#%@+~".contains(&byte)
}

impl Window {
    /// Reads a window, with the byte after it, if there is one.
    #[inline]
    fn read(bytes: &[u8], follows: Option<u8>) -> Self {
        let mut window = Self { classes: [[0; CLASSES]; WORDS], chunk: [0; WORDS], mark: [0; WORDS] };
        // Of the word before, only the last two bits matter.
        let (mut humps_before, mut capitals_before) = (0u64, 0u64);
        let words = bytes.chunks(WORD_BYTES).zip(&mut window.classes);
        for ((block, sets), chunk) in words.zip(&mut window.chunk) {
            let mut padded = [0; WORD_BYTES];
            let block = match block.first_chunk::<WORD_BYTES>() {
                Some(whole) => whole,
                None => {
                    padded[..block.len()].copy_from_slice(block);
                    &padded
                }
            };
            for (step, bytes) in block.as_chunks::<STEP>().0.iter().enumerate() {
                for (set, bits) in sets.iter_mut().zip(classify(u8x16::new(*bytes))) {
                    *set |= u64::from(bits.to_bitmask()) << (step * STEP);
                }
            }
            *chunk = sets.iter().fold(0, |all, set| all | set);
        }
        let after = u64::from(follows.is_some_and(is_chunk_byte));
        for (word, [lower, upper, digit, underscore, slash, dot, dash, colon, sign]) in
            window.classes.iter().enumerate().take(bytes.len().div_ceil(WORD_BYTES))
        {
            // A capital after a lower-case letter or digit, or a lower-case letter after two capitals.
            let before_hump = lower | digit;
            let hump = upper & (before_hump << 1 | humps_before >> (WORD_BYTES - 1));
            let capitals1 = upper << 1 | capitals_before >> (WORD_BYTES - 1);
            let capitals2 = upper << 2 | capitals_before >> (WORD_BYTES - 2);
            // A sign at the end of a word belongs to the sentence.
            let next = window.chunk.get(word + 1).copied().unwrap_or(after);
            let joining =
                (slash | dot | dash | colon | sign) & (window.chunk[word] >> 1 | next << (WORD_BYTES - 1));
            window.mark[word] = digit | underscore | joining | hump | (lower & capitals1 & capitals2);
            (humps_before, capitals_before) = (before_hump, *upper);
        }
        window
    }

    /// The classes that bytes of a range belong to.
    #[inline]
    fn classes_of(&self, range: &Range<usize>) -> u16 {
        let (first, last) = (range.start / WORD_BYTES, (range.end - 1) / WORD_BYTES);
        let mut held = 0;
        for word in first..=last {
            let mut inside = u64::MAX;
            if word == first {
                inside &= u64::MAX << (range.start % WORD_BYTES);
            }
            if word == last {
                inside &= u64::MAX >> (WORD_BYTES - 1 - (range.end - 1) % WORD_BYTES);
            }
            for (class, set) in self.classes[word].iter().enumerate() {
                held |= u16::from(set & inside != 0) << class;
            }
        }
        held
    }

    /// The first mark at or after a place.
    #[inline]
    fn next_mark(&self, at: usize) -> Option<usize> {
        let mut word = at / WORD_BYTES;
        let mut bits = self.mark.get(word)? & (u64::MAX << (at % WORD_BYTES));
        while bits == 0 {
            word += 1;
            bits = *self.mark.get(word)?;
        }
        Some(word * WORD_BYTES + bits.trailing_zeros() as usize)
    }

    /// Returns the chunk around a position; it does not start before `lowest`.
    #[inline]
    fn chunk_around(&self, place: usize, lowest: usize, length: usize) -> Range<usize> {
        let (mut word, bit) = (place / WORD_BYTES, place % WORD_BYTES);
        let mut outside = !self.chunk[word] & !(u64::MAX << bit);
        let start = loop {
            if outside != 0 {
                break word * WORD_BYTES + WORD_BYTES - outside.leading_zeros() as usize;
            }
            if word == 0 {
                break 0;
            }
            word -= 1;
            outside = !self.chunk[word];
        };
        word = place / WORD_BYTES;
        let mut outside = !self.chunk[word] & (u64::MAX << bit);
        let end = loop {
            if outside != 0 {
                break word * WORD_BYTES + outside.trailing_zeros() as usize;
            }
            word += 1;
            match self.chunk.get(word) {
                Some(chunk) => outside = !chunk,
                None => break WINDOW,
            }
        };
        start.max(lowest)..end.min(length)
    }

    fn is_in_chunk(&self, place: usize) -> bool {
        self.chunk[place / WORD_BYTES] >> (place % WORD_BYTES) & 1 != 0
    }
}

/// For each class, all ones where a byte belongs to it.
#[inline(always)]
fn classify(bytes: u8x16) -> [u8x16; CLASSES] {
    let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
    let signs =
        within(bytes, b'%', b'&') | within(bytes, b'?', b'@') | is(b'#') | is(b'+') | is(b'=') | is(b'~');
    [
        within(bytes, b'a', b'z'),
        within(bytes, b'A', b'Z'),
        within(bytes, b'0', b'9'),
        is(b'_'),
        is(b'/'),
        is(b'.'),
        is(b'-'),
        is(b':'),
        signs,
    ]
}

/// Returns all ones for bytes of the range, both ends included.
#[inline(always)]
fn within(bytes: u8x16, low: u8, high: u8) -> u8x16 {
    let above = bytes - u8x16::splat(low);
    above.simd_eq(above.min(u8x16::splat(high - low)))
}

#[cfg(test)]
#[path = "chunks_tests.rs"]
mod tests;
