use proptest::prelude::*;
use serde_json::Value;
use throughline_transcript::Message;
use throughline_wire::{
    Answer, AnswerDraft, AnswerPart, Delta, Seal, StopReason, StreamDecoder, StreamShape, ToolCall,
};

use super::*;
use crate::lookup::message_key::MessageKey;
use crate::lookup::prefix_match::{ClientMessage, compare};
use crate::recall::client_view::Projection;

const NAMES: [&str; 2] = ["lcm_grep", "lcm_expand"];

fn names() -> RecallNames {
    RecallNames::of(&NAMES)
}

/// Returns the client's bytes for these answers of the rounds, split into chunks of `chunk` bytes.
fn spliced(wire: WireFormat, streaming: Streaming, rounds: &[AnswerDraft], chunk: usize) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (onward, mut passed) = mpsc::channel(100_000);
        let mut splice = Splice::new(wire, streaming, &names(), onward);
        for (number, draft) in rounds.iter().enumerate() {
            let (sender, coming) = mpsc::channel(100_000);
            let headers = vec![("content-length".to_owned(), "1".to_owned())];
            sender.send(AnswerPiece::Begun { status: 200, headers }).await.unwrap();
            for bytes in written(wire, streaming, draft).chunks(chunk) {
                let chunk = Chunk { raw: Bytes::copy_from_slice(bytes), deltas: Vec::new() };
                sender.send(AnswerPiece::Chunk(chunk)).await.unwrap();
            }
            drop(sender);
            splice.pass(coming).await;
            splice
                .end(if number + 1 == rounds.len() { AfterRound::Nothing } else { AfterRound::Round })
                .await;
        }
        drop(splice);
        let (mut begun, mut all) = (0, Vec::new());
        while let Some(piece) = passed.recv().await {
            match piece {
                AnswerPiece::Begun { .. } => begun += 1,
                AnswerPiece::Chunk(chunk) => all.extend_from_slice(&chunk.raw),
            }
        }
        assert_eq!(begun, 1, "an answer begins once");
        all
    })
}

fn written(wire: WireFormat, streaming: Streaming, draft: &AnswerDraft) -> Vec<u8> {
    match streaming {
        Streaming::Whole => draft.to_response(wire).into_bytes(),
        Streaming::Streamed => {
            let shape = StreamShape { chunk_chars: 3, ..StreamShape::default() };
            draft.to_stream(wire, &shape).iter().flat_map(throughline_wire::WireEvent::to_bytes).collect()
        }
    }
}

fn read(wire: WireFormat, streaming: Streaming, bytes: &[u8]) -> Answer {
    match streaming {
        Streaming::Whole => Answer::decode(wire, bytes).unwrap(),
        Streaming::Streamed => {
            let (mut decoder, mut deltas) = (StreamDecoder::new(wire), Vec::<Delta>::new());
            decoder.feed(bytes, &mut deltas).unwrap();
            decoder.finish(&mut deltas).unwrap()
        }
    }
}

fn call(name: &str, id: String) -> AnswerPart {
    AnswerPart::ToolCall(ToolCall { id, name: name.to_owned(), arguments: r#"{"query":"x"}"#.to_owned() })
}

fn text() -> impl Strategy<Value = AnswerPart> {
    "\n?[a-z]{1,6}( [a-z\u{e9}]{1,4})?\n?".prop_map(AnswerPart::Text)
}

fn reasoning() -> impl Strategy<Value = AnswerPart> {
    "[a-z]{1,9}".prop_map(|text| AnswerPart::Reasoning { text, seal: Seal::Signature("s".to_owned()) })
}

/// The text before the calls of an answer.
fn words() -> impl Strategy<Value = Vec<AnswerPart>> {
    (prop::option::of(reasoning()), prop::option::of(text()))
        .prop_map(|(thought, text)| thought.into_iter().chain(text).collect())
}

/// The answers of rounds; all but the last contain only recall calls.
fn rounds() -> impl Strategy<Value = Vec<AnswerDraft>> {
    let recalls = (words(), 1..3_usize);
    let last = (words(), prop::collection::vec(prop::bool::ANY, 0..4));
    (prop::collection::vec(recalls, 0..4), last).prop_map(|(recalls, (words, calls))| {
        let mut number = 0;
        let mut id = || {
            number += 1;
            format!("call_{number}")
        };
        let mut all = Vec::new();
        for (mut parts, calls) in recalls {
            parts.extend((0..calls).map(|call_number| call(NAMES[call_number], id())));
            all.push(AnswerDraft::of_parts(parts));
        }
        let mut parts = words;
        // A round with only recall calls would not be the last.
        let has_own = calls.contains(&true);
        parts.extend(calls.iter().filter(|_| has_own).map(|is_clients| match is_clients {
            true => call("bash", id()),
            false => call("lcm_grep", id()),
        }));
        if parts.is_empty() {
            parts.push(AnswerPart::Text("done".to_owned()));
        }
        all.push(AnswerDraft::of_parts(parts));
        all
    })
}

fn parse(json: &str) -> Message {
    throughline_transcript::decode_message_text(json.to_owned()).unwrap()
}

/// The recorded conversation: a question, the answers of all rounds, and results between them.
fn recorded(wire: WireFormat, rounds: &[AnswerDraft]) -> Vec<Message> {
    let mut all = vec![parse(r#"{"role":"user","content":"what was it?"}"#)];
    for (number, draft) in rounds.iter().enumerate() {
        let answer = Answer::decode(wire, draft.to_response(wire).as_bytes()).unwrap();
        let ids: Vec<String> = answer.tool_calls().map(|call| call.id.clone()).collect();
        all.extend(answer.messages);
        if number + 1 < rounds.len() {
            let blocks: Vec<String> =
                ids.iter().map(|id| throughline_transcript::tool_result_stub(wire, id, "found")).collect();
            match wire {
                WireFormat::Anthropic => {
                    all.push(parse(&format!(r#"{{"role":"user","content":[{}]}}"#, blocks.join(","))));
                }
                WireFormat::Chat | WireFormat::Responses => {
                    all.extend(blocks.iter().map(|block| parse(block)))
                }
            }
        }
    }
    all
}

proptest! {
    /// However the bytes of the rounds are split, the client has one answer with all text and its own calls, the same with and without
    /// streaming, and the gateway recognises what the client sends back.
    #[test]
    fn rounds_come_as_one_answer(rounds in rounds(), chunk in 1..200_usize) {
        for wire in WireFormat::ALL {
            let whole = read(wire, Streaming::Whole, &spliced(wire, Streaming::Whole, &rounds, chunk));
            let bytes = spliced(wire, Streaming::Streamed, &rounds, chunk);
            let streamed = read(wire, Streaming::Streamed, &bytes);
            // Reasoning of earlier rounds is lost in a Chat Completions stream, which has one place for it.
            let shown = |answer: &Answer| {
                let mut all: Vec<Value> =
                    answer.messages.iter().map(|one| serde_json::from_str(one.json()).unwrap()).collect();
                for member in ["reasoning", "reasoning_details"].iter().filter(|_| wire == WireFormat::Chat) {
                    all.iter_mut().for_each(|one| drop(one.as_object_mut().unwrap().remove(*member)));
                }
                all
            };
            prop_assert_eq!(shown(&whole), shown(&streamed), "{}: {}", wire, String::from_utf8_lossy(&bytes));

            let calls = |name: fn(&str) -> bool| {
                let all = rounds.iter().flat_map(|draft| &draft.parts);
                all.filter(|part| matches!(part, AnswerPart::ToolCall(call) if name(&call.name))).count()
            };
            prop_assert_eq!(streamed.tool_calls().count(), calls(|name| name == "bash"));
            prop_assert!(streamed.tool_calls().all(|call| call.name == "bash"));
            let has_calls = streamed.tool_calls().next().is_some();
            prop_assert_eq!(streamed.stop.reason == StopReason::ToolCalls, has_calls);
            for part in rounds.iter().flat_map(|draft| &draft.parts) {
                if let AnswerPart::Text(text) = part {
                    prop_assert!(streamed.text().contains(text), "{wire}: {text:?} in {:?}", streamed.text());
                }
            }

            let names = names();
            let mut projection = Projection::new(&names, wire);
            let record = recorded(wire, &rounds);
            let known: Vec<MessageKey> = projection.keys(&record);
            let client_messages: Vec<Message> = record.iter().take(1).chain(&streamed.messages).cloned().collect();
            let found = compare(&known, &ClientMessage::all(&client_messages), 0);
            prop_assert!(found.goes_on(&known), "{wire}: {found:?} of {} in {:?}", known.len(), shown(&streamed));
            prop_assert_eq!(found.repeated, client_messages.len());
            // With and without a compaction.
            let found = compare(&known, &ClientMessage::all(&client_messages), known.len());
            prop_assert!(found.goes_on(&known));
        }
    }

    /// Answers without recall calls are forwarded byte for byte.
    #[test]
    fn an_answer_without_recall_passes_byte_for_byte(words in words(), calls in 0..3_usize, chunk in 1..200_usize) {
        let mut parts = words;
        parts.extend((0..calls).map(|number| call("bash", format!("call_{number}"))));
        let draft = AnswerDraft::of_parts(parts);
        for wire in WireFormat::ALL {
            for streaming in [Streaming::Whole, Streaming::Streamed] {
                let passed = spliced(wire, streaming, std::slice::from_ref(&draft), chunk);
                prop_assert_eq!(passed, written(wire, streaming, &draft));
            }
        }
    }
}
