//! Tests of the properties of messages, and of the messages that Throughline writes.

use super::*;
use crate::blocks::decode_message_text;
use crate::write::{WireFormat, text_message, tool_result_stub};

fn message(json: &str) -> Message {
    decode_message_text(json.to_owned()).unwrap()
}

#[test]
fn texts_are_joined_by_line_breaks() {
    let several = message(
        r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"thinking","thinking":"not this"},{"type":"text","text":"b\u00e9"}]}"#,
    );
    assert_eq!(several.text(), "a\nbé");
    let one = message(r#"{"role":"user","content":"plain"}"#);
    assert!(matches!(one.text(), Cow::Borrowed("plain")), "one text without escapes is not copied");
    assert_eq!(message(r#"{"role":"assistant"}"#).text(), "");
}

#[test]
fn result_texts_are_those_of_its_pieces() {
    let result = message(
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"},{"type":"image","source":{}},{"type":"text","text":"b"}]}]}"#,
    );
    let Part::ToolResult { content, .. } = &result.parts()[0] else { panic!("{:?}", result.parts()) };
    assert_eq!(result.result_text(content), "a\nb");
    assert!(result.has_image() && result.has_results() && !result.has_calls());
}

#[test]
fn arguments_are_json_text_on_every_wire() {
    for (json, text) in [
        (r#"{"type":"function_call","call_id":"c","name":"n","arguments":"{\"a\":1.0}"}"#, r#"{"a":1.0}"#),
        (
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{ "a":1.0 }}]}"#,
            r#"{ "a":1.0 }"#,
        ),
        (r#"{"type":"function_call","call_id":"c","name":"n"}"#, ""),
    ] {
        let message = message(json);
        let (_, _, arguments) = message.calls().next().unwrap();
        assert_eq!(message.arguments_text(arguments), text);
    }
}

#[test]
fn equal_bytes_have_equal_hashes() {
    let (a, b) = (message(r#"{"role":"user","content":"a"}"#), message(r#"{"role":"user", "content":"a"}"#));
    assert_eq!(a.content_hash(), message(r#"{"role":"user","content":"a"}"#).content_hash());
    assert_ne!(a.content_hash(), b.content_hash(), "a blank more is another message");
    assert_eq!(a.content_hash().to_string().len(), 64);
    // The empty text's hash never changes: stored records depend on it.
    assert!(ContentHash::of("").to_string().starts_with("af1349b9f5f9a1a6"));
}

#[test]
fn our_texts_are_read_back_on_every_wire() {
    let words = "a \"quoted\"\nline — café 😀 \u{1}";
    for wire_format in WireFormat::ALL {
        for role in [Role::System, Role::User, Role::Assistant] {
            let message = message(&text_message(wire_format, role, words));
            assert_eq!((message.role(), message.text().as_ref()), (role, words), "{wire_format}");
        }
    }
}

#[test]
fn our_results_are_read_back_on_every_wire() {
    for wire_format in WireFormat::ALL {
        let stub = tool_result_stub(wire_format, "call \"1\"", "gone\n");
        let json = if wire_format == WireFormat::Anthropic {
            format!(r#"{{"role":"user","content":[{stub}]}}"#)
        } else {
            stub
        };
        let message = message(&json);
        let [Part::ToolResult { call_id, content, .. }] = message.parts() else { panic!("{json}") };
        assert_eq!(
            (message.str(*call_id).as_ref(), message.result_text(content).as_ref()),
            ("call \"1\"", "gone\n")
        );
    }
}

#[test]
fn slices_share_their_text_and_stay_in_bounds() {
    let whole = SharedText::new("aé日b".into());
    assert_eq!(whole.slice(1..3).as_str(), "é");
    assert_eq!(whole.slice(1..6).slice(2..5).as_str(), "日");
    for (start, end) in [(2, 3), (0, 99), (5, 4), (99, 100), (usize::MAX, usize::MAX)] {
        assert!(whole.slice(start..end).is_empty(), "{start}..{end}");
    }
    // A slice of a slice cannot reach beyond it.
    assert!(whole.slice(1..3).slice(0..5).is_empty());
    assert_eq!(whole.slice(0..1), SharedText::from(String::from("a")));
    assert_eq!((whole.len(), whole.slice(1..3).len()), (7, 2));
    assert_eq!(format!("{:?}", whole.slice(0..1)), "\"a\"");
}
