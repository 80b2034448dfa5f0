//! Tests of cutting texts into windows.

use super::*;

fn sizes(text: &str) -> Vec<usize> {
    TextWords(text).windows().into_iter().map(|window| TextWords(&text[window]).count(usize::MAX)).collect()
}

#[test]
fn windows_are_of_equal_size() {
    assert_eq!(sizes(&"word ".repeat(80)), [80]);
    assert_eq!(sizes(&"word ".repeat(81)), [41, 40]);
    assert_eq!(sizes(&"word ".repeat(200)), [67, 67, 66]);
    assert!(sizes(" \n ").is_empty());
}

#[test]
fn strings_without_spaces_are_cut() {
    assert!(
        TextWords(&"x".repeat(100_000))
            .windows()
            .iter()
            .all(|window| window.len() <= TextWords::PER_PASSAGE * WORD_CHARACTERS)
    );
    let han = "数据库连接超时".repeat(100);
    assert!(
        TextWords(&han)
            .windows()
            .iter()
            .all(|window| han[window.clone()].chars().count() <= TextWords::PER_PASSAGE * 2)
    );
}

#[test]
fn ends_of_texts_are_counted_in_words() {
    let text = "one two  three\nfour";
    assert_eq!(&text[TextWords(text).first(2)], "one two");
    assert_eq!(&text[TextWords(text).last(2)], "three\nfour");
    assert_eq!(TextWords("").first(3), 0..0);
}
