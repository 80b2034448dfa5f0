//! Tests of pieces of artifacts.

use super::*;

fn lines(text: &str, first: u64, count: u64) -> &str {
    ArtifactRange::Lines { first, count }.of(text)
}

fn bytes(text: &str, first: u64, count: u64) -> &str {
    ArtifactRange::Bytes { first, count }.of(text)
}

#[test]
fn lines_are_counted_from_one_and_keep_their_ends() {
    let text = "one\r\ntwo\n\nfour";
    assert_eq!(lines(text, 1, 1), "one\r\n");
    assert_eq!(lines(text, 0, 1), "one\r\n");
    assert_eq!(lines(text, 2, 2), "two\n\n");
    assert_eq!(lines(text, 4, 1), "four");
    assert_eq!(lines(text, 4, u64::MAX), "four");
    assert_eq!(lines(text, 5, 1), "");
    assert_eq!(lines(text, u64::MAX, u64::MAX), "");
    assert_eq!(lines(text, 1, 0), "");
    assert_eq!(lines("", 1, 9), "");
}

#[test]
fn a_break_at_the_end_begins_no_line() {
    assert_eq!(NewArtifact::count_lines(""), 0);
    assert_eq!(NewArtifact::count_lines("\n"), 1);
    assert_eq!(NewArtifact::count_lines("one"), 1);
    assert_eq!(NewArtifact::count_lines("one\n"), 1);
    assert_eq!(NewArtifact::count_lines("one\ntwo"), 2);
}

#[test]
fn pieces_by_byte_move_inwards_to_whole_characters() {
    let text = "a\u{e9}\u{4e2d}z"; // 1 + 2 + 3 + 1 bytes
    assert_eq!(bytes(text, 0, 7), text);
    assert_eq!(bytes(text, 0, u64::MAX), text);
    assert_eq!(bytes(text, 1, 2), "\u{e9}");
    assert_eq!(bytes(text, 2, 5), "\u{4e2d}z");
    assert_eq!(bytes(text, 1, 4), "\u{e9}");
    assert_eq!(bytes(text, 4, 1), "");
    assert_eq!(bytes(text, 2, 0), "");
    assert_eq!(bytes(text, 7, 1), "");
    assert_eq!(bytes(text, u64::MAX, u64::MAX), "");
}

#[test]
fn all_is_all() {
    assert_eq!(ArtifactRange::All.of("x\ny"), "x\ny");
}
