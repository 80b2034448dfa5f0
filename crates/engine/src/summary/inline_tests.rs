//! Tests of the obstacles, and of the text that identifies a message.

use throughline_transcript::{SharedText, WireFormat, decode_message};
use throughline_wire::RequestParts;

use super::*;

#[test]
fn a_request_that_leaves_no_choice_is_not_ridden_on() {
    let with = |wire_format: WireFormat, name: &str, json: &str| {
        let mut request = Request::build(wire_format, &RequestParts::new("m"), Vec::new()).unwrap();
        request.set_member(name, json).unwrap();
        is_constrained(&request)
    };
    let constrained = [
        (WireFormat::Chat, "tool_choice", "\"required\""),
        (WireFormat::Chat, "tool_choice", r#"{"type":"function","function":{"name":"f"}}"#),
        (WireFormat::Anthropic, "tool_choice", r#"{"type":"any"}"#),
        (WireFormat::Anthropic, "tool_choice", r#"{"type":"tool","name":"f"}"#),
        (WireFormat::Chat, "response_format", r#"{"type":"json_object"}"#),
        (WireFormat::Responses, "text", r#"{"format":{"type":"json_schema","name":"x","schema":{}}}"#),
        (WireFormat::Chat, "stop", r####"["###"]"####),
        (WireFormat::Anthropic, "stop_sequences", r####"["###"]"####),
        (WireFormat::Chat, "n", "2"),
    ];
    for (wire_format, name, json) in constrained {
        assert!(with(wire_format, name, json), "{name}: {json}");
    }
    let free = [
        (WireFormat::Chat, "tool_choice", "\"auto\""),
        (WireFormat::Anthropic, "tool_choice", r#"{"type":"auto","disable_parallel_tool_use":true}"#),
        (WireFormat::Chat, "response_format", r#"{"type":"text"}"#),
        (WireFormat::Responses, "text", r#"{"verbosity":"low"}"#),
        (WireFormat::Chat, "stop", "null"),
        (WireFormat::Anthropic, "stop_sequences", "[]"),
        (WireFormat::Chat, "n", "1"),
        (WireFormat::Chat, "temperature", "0"),
    ];
    for (wire_format, name, json) in free {
        assert!(!with(wire_format, name, json), "{name}: {json}");
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
