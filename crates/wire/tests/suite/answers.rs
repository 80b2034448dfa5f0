//! Written answers read back: whole and as streams, in any chunks, on every wire.

#![expect(clippy::unwrap_used, reason = "helpers of a test fail it by panicking")]

use proptest::collection::vec;
use proptest::prelude::*;
use throughline_tokens::Usage;
use throughline_transcript::{WireFormat, decode_message_text};
use throughline_wire::{
    Answer, AnswerDraft, AnswerPart, Delta, Flow, ReportedUsage, Seal, StopReason, StreamDecoder,
    StreamShape, StreamUsage, ToolCall, WireEvent,
};

/// Texts with everything that is hard on a wire: quotes, breaks, other scripts, nothing.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ -~]{0,40}",
        2 => "\\PC{0,20}",
        1 => "[\"\\\\\\n\\r\\t/{}\\[\\]🦀é\u{0}-\u{1f}]{0,12}",
        1 => Just("data: [DONE]\n\n".to_owned()),
    ]
}

fn some_text() -> impl Strategy<Value = String> {
    text().prop_map(|text| if text.is_empty() { "x".to_owned() } else { text })
}

fn arguments() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        text().prop_map(|text| serde_json::to_string(&text).unwrap()),
        any::<i64>().prop_map(|number| number.to_string()),
        Just("[1.0, {\"a\": null}]".to_owned()),
    ];
    prop_oneof![
        6 => vec(("[a-z]{1,6}", value), 0..4).prop_map(|members| {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
            format!("{{{}}}", members.join(", "))
        }),
        1 => Just("{\"cut\": \"of".to_owned()),
    ]
}

fn seal() -> impl Strategy<Value = Seal> {
    prop_oneof![
        Just(Seal::None),
        "[A-Za-z0-9+/]{1,30}={0,2}".prop_map(Seal::Signature),
        "[A-Za-z0-9+/]{1,30}={0,2}".prop_map(Seal::Encrypted),
    ]
}

fn part() -> impl Strategy<Value = AnswerPart> {
    prop_oneof![
        4 => text().prop_map(AnswerPart::Text),
        2 => (text(), seal()).prop_map(|(text, seal)| AnswerPart::Reasoning { text, seal }),
        3 => ("[a-z0-9_]{1,12}", "[A-Za-z_]{1,12}", arguments())
            .prop_map(|(id, name, arguments)| AnswerPart::ToolCall(ToolCall { id, name, arguments })),
        1 => some_text().prop_map(AnswerPart::Refusal),
        1 => some_text().prop_map(|text| {
            let json = serde_json::json!({"type": "web_search_call", "id": "ws", "odd": [1, text]}).to_string();
            AnswerPart::Other { kind: "web_search_call".into(), json }
        }),
    ]
}

fn usage() -> impl Strategy<Value = Option<ReportedUsage>> {
    let tokens = 0..2_000_000_u64;
    let all = (tokens.clone(), tokens.clone(), tokens.clone(), tokens.clone(), 0..=100_u64, 0..=100_u64);
    proptest::option::weighted(
        0.9,
        all.prop_map(|(input, output, cache_read, cache_write, reasoning_percent, long_percent)| {
            let reasoning = output * reasoning_percent / 100;
            let cache_write_1h = cache_write * long_percent / 100;
            let usage = Usage { input, output, cache_read, cache_write, reasoning };
            ReportedUsage { usage, cache_write_1h }
        }),
    )
}

fn stop() -> impl Strategy<Value = StopReason> {
    prop::sample::select(vec![
        StopReason::EndOfTurn,
        StopReason::StopSequence,
        StopReason::ToolCalls,
        StopReason::OutputLimit,
        StopReason::WindowLimit,
        StopReason::Refused,
        StopReason::Paused,
        StopReason::Compacted,
        StopReason::Unstated,
    ])
}

fn draft() -> impl Strategy<Value = AnswerDraft> {
    (vec(part(), 0..6), stop(), usage(), "[a-z0-9_-]{1,12}", some_text()).prop_map(
        |(parts, stop, usage, id, model)| AnswerDraft { id, model, created_secs: 7, parts, stop, usage },
    )
}

fn shape() -> impl Strategy<Value = StreamShape> {
    (1..40_usize).prop_map(|chunk_chars| StreamShape { chunk_chars, usage: StreamUsage::Included })
}

fn wire_format() -> impl Strategy<Value = WireFormat> {
    prop::sample::select(WireFormat::ALL.to_vec())
}

/// The bytes of a stream, with signs of life between its events.
fn bytes_of(wire_format: WireFormat, draft: &AnswerDraft, shape: &StreamShape) -> Vec<u8> {
    let mut bytes = Vec::new();
    for event in draft.to_stream(wire_format, shape) {
        WireEvent::append_comment("alive", &mut bytes);
        bytes.extend(event.to_bytes());
    }
    bytes
}

/// Reads a stream that arrives in chunks of these sizes, over and over.
fn read(wire_format: WireFormat, bytes: &[u8], sizes: &[usize]) -> (Answer, Vec<Delta>) {
    let mut decoder = StreamDecoder::new(wire_format);
    let (mut deltas, mut rest, mut flow) = (Vec::new(), bytes, Flow::More);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        flow = decoder.feed(chunk, &mut deltas).unwrap();
        rest = after;
    }
    assert_eq!(flow, Flow::Done, "the wire says when it is over");
    (decoder.finish(&mut deltas).unwrap(), deltas)
}

/// What the deltas say, put together.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    text: String,
    reasoning: String,
    refusal: String,
    calls: Vec<ToolCall>,
    ended: Vec<usize>,
}

fn told(deltas: &[Delta]) -> Told {
    let mut told = Told::default();
    for delta in deltas {
        match delta {
            Delta::Started { .. } => {}
            Delta::Text(text) => told.text.push_str(text),
            Delta::Reasoning(text) => told.reasoning.push_str(text),
            Delta::Refusal(text) => told.refusal.push_str(text),
            Delta::ToolCallStart { call, id, name } => {
                assert_eq!(*call, told.calls.len(), "calls are numbered as they begin");
                let (id, name) = (id.clone(), name.clone());
                told.calls.push(ToolCall { id, name, arguments: String::new() });
            }
            Delta::ToolCallArguments { call, fragment } => {
                assert!(!told.ended.contains(call));
                told.calls[*call].arguments.push_str(fragment);
            }
            Delta::ToolCallEnd { call } => told.ended.push(*call),
        }
    }
    told
}

/// What an answer says in the terms of [`Told`].
fn said(answer: &Answer) -> Told {
    let calls: Vec<ToolCall> = answer.tool_calls().cloned().collect();
    let reasoning = answer.parts.iter().filter_map(|part| match part {
        AnswerPart::Reasoning { text, .. } => Some(text.as_str()),
        _ => None,
    });
    Told {
        text: answer.text(),
        reasoning: reasoning.collect(),
        refusal: answer.refusal().unwrap_or_default(),
        ended: (0..calls.len()).collect(),
        calls,
    }
}

/// What a wire can say of a part.
fn expected(wire_format: WireFormat, draft: &AnswerDraft) -> Vec<AnswerPart> {
    let mut parts = Vec::new();
    for part in draft.parts.iter().cloned() {
        match (wire_format, part) {
            (_, AnswerPart::Text(text) | AnswerPart::Refusal(text)) if text.is_empty() => {}
            (WireFormat::Anthropic, AnswerPart::Refusal(text)) => parts.push(AnswerPart::Text(text)),
            (WireFormat::Anthropic, AnswerPart::Reasoning { text, seal: Seal::Encrypted(data) })
                if !text.is_empty() =>
            {
                parts.push(AnswerPart::Reasoning { text, seal: Seal::Signature(data) });
            }
            (WireFormat::Responses, AnswerPart::Reasoning { text, seal: Seal::Signature(data) }) => {
                parts.push(AnswerPart::Reasoning { text, seal: Seal::Encrypted(data) });
            }
            (_, part) => parts.push(part),
        }
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(throughline_testkit::cases(1_000)) })]

    #[test]
    fn a_stream_gives_the_answer_that_a_whole_response_gives(
        wire_format in wire_format(), draft in draft(), shape in shape(), sizes in vec(1..200_usize, 1..6),
    ) {
        let whole = Answer::decode(wire_format, draft.to_response(wire_format).as_bytes()).unwrap();
        let bytes = bytes_of(wire_format, &draft, &shape);
        let (answer, deltas) = read(wire_format, &bytes, &sizes);
        prop_assert_eq!(&answer, &whole);
        prop_assert_eq!(told(&deltas), said(&whole));
        let started = Delta::Started { id: Some(draft.id.clone()), model: Some(draft.model.clone()) };
        prop_assert_eq!(deltas.first(), Some(&started));
        // However it was cut.
        let (at_once, all_deltas) = read(wire_format, &bytes, &[bytes.len()]);
        prop_assert_eq!(at_once, answer);
        prop_assert_eq!(all_deltas, deltas);
    }

    #[test]
    fn an_answer_says_what_the_draft_said(wire_format in wire_format(), draft in draft()) {
        let answer = Answer::decode(wire_format, draft.to_response(wire_format).as_bytes()).unwrap();
        prop_assert_eq!(answer.id.as_deref(), Some(draft.id.as_str()));
        prop_assert_eq!(answer.model.as_deref(), Some(draft.model.as_str()));
        match (draft.usage, answer.usage()) {
            (Some(reported), Some(Ok(read))) => {
                prop_assert_eq!(read.usage, reported.usage);
                prop_assert!(read.doubts.is_empty());
                let long = if wire_format == WireFormat::Anthropic { reported.cache_write_1h } else { 0 };
                prop_assert_eq!(read.cache_write_1h, long);
            }
            (None, None) => {}
            (reported, read) => prop_assert!(false, "{:?} was read as {:?}", reported, read),
        }
        for message in &answer.messages {
            // What goes back into a history can be read there.
            prop_assert_eq!(&decode_message_text(message.json().to_owned()).unwrap(), message);
        }
        let expected = expected(wire_format, &draft);
        if wire_format == WireFormat::Chat {
            // One text, one reasoning, one refusal, then the calls.
            let only_text = AnswerDraft { parts: expected, ..draft.clone() };
            let joined = said(&Answer { parts: only_text.parts, ..answer.clone() });
            prop_assert_eq!(said(&answer), joined);
        } else {
            prop_assert_eq!(&answer.parts, &expected);
        }
    }

    #[test]
    fn a_stream_cut_short_never_passes_for_a_whole_one(
        wire_format in wire_format(), draft in draft(), shape in shape(), keep in 0.0..1.0_f64,
    ) {
        let events = draft.to_stream(wire_format, &shape);
        let whole = Answer::decode(wire_format, draft.to_response(wire_format).as_bytes()).unwrap();
        let kept = (events.len() as f64 * keep) as usize;
        let mut decoder = StreamDecoder::new(wire_format);
        let mut deltas = Vec::new();
        for event in &events[..kept] {
            decoder.feed(&event.to_bytes(), &mut deltas).unwrap();
        }
        match decoder.finish(&mut deltas) {
            // Everything that matters had come; only the report of usage or a closing event had not.
            Ok(answer) => prop_assert_eq!(answer.messages, whole.messages),
            Err(interrupted) => {
                let received = &interrupted.received;
                prop_assert!(whole.text().starts_with(&received.text()));
                let calls: Vec<_> = received.tool_calls().collect();
                prop_assert!(whole.tool_calls().take(calls.len()).eq(calls.iter().copied()));
                for message in &received.messages {
                    prop_assert!(decode_message_text(message.json().to_owned()).is_ok());
                }
            }
        }
    }
}
