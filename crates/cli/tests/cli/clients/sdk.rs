//! The `openai` and `anthropic` packages of Python: what they give their users is the same with and without the gateway.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_testkit::{
    RecordedRequest, Reply, ReplyFault, Script, ScriptedUpstream, ServedModel, UpstreamOptions,
};
use throughline_tokens::Usage;
use throughline_transcript::WireFormat;
use throughline_wire::{AnswerDraft, AnswerPart, ErrorBody, Seal, ToolCall};

use crate::clients::gateway::Gateway;
use crate::clients::installed::installed;
use crate::clients::process::run;

/// Long enough for a machine that does other things too.
const LIMIT: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn the_sdks_give_the_same_with_and_without_the_gateway() {
    let Some(python) = installed("python/bin/python") else { return };
    let (direct, asked_directly) = results(&python, |_| None).await;
    let (through, asked_through) = results(&python, |upstream| Some(Gateway::before(upstream))).await;
    assert!(direct.lines().count() > 30 && direct.contains("call_2"), "{direct}");
    for (direct, through) in direct.lines().zip(through.lines()) {
        assert_eq!(direct, through);
    }
    assert_eq!(direct, through);
    // What is asked is the same too, but for marks where the client set none.
    assert_eq!(asked_directly.len(), asked_through.len());
    for (direct, through) in asked_directly.iter().zip(&asked_through) {
        assert_eq!(shown(direct), shown(through));
    }
}

/// Turns that name the answer before them, through two compactions and back to an early answer.
#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_names_earlier_answers_past_compactions() {
    let Some(python) = installed("python/bin/python") else { return };
    let options = UpstreamOptions {
        models: vec![ServedModel::with_window("worker", 16_000)],
        ..UpstreamOptions::default()
    };
    let script = Script::answering(|request| Reply::text(format!("This is answer {}.", request.order)));
    let upstream = ScriptedUpstream::start_with(options, script).await.unwrap();
    let gateway = Gateway::before(&upstream.url());
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/clients/sdk_previous.py");
    let mut client = std::process::Command::new(python);
    client.arg(script).arg(gateway.url()).env_clear().env("HOME", folder.path()).current_dir(folder.path());
    let ended = run(&mut client, &folder.path().join("screen"), LIMIT);
    assert!(ended.status.is_some_and(|status| status.success()), "{}", ended.screen);
    assert!(gateway.compactions() >= 2, "{}", gateway.screen());
    assert_eq!(
        (gateway.opened("new conversation"), gateway.opened("branch of")),
        (1, 1),
        "{}",
        gateway.screen()
    );
    let sent: Vec<Value> = upstream.calls().iter().map(RecordedRequest::json).collect();
    assert!(sent.iter().all(|body| body.get("previous_response_id").is_none()));
    // The other way begins at the answer that it names, and knows nothing of what came after.
    let last = sent.last().unwrap().to_string();
    assert!(last.contains("Turn 2:") && !last.contains("Turn 3:"), "{last}");
}

/// What the script prints, and what the upstream was asked.
async fn results(
    python: &Path,
    gateway: impl FnOnce(&str) -> Option<Gateway>,
) -> (String, Vec<RecordedRequest>) {
    let options = UpstreamOptions {
        models: ["worker", "claude-worker"].map(|model| ServedModel::with_window(model, 500_000)).into(),
        ..UpstreamOptions::default()
    };
    let upstream = ScriptedUpstream::start_with(options, Script::answering(reply)).await.unwrap();
    let gateway = gateway(&upstream.url());
    let url = gateway.as_ref().map_or_else(|| upstream.url(), |gateway| gateway.url().to_owned());
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/clients/sdk.py");
    let mut client = std::process::Command::new(python);
    client.arg(script).arg(url).env_clear().env("HOME", folder.path()).current_dir(folder.path());
    let ended = run(&mut client, &folder.path().join("screen"), LIMIT);
    assert!(ended.status.is_some_and(|status| status.success()), "{}", ended.screen);
    (ended.screen, upstream.requests())
}

/// An answer that depends on nothing but the request.
fn reply(request: &RecordedRequest) -> Reply {
    let text = request.text();
    if text.contains("Refuse this.") {
        return Reply::error(429, "rate_limit_error", "slow down").header("retry-after", "7");
    }
    if text.contains("Break off.") {
        let overloaded = ErrorBody {
            message: "overloaded in the middle".to_owned(),
            kind: Some("overloaded_error".to_owned()),
            ..ErrorBody::default()
        };
        let reply = Reply::text("this answer is too long to come to its end today");
        return reply.failing_after(4, ReplyFault::ErrorEvent(overloaded));
    }
    let mut parts = Vec::new();
    if text.contains("\"thinking\"") {
        parts.push(AnswerPart::Reasoning {
            text: "Which files were meant?".to_owned(),
            seal: Seal::Signature("c2lnbmVk".to_owned()),
        });
    } else if text.contains("\"reasoning\"") {
        parts.push(AnswerPart::Reasoning {
            text: "Which files were meant?".to_owned(),
            seal: Seal::Encrypted("c2VhbGVk".to_owned()),
        });
    }
    let has_results = text.contains("content for call_1")
        || text.contains("\"function_call_output\"")
        || text.contains("\"tool_result\"");
    if text.contains("Read both files.") && !has_results {
        parts.push(AnswerPart::Text("Both, at once.".to_owned()));
        let call = |number: u8| {
            AnswerPart::ToolCall(ToolCall {
                id: format!("call_{number}"),
                name: "read_file".to_owned(),
                arguments: format!("{{\"path\": \"süß/日本_{number}.rs\"}}"),
            })
        };
        parts.extend([call(1), call(2)]);
    } else {
        parts.push(AnswerPart::Text("Grüße 😀 aus 日本, with \"quotes\" and \\ as well.".to_owned()));
    }
    let usage = Usage { input: 1_234, cache_read: 1_000, output: 56, ..Usage::default() };
    Reply::exactly(
        AnswerDraft { model: "worker".to_owned(), ..AnswerDraft::of_parts(parts) }.with_usage(usage),
    )
}

/// A request without the marks the gateway may set.
fn shown(request: &RecordedRequest) -> (String, String, Value) {
    let mut body = if request.body.is_empty() { Value::Null } else { request.json() };
    if request.wire_format() == Some(WireFormat::Anthropic) {
        without_marks(&mut body);
    }
    (request.method.clone(), request.path.clone(), body)
}

fn without_marks(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cache_control");
            // Only a block can be marked, so words become one.
            for name in ["content", "system"] {
                if let Some(words @ Value::String(_)) = members.get_mut(name) {
                    *words = json!([{ "type": "text", "text": words.clone() }]);
                }
            }
            members.values_mut().for_each(without_marks);
        }
        Value::Array(values) => values.iter_mut().for_each(without_marks),
        _ => {}
    }
}
