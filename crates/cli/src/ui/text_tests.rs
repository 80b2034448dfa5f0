//! Text made safe for a terminal.

use owo_colors::OwoColorize as _;

use super::*;

#[test]
fn escape_sequences_do_not_survive() {
    assert_eq!(printable("\u{1b}[31mred\u{1b}[0m \u{1b}[2Jgone"), "red gone");
    assert_eq!(printable("\u{1b}]0;title\u{7}after"), "after");
    assert_eq!(printable("\u{1b}]8;;http://x\u{1b}\\link"), "link");
    assert_eq!(printable("a\u{1b}(Bb\u{1b}"), "ab");
    assert_eq!(printable("one\r\ntwo\tx\u{0}\u{202e}y"), "one\ntwo    xy");
    assert_eq!(printable("\u{1b}[31\nkept"), "\nkept");
}

#[test]
fn a_glimpse_is_one_line_of_bounded_width() {
    assert_eq!(glimpse("fn main() {\n    run();\n}", 40), "fn main() { run(); }");
    assert_eq!(glimpse("abcdefghij", 5), "abcd…");
    assert_eq!(glimpse("ab    cdefg", 4), "ab…");
    assert_eq!(glimpse("日本語のテキスト", 7), "日本語…");
    assert_eq!(glimpse(&" ".repeat(5000), 7), "…");
    assert_eq!(glimpse("x", 0), "");
    let long = "word ".repeat(1_000_000);
    assert_eq!(columns(&glimpse(&long, 30)), 30);
}

#[test]
fn lines_are_wrapped_at_spaces_and_hang() {
    assert_eq!(wrap("- one two three", 9, 2), "- one two\n  three\n");
    assert_eq!(wrap("  1. aaaa bbbb", 9, 3), "  1. aaaa\n     bbbb\n");
    assert_eq!(wrap("unbreakablelongword x", 8, 0), "unbreakablelongword\nx\n");
    assert_eq!(wrap("short\n\nnext", 80, 0), "short\n\nnext\n");
}

#[test]
fn numbers_are_readable() {
    assert_eq!(thousands(0), "0");
    assert_eq!(thousands(999), "999");
    assert_eq!(thousands(1_000), "1,000");
    assert_eq!(thousands(1_234_567), "1,234,567");
    assert_eq!(bytes_words(12), "12 bytes");
    assert_eq!(bytes_words(999), "999 bytes");
    assert_eq!(bytes_words(1_500), "1.5 KB");
    assert_eq!(bytes_words(999_700), "1.0 MB");
    assert_eq!(bytes_words(123_456_789), "123 MB");
    assert_eq!(counted(1, "message", "messages"), "1 message");
    assert_eq!(counted(1200, "message", "messages"), "1,200 messages");
    assert_eq!(percent(0, 10), "0.0 %");
    assert_eq!(percent(1, 10_000), "<0.1 %");
    assert_eq!(percent(1, 2), "50 %");
    assert_eq!(percent(1, 0), "-");
}

#[test]
fn lines_with_colours_break_between_words() {
    let line = format!("  {} two three  four", "one".red());
    assert_eq!(wrap_styled(&line, 40, 2), line, "what fits is left alone");
    assert_eq!(wrap_styled(&line, 12, 2), format!("  {} two\n    three\n    four", "one".red()));
    assert_eq!(wrap_styled("a\nbb cc\n", 4, 0), "a\nbb\ncc\n");
    assert_eq!(wrap_styled("averylongword x", 5, 0), "averylongword\nx");
}

#[test]
fn streamed_text_reaches_the_terminal_without_what_it_acts_on() {
    assert_eq!(streamed("a\u{202e}b\u{2066}c\u{200f}d\u{9b}e"), "a\\u{202e}b\\u{2066}cde");
    // Split in two: the rest of an escape sequence is plain text.
    assert_eq!(format!("{}{}", streamed("x\u{1b}"), streamed("[2J\ty\n")), "x[2J\ty\n");
    assert_eq!(streamed("👩\u{200d}👧 ⚠\u{fe0f} caf\u{e9}"), "👩\u{200d}👧 ⚠\u{fe0f} caf\u{e9}");
}
