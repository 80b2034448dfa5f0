//! Tests of cutting texts into windows.

use super::*;

fn sizes(text: &str) -> Vec<usize> {
    windows(text).into_iter().map(|window| count_words(&text[window], usize::MAX)).collect()
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
        windows(&"x".repeat(100_000)).iter().all(|window| window.len() <= PASSAGE_WORDS * WORD_CHARACTERS)
    );
    let han = "数据库连接超时".repeat(100);
    assert!(windows(&han).iter().all(|window| han[window.clone()].chars().count() <= PASSAGE_WORDS * 2));
}

#[test]
fn ends_of_texts_are_counted_in_words() {
    let text = "one two  three\nfour";
    assert_eq!(&text[first_words(text, 2)], "one two");
    assert_eq!(&text[last_words(text, 2)], "three\nfour");
    assert_eq!(first_words("", 3), 0..0);
}
