//! Tests that a snapshot sent to another process and back is identical byte for byte.

use std::sync::Arc;

use throughline_store::SessionId;
use throughline_transcript::{Message, SharedText, WireFormat, decode_message};

use super::Snapshot;

fn message(json: &str) -> Message {
    decode_message(SharedText::new(json.to_owned())).unwrap()
}

fn snapshot(messages: Vec<Message>) -> Snapshot {
    let sizes = (1..=messages.len() as u64).collect();
    Snapshot {
        session: SessionId::from_text("s1"),
        wire_format: WireFormat::Anthropic,
        messages: Arc::new(messages),
        sizes: Arc::new(sizes),
        fixed_tokens: 7,
        cached_prompt: None,
        prompt_tokens: 11,
    }
}

#[test]
fn messages_survive_json_byte_for_byte() {
    let odd = r#"{ "role":"user","content":"caf\u00e9","seed":12345678901234567890123,"t":1.0e2 }"#;
    let before = snapshot(vec![message(odd), message(r#"{"role":"assistant","content":[]}"#)]);
    let text = serde_json::to_string(&before).unwrap();
    let after: Snapshot = serde_json::from_str(&text).unwrap();
    let bytes = |s: &Snapshot| s.messages.iter().map(|m| m.json().to_owned()).collect::<Vec<_>>();
    assert_eq!(bytes(&after), bytes(&before));
    assert_eq!(
        (after.session, after.wire_format, after.fixed_tokens, after.prompt_tokens),
        (before.session, before.wire_format, 7, 11)
    );
    assert_eq!(after.sizes, before.sizes);
}

#[test]
fn what_a_program_wrote_stays_known_as_such() {
    let note = message(r#"{"role":"user","content":"do it"}"#).marked_machine_written();
    let text = serde_json::to_string(&snapshot(vec![note])).unwrap();
    let after: Snapshot = serde_json::from_str(&text).unwrap();
    assert!(!after.messages[0].is_human());
}

#[test]
fn an_item_that_is_no_message_is_refused_by_its_place() {
    let text = r#"{"session":"s","dialect":"chat","messages":[{"json":{"role":"user","content":"a"},"tokens":1},
        {"json":17,"tokens":1}],"fixed_tokens":0,"prompt_tokens":0}"#;
    let error = serde_json::from_str::<Snapshot>(text).unwrap_err();
    assert!(error.to_string().contains("item 1 is no message"), "{error}");
}

#[test]
fn the_estimate_counts_messages_and_the_fixed_part() {
    let one = snapshot(vec![message(r#"{"role":"user","content":"a"}"#)]);
    let two = snapshot(vec![one.messages[0].clone(), message(r#"{"role":"user","content":"b"}"#)]);
    assert_eq!(two.estimated_tokens(), 1 + 2 + 7);
}
