//! What cannot be ridden on, and how a message is pointed at.

use throughline_transcript::{Dialect, SharedText, decode_message};
use throughline_wire::RequestParts;

use super::*;

#[test]
fn a_request_that_leaves_no_choice_is_not_ridden_on() {
    let with = |dialect: Dialect, name: &str, json: &str| {
        let mut request = Request::build(dialect, &RequestParts::new("m"), Vec::new()).unwrap();
        request.set_member(name, json).unwrap();
        is_constrained(&request)
    };
    let constrained = [
        (Dialect::Chat, "tool_choice", "\"required\""),
        (Dialect::Chat, "tool_choice", r#"{"type":"function","function":{"name":"f"}}"#),
        (Dialect::Anthropic, "tool_choice", r#"{"type":"any"}"#),
        (Dialect::Anthropic, "tool_choice", r#"{"type":"tool","name":"f"}"#),
        (Dialect::Chat, "response_format", r#"{"type":"json_object"}"#),
        (Dialect::Responses, "text", r#"{"format":{"type":"json_schema","name":"x","schema":{}}}"#),
        (Dialect::Chat, "stop", r####"["###"]"####),
        (Dialect::Anthropic, "stop_sequences", r####"["###"]"####),
        (Dialect::Chat, "n", "2"),
    ];
    for (dialect, name, json) in constrained {
        assert!(with(dialect, name, json), "{name}: {json}");
    }
    let free = [
        (Dialect::Chat, "tool_choice", "\"auto\""),
        (Dialect::Anthropic, "tool_choice", r#"{"type":"auto","disable_parallel_tool_use":true}"#),
        (Dialect::Chat, "response_format", r#"{"type":"text"}"#),
        (Dialect::Responses, "text", r#"{"verbosity":"low"}"#),
        (Dialect::Chat, "stop", "null"),
        (Dialect::Anthropic, "stop_sequences", "[]"),
        (Dialect::Chat, "n", "1"),
        (Dialect::Chat, "temperature", "0"),
    ];
    for (dialect, name, json) in free {
        assert!(!with(dialect, name, json), "{name}: {json}");
    }
}

#[test]
fn a_message_is_pointed_at_by_what_can_be_seen_of_it() {
    let long = format!(r#"{{"role":"user","content":"And now\n{}"}}"#, "words ".repeat(100));
    let cases = [
        (r#"{"role":"user","content":"And  on\nWindows?"}"#, "the one that begins \"And on Windows?\""),
        (
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"run","arguments":"{}"}}]}"#,
            "the one that calls run",
        ),
        (r#"{"role":"tool","tool_call_id":"c","content":"a.rs"}"#, "the result that begins \"a.rs\""),
        (r#"{"type":"reasoning","id":"r","summary":[]}"#, "there"),
    ];
    for (json, words) in cases {
        assert_eq!(pointer(&decode_message(SharedText::new(json.to_owned())).unwrap()), words);
    }
    let pointed = pointer(&decode_message(SharedText::new(long)).unwrap());
    assert!(pointed.chars().count() < 200, "{pointed}");
}
