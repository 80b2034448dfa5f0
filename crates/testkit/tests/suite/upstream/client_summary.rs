//! A client's own request for a summary gets a summary, whatever the script would have said.

use serde_json::{Value, json};
use throughline_testkit::{Reply, Script, ScriptedUpstream, SummarisingClient};
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, AnswerPart, Streaming, ToolCall};

use crate::upstream::send;

const CLAUDE_CODE: &str = "CRITICAL: Respond with text only.\n\nYour task is to create a detailed summary of the conversation so far.";
const CODEX: &str = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary.";
const HERMES: &str =
    "You are a summarization agent creating a context checkpoint. Treat the turns below as source.";

/// A model that calls a tool whatever it is told.
fn busy() -> Script {
    Script::answering(|_| {
        let call = ToolCall { id: "call_1".into(), name: "look".into(), arguments: "{}".into() };
        Reply::answer(AnswerDraft::of_parts(vec![AnswerPart::ToolCall(call)]))
    })
}

fn chat(content: &Value) -> (WireFormat, Value) {
    (WireFormat::Chat, json!({ "model": "m", "messages": [{ "role": "user", "content": content }] }))
}

fn anthropic(content: &Value) -> (WireFormat, Value) {
    let messages = json!([
        { "role": "user", "content": "Begin." },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "t", "name": "look", "input": {} }] },
        { "role": "user", "content": content },
    ]);
    (WireFormat::Anthropic, json!({ "model": "m", "max_tokens": 9, "messages": messages }))
}

fn responses(text: &str) -> (WireFormat, Value) {
    let content = json!([{ "type": "input_text", "text": text }]);
    let message = json!({ "type": "message", "role": "user", "content": content });
    (WireFormat::Responses, json!({ "model": "m", "input": [message] }))
}

#[tokio::test]
async fn client_summary_is_answered_with_text() {
    let upstream = ScriptedUpstream::start(busy()).await.unwrap();
    let result = json!({ "type": "tool_result", "tool_use_id": "t", "content": "seven" });
    let requests = [
        (anthropic(&json!([result, { "type": "text", "text": CLAUDE_CODE }])), SummarisingClient::ClaudeCode),
        (responses(CODEX), SummarisingClient::Codex),
        (chat(&json!(HERMES)), SummarisingClient::Hermes),
    ];
    for ((wire, body), client) in requests {
        for streaming in [Streaming::Whole, Streaming::Streamed] {
            let mut body = body.clone();
            body["stream"] = json!(streaming == Streaming::Streamed);
            let answer = send(&upstream, wire, streaming, body.to_string()).await.unwrap();
            assert_eq!(answer.tool_calls().count(), 0, "{client:?}");
            assert!(answer.text().contains("## Goal"), "{client:?}: {}", answer.text());
        }
        assert_eq!(upstream.calls().last().unwrap().summarising_client(), Some(client));
    }
}

#[tokio::test]
async fn quoted_prompt_is_no_request_for_a_summary() {
    let upstream = ScriptedUpstream::start(busy()).await.unwrap();
    let result = json!([{ "type": "tool_result", "tool_use_id": "t", "content": CLAUDE_CODE }]);
    let earlier = json!({ "model": "m", "messages": [
        { "role": "user", "content": HERMES },
        { "role": "assistant", "content": "A summary." },
        { "role": "user", "content": format!("What does this mean: {CODEX}") },
    ]});
    for (wire, body) in [anthropic(&result), (WireFormat::Chat, earlier), chat(&json!("Hello."))] {
        let answer = send(&upstream, wire, Streaming::Whole, body.to_string()).await.unwrap();
        assert_eq!(answer.tool_calls().count(), 1, "{body}");
    }
}

#[tokio::test]
async fn script_for_all_calls_answers_a_client_summary_too() {
    let script = Script::answering_all(|request| Reply::text(format!("Call {}.", request.order)));
    let upstream = ScriptedUpstream::start(script).await.unwrap();
    let (wire, body) = responses(CODEX);
    let answer = send(&upstream, wire, Streaming::Whole, body.to_string()).await.unwrap();
    assert_eq!(answer.text(), "Call 0.");
}
