//! Loops over a stretch of text in a form that the compiler vectorises.
//!
//! A *lane* has one byte for each position of a stretch: all ones if the position belongs to a class, and zero otherwise. Shapes are
//! counted by combining lanes at neighbouring positions; the counters are eight bits wide, which is why a stretch is shorter than 256
//! positions. There is no branch per byte and no table, so the speed does not depend on the text, and there is no `unsafe`.

/// Positions before the stretch that shapes may use; the longest is a run of twelve.
pub(crate) const HISTORY: usize = 16;
/// Positions counted at once.
pub(crate) const STRETCH: usize = 240;
/// History and stretch together.
pub(crate) const SPAN: usize = HISTORY + STRETCH;
/// The filler for positions without text: a control character that is in no class, so that it counts as nothing.
pub(crate) const FILLER: u8 = 0x7F;

/// One byte for each position, the history first.
pub(crate) type Lane = [u8; SPAN];

/// Returns all ones for true, zero for false.
#[inline(always)]
pub(crate) fn mask(yes: bool) -> u8 {
    0u8.wrapping_sub(u8::from(yes))
}

/// Returns all ones for a byte of the range, both ends included.
#[inline(always)]
pub(crate) fn within(byte: u8, low: u8, high: u8) -> u8 {
    mask(byte.wrapping_sub(low) <= high - low)
}

/// Returns, for each of `N` shapes, the number of positions of the stretch for which `shapes` gives all ones.
#[inline(always)]
pub(crate) fn count<const N: usize>(shapes: impl Fn(usize) -> [u8; N]) -> [u32; N] {
    let mut sums = [0u8; N];
    for at in HISTORY..SPAN {
        let hits = shapes(at);
        for (sum, hit) in sums.iter_mut().zip(hits) {
            *sum = sum.wrapping_sub(hit);
        }
    }
    sums.map(u32::from)
}
