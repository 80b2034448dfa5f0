//! How many cases a property is tried with.

/// The cases of a property: `usual`, or fewer where `PROPTEST_CASES` is lower. A property that is expensive to try has a low number
/// of its own, so that one variable bounds the cheap ones and leaves the others.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the person who runs the tests chooses how long they take")]
pub fn cases(usual: u32) -> u32 {
    let bound = std::env::var("PROPTEST_CASES").ok().and_then(|value| value.parse::<u32>().ok());
    bound.map_or(usual, |bound| usual.min(bound.max(1)))
}
