//! What a fuzzer does for hours, for a second and the same on every machine: every target over its seeds, over generated
//! conversations, and over a few thousand alterations of both.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

use std::fs;
use std::path::Path;

use throughline_testkit::{
    ConversationOptions, Rng, claude_code_log, codex_log, conversation_from_seed, mutate,
};
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, AnswerPart, Seal, StreamShape, ToolCall, WireEvent};

/// How many altered inputs each target gets.
const ALTERATIONS: usize = 2_000;

/// The seeds of a target: small files written by hand.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let mut paths: Vec<_> =
        fs::read_dir(&folder).expect("every target has seeds").map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{target} has no seeds");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn generated(write: impl Fn(WireFormat, u64) -> Option<String>) -> Vec<Vec<u8>> {
    let every =
        WireFormat::ALL.into_iter().flat_map(|wire_format| (0..12).map(move |seed| (wire_format, seed)));
    every.filter_map(|(wire_format, seed)| write(wire_format, seed)).map(String::into_bytes).collect()
}

fn small(wire_format: WireFormat) -> ConversationOptions {
    ConversationOptions::new(wire_format).may_be_open().at_most_units(6)
}

fn run(target: fn(&[u8]), inputs: &[Vec<u8>]) {
    let mut rng = Rng::new(0x5eed);
    for input in inputs {
        target(input);
    }
    for number in 0..ALTERATIONS {
        let mut altered = mutate(&inputs[number % inputs.len()], &mut rng);
        if rng.chance(20) {
            // Two inputs put together, as a fuzzer crosses them.
            let other = &inputs[rng.below(inputs.len())];
            altered.extend_from_slice(&other[rng.below(other.len() + 1)..]);
        }
        target(&altered);
    }
}

#[test]
fn decode() {
    let mut inputs = seeds("decode");
    inputs.extend(generated(|wire_format, seed| {
        Some(conversation_from_seed(&small(wire_format), seed).document())
    }));
    inputs.extend(generated(|wire_format, seed| {
        Some(conversation_from_seed(&small(wire_format), seed).body("s"))
    }));
    inputs.extend(generated(|wire_format, seed| {
        Some(conversation_from_seed(&small(wire_format), seed).lines())
    }));
    run(throughline_fuzz::decode, &inputs);
}

#[test]
fn message() {
    let mut inputs = seeds("message");
    inputs
        .extend(generated(|wire_format, seed| conversation_from_seed(&small(wire_format), seed).json.pop()));
    run(throughline_fuzz::message, &inputs);
}

#[test]
fn claude_log() {
    let mut inputs = seeds("claude_log");
    inputs.extend(generated(|wire_format, seed| {
        (wire_format == WireFormat::Anthropic)
            .then(|| claude_code_log(&conversation_from_seed(&small(wire_format), seed), seed))
    }));
    run(throughline_fuzz::claude_log, &inputs);
}

#[test]
fn codex_logs() {
    let mut inputs = seeds("codex_log");
    inputs.extend(generated(|wire_format, seed| {
        (wire_format == WireFormat::Responses)
            .then(|| codex_log(&conversation_from_seed(&small(wire_format), seed), seed))
    }));
    run(throughline_fuzz::codex_log, &inputs);
}

#[test]
fn usage() {
    run(throughline_fuzz::usage, &seeds("usage"));
}

#[test]
fn config() {
    run(throughline_fuzz::config, &seeds("config"));
}

#[test]
fn redact() {
    let mut inputs = seeds("redact");
    inputs
        .extend(generated(|wire_format, seed| conversation_from_seed(&small(wire_format), seed).json.pop()));
    run(throughline_fuzz::redact, &inputs);
}

#[test]
fn search() {
    run(throughline_fuzz::search, &seeds("search"));
}

#[test]
fn sse() {
    run(throughline_fuzz::sse, &seeds("sse"));
}

#[test]
fn request() {
    let mut inputs = seeds("request");
    inputs.extend(generated(|wire_format, seed| {
        Some(conversation_from_seed(&small(wire_format), seed).body("s"))
    }));
    run(throughline_fuzz::request, &inputs);
}

#[test]
fn gateway() {
    let mut inputs = seeds("gateway");
    inputs.extend(generated(|wire_format, seed| {
        let path = match wire_format {
            WireFormat::Chat => "/v1/chat/completions",
            WireFormat::Responses => "/v1/responses",
            WireFormat::Anthropic => "/v1/messages",
        };
        let body = conversation_from_seed(&small(wire_format), seed).body("s");
        Some(format!("POST {path}\ncontent-type: application/json\n\n{body}"))
    }));
    run(throughline_fuzz::gateway, &inputs);
}

#[test]
fn answer() {
    let mut inputs = seeds("answer");
    for wire_format in WireFormat::ALL {
        let call = ToolCall { id: "c".into(), name: "f".into(), arguments: "{\"a\": [1]}".into() };
        let parts = vec![
            AnswerPart::Reasoning { text: "because é".into(), seal: Seal::Signature("s".into()) },
            AnswerPart::Text("text 🦀".into()),
            AnswerPart::ToolCall(call.clone()),
            AnswerPart::ToolCall(call),
        ];
        let draft = AnswerDraft::of_parts(parts);
        inputs.push(draft.to_response(wire_format).into_bytes());
        let shape = StreamShape { chunk_chars: 3, ..StreamShape::default() };
        let events = draft.to_stream(wire_format, &shape);
        inputs.push(events.iter().flat_map(WireEvent::to_bytes).collect());
    }
    run(throughline_fuzz::answer, &inputs);
}

#[test]
fn summary() {
    run(throughline_fuzz::summary, &seeds("summary"));
}

#[test]
fn trouble() {
    run(throughline_fuzz::trouble, &seeds("trouble"));
}

#[test]
fn cache_marks() {
    let mut inputs = seeds("cache_marks");
    inputs
        .extend(generated(|wire_format, seed| conversation_from_seed(&small(wire_format), seed).json.pop()));
    run(throughline_fuzz::cache_marks, &inputs);
}
