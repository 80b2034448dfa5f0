//! Highlighting changes colours only, never text.

use super::*;

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn the_text_stays_as_it_is() {
    for (line, language) in [
        ("let x = \"a \\\" b\"; // don't", "rust"),
        ("print('it''s')  # 日本語 'open", "python"),
        ("it's an apostrophe", "text"),
        ("", "rust"),
        ("+added", "diff"),
        ("SELECT 1_000 -- why", "sql"),
    ] {
        assert_eq!(plain(&highlight(line, language)), line);
    }
}

#[test]
fn words_strings_numbers_and_comments_have_colours() {
    let line = highlight("let n = 42; // x", "rust");
    assert_eq!(line, format!("{} n = {}; {}", "let".blue(), "42".magenta(), "// x".dimmed()));
    assert_eq!(highlight("n42", "rust"), "n42");
    assert_eq!(highlight("-gone", "diff"), "-gone".red().to_string());
}
