//! Finds the end of a JSON string: the first quote that is not escaped.
//!
//! Source code in strings has an escape every few words, so a search that restarts after each one spends most of its time starting.
//! Instead, bytes are compared a block at a time, the result is stored as bits, and escapes are resolved there.

use wide::u8x16;

/// Bytes compared at once.
const STEP: usize = 16;
/// Bytes whose quotes and backslashes are resolved together, one bit each.
const BLOCK: usize = u64::BITS as usize;

/// Returns the end of the string whose first character is at `from`, and whether it contains a backslash; `None` if it never ends.
pub(crate) fn closing_quote(bytes: &[u8], from: usize) -> Option<(usize, bool)> {
    let rest = bytes.get(from..)?;
    // Keys, ids and other short strings end within the first step.
    if let Some(first) = rest.first_chunk::<STEP>() {
        let (quotes, backslashes) = (marks(first, b'"'), marks(first, b'\\'));
        let end = quotes.trailing_zeros();
        if quotes != 0 && end < backslashes.trailing_zeros() {
            return Some((from + end as usize, false));
        }
    }
    let mut escaped = false;
    let mut escapes = Escapes::default();
    blocks(rest).find_map(|(at, block)| {
        let backslashes = block_marks(&block, |step| marks(step, b'\\'));
        let end =
            (block_marks(&block, |step| marks(step, b'"')) & !escapes.escaped(backslashes)).trailing_zeros();
        escaped |= backslashes & below(end) != 0;
        (end < u64::BITS).then_some((from + at + end as usize, escaped))
    })
}

/// Like [`closing_quote`], but also `None` if the string contains anything that JSON does not allow in one.
pub(crate) fn closing_quote_of_valid(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    if let Some(first) = rest.first_chunk::<STEP>() {
        let (quotes, special) = (marks(first, b'"'), marks(first, b'\\') | controls(first));
        let end = quotes.trailing_zeros();
        if quotes != 0 && end < special.trailing_zeros() {
            return Some(from + end as usize);
        }
    }
    let mut escapes = Escapes::default();
    for (at, block) in blocks(rest) {
        let backslashes = block_marks(&block, |step| marks(step, b'\\'));
        let escaped = escapes.escaped(backslashes);
        let end = (block_marks(&block, |step| marks(step, b'"')) & !escaped).trailing_zeros();
        if block_marks(&block, controls) & below(end) != 0 {
            return None;
        }
        let mut introduced = backslashes & !escaped & below(end);
        while introduced != 0 {
            let escape = rest.get(at + introduced.trailing_zeros() as usize + 1..)?;
            is_escape(escape).then_some(())?;
            introduced &= introduced - 1;
        }
        if end < u64::BITS {
            return Some(from + at + end as usize);
        }
    }
    None
}

/// Whether the bytes after a backslash form an escape.
fn is_escape(bytes: &[u8]) -> bool {
    match bytes.first() {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
        Some(b'u') => bytes.get(1..5).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
        _ => false,
    }
}

/// Returns the blocks of a text with their offsets; the last is padded with zeros, which end no string and are not allowed in one.
fn blocks(bytes: &[u8]) -> impl Iterator<Item = (usize, [u8; BLOCK])> {
    let (whole, tail) = bytes.as_chunks::<BLOCK>();
    let last = (!tail.is_empty()).then(|| {
        let mut last = [0; BLOCK];
        last[..tail.len()].copy_from_slice(tail);
        last
    });
    whole.iter().copied().chain(last).enumerate().map(|(index, block)| (index * BLOCK, block))
}

/// Returns the bytes of a block for which a test holds, as bits.
#[inline]
fn block_marks(block: &[u8; BLOCK], test: impl Fn(&[u8; STEP]) -> u32) -> u64 {
    let steps = block.as_chunks::<STEP>().0.iter().enumerate();
    steps.fold(0, |all, (index, step)| all | u64::from(test(step)) << (index * STEP))
}

/// Returns the positions of a byte, as bits.
#[inline]
fn marks(step: &[u8; STEP], byte: u8) -> u32 {
    u8x16::new(*step).simd_eq(u8x16::splat(byte)).to_bitmask()
}

/// Returns the positions of control characters, as bits.
#[inline]
fn controls(step: &[u8; STEP]) -> u32 {
    let bytes = u8x16::new(*step);
    bytes.simd_eq(bytes.min(u8x16::splat(0x1F))).to_bitmask()
}

/// All positions before `end`.
#[inline]
fn below(end: u32) -> u64 {
    1u64.checked_shl(end).unwrap_or(0).wrapping_sub(1)
}

/// Finds escaped positions, block after block.
#[derive(Default)]
struct Escapes {
    /// One if the first byte of the next block is escaped by the last of this one.
    carried: u64,
}

impl Escapes {
    /// Returns the positions that are escaped by a backslash before them. Of consecutive backslashes every other one is itself escaped:
    /// subtracting the bit where a run starts from the odd positions lets the borrow run to the end of the run, which gives the parity of
    /// the start for all runs at once.
    #[inline]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        const ODD: u64 = u64::MAX / 3 * 2;
        if backslashes == 0 {
            return std::mem::take(&mut self.carried);
        }
        let begun = backslashes & !self.carried;
        let escaping_and_ends = (begun << 1 | ODD).wrapping_sub(begun) ^ ODD;
        let escaped = escaping_and_ends ^ (backslashes | self.carried);
        self.carried = (escaping_and_ends & backslashes) >> (u64::BITS - 1);
        escaped
    }
}

#[cfg(test)]
#[path = "quotes_tests.rs"]
mod tests;
