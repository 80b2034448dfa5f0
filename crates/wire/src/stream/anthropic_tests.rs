//! Tests of streams of Anthropic and of compatible servers.

use throughline_transcript::WireFormat::Anthropic;

use crate::answer::{AnswerPart, Seal, StopReason, ToolCall};
use crate::stream::tests::{messages, run};

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}"#;

fn end(reason: &str) -> String {
    format!(
        "{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\",\"stop_sequence\":null}},\"usage\":{{\"output_tokens\":42}}}}\n{{\"type\":\"message_stop\"}}"
    )
}

fn whole(events: &str, reason: &str) -> String {
    format!("{START}\n{events}\n{}", end(reason))
}

#[test]
fn thinking_text_and_parallel_calls() {
    let events = r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
        {"type":"ping"}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me "}}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"see\n"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCg=="}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"Emw="}}
        {"type":"content_block_stop","index":1}
        {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}
        {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Look \u00e9"}}
        {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"!"}}
        {"type":"content_block_stop","index":2}
        {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}}
        {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}
        {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"/e"}}
        {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"tc\", \"n\": 1.0}"}}
        {"type":"content_block_stop","index":3}
        {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"List","input":{}}}
        {"type":"content_block_stop","index":4}"#;
    let run = run(Anthropic, &whole(events, "tool_use"));
    assert_eq!(
        run.words(),
        [
            "reasoning Let me ",
            "reasoning see\n",
            "text Look é",
            "text !",
            "call 0 toolu_1 Read",
            "arguments 0 {\"path\": \"/e",
            "arguments 0 tc\", \"n\": 1.0}",
            "end 0",
            "call 1 toolu_2 List",
            "end 1",
        ]
    );
    let answer = run.answer();
    assert_eq!(
        messages(&answer),
        [
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Let me see\n","signature":"EqQBCg=="},{"type":"redacted_thinking","data":"Emw="},{"type":"text","text":"Look \u00e9!"},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"path": "/etc", "n": 1.0}},{"type":"tool_use","id":"toolu_2","name":"List","input":{}}]}"#
        ]
    );
    assert_eq!(
        answer.parts[..2],
        [
            AnswerPart::Reasoning { text: "Let me see\n".into(), seal: Seal::Signature("EqQBCg==".into()) },
            AnswerPart::Reasoning { text: String::new(), seal: Seal::Encrypted("Emw=".into()) },
        ]
    );
    assert_eq!(answer.stop.reason, StopReason::ToolCalls);
    assert_eq!((answer.id.as_deref(), answer.model.as_deref()), (Some("msg_1"), Some("claude")));
}

#[test]
fn usage_is_merged() {
    let answer = run(Anthropic, &whole("", "end_turn")).answer();
    assert_eq!(
        answer.usage_json.as_deref(),
        Some(
            r#"{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":0},"output_tokens":42,"service_tier":"standard"}"#
        )
    );
    let usage = answer.usage().unwrap().unwrap().usage;
    assert_eq!((usage.prompt(), usage.output), (115, 42));
    assert!(answer.messages.is_empty(), "an empty message could not go back");
    // Servers that report usage only at the end send zeros at the beginning, and vice versa.
    let late = r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":0,"output_tokens":0}}}
        {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":2}}"#;
    let early = r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":2}}}
        {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"cache_read_input_tokens":null,"output_tokens":2}}"#;
    for stream in [late, early] {
        let usage = run(Anthropic, stream).answer().usage().unwrap().unwrap().usage;
        assert_eq!((usage.input, usage.cache_read, usage.output), (7, 3, 2));
    }
}

#[test]
fn blocks_and_deltas_nobody_knows_survive() {
    let events = r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srv","name":"web_search","input":{}}}
        {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srv","content":[{"type":"web_search_result","encrypted_content":"E=","n":1e3}]}}
        {"type":"content_block_stop","index":1}
        {"type":"content_block_start","index":2,"content_block":{"citations":[],"type":"text","text":""}}
        {"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"cited_text":"a"}}}
        {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"b"}}
        {"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"cited_text":"c"}}}
        {"type":"content_block_stop","index":2}
        {"type":"content_block_start","index":3,"content_block":{"type":"compaction","content":null}}
        {"type":"content_block_delta","index":3,"delta":{"type":"compaction_delta","content":"summed"}}
        {"type":"content_block_delta","index":3,"delta":{"type":"tomorrow_delta","content":" up","parts":[1],"n":2}}
        {"type":"content_block_stop","index":3}
        {"type":"tomorrow","index":3}"#;
    let run = run(Anthropic, &whole(events, "compaction"));
    assert_eq!(run.words(), ["text b"]);
    let answer = run.answer();
    assert_eq!(
        messages(&answer),
        [
            r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"srv","name":"web_search","input":{"query":"x"}},{"type":"web_search_tool_result","tool_use_id":"srv","content":[{"type":"web_search_result","encrypted_content":"E=","n":1e3}]},{"citations":[{"cited_text":"a"},{"cited_text":"c"}],"type":"text","text":"b"},{"type":"compaction","content":"summed up","parts":[1],"n":2}]}"#
        ]
    );
    assert_eq!(answer.stop.reason, StopReason::Compacted);
    let kinds = answer.parts.iter().filter_map(|part| match part {
        AnswerPart::Other { kind, .. } => Some(kind.as_str()),
        _ => None,
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["server_tool_use", "web_search_tool_result", "compaction"]);
}

#[test]
fn the_envelope_keeps_what_is_said_late() {
    let stream = r#"{"type":"message_start","message":{"id":"m","model":"c","content":[],"container":{"id":"a"},"usage":{"output_tokens":1}}}
        {"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"END","container":{"id":"b"}},"usage":{"output_tokens":2},"context_management":{"applied_edits":[]}}
        {"type":"message_stop"}"#;
    let answer = run(Anthropic, stream).answer();
    assert_eq!(answer.stop.reason, StopReason::StopSequence);
    assert_eq!(answer.stop.sequence.as_deref(), Some("END"));
    assert_eq!(
        answer.extras,
        [
            ("container".to_owned(), r#"{"id":"b"}"#.to_owned()),
            ("context_management".to_owned(), r#"{"applied_edits":[]}"#.to_owned())
        ]
    );
}

#[test]
fn broken_arguments_are_kept_in_a_form_the_wire_takes() {
    let events = r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"Write","input":{}}}
        {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"text\": \"cut"}}
        {"type":"content_block_stop","index":0}"#;
    let answer = run(Anthropic, &whole(events, "max_tokens")).answer();
    assert_eq!(
        messages(&answer),
        [
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Write","input":{"unparsed_input":"{\"text\": \"cut"}}]}"#
        ]
    );
    let call = answer.tool_calls().next().unwrap();
    assert_eq!(call.arguments, "{\"text\": \"cut");
    assert_eq!(answer.stop.reason, StopReason::OutputLimit);
}

#[test]
fn servers_that_are_careless_about_blocks() {
    // No start, no index, no end, content sent immediately.
    let stream = r#"{"type":"message_start","message":{"id":"m","content":[{"type":"text","text":"at once "}]}}
        {"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"hm"}}
        {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"a"}}
        {"type":"content_block_delta","delta":{"type":"text_delta","text":"b"}}
        {"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":"{}"}}
        {"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let run = run(Anthropic, stream);
    assert_eq!(run.words(), ["text at once ", "reasoning hm", "text a", "text b"]);
    let answer = run.answer();
    assert_eq!(
        messages(&answer),
        [
            r#"{"role":"assistant","content":[{"type":"text","text":"at once "},{"type":"thinking","thinking":"hm"},{"type":"text","text":"ab"}]}"#
        ]
    );
    assert_eq!(answer.usage_json, None);
}

#[test]
fn what_was_open_when_the_stream_broke() {
    let thinking = r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#;
    let interrupted = run(Anthropic, &format!("{START}\n{thinking}")).interrupted();
    assert!(interrupted.received.messages.is_empty());
    assert_eq!(interrupted.unfinished, [AnswerPart::Reasoning { text: "hm".into(), seal: Seal::None }]);
    assert_eq!(
        interrupted.received.usage().unwrap().unwrap().usage.prompt(),
        115,
        "what was counted is known"
    );

    let signed =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}"#;
    let interrupted = run(Anthropic, &format!("{START}\n{thinking}\n{signed}")).interrupted();
    assert_eq!(interrupted.received.messages.len(), 1);
    assert!(interrupted.unfinished.is_empty());

    let calls = r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}
        {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"g","input":{}}}
        {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}}"#;
    let interrupted = run(Anthropic, &format!("{START}\n{calls}")).interrupted();
    assert_eq!(interrupted.received.tool_calls().count(), 1);
    let cut = ToolCall { id: "b".into(), name: "g".into(), arguments: "{\"x\"".into() };
    assert_eq!(interrupted.unfinished, [AnswerPart::ToolCall(cut)]);

    let empty_call = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#;
    let interrupted = run(Anthropic, &format!("{START}\n{empty_call}")).interrupted();
    assert!(interrupted.received.messages.is_empty(), "arguments may have been to come");
}
