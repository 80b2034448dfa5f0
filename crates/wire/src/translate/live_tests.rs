//! Tests that a translated stream has the same content.

use proptest::prelude::*;
use throughline_tokens::Usage;
use throughline_transcript::WireFormat;

use super::*;
use crate::answer::{Seal, StopReason};
use crate::draft::{AnswerDraft, StreamShape};
use crate::stream::StreamDecoder;
use crate::{Answer, translate::Request};

fn back(to: WireFormat) -> TranslationBack {
    TranslationBack {
        to,
        model: "asked-for".to_owned(),
        custom_tools: vec!["free".to_owned()],
        wants_usage: true,
        asked_secs: 1_700_000_000,
    }
}

fn ways() -> Vec<(WireFormat, WireFormat)> {
    let all = WireFormat::ALL;
    let pairs = all.iter().flat_map(|client| all.iter().map(move |server| (*client, *server)));
    pairs.filter(|(client, server)| Request::can_translate(*client, *server)).collect()
}

/// Returns the answer that a caller decodes from the translated stream.
fn streamed(
    draft: &AnswerDraft,
    client: WireFormat,
    server: WireFormat,
    chars: usize,
) -> (Answer, Vec<WireEvent>) {
    let shape = StreamShape { chunk_chars: chars, ..StreamShape::default() };
    let mut decoder = StreamDecoder::new(server);
    let mut live = LiveTranslation::new(back(client));
    let (mut deltas, mut events) = (Vec::new(), Vec::new());
    for event in draft.to_stream(server, &shape) {
        deltas.clear();
        decoder.feed(&event.to_bytes(), &mut deltas).unwrap();
        live.feed(&deltas, &mut events);
    }
    deltas.clear();
    let answer = decoder.finish(&mut deltas).unwrap();
    live.feed(&deltas, &mut events);
    live.finish(&answer, &mut events);
    (read(client, &events), events)
}

fn read(client: WireFormat, events: &[WireEvent]) -> Answer {
    let mut reader = StreamDecoder::new(client);
    let mut deltas = Vec::new();
    for event in events {
        reader.feed(&event.to_bytes(), &mut deltas).unwrap();
    }
    reader.finish(&mut deltas).unwrap()
}

fn call(number: usize, name: &str, arguments: &str) -> AnswerPart {
    AnswerPart::ToolCall(ToolCall {
        id: format!("call_{number}"),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    })
}

fn draft(parts: Vec<AnswerPart>) -> AnswerDraft {
    AnswerDraft::of_parts(parts).with_usage(Usage {
        input: 70,
        output: 21,
        cache_read: 30,
        cache_write: 0,
        reasoning: 4,
    })
}

fn calls(answer: &Answer) -> Vec<(String, String, String)> {
    let calls = answer.tool_calls();
    calls.map(|call| (call.id.clone(), call.name.clone(), call.arguments.clone())).collect()
}

#[test]
fn words_and_parallel_calls_arrive_whole_on_every_way() {
    let parts = vec![
        AnswerPart::Reasoning { text: "Let me see.".to_owned(), seal: Seal::None },
        AnswerPart::Text("I look into both. Ünïcödé 漢字".to_owned()),
        call(1, "read", r#"{"path":"a.rs","lines":[1,2]}"#),
        call(2, "read", r#"{"path":"b.rs"}"#),
        call(3, "list", "{}"),
    ];
    let draft = draft(parts);
    for (client, server) in ways() {
        for chars in [1, 7, 1_000] {
            let (answer, events) = streamed(&draft, client, server, chars);
            assert_eq!(answer.text(), "I look into both. Ünïcödé 漢字", "{client} over {server}");
            assert_eq!(answer.reasoning_text(), "Let me see.", "{client} over {server}");
            assert_eq!(
                calls(&answer),
                [
                    ("call_1", "read", r#"{"path":"a.rs","lines":[1,2]}"#),
                    ("call_2", "read", r#"{"path":"b.rs"}"#),
                    ("call_3", "list", "{}")
                ]
                .map(|(id, name, arguments)| (
                    id.to_owned(),
                    name.to_owned(),
                    arguments.to_owned()
                ))
            );
            assert_eq!(answer.stop.reason, StopReason::ToolCalls, "{client} over {server}");
            let usage = answer.usage().unwrap().unwrap().usage;
            assert_eq!(
                (usage.prompt(), usage.output, usage.cache_read),
                (100, 21, 30),
                "{client} over {server}"
            );
            // Text is passed on as it arrives: one event for each piece.
            let words = "I look into both. Ünïcödé 漢字".chars().count();
            assert!(events.len() >= words / chars, "{client} over {server}: {}", events.len());
        }
    }
}

#[test]
fn a_tool_of_free_text_gets_its_text_back() {
    let draft = draft(vec![call(1, "free", r#"{"input":"*** Begin Patch\n+line"}"#)]);
    let (_, events) = streamed(&draft, WireFormat::Responses, WireFormat::Chat, 5);
    let done = events.iter().find(|event| event.to_bytes().starts_with(b"event: response.output_item.done"));
    let done = String::from_utf8(done.unwrap().to_bytes()).unwrap();
    assert!(done.contains(r#""type":"custom_tool_call""#), "{done}");
    assert!(done.contains(r#""input":"*** Begin Patch\n+line""#), "{done}");
    let whole = Answer::decode(WireFormat::Chat, draft.to_response(WireFormat::Chat).as_bytes()).unwrap();
    let written = back(WireFormat::Responses).whole(&whole);
    assert!(written.contains(r#""input":"*** Begin Patch\n+line""#), "{written}");
}

#[test]
fn calls_that_mix_their_arguments_are_put_in_order() {
    let start = |call: usize| Delta::ToolCallStart { call, id: format!("c{call}"), name: format!("t{call}") };
    let more = |call: usize, text: &str| Delta::ToolCallArguments { call, fragment: text.to_owned() };
    let deltas = [
        start(0),
        more(0, "{\"a\""),
        start(1),
        more(1, "{\"b\""),
        more(0, ":1}"),
        more(1, ":2}"),
        Delta::Text("Meanwhile.".to_owned()),
        Delta::ToolCallEnd { call: 1 },
        Delta::ToolCallEnd { call: 0 },
    ];
    let mut answer = Answer::empty(WireFormat::Chat);
    answer.stop.reason = StopReason::ToolCalls;
    for client in WireFormat::ALL {
        let mut live = LiveTranslation::new(back(client));
        let mut events = Vec::new();
        for delta in &deltas {
            live.feed(std::slice::from_ref(delta), &mut events);
        }
        live.finish(&answer, &mut events);
        let read = read(client, &events);
        assert_eq!(read.text(), "Meanwhile.", "{client}");
        let arguments: Vec<String> = read.tool_calls().map(|call| call.arguments.clone()).collect();
        assert_eq!(arguments, ["{\"a\":1}", "{\"b\":2}"], "{client}");
    }
}

#[test]
fn an_answer_that_came_in_one_piece_is_shown_as_a_stream() {
    let draft = draft(vec![AnswerPart::Text("Hello.".to_owned()), call(1, "read", "{}")]);
    for (client, server) in ways() {
        let answer = Answer::decode(server, draft.to_response(server).as_bytes()).unwrap();
        let mut live = LiveTranslation::new(back(client));
        let mut events = Vec::new();
        live.feed(&[Delta::Text(answer.text())], &mut events);
        live.finish(&answer, &mut events);
        let read = read(client, &events);
        assert_eq!((read.text(), calls(&read).len()), ("Hello.".to_owned(), 1), "{client} over {server}");
    }
}

fn any_part() -> impl Strategy<Value = AnswerPart> {
    let text = "[a-z 漢\n\"\\\\]{1,30}";
    prop_oneof![
        text.prop_map(AnswerPart::Text),
        text.prop_map(|text| AnswerPart::Reasoning { text, seal: Seal::None }),
        (0_usize..1_000, "[a-z_]{1,12}", text).prop_map(|(number, name, value)| call(
            number,
            &name,
            &serde_json::json!({ "value": value }).to_string()
        )),
    ]
}

proptest! {
    #[test]
    fn streamed_or_whole_a_caller_reads_what_was_said(
        mut parts in proptest::collection::vec(any_part(), 0..8),
        chars in 1_usize..20,
        way in 0_usize..3,
    ) {
        // Ids of calls are unique.
        for (number, part) in parts.iter_mut().enumerate() {
            if let AnswerPart::ToolCall(call) = part {
                call.id = format!("call_{number}");
            }
        }
        let (client, server) = ways()[way];
        let draft = draft(parts);
        let said = Answer::decode(server, draft.to_response(server).as_bytes()).unwrap();
        let (streamed, _) = streamed(&draft, client, server, chars);
        let whole = Answer::decode(client, back(client).whole(&said).as_bytes()).unwrap();
        for read in [&streamed, &whole] {
            prop_assert_eq!(read.text(), said.text());
            prop_assert_eq!(calls(read), calls(&said));
            prop_assert_eq!(read.stop.reason, said.stop.reason);
            prop_assert_eq!(read.usage().unwrap().unwrap().usage.total(), said.usage().unwrap().unwrap().usage.total());
        }
    }
}
