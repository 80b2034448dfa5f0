//! Tests of reading questions.

use super::*;
use crate::fingerprint::FingerprintSet;

fn word(question: &str, term: &str) -> Option<usize> {
    Question::new(question).word_of(term, false)
}

#[test]
fn function_words_are_left_out() {
    assert_eq!(Question::new("why did we drop the retry queue?").len(), 3);
}

#[test]
fn question_of_function_words_keeps_them() {
    assert_eq!(Question::new("what is it").len(), 3);
}

#[test]
fn punctuation_alone_has_no_words() {
    assert!(Question::new("?!. -- ()").is_empty());
}

#[test]
fn forms_of_a_word_are_found() {
    assert!(word("why was the queue dropped", "drop").is_some());
    assert!(word("which decisions", "decision").is_some());
    assert!(word("which decisions", "decent").is_none());
}

#[test]
fn identifiers_are_found_whole_and_in_parts() {
    let question = Question::new("what does restoreLogsOnly do");
    assert!(question.word_of("restorelogsonly", true).is_some());
    assert!(question.word_of("restore", false).is_some());
}

#[test]
fn scripts_without_spaces_are_found_by_pairs() {
    let question = Question::new("数据库连接");
    assert_eq!(question.len(), 4);
    assert!(question.word_of("据库", true).is_some());
}

#[test]
fn long_questions_keep_their_longest_words() {
    let text: String = (0..20_000).map(|n| format!("word{} ", "x".repeat(n % 40))).collect();
    assert_eq!(Question::new(&text).len(), MAX_QUESTION_WORDS);
}

#[test]
fn every_looked_up_form_is_indexed() {
    for (question, text) in [
        ("retries", "a retry of it"),
        ("compacting", "two compactions"),
        ("queues", "queue"),
        ("dropped", "we drop it"),
        ("memory", "memories"),
        ("数据库连接", "打开数据库"),
    ] {
        let mut set = FingerprintSet::default();
        set.add_text(text);
        let indexed = set.take();
        let look_ups = Question::new(question).look_ups(32);
        let is_found = look_ups.iter().any(|(_, any)| any.iter().any(|wanted| indexed.contains(wanted)));
        assert!(is_found, "{question} in {text}");
    }
}

#[test]
fn irregular_forms_are_forms_of_the_word() {
    let question = Question::new("where did Ann go, and who taught the children?");
    for (term, word) in [("went", "go"), ("gone", "go"), ("teach", "taught"), ("child", "children")] {
        assert!(question.word_of(term, false).is_some(), "{term} is a form of {word}");
    }
    assert_eq!(question.word_of("wind", false), None);
    let german = Question::new("warum ist das nicht gut");
    assert_eq!(german.word_of("better", false), None, "English forms are for English questions");
}
