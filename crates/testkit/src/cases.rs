//! The number of cases of a property test.

/// Returns `usual`, or `PROPTEST_CASES` if that is lower. Expensive properties pass a low number, so that one variable limits the cheap
/// ones and leaves the others unchanged.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the person who runs the tests chooses how long they take")]
pub fn cases(usual: u32) -> u32 {
    let bound = std::env::var("PROPTEST_CASES").ok().and_then(|value| value.parse::<u32>().ok());
    bound.map_or(usual, |bound| usual.min(bound.max(1)))
}
