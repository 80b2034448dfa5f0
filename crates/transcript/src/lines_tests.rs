//! Lines of messages and lines of whole conversations.

use crate::decode::{DecodeError, DecodeOptions};
use crate::transcript::{Source, Transcript};
use crate::write::WireFormat;

fn read_with(text: &str, pick: Option<usize>) -> Result<Transcript, DecodeError> {
    Transcript::decode(text.as_bytes().to_vec(), &DecodeOptions { pick, ..DecodeOptions::default() })
}

fn read(text: &str) -> Transcript {
    read_with(text, None).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn lines_of_messages() {
    let transcript = read(
        "{\"role\":\"user\",\"content\":\"u\"}\n\n  {\"role\":\"assistant\",\"content\":\"a\"}  \n{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"r\"}",
    );
    assert_eq!((transcript.source, transcript.wire_format), (Source::Lines, WireFormat::Chat));
    assert_eq!(transcript.messages.len(), 3);
    assert_eq!(transcript.messages[1].json(), "{\"role\":\"assistant\",\"content\":\"a\"}");
    assert!(transcript.notes.is_empty());
}

#[test]
fn lines_with_foreign_ends() {
    let transcript = read(
        "{\"role\":\"user\",\"content\":\"u\"}\r\n{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"n\"}\r\n",
    );
    assert_eq!(transcript.wire_format, WireFormat::Responses);
    assert_eq!(transcript.messages.len(), 2);
    assert!(transcript.messages.iter().all(|m| m.json().ends_with('}')));
}

#[test]
fn lines_that_are_no_messages_are_noted_with_their_number() {
    let text = "{\"role\":\"user\",\"content\":\"u\"}\n{\"a\":1}\n[1]\nnull\n{\"role\":\"user\",\"content\":\"v\"}\noops\n";
    let transcript = read(text);
    assert_eq!(transcript.messages.len(), 2);
    let notes: Vec<(Option<usize>, &str)> =
        transcript.notes.iter().map(|n| (n.line, n.text.as_str())).collect();
    assert_eq!(
        notes,
        [
            (Some(3), "not an object, skipped"),
            (Some(4), "not an object, skipped"),
            (Some(6), "broken JSON (expected value), skipped"),
            (Some(2), "not a message, skipped"),
        ]
    );
}

#[test]
fn the_first_line_may_be_broken() {
    let transcript = read("{\"role\":\"us\n{\"role\":\"user\",\"content\":\"u\"}\n");
    assert_eq!((transcript.messages.len(), transcript.notes[0].line), (1, Some(1)));
}

#[test]
fn lines_of_which_none_is_a_message_are_refused() {
    for text in [
        "{\"a\":1}\n{\"b\":2}\n",
        "{\"a\":{\"type\":\"x\"}}\n{\"b\":2}\n",
        "{\"type\":\"x\"}\n{\"type\":\"y\"}\n",
    ] {
        let error = read_with(text, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this is JSON, but not a conversation: none of its lines is a message",
            "{text}"
        );
    }
}

#[test]
fn lines_of_conversations_are_picked_from() {
    let text = "{\"messages\":[{\"role\":\"user\",\"content\":\"one\"}]}\n{\"messages\":[{\"role\":\"user\",\"content\":\"two\"}]}\nbroken\n";
    let error = read_with(text, None).unwrap_err();
    assert!(matches!(error, DecodeError::Several { count: 2 }), "{error}");
    let second = read_with(text, Some(2)).unwrap();
    assert_eq!(second.messages[0].text(), "two");
    assert_eq!(second.notes[0].line, Some(3));
    let mut out = Vec::new();
    second.write_unchanged(&mut out);
    assert_eq!(out, b"{\"messages\":[{\"role\":\"user\",\"content\":\"two\"}]}");
    assert!(matches!(read_with(text, Some(3)), Err(DecodeError::NoSuchPick { picked: 3, count: 2 })));
}

#[test]
fn a_list_spread_over_lines_is_no_log() {
    let error = read_with("{\"role\":\n\"user\"", None).unwrap_err();
    assert!(matches!(error, DecodeError::Truncated { line: 2, .. }), "{error}");
}
