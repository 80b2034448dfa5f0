//! Numbers with their noun, for people and models: `1 line`, `2 lines`.

/// Formats a number and its noun.
#[must_use]
pub fn counted(count: u64, singular: &str, plural: &str) -> String {
    format!("{count} {}", noun(count, singular, plural))
}

/// The form of a noun after a number.
#[must_use]
pub fn noun<'a>(count: u64, singular: &'a str, plural: &'a str) -> &'a str {
    if count == 1 { singular } else { plural }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_everything_else_is_plural() {
        assert_eq!(counted(0, "line", "lines"), "0 lines");
        assert_eq!(counted(1, "line", "lines"), "1 line");
        assert_eq!(counted(21, "match", "matches"), "21 matches");
    }
}
