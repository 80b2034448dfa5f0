use throughline_transcript::{Message, Role, SharedText, WireFormat, decode_message, text_message};

use super::{HEADING, MAX_BYTES, is_sentence, list_names};

fn message(role: Role, text: &str) -> Message {
    decode_message(SharedText::new(text_message(WireFormat::Chat, role, text))).unwrap()
}

fn listed(question: &str, past: &[&str], view: &[&str]) -> Option<String> {
    let past: Vec<Message> = past.iter().map(|text| message(Role::User, text)).collect();
    let view: Vec<Message> = view.iter().map(|text| message(Role::User, text)).collect();
    let numbered: Vec<(u64, &Message)> = (0..).zip(&past).collect();
    list_names(question, &numbered, &view)
}

#[test]
fn names_that_are_in_view_are_not_listed() {
    let past = ["src/pool.rs has open_pool and close_pool", "then read_all was added"];
    let list = listed("now I close the pool", &past, &["read_all stays, src/pool.rs too"]).unwrap();
    assert_eq!(list, format!("{HEADING}\nmessage 0: close_pool, open_pool"));
}

#[test]
fn view_with_all_names_has_no_list() {
    assert_eq!(listed("go on", &["open_pool"], &["open_pool"]), None);
    assert_eq!(listed("go on", &["no names here"], &[]), None);
}

#[test]
fn list_is_never_longer_than_its_limit() {
    let many: Vec<String> =
        (0..40).map(|text| (0..80).map(|name| format!("name_{text}_{name} ")).collect()).collect();
    let past: Vec<&str> = many.iter().map(String::as_str).collect();
    let list = listed("go on", &past, &[]).unwrap();
    assert!(list.len() <= MAX_BYTES && list.len() > MAX_BYTES - 40, "{}", list.len());
}

#[test]
fn question_of_a_few_words_gets_no_list() {
    assert!(!is_sentence("open_pool in src") && is_sentence("now I close the pool"));
}
