//! Checks of single methods with usual and unusual input.

use std::sync::Arc;

use serde_json::json;
use throughline_engine::{
    Boundary, BoundaryReason, CompressOutcome, CompressRequest, ContextEngine, EngineError, Headroom,
    MeasuredUsage, ModelInForce, NewItem, PrepareOutcome, SessionEnd, SessionStart, Snapshot, ToolRequest,
    Trigger,
};
use throughline_store::{EndReason, MemoryStore, Owner, SessionId};
use throughline_tokens::Usage;
use throughline_transcript::WireFormat;

use super::check::{CheckEnvironment, CheckResult, CheckVerdict, ConformanceCheck, MakeEngine};
use super::harness::{CountingHost, WINDOW_TOKENS, message, words};

const THRESHOLD_TOKENS: u64 = WINDOW_TOKENS / 2;

const SHOULD: &str = "`should_compress`: true or false";
const STATUS: &str = "`get_status`: `engine`, `model`, `last_prompt_tokens`, `threshold_configured_tokens`, \
                      `threshold_tokens`, `window_tokens`, `compactions`, `pressure`";
const USAGE: &str = "`update_from_response`: `usage`, or nothing";
const EMPTY: &str =
    "`no_op`: `below_threshold`, `empty`, `nothing_in_the_middle`, `nothing_new`, `would_not_shrink`";
const OUTCOME: &str = "the result of `compress` is `no_op`, `aborted` or `completed`";
const TOOLS: &str = "`get_tool_schemas`: a list of `name`, `description`, `parameters` (a JSON Schema)";
const UNKNOWN_TOOL: &str = "`handle_tool_call`: code -32001 for a tool it does not have";
const LIFECYCLE: &str = "`boundary`, `session_reset` and `session_ended` are answered with nothing";
const PREPARE: &str = "`prepare`: `nothing`, `ready` or `failed`";
const JSON: &str = "`json` is the message as its wire has it";

pub(super) async fn all(make: MakeEngine<'_>) -> Vec<ConformanceCheck> {
    vec![
        ConformanceCheck::of("tells small prompts from large ones", SHOULD, sizes(make).await),
        ConformanceCheck::of("says how it stands", STATUS, status(make).await),
        ConformanceCheck::of("takes usage, and its absence", USAGE, usage(make).await),
        ConformanceCheck::of("leaves nothing and next to nothing alone", EMPTY, little(make).await),
        ConformanceCheck::of("gives the same view of the same conversation", OUTCOME, twice(make).await),
        ConformanceCheck::of("takes messages as they come", JSON, strange(make).await),
        ConformanceCheck::of("compacts after it was asked to prepare", PREPARE, prepared(make).await),
        ConformanceCheck::of("describes its tools", TOOLS, tools(make).await),
        ConformanceCheck::of("refuses tools it does not have", UNKNOWN_TOOL, unknown_tool(make).await),
        ConformanceCheck::of("receives ends and beginnings of sessions", LIFECYCLE, lifecycle(make).await),
    ]
}

fn session() -> SessionId {
    SessionId::from_text("asked")
}

fn model() -> Result<ModelInForce, String> {
    let json = json!({
        "model": "by-rote", "provider": "check", "window_tokens": WINDOW_TOKENS,
        "limits": {
            "threshold_configured_tokens": THRESHOLD_TOKENS, "threshold_tokens": THRESHOLD_TOKENS,
            "reserved_output_tokens": 0, "hygiene_tokens": WINDOW_TOKENS * 85 / 100, "tail_permille": 200,
            "tail_tokens": THRESHOLD_TOKENS / 5, "summary_cap_tokens": WINDOW_TOKENS / 8,
            "summary_floor_tokens": 500, "protect_first_n": 1, "protect_last_n": 4,
        },
    });
    serde_json::from_value(json).map_err(|error| error.to_string())
}

/// Creates an engine and sets its model and session.
async fn begun(make: MakeEngine<'_>) -> Result<Arc<dyn ContextEngine>, String> {
    let host = Arc::new(CountingHost::default());
    let engine =
        make(&CheckEnvironment { store: Arc::new(MemoryStore::new()), owner: Owner::default(), host });
    engine.update_model(&model()?).await.map_err(words_of)?;
    let start = SessionStart {
        session: session(),
        conversation: session(),
        wire_format: WireFormat::Chat,
        program: "check".to_owned(),
        compactions: 0,
    };
    engine.session_started(&start).await.map_err(words_of)?;
    Ok(engine)
}

fn words_of(error: EngineError) -> String {
    error.to_string()
}

/// A conversation of these messages, with four bytes per token.
fn conversation(messages: Vec<String>) -> Result<Snapshot, String> {
    let sizes: Vec<u64> = messages.iter().map(|json| json.len() as u64 / 4 + 1).collect();
    let messages = messages.into_iter().map(message).collect::<Result<Vec<_>, _>>()?;
    let prompt_tokens = sizes.iter().sum::<u64>() + 100;
    Ok(Snapshot {
        session: session(),
        wire_format: WireFormat::Chat,
        messages: Arc::new(messages),
        sizes: Arc::new(sizes),
        fixed_tokens: 100,
        prompt_tokens,
        cached_prompt: None,
    })
}

/// Exchanges with one tool call each.
fn exchanges(count: usize) -> Vec<String> {
    let mut all = Vec::new();
    for turn in 0..count {
        all.push(json!({ "role": "user", "content": format!("Question {turn}: {}", words(turn, 60)) }));
        let call = json!({ "id": format!("c{turn}"), "type": "function",
            "function": { "name": "read_file", "arguments": format!("{{\"path\":\"src/{turn}.rs\"}}") } });
        all.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
        all.push(
            json!({ "role": "tool", "tool_call_id": format!("c{turn}"), "content": words(turn + 1, 200) }),
        );
        all.push(json!({ "role": "assistant", "content": format!("Answer {turn}.") }));
    }
    all.iter().map(ToString::to_string).collect()
}

fn request(conversation: Snapshot, force: bool) -> CompressRequest {
    CompressRequest {
        conversation,
        trigger: if force { Trigger::Manual } else { Trigger::Preflight },
        room: Headroom::Left,
        focus: None,
        force,
        target_tokens: None,
        keep_messages: None,
        memory_context: None,
    }
}

async fn sizes(make: MakeEngine<'_>) -> CheckResult {
    let engine = begun(make).await?;
    for (tokens, wanted) in [(1, false), (WINDOW_TOKENS, true)] {
        let says = engine.should_compress(tokens).await.map_err(words_of)?;
        if says != wanted {
            return Err(format!(
                "of a prompt of {tokens} tokens in a window of {WINDOW_TOKENS} it says {says}"
            ));
        }
    }
    Ok(CheckVerdict::Passed)
}

async fn status(make: MakeEngine<'_>) -> CheckResult {
    let engine = begun(make).await?;
    let status = engine.status().await.map_err(words_of)?;
    if status.window_tokens != WINDOW_TOKENS {
        return Err(format!("it says the window has {} tokens, not {WINDOW_TOKENS}", status.window_tokens));
    }
    if status.model != "by-rote" {
        return Err(format!("it says the model is `{}`, not `by-rote`", status.model));
    }
    if status.threshold_tokens == 0 || status.threshold_tokens > WINDOW_TOKENS {
        return Err(format!("it says compaction starts at {} of {WINDOW_TOKENS}", status.threshold_tokens));
    }
    if status.compactions != 0 {
        return Err(format!("it reports {} compactions", status.compactions));
    }
    Ok(CheckVerdict::Passed)
}

async fn usage(make: MakeEngine<'_>) -> CheckResult {
    let engine = begun(make).await?;
    let used = Usage { input: 2_000, output: 30, cache_read: 500, ..Usage::default() };
    for usage in [None, Some(used)] {
        engine.update_from_response(&MeasuredUsage { session: session(), usage }).await.map_err(words_of)?;
    }
    match engine.status().await.map_err(words_of)?.last_prompt_tokens {
        Some(2_500) => Ok(CheckVerdict::Passed),
        other => Err(format!("after a prompt of 2500 tokens it says the last had {other:?}")),
    }
}

async fn little(make: MakeEngine<'_>) -> CheckResult {
    for count in [0, 1] {
        let engine = begun(make).await?;
        let messages: Vec<String> = exchanges(1).into_iter().take(count).collect();
        let asked = conversation(messages)?;
        engine.has_content_to_compress(&asked).await.map_err(words_of)?;
        let outcome = engine.compress(&request(asked, true)).await.map_err(words_of)?;
        if let CompressOutcome::Completed(_) = outcome {
            return Err(format!("it compacts a conversation of {count} messages"));
        }
    }
    Ok(CheckVerdict::Passed)
}

async fn twice(make: MakeEngine<'_>) -> CheckResult {
    let engine = begun(make).await?;
    let asked = request(conversation(exchanges(20))?, false);
    let mut views = Vec::new();
    for _ in 0..2 {
        match engine.compress(&asked).await.map_err(words_of)? {
            CompressOutcome::Completed(made) => views.push(made.view),
            CompressOutcome::NoOp { detail, .. } | CompressOutcome::Aborted { detail, .. } => {
                return Err(format!(
                    "it compacts nothing of {} tokens: {detail}",
                    asked.conversation.prompt_tokens
                ));
            }
        }
    }
    match views.as_slice() {
        [first, second] if places(first) == places(second) => Ok(CheckVerdict::Passed),
        _ => Err("it keeps other messages the second time".to_owned()),
    }
}

fn places(view: &[NewItem]) -> Vec<usize> {
    let kept = view.iter().filter_map(|item| match item {
        NewItem::Kept { item } | NewItem::Rewritten { item, .. } => Some(*item),
        NewItem::Summary { .. } | NewItem::Synthetic { .. } => None,
    });
    kept.collect()
}

/// Checks unusual messages that may nevertheless be sent.
async fn strange(make: MakeEngine<'_>) -> CheckResult {
    let engine = begun(make).await?;
    let mut messages = exchanges(4);
    let picture = json!([{ "type": "text", "text": "See." },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw0KGgo=" } }]);
    let broken_call = json!([{ "id": "odd", "type": "function",
        "function": { "name": "read_file", "arguments": "{\"path\": " } }]);
    let odd = [
        json!({ "role": "user", "content": "\u{1F9F5} ein Faden, 一本の糸, \u{0}\u{202E}tfel, \"\\n\"" }),
        json!({ "role": "assistant", "content": "" }),
        json!({ "role": "user", "content": picture }),
        json!({ "role": "assistant", "content": null, "tool_calls": broken_call, "x_unknown": { "a": [1, 2.50] } }),
        json!({ "role": "tool", "tool_call_id": "odd", "content": "x".repeat(1_000_000) }),
        json!({ "role": "assistant", "content": "Done." }),
    ];
    messages.extend(odd.iter().map(ToString::to_string));
    messages.extend(exchanges(24).split_off(16));
    engine.compress(&request(conversation(messages)?, true)).await.map_err(words_of)?;
    Ok(CheckVerdict::Passed)
}

async fn prepared(make: MakeEngine<'_>) -> CheckResult {
    let engine = begun(make).await?;
    let asked = conversation(exchanges(20))?;
    engine.messages_appended(&asked).await.map_err(words_of)?;
    let outcome = engine.prepare(&asked).await.map_err(words_of)?;
    match engine.compress(&request(asked, false)).await.map_err(words_of)? {
        CompressOutcome::Completed(_) => {}
        CompressOutcome::NoOp { detail, .. } | CompressOutcome::Aborted { detail, .. } => return Err(detail),
    }
    Ok(match outcome {
        PrepareOutcome::Ready { .. } => CheckVerdict::Passed,
        PrepareOutcome::Nothing => CheckVerdict::LeftOut { why: "it prepares nothing".to_owned() },
        PrepareOutcome::Postponed => CheckVerdict::LeftOut { why: "it was put off".to_owned() },
        PrepareOutcome::Failed { detail } => {
            CheckVerdict::LeftOut { why: format!("it cannot now: {detail}") }
        }
    })
}

async fn tools(make: MakeEngine<'_>) -> CheckResult {
    let engine = begun(make).await?;
    let schemas = engine.tool_schemas().await.map_err(words_of)?;
    let mut names = std::collections::BTreeSet::new();
    for tool in &schemas {
        let is_named = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
        if tool.name.is_empty() || tool.name.len() > 64 || !tool.name.chars().all(is_named) {
            return Err(format!("no model can call a tool of the name `{}`", tool.name));
        }
        if !names.insert(&tool.name) {
            return Err(format!("it has two tools of the name `{}`", tool.name));
        }
        if tool.description.trim().is_empty() {
            return Err(format!("it does not say what `{}` is for", tool.name));
        }
        if tool.parameters["type"] != "object" {
            return Err(format!("what `{}` takes is no object", tool.name));
        }
        // Models call tools with any arguments; the engine must answer and not end.
        let call = ToolRequest {
            session: session(),
            name: tool.name.clone(),
            arguments: json!({ "?": [] }),
            max_chars: None,
        };
        if let Err(error) = engine.handle_tool_call(&call).await {
            return Err(format!("`{}` with arguments it does not know: {error}", tool.name));
        }
    }
    match schemas.is_empty() {
        true => Ok(CheckVerdict::LeftOut { why: "it has none".to_owned() }),
        false => Ok(CheckVerdict::Passed),
    }
}

async fn unknown_tool(make: MakeEngine<'_>) -> CheckResult {
    let engine = begun(make).await?;
    let call = ToolRequest {
        session: session(),
        name: "no_such_tool_at_all".to_owned(),
        arguments: json!({}),
        max_chars: None,
    };
    match engine.handle_tool_call(&call).await {
        Err(EngineError::UnknownTool { .. }) => Ok(CheckVerdict::Passed),
        Err(other) => Err(other.to_string()),
        Ok(answer) => Err(format!("it answers `{}`", answer.text)),
    }
}

async fn lifecycle(make: MakeEngine<'_>) -> CheckResult {
    let engine = begun(make).await?;
    let new = SessionId::from_text("asked-2");
    for reason in
        [BoundaryReason::Compression, BoundaryReason::Undo, BoundaryReason::Redo, BoundaryReason::Elsewhere]
    {
        let boundary = Boundary { reason, old: session(), new: new.clone() };
        engine.boundary(&boundary).await.map_err(words_of)?;
    }
    engine.session_reset().await.map_err(words_of)?;
    let end = SessionEnd { session: new, reason: EndReason::named("new") };
    engine.session_ended(&end).await.map_err(words_of)?;
    engine.status().await.map_err(|error| format!("after all that: {error}"))?;
    Ok(CheckVerdict::Passed)
}
