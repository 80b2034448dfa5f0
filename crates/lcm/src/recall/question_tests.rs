//! Tests of the words searched for a question, and of the accepted sources of an answer.

use super::*;

#[test]
fn messages_that_an_answer_names_were_read() {
    let read = [3, 12, 40];
    let named = |text: &str| named_messages(text, &read);
    assert_eq!(named("It lives in vault/ [12], and was moved [40, 3]. See [99] and [n12]."), [3, 12, 40]);
    assert_eq!(named("Nobody says so."), [] as [u64; 0]);
    assert_eq!(named("[12"), [] as [u64; 0]);
    assert_eq!(named("[12; 12] ]["), [12]);
}

#[test]
fn long_words_of_a_question_are_looked_for() {
    assert_eq!(words_of("Where is `src/engine.rs`, and who owns it?"), ["src/engine.rs", "where", "owns"]);
    assert_eq!(words_of("a b c"), [] as [&str; 0]);
}
