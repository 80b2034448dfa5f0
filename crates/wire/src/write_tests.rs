//! Tests that pin the written forms. If readers and writers agreed on a form that nobody else uses, every other test would pass. The forms
//! below give the same result, whole and streamed, in the official Python clients of both vendors.

use throughline_tokens::Usage;

use super::shared::pieces;
use super::*;
use crate::Answer;
use crate::answer::{AnswerPart, Seal, StopReason, ToolCall};
use crate::draft::{ReportedUsage, StreamUsage};

fn draft() -> AnswerDraft {
    let call = |id: &str, name: &str, arguments: &str| {
        AnswerPart::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() })
    };
    let usage = Usage { input: 10, output: 20, cache_read: 5, cache_write: 3, reasoning: 4 };
    let draft = AnswerDraft::of_parts(vec![
        AnswerPart::Reasoning { text: "Hm, so".into(), seal: Seal::Signature("c2ln".into()) },
        AnswerPart::Reasoning { text: String::new(), seal: Seal::Encrypted("ZW5j".into()) },
        AnswerPart::Text("Look: \"🦀\"".into()),
        call("call_1", "read", "{\"n\": 3}"),
        call("call_2", "list", ""),
    ]);
    AnswerDraft { usage: Some(ReportedUsage { usage, cache_write_1h: 1 }), ..draft }
}

/// Returns an answer whole and streamed, as text for people.
fn shown(wire_format: WireFormat, draft: &AnswerDraft) -> String {
    let shape = StreamShape { chunk_chars: 6, usage: StreamUsage::Included };
    let events = draft.to_stream(wire_format, &shape);
    let events = events.iter().map(|event| String::from_utf8_lossy(&event.to_bytes()).replace("\n\n", "\n"));
    [draft.to_response(wire_format), String::new()].into_iter().chain(events).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_chat_answer() {
    insta::assert_snapshot!(shown(WireFormat::Chat, &draft()));
}

#[test]
fn a_responses_answer() {
    insta::assert_snapshot!(shown(WireFormat::Responses, &draft()));
}

#[test]
fn an_anthropic_answer() {
    insta::assert_snapshot!(shown(WireFormat::Anthropic, &draft()));
}

#[test]
fn usage_is_left_out_where_it_is_not_asked_for() {
    let shape = StreamShape { usage: StreamUsage::Omitted, ..StreamShape::default() };
    let events = draft().to_stream(WireFormat::Chat, &shape);
    assert!(events.iter().all(|event| !event.data.contains("usage")));
    let silent = AnswerDraft { usage: None, ..draft() };
    for wire_format in [WireFormat::Chat, WireFormat::Anthropic] {
        assert!(!silent.to_response(wire_format).contains("usage"));
        let events = silent.to_stream(wire_format, &StreamShape::default());
        assert!(events.iter().all(|event| !event.data.contains("usage")));
    }
    assert!(silent.to_response(WireFormat::Responses).contains("\"usage\":null"));
}

#[test]
fn every_reason_to_stop_is_read_as_the_nearest_the_wire_has() {
    use StopReason::{
        Cancelled, Compacted, EndOfTurn, OutputLimit, Paused, Refused, StopSequence, ToolCalls, Unstated,
        WindowLimit,
    };
    let read = |wire_format, stop| {
        let draft = AnswerDraft { stop, ..AnswerDraft::text("x") };
        Answer::decode(wire_format, draft.to_response(wire_format).as_bytes())
            .map(|answer| answer.stop.reason)
    };
    let cases = [
        (EndOfTurn, [EndOfTurn, EndOfTurn, EndOfTurn]),
        (StopSequence, [EndOfTurn, EndOfTurn, StopSequence]),
        (ToolCalls, [ToolCalls, EndOfTurn, ToolCalls]),
        (OutputLimit, [OutputLimit; 3]),
        (WindowLimit, [OutputLimit, OutputLimit, WindowLimit]),
        (Refused, [Refused; 3]),
        (Paused, [EndOfTurn, EndOfTurn, Paused]),
        (Compacted, [EndOfTurn, EndOfTurn, Compacted]),
        (Cancelled, [EndOfTurn, Cancelled, EndOfTurn]),
        (StopReason::Other, [EndOfTurn; 3]),
        (Unstated, [Unstated, EndOfTurn, Unstated]),
    ];
    for (written, expected) in cases {
        assert_eq!(
            WireFormat::ALL.map(|wire_format| read(wire_format, written)),
            expected.map(Ok),
            "{written:?}"
        );
    }
}

#[test]
fn errors_are_read_as_they_were_written() {
    let error = ErrorBody {
        message: "slow \"down\"".into(),
        kind: Some("rate_limit_error".into()),
        code: Some("rate_limited".into()),
        param: Some("model".into()),
        raw: String::new(),
    };
    let mut shown = String::new();
    for wire_format in WireFormat::ALL {
        let body = error.to_json(wire_format);
        let event = error.to_event(wire_format, 7);
        for json in [&body, &event.data] {
            let read = ErrorBody::recognise(json).unwrap();
            assert_eq!(read.message, error.message);
            assert!(read.kind == error.kind || read.code == error.code);
        }
        shown += &format!("{wire_format}\n{body}\n{}", String::from_utf8(event.to_bytes()).unwrap());
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn texts_are_cut_between_characters() {
    assert_eq!(pieces("añb🦀c", 2).collect::<Vec<_>>(), ["añ", "b🦀", "c"]);
    assert_eq!(pieces("ab", 0).collect::<Vec<_>>(), ["a", "b"], "at least one at a time");
    assert_eq!(pieces("", 3).count(), 0);
}
