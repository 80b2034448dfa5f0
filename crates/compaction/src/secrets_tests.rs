//! Pieces of secrets are known by where they stood; the same shapes elsewhere are left alone.

use throughline_transcript::{Dialect, Groups, Role, decode_message_text, text_message};

use super::*;

fn is_piece(said: &[&str], text: &str) -> bool {
    let messages: Vec<Message> = said
        .iter()
        .map(|words| decode_message_text(text_message(Dialect::Chat, Role::User, words)).unwrap())
        .collect();
    let ledger = Ledger::of(&messages, &Groups::of(&messages));
    Pieces::new(&messages, &ledger, &Redactor::new()).is_piece(text)
}

#[test]
fn a_piece_is_known_by_the_line_it_was_taken_from() {
    assert!(is_piece(&["password: \"tr0ub4dor&3-battery\""], "tr0ub4dor"));
    assert!(!is_piece(&["the release is called tr0ub4dor"], "tr0ub4dor"));
    assert!(!is_piece(&["MAX_TOKENS=4096 in config2json"], "config2json"));
    assert!(!is_piece(&["nothing of the kind"], "tr0ub4dor"));
}

#[test]
fn a_name_that_was_once_a_secret_is_one_everywhere_it_is_first_or_last_seen() {
    assert!(is_piece(&["what is abc123xyz?", "password = abc123xyz!9"], "abc123xyz"));
    assert!(is_piece(&["password = abc123xyz!9", "what is abc123xyz?"], "abc123xyz"));
}

#[test]
fn pieces_are_masked_in_place_and_nothing_else() {
    let words = "password: \"tr0ub4dor&3-battery\" for src/main.rs, value_12";
    let messages = vec![decode_message_text(text_message(Dialect::Chat, Role::User, words)).unwrap()];
    let ledger = Ledger::of(&messages, &Groups::of(&messages));
    let mut document = SummaryDocument::default();
    document.add(Section::CriticalContext, "exact: tr0ub4dor, src/main.rs, tr0ub4dor and value_12 ✓");
    let count = Pieces::new(&messages, &ledger, &Redactor::new()).mask(&mut document);
    let text = &document.entries(Section::CriticalContext)[0].text;
    assert_eq!((count, text.as_str()), (2, "exact: [redacted], src/main.rs, [redacted] and value_12 ✓"));
}
