//! Small transcripts, written out or built from a few numbers.

use serde_json::{Value, json};

/// A short conversation in the chat wire format: a request, two steps with tools, an answer, a second request.
pub(crate) fn short_chat() -> Value {
    json!({
        "model": "our-own-model",
        "messages": [
            {"role": "system", "content": "You are a careful helper."},
            {"role": "user", "content": "Why does the build fail? Do not change src/lib.rs."},
            {"role": "assistant", "content": "I look at the log.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{\"command\":\"make\"}"}},
                {"id": "c2", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"Makefile\"}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "cc: error: missing.c: No such file\n\nExit code: 2"},
            {"role": "tool", "tool_call_id": "c2", "content": "all:\n\tcc missing.c"},
            {"role": "assistant", "content": "The Makefile names missing.c, which is not there."},
            {"role": "user", "content": "Remove it then."}
        ]
    })
}

/// A long autonomous session in the chat wire format: `steps` steps of a command and its output.
pub(crate) fn long_chat(steps: usize) -> Value {
    let mut messages = vec![
        json!({"role": "system", "content": "You are a careful helper."}),
        json!({"role": "user", "content": "Port the parser to the new format. Never touch vendor/."}),
    ];
    for step in 0..steps {
        let id = format!("call_{step}");
        let command = json!({ "command": format!("cargo test -p parser case_{step}") }).to_string();
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "terminal", "arguments": command}}]}));
        let output = format!(
            "running 1 test\ntest case_{step} ... ok\n{}\n\nExit code: 0",
            "some more output line\n".repeat(20)
        );
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
    }
    messages.push(json!({"role": "assistant", "content": "All cases pass now."}));
    messages.push(json!({"role": "user", "content": "Good. Now write the changelog entry."}));
    json!({ "model": "our-own-model", "messages": messages })
}

/// The same in the Anthropic wire format, with a system prompt outside the list.
pub(crate) fn long_anthropic(steps: usize) -> Value {
    let mut messages =
        vec![json!({"role": "user", "content": "Port the parser to the new format. Never touch vendor/."})];
    for step in 0..steps {
        let id = format!("toolu_{step}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("cargo test case_{step}")}}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": format!("test case_{step} ... ok\n{}", "some more output line\n".repeat(20))}]}));
    }
    messages.push(json!({"role": "assistant", "content": "All cases pass now."}));
    messages.push(json!({"role": "user", "content": "Good. Now write the changelog entry."}));
    json!({ "system": "You are a careful helper.", "max_tokens": 1000, "messages": messages })
}

/// One object a line, as session logs have them.
pub(crate) fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// A Claude Code session log of `steps` steps: times, usage, folder and title as the client writes them. One with more
/// steps is the same one, later.
pub(crate) fn claude_log(session: &str, title: &str, steps: usize) -> String {
    let conversation = long_anthropic(steps);
    let messages = conversation["messages"].as_array().cloned().unwrap_or_default();
    let mut events = Vec::new();
    for (at, message) in messages.into_iter().take(1 + 2 * steps).enumerate() {
        let parent = if at == 0 { Value::Null } else { json!(format!("{session}-{}", at - 1)) };
        let mut event = json!({
            "parentUuid": parent,
            "isSidechain": false,
            "cwd": "/home/ada/parser",
            "sessionId": session,
            "type": message["role"],
            "uuid": format!("{session}-{at}"),
            "timestamp": format!("2026-11-14T09:{:02}:{:02}.000Z", at / 60 % 60, at % 60),
            "message": message,
        });
        if event["type"] == "assistant" {
            event["message"]["id"] = json!(format!("msg_{session}_{at}"));
            event["message"]["model"] = json!("claude-opus-4-6");
            event["message"]["stop_reason"] = json!("end_turn");
            event["message"]["usage"] = json!({
                "input_tokens": 10, "output_tokens": 200,
                "cache_read_input_tokens": 1_000 * at, "cache_creation_input_tokens": 500,
            });
        }
        events.push(event);
    }
    if !title.is_empty() {
        let leaf = events.last().map(|event| event["uuid"].clone());
        events.insert(0, json!({ "type": "summary", "summary": title, "leafUuid": leaf }));
    }
    lines(&events)
}
