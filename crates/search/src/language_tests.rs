//! Tests of telling languages apart, and of stems.

use super::*;

fn language(question: &str) -> Language {
    Language::of_words(question.split_whitespace())
}

#[test]
fn question_language_follows_its_function_words() {
    assert_eq!(language("why did we drop the retry queue").stem("dropping").as_deref(), Some("drop"));
    assert_eq!(language("warum wurden die tests nicht ausgefuhrt").stem("fehlern").as_deref(), Some("fehl"));
    assert!(language("quel est le fichier").is_function_word("quel"));
    assert!(!language("quel est le fichier").is_function_word("the"));
}

#[test]
fn question_without_function_words_is_english() {
    assert!(language("retry queue").is_function_word("the"));
}

#[test]
fn numbers_and_short_words_have_no_stem() {
    let language = language("what is it");
    assert_eq!(language.stem("42"), None);
    assert_eq!(language.stem("v2"), None);
    assert_eq!(language.stem("go"), None);
}
