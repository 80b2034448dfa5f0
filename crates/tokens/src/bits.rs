//! Sets of positions in a stretch of text, one bit each, and the classes a position may belong to.
//!
//! Bytes are compared sixteen at a time and the result is stored as bits, so that combining classes at neighbouring positions is a shift
//! and an `and` for 64 positions at once. There is no branch per byte and no table, so the speed does not depend on the text.

use std::ops::{BitAnd, BitOr, Not};

use wide::u8x16;

use crate::lanes::{HISTORY, Lane, SPAN};

const WORD_BITS: usize = u64::BITS as usize;
const WORDS: usize = SPAN / WORD_BITS;
/// Bytes compared at once.
const STEP: usize = 16;

/// A set of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits([u64; WORDS]);

impl Bits {
    /// Returns the positions whose predecessor, `by` positions back, is in the set.
    #[inline(always)]
    pub(crate) fn after(self, by: usize) -> Self {
        let mut carried = 0;
        Self(self.0.map(|word| {
            let moved = word << by | carried;
            carried = word >> (WORD_BITS - by);
            moved
        }))
    }

    /// Returns how many positions of the stretch are in the set; the history is not counted again.
    #[inline(always)]
    pub(crate) fn count(self) -> u32 {
        let [first, rest @ ..] = self.0;
        (first >> HISTORY).count_ones() + rest.iter().map(|word| word.count_ones()).sum::<u32>()
    }

    /// Returns the positions that a lane marks with ones.
    #[inline(always)]
    pub(crate) fn of_lane(lane: &Lane) -> Self {
        let mut bits = [0; WORDS];
        for (index, step) in lane.as_chunks::<STEP>().0.iter().enumerate() {
            let at = index * STEP;
            bits[at / WORD_BITS] |= u64::from(u8x16::new(*step).to_bitmask()) << (at % WORD_BITS);
        }
        Self(bits)
    }
}

impl BitAnd for Bits {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }
}

impl BitOr for Bits {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }
}

impl Not for Bits {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        Self(self.0.map(|word| !word))
    }
}

/// The classes every byte is sorted into.
pub(crate) struct Classes {
    pub(crate) letter: Bits,
    pub(crate) capital: Bits,
    pub(crate) vowel: Bits,
    /// Letters that occur in few words.
    pub(crate) rare: Bits,
    pub(crate) digit: Bits,
    pub(crate) graphic: Bits,
    pub(crate) blank: Bits,
    pub(crate) tab: Bits,
    pub(crate) newline: Bits,
    pub(crate) control: Bits,
    pub(crate) slash: Bits,
    /// Bytes equal to the one before.
    pub(crate) repeated: Bits,
}

const CLASSES: usize = 12;

/// Sorts the bytes of a window.
#[inline(always)]
pub(crate) fn classify(text: &Lane) -> Classes {
    let mut sets = [[0u64; WORDS]; CLASSES];
    for (word, chunk) in text.chunks_exact(WORD_BITS).enumerate() {
        for (quarter, bytes) in chunk.as_chunks::<STEP>().0.iter().enumerate() {
            let at = word * WORD_BITS + quarter * STEP;
            let before = match at.checked_sub(1).and_then(|from| text.get(from..)?.first_chunk::<STEP>()) {
                Some(before) => u8x16::new(*before),
                // The first position of the history is never counted.
                None => u8x16::splat(0),
            };
            let masks = classify_step(u8x16::new(*bytes), before);
            for (set, mask) in sets.iter_mut().zip(masks) {
                set[word] |= u64::from(mask.to_bitmask()) << (quarter * STEP);
            }
        }
    }
    let [letter, capital, vowel, rare, digit, graphic, blank, tab, newline, control, slash, repeated] =
        sets.map(Bits);
    Classes { letter, capital, vowel, rare, digit, graphic, blank, tab, newline, control, slash, repeated }
}

#[inline(always)]
fn classify_step(bytes: u8x16, before: u8x16) -> [u8x16; CLASSES] {
    let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
    let small = bytes | u8x16::splat(0x20);
    let is_letter = |byte: u8| small.simd_eq(u8x16::splat(byte));
    let tab = is(b'\t');
    let letter = within(small, b'a', b'z');
    [
        letter,
        // Letters differ from their capitals in one bit.
        letter & !bytes.simd_eq(small),
        is_letter(b'a') | is_letter(b'e') | is_letter(b'i') | is_letter(b'o') | is_letter(b'u'),
        within(small, b'v', b'x') | within(small, b'j', b'k') | is_letter(b'q') | is_letter(b'z'),
        within(bytes, b'0', b'9'),
        within(bytes, b'!', b'~'),
        is(b' ') | tab,
        tab,
        is(b'\n'),
        within(bytes, 0, 0x1F),
        is(b'/'),
        bytes.simd_eq(before),
    ]
}

/// Returns all ones for bytes of the range, both ends included.
#[inline(always)]
fn within(bytes: u8x16, low: u8, high: u8) -> u8x16 {
    let above = bytes - u8x16::splat(low);
    above.simd_eq(above.min(u8x16::splat(high - low)))
}
