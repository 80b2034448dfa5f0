//! Transcripts for the golden outputs of `compress`: each shows a few shapes that matter, in every form the command reads.
//!
//! All of them are generated from fixed numbers. A change here changes golden outputs without a change of the program;
//! add transcripts rather than changing one.

use serde_json::{Value, json};
use throughline_testkit::{
    ConversationOptions, TopicOptions, TopicShape, big_transcript, claude_code_log, codex_log,
    conversation_from_seed, topic_conversation,
};
use throughline_transcript::WireFormat;

use crate::samples::{lines, long_anthropic, long_chat, short_chat};

/// One run of `compress --json`.
#[derive(Clone)]
pub(crate) struct Case {
    /// Name of the golden file.
    pub(crate) name: &'static str,
    /// The transcript and the name it is stored under, whose ending says nothing to the program.
    pub(crate) input: String,
    /// What follows `compress input --json`.
    pub(crate) arguments: &'static [&'static str],
}

fn case(name: &'static str, input: impl Into<String>, arguments: &'static [&'static str]) -> Case {
    Case { name, input: input.into(), arguments }
}

/// Words that differ from line to line and name things a summary has to keep.
fn log_lines(from: usize, count: usize) -> String {
    (from..from + count)
        .map(|line| {
            format!(
                "2026-11-14T09:{:02}:{:02}Z worker-{} wrote /var/spool/job/{line}.bin in {} ms\n",
                line / 60 % 60,
                line % 60,
                line % 7,
                3 + line * 37 % 900
            )
        })
        .collect()
}

// Chat Completions.

fn chat_call(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": tool, "arguments": arguments.to_string()}})
}

fn chat_calls(words: Option<&str>, calls: &[Value]) -> Value {
    json!({"role": "assistant", "content": words, "tool_calls": calls})
}

fn chat_result(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// Several calls in one answer, results in another order, one of them an error.
fn chat_parallel() -> String {
    let mut messages = vec![
        json!({"role": "system", "content": "You are a careful helper. Answer in English."}),
        user("Compare the three workers and fix the slow one. Do not restart worker-3 during the day."),
    ];
    for round in 0..14 {
        let ids: Vec<String> = (0..3).map(|at| format!("call_{round}_{at}")).collect();
        let calls = [
            chat_call(&ids[0], "terminal", &json!({"command": format!("tail -n 40 worker-{round}.log")})),
            chat_call(
                &ids[1],
                "read_file",
                &json!({"path": format!("src/worker/{round}.py"), "offset": round * 10}),
            ),
            chat_call(
                &ids[2],
                "patch",
                &json!({"path": format!("src/worker/{round}.py"), "old_string": "sleep(5)", "new_string": "wait(ready, 5)"}),
            ),
        ];
        messages.push(chat_calls((round % 3 == 0).then_some("I read and patch at once."), &calls));
        messages.push(chat_result(
            &ids[2],
            if round == 5 { "Error: old_string was not found" } else { "{\"success\":true}" },
        ));
        messages.push(chat_result(&ids[0], &log_lines(round * 40, 40)));
        messages.push(chat_result(
            &ids[1],
            &format!(
                "def run_{round}(queue):\n    while True:\n        sleep(5)\n        queue.take({round})\n"
            ),
        ));
    }
    messages.push(assistant("All fourteen workers wait for their queue now instead of sleeping."));
    messages.push(user("Good. Which of them failed to patch?"));
    json!({"model": "our-own-model", "messages": messages}).to_string()
}

/// Pictures as data and as addresses, from the person and from a tool.
fn chat_images() -> String {
    let data = format!("data:image/png;base64,{}", "iVBORw0KGgoAAAANSUhEUg".repeat(400));
    let mut messages = vec![json!({"role": "user", "content": [
        {"type": "text", "text": "This is the broken page. Make the button blue again."},
        {"type": "image_url", "image_url": {"url": data, "detail": "high"}}]})];
    for step in 0..10 {
        let id = format!("shot_{step}");
        messages.push(chat_calls(
            Some("I look at the page."),
            &[chat_call(&id, "screenshot", &json!({"url": format!("http://localhost:8000/step/{step}")}))],
        ));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": [
            {"type": "text", "text": format!("Screenshot {step} of 1280x720")},
            {"type": "image_url", "image_url": {"url": format!("https://example.com/shots/{step}.png")}}]}));
        messages.push(assistant(&format!(
            "In screenshot {step} the button `#send-{step}` is {}.",
            ["grey", "blue"][step % 2]
        )));
        messages.push(json!({"role": "user", "content": [
            {"type": "text", "text": format!("Look again at step {step}.")},
            {"type": "image_url", "image_url": {"url": data}}]}));
    }
    json!(messages).to_string()
}

/// Commands that fail in every spelling, a test that stays broken, and a person who corrects the agent.
fn chat_errors() -> String {
    let results = [
        (
            "cargo test",
            "running 2 tests\ntest parse ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed\n\nexit code: 101",
        ),
        ("make", "cc: error: missing.c: No such file or directory\n\nExit code: 2"),
        ("pytest", "tests/test_a.py::test_one FAILED\n===== 1 failed, 3 passed in 0.31s ====="),
        (
            "ls /nowhere",
            "{\"output\":\"ls: cannot access '/nowhere': No such file or directory\\n\",\"exit_code\":2}",
        ),
        ("curl -s http://localhost:9/health", "<returncode>7</returncode>\ncurl: (7) Failed to connect"),
        ("npm test", "8 passed, 2 failed\nexit_code=1"),
        (
            "cargo build",
            "error[E0425]: cannot find value `limit` in this scope\n --> src/lib.rs:41:9\n\nexit code: 101",
        ),
        ("git push", "! [rejected] main -> main (non-fast-forward)\nerror: failed to push some refs"),
        (
            "python run.py | tail",
            "Traceback (most recent call last):\n  File \"run.py\", line 12, in <module>\nKeyError: 'harbour'",
        ),
        (
            "cargo test",
            "running 2 tests\ntest parse ... ok\n\ntest result: ok. 2 passed; 0 failed\n\nexit code: 0",
        ),
    ];
    let mut messages = vec![user("Make all checks pass. Never delete a test to get there.")];
    for round in 0..3 {
        for (at, (command, output)) in results.iter().enumerate() {
            let id = format!("run_{round}_{at}");
            messages.push(chat_calls(None, &[chat_call(&id, "terminal", &json!({ "command": command }))]));
            messages.push(chat_result(&id, &format!("{output}\n{}", log_lines(round * 100 + at * 10, 6))));
        }
        messages.push(assistant("The health check needs port 9, which nothing listens on."));
        messages.push(user(if round == 1 { "No, use port 8790 instead." } else { "Try it once more." }));
    }
    json!(messages).to_string()
}

/// Scripts from right to left, combining marks, emoji, lone escapes, unusual spacing and numbers.
fn chat_unicode() -> String {
    let mut text = String::from(
        "[ {\"role\":\"user\",  \"content\":\"Übersetze caf\\u00e9 \\ud83d\\ude00 — 日本語のテスト, שלום, नमस्ते\", \"n\": 1.0e2}",
    );
    for step in 0..24 {
        let words = [
            "Schiffe liegen im Hafen 🚢",
            "港の水位は三十六センチです",
            "Причал свободен с утра",
            "e\u{301}te\u{301} à l\u{2019}île",
        ];
        let filler = words[step % 4].repeat(30);
        text.push_str(&format!(
            ",\n{{\"role\":\"assistant\",\"content\":\"Schritt {step}: {filler} \\u2028 \\t Pfad süß/日本_{step}.rs\"}},\n {{ \"content\" : \"weiter {step} \\u200b👍🏽 {filler}\" , \"role\":\"user\",\"x\":12345678901234567890123 }}"
        ));
    }
    text.push_str(" ]\n");
    text
}

/// Results of a hundred thousand characters, one of them read twice.
fn chat_long_results() -> String {
    let long = log_lines(0, 1_400);
    let mut messages = vec![user("Find out why /var/spool/job/777.bin is slow.")];
    for step in 0..6 {
        let id = format!("read_{step}");
        let path = format!("/var/log/worker-{}.log", step % 3);
        messages.push(chat_calls(None, &[chat_call(&id, "read_file", &json!({ "path": path }))]));
        let text = if step % 3 == 0 { long.clone() } else { log_lines(step * 500, 500) };
        messages.push(chat_result(&id, &text));
    }
    let write = json!({"path": "report.md", "content": log_lines(0, 300)});
    messages.push(chat_calls(Some("I write the report."), &[chat_call("write_1", "write_file", &write)]));
    messages.push(chat_result("write_1", "wrote report.md"));
    messages.push(user("And worker-2?"));
    json!({"messages": messages}).to_string()
}

/// Keys of several makers, in commands, results and in what the person says.
fn chat_secrets() -> String {
    // Made up, as all of them here.
    let key = format!("sk-ant-api03-{}", "Qm9vdHNtYW5uMjAyNkhhZmVu".repeat(4));
    let token = format!("ghp_{}", "4fQ9sLw2vR7kTz1MbN8sHd3pYfXq6LcJ5aBe");
    let mut messages = vec![user(&format!(
        "Use the token {token} for the upload and the password hunter2-Harbour! for the database."
    ))];
    for step in 0..20 {
        let id = format!("env_{step}");
        messages.push(chat_calls(
            None,
            &[chat_call(
                &id,
                "terminal",
                &json!({"command": format!("ANTHROPIC_API_KEY={key} ./upload --step {step}")}),
            )],
        ));
        messages.push(chat_result(&id, &format!("DATABASE_URL=postgres://harbour:hunter2-Harbour!@db.internal:5432/berths\nAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYz0a1b2c3d4\n{}uploaded {step}\nexit code: 0", log_lines(step * 20, 20))));
    }
    messages.push(assistant(&format!("Uploaded with {token}; the key {key} is in .env.")));
    messages.push(user("Fine. Rotate the keys tomorrow."));
    json!(messages).to_string()
}

/// A summary of an earlier compaction, then more work than fits.
fn chat_compacted_before() -> String {
    let summary = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below.\n\n## Active Task\nPort the parser to the new format.\n\n## Goal\nA parser without the old grammar.\n\n## Constraints & Preferences\n- Never touch vendor/.\n\n## Completed Actions\n1. terminal `cargo test -p parser case_0` -> ok\n\n## Active State\n- cwd: /home/ada/parser\n\n## In Progress\nNone.\n\n## Blocked\nNone.\n\n## Key Decisions\n- Keep `Grammar::old` until the last caller is gone.\n\n## Resolved Questions\nNone.\n\n## Pending User Asks\nNone.\n\n## Relevant Files\n- src/parser.rs: changed\n\n## Remaining Work\n- [ ] write the changelog entry\n\n## Critical Context\n- port 48113\n\n--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---";
    let mut messages = vec![
        json!({"role": "system", "content": "You are a careful helper."}),
        user("Port the parser to the new format. Never touch vendor/."),
        assistant(summary),
        user("Go on with the next cases."),
    ];
    messages.extend(long_chat(50)["messages"].as_array().unwrap()[2..].iter().cloned());
    json!({"model": "our-own-model", "messages": messages}).to_string()
}

/// Calls without results, results without calls, an id that is used twice, and calls that are still open at the end.
fn chat_broken() -> String {
    let mut messages = long_chat(40)["messages"].as_array().unwrap().clone();
    messages.remove(9);
    messages.remove(14);
    messages.insert(20, chat_result("call_of_nobody", "what is this"));
    messages.push(chat_calls(None, &[chat_call("open_1", "terminal", &json!({"command": "sleep 60"}))]));
    json!(messages).to_string()
}

/// Instructions that are larger than a small window.
fn chat_heavy_head() -> String {
    let mut chat = long_chat(20);
    chat["messages"][0]["content"] = json!(log_lines(0, 200));
    chat.to_string()
}

/// Notes, to-do lists and a plan, as agents keep them.
fn chat_plans() -> String {
    let mut messages = vec![user(
        "Build the waiting list. First the table, then the mail, then the page. Ask before you touch billing/.",
    )];
    for step in 0..16 {
        let id = format!("todo_{step}");
        let todos: Vec<Value> = (0..6)
            .map(|at| {
                let status = if at < step / 3 { "completed" } else if at == step / 3 { "in_progress" } else { "pending" };
                json!({"id": at.to_string(), "content": format!("part {at} of the waiting list"), "status": status})
            })
            .collect();
        messages.push(chat_calls(
            Some(&format!(
                "Part {} is next. I decided to keep `berth_free` as a view because two pages read it.",
                step / 3
            )),
            &[chat_call(&id, "todo", &json!({ "todos": todos }))],
        ));
        messages.push(chat_result(&id, "{\"success\":true}"));
        let run = format!("run_{step}");
        messages.push(chat_calls(
            None,
            &[chat_call(
                &run,
                "terminal",
                &json!({"command": format!("python -m pytest tests/test_part_{step}.py -q")}),
            )],
        ));
        messages.push(chat_result(
            &run,
            &format!("{}{} passed in 0.{step}s\nexit code: 0", log_lines(step * 12, 12), step + 1),
        ));
        if step % 5 == 4 {
            messages
                .push(user(["Option 2, please.", "No, the mail goes out at 36 hours.", "Yes."][step / 5]));
        }
    }
    json!(messages).to_string()
}

// Anthropic Messages.

/// Thinking with signatures, redacted thinking, parallel calls, pictures in results, failed calls, marks of the client.
fn anthropic_rich() -> String {
    let mut messages = vec![json!({"role": "user", "content": [
        {"type": "text", "text": "<system-reminder>The folder is /home/ada/harbour.</system-reminder>"},
        {"type": "text", "text": "Find the leak in the berth planner. Do not use the network.", "cache_control": {"type": "ephemeral"}}]})];
    for step in 0..18 {
        let ids = [format!("toolu_{step}_a"), format!("toolu_{step}_b")];
        messages.push(json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": format!("Step {step}: the leak may be in berth_{step}.py. {}", "I compare both sides. ".repeat(12)), "signature": format!("c2lnbmF0dXJlLSVkLXN0ZXA{step}")},
            {"type": "redacted_thinking", "data": format!("cmVkYWN0ZWQ{step}")},
            {"type": "text", "text": format!("I read berth_{step}.py and run its test.")},
            {"type": "tool_use", "id": ids[0], "name": "Read", "input": {"file_path": format!("/home/ada/harbour/berth_{step}.py")}},
            {"type": "tool_use", "id": ids[1], "name": "Bash", "input": {"command": format!("pytest -q tests/test_berth_{step}.py"), "description": "Run one test"}}]}));
        let failed = step % 4 == 1;
        let result = if failed {
            format!("Exit code 1\nE   AssertionError: {step} handles are open")
        } else {
            format!("{} passed", step + 1)
        };
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": ids[0], "content": [
                {"type": "text", "text": log_lines(step * 15, 15)},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo".repeat(30)}}]},
            {"type": "tool_result", "tool_use_id": ids[1], "is_error": failed, "content": result}]}));
    }
    messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": "The leak is in `open_berth`, which never closes its file."}]}));
    messages.push(json!({"role": "user", "content": "Then close it, and keep the old name."}));
    json!({"model": "claude-opus-4-6", "max_tokens": 8192, "system": [{"type": "text", "text": "You are a careful helper.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "Read", "description": "Reads a file", "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}}}, {"name": "Bash", "input_schema": {"type": "object"}}],
        "thinking": {"type": "enabled", "budget_tokens": 4096}, "messages": messages}).to_string()
}

/// A Claude Code log whose client compacted it once, with a branch that was left and a sub-agent.
fn claude_log_compacted() -> String {
    let mut events = vec![json!({"type": "summary", "summary": "Port the parser", "leafUuid": "e-80"})];
    let messages = long_anthropic(40)["messages"].as_array().unwrap().clone();
    let mut parent = Value::Null;
    for (at, message) in messages.iter().enumerate() {
        let uuid = format!("e-{at}");
        if at == 40 {
            events.push(json!({"type": "system", "subtype": "compact_boundary", "uuid": "boundary", "parentUuid": null, "content": "Conversation compacted", "compactMetadata": {"trigger": "auto", "preTokens": 150_000}, "sessionId": "s"}));
            events.push(json!({"type": "user", "isCompactSummary": true, "uuid": "compact", "parentUuid": "boundary", "sessionId": "s", "message": {"role": "user", "content": "This session is being continued from a previous conversation that ran out of context. The parser was ported up to case_19."}}));
            parent = json!("compact");
        }
        if at == 10 {
            events.push(json!({"type": "user", "isSidechain": true, "uuid": "side-1", "parentUuid": null, "sessionId": "s", "message": {"role": "user", "content": "Look for callers of Grammar::old."}}));
            events.push(json!({"type": "assistant", "isSidechain": true, "uuid": "side-2", "parentUuid": "side-1", "sessionId": "s", "message": {"id": "msg_side", "role": "assistant", "model": "claude-haiku-4-5", "content": [{"type": "text", "text": "Two callers in src/cli.rs."}]}}));
        }
        let mut event = json!({"parentUuid": parent, "isSidechain": false, "cwd": "/home/ada/parser", "sessionId": "s", "type": message["role"], "uuid": uuid, "timestamp": format!("2026-11-14T09:{:02}:{:02}.000Z", at / 60, at % 60), "message": message});
        if message["role"] == "assistant" {
            event["message"]["id"] = json!(format!("msg_{at}"));
            event["message"]["model"] = json!("claude-opus-4-6");
        }
        events.push(event);
        parent = json!(uuid);
    }
    events.push(json!({"type": "user", "isMeta": true, "uuid": "meta", "parentUuid": parent, "sessionId": "s", "message": {"role": "user", "content": "Caveat: the messages below were generated by the user while running local commands."}}));
    lines(&events)
}

// Responses.

/// Reasoning that is encrypted, calls of functions, of a custom tool and of a shell, pictures, a failed call.
fn responses_rich() -> String {
    let mut input = vec![
        json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Stay inside of the folder."}]}),
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Rename `Berth` to `Mooring` everywhere. Keep the table name."}, {"type": "input_image", "image_url": format!("data:image/png;base64,{}", "iVBORw0KGgo".repeat(40))}]}),
    ];
    for step in 0..20 {
        input.push(json!({"type": "reasoning", "id": format!("rs_{step}"), "summary": [{"type": "summary_text", "text": format!("**Renaming file {step}**")}], "encrypted_content": format!("gAAAAB{}", "cmVhc29uaW5n".repeat(8))}));
        let id = format!("call_{step}");
        match step % 3 {
            0 => {
                input.push(json!({"type": "function_call", "id": format!("fc_{step}"), "call_id": id, "name": "shell", "arguments": json!({"command": ["bash", "-lc", format!("rg -n Berth src/part_{step}.rs")], "workdir": "/home/ada/harbour"}).to_string()}));
                input.push(json!({"type": "function_call_output", "call_id": id, "output": json!({"output": log_lines(step * 15, 15), "metadata": {"exit_code": step % 2, "duration_seconds": 0.1}}).to_string()}));
            }
            1 => {
                input.push(json!({"type": "custom_tool_call", "id": format!("ctc_{step}"), "call_id": id, "name": "apply_patch", "input": format!("*** Begin Patch\n*** Update File: src/part_{step}.rs\n@@\n-struct Berth;\n+struct Mooring;\n*** End Patch"), "status": "completed"}));
                input.push(json!({"type": "custom_tool_call_output", "call_id": id, "output": if step == 7 { "Failed to find expected lines in src/part_7.rs" } else { "Success. Updated the following files:\nM src/part.rs" }}));
            }
            _ => {
                input.push(json!({"type": "function_call", "call_id": id, "name": "update_plan", "arguments": json!({"plan": [{"step": format!("rename part {step}"), "status": "completed"}, {"step": format!("rename part {}", step + 1), "status": "in_progress"}, {"step": "run all tests", "status": "pending"}]}).to_string()}));
                input.push(json!({"type": "function_call_output", "call_id": id, "output": "Plan updated"}));
                input.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": format!("Part {step} has its new name; {}", "the tests of it pass. ".repeat(20)), "annotations": []}]}));
            }
        }
    }
    input.push(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Did you keep the table name?"}]}));
    json!({"model": "gpt-5.2-codex", "instructions": "You are a careful helper.", "store": false, "include": ["reasoning.encrypted_content"], "tools": [{"type": "function", "name": "shell", "parameters": {"type": "object"}}, {"type": "custom", "name": "apply_patch"}], "input": input}).to_string()
}

/// A Codex log whose client compacted it once.
fn codex_log_compacted() -> String {
    let body: Value = serde_json::from_str(&responses_rich()).unwrap();
    let mut events = vec![
        json!({"timestamp": "2026-11-14T09:00:00Z", "type": "session_meta", "payload": {"id": "019a", "cwd": "/home/ada/harbour", "instructions": "Be brief."}}),
        json!({"timestamp": "2026-11-14T09:00:00Z", "type": "turn_context", "payload": {"cwd": "/home/ada/harbour", "model": "gpt-5.2-codex"}}),
    ];
    for (at, item) in body["input"].as_array().unwrap().iter().enumerate() {
        if at == 30 {
            events.push(json!({"timestamp": "2026-11-14T09:10:00Z", "type": "compacted", "payload": {"message": "Parts 0 to 8 have their new name.", "replacement_history": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Rename `Berth` to `Mooring` everywhere. Keep the table name."}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Parts 0 to 8 have their new name."}]}]}}));
        }
        events.push(json!({"timestamp": format!("2026-11-14T09:{:02}:00Z", at % 60), "type": "response_item", "payload": item}));
        if at % 9 == 0 {
            events.push(json!({"type": "event_msg", "payload": {"type": "token_count", "info": null}}));
        }
    }
    lines(&events)
}

fn generated(wire_format: WireFormat, seed: u64, units: usize) -> throughline_testkit::GeneratedList {
    conversation_from_seed(&ConversationOptions::new(wire_format).at_most_units(units), seed)
}

/// The first list from this seed on that is long enough to be compacted.
fn generated_long(wire_format: WireFormat, mut seed: u64) -> throughline_testkit::GeneratedList {
    loop {
        let list = generated(wire_format, seed, 160);
        if list.len() >= 60 {
            return list;
        }
        seed += 1;
    }
}

fn topics(shape: TopicShape) -> String {
    topic_conversation(TopicOptions { topics: 4, turns: 24, first_percent: 25, shape, seed: 11 })
        .list
        .document()
}

/// Every run on Chat Completions.
pub(crate) fn chat() -> Vec<Case> {
    let big = big_transcript(WireFormat::Chat, 400_000, 300, 3);
    vec![
        case("chat-empty", "[]", &["--force"]),
        case("chat-below-threshold", short_chat().to_string(), &[]),
        case("chat-short-forced", short_chat().to_string(), &["--force"]),
        case("chat-loop", long_chat(60).to_string(), &["--context-length", "16k"]),
        case("chat-loop-preview", long_chat(60).to_string(), &["--context-length", "16k", "--preview"]),
        case("chat-loop-keep", long_chat(60).to_string(), &["--context-length", "16k", "--keep", "30"]),
        case(
            "chat-loop-keep-exactly",
            long_chat(60).to_string(),
            &["--context-length", "200k", "--force", "--keep-exactly", "5"],
        ),
        case(
            "chat-loop-aggressive",
            long_chat(60).to_string(),
            &[
                "--context-length",
                "16k",
                "--set",
                "compression.threshold=0.3",
                "--set",
                "compression.target_ratio=0.1",
                "--set",
                "compression.protect_last_n=2",
                "--set",
                "compression.protect_first_n=0",
                "--set",
                "compression.prune_min_chars=50",
                "--set",
                "compression.argument_max_chars=20",
            ],
        ),
        case(
            "chat-loop-answer-reserved",
            long_chat(60).to_string(),
            &["--context-length", "16k", "--max-output-tokens", "4k"],
        ),
        case(
            "chat-lines",
            lines(long_chat(60)["messages"].as_array().unwrap()),
            &["--context-length", "16k"],
        ),
        case("chat-model-by-name", long_chat(200).to_string(), &["--model", "gpt-4o-mini", "--force"]),
        case("chat-parallel-calls", chat_parallel(), &["--context-length", "16k"]),
        case("chat-images", chat_images(), &["--context-length", "20k"]),
        case("chat-errors", chat_errors(), &["--context-length", "10k"]),
        case("chat-unicode", chat_unicode(), &["--context-length", "16k"]),
        case("chat-long-results", chat_long_results(), &["--context-length", "64k"]),
        case("chat-secrets", chat_secrets(), &["--context-length", "10k"]),
        case(
            "chat-secrets-unmasked",
            chat_secrets(),
            &["--context-length", "10k", "--set", "security.redact_secrets=false"],
        ),
        case("chat-compacted-before", chat_compacted_before(), &["--context-length", "16k"]),
        case("chat-broken-pairs", chat_broken(), &["--context-length", "10k"]),
        case("chat-plans", chat_plans(), &["--context-length", "10k"]),
        case("chat-topics", topics(TopicShape::Turns), &["--context-length", "24k"]),
        case(
            "chat-topics-focus",
            topics(TopicShape::Turns),
            &["--context-length", "24k", "--focus", "invoice rounding"],
        ),
        case(
            "chat-one-task-focus",
            topics(TopicShape::OneTask),
            &["--context-length", "24k", "--focus", "login cookies"],
        ),
        case("chat-window-small", long_chat(60).to_string(), &["--context-length", "3k"]),
        case("chat-window-too-small", long_chat(60).to_string(), &["--context-length", "200"]),
        case(
            "chat-nothing-in-the-middle",
            json!([user("Hello."), assistant("Good morning.")]).to_string(),
            &["--force"],
        ),
        case("chat-window-smaller-than-head", chat_heavy_head(), &["--context-length", "2k"]),
        case(
            "chat-read-as-anthropic",
            long_chat(60)["messages"].to_string(),
            &["--context-length", "16k", "--dialect", "anthropic"],
        ),
        case(
            "chat-generated",
            generated_long(WireFormat::Chat, 100).document(),
            &["--context-length", "12k", "--force"],
        ),
        case(
            "chat-generated-small",
            generated(WireFormat::Chat, 7, 20).document(),
            &["--force", "--keep", "2"],
        ),
        case(
            "chat-several",
            json!([{"messages": long_chat(3)["messages"]}, {"messages": long_chat(50)["messages"]}])
                .to_string(),
            &["--context-length", "16k", "--pick", "2"],
        ),
        case("chat-big", big, &["--context-length", "100k"]),
    ]
}

/// Every run on Anthropic Messages, and on logs of Claude Code.
pub(crate) fn anthropic() -> Vec<Case> {
    let list = generated_long(WireFormat::Anthropic, 200);
    vec![
        case("anthropic-below-threshold", anthropic_rich(), &[]),
        case("anthropic-rich", anthropic_rich(), &["--context-length", "16k"]),
        case("anthropic-rich-focus", anthropic_rich(), &["--context-length", "16k", "--focus", "berth_7.py"]),
        case("anthropic-loop", long_anthropic(60).to_string(), &["--context-length", "16k"]),
        case("anthropic-generated", list.document(), &["--context-length", "12k", "--force"]),
        case(
            "anthropic-generated-body",
            list.body("You are a careful helper."),
            &["--context-length", "12k", "--force"],
        ),
        case(
            "anthropic-big",
            big_transcript(WireFormat::Anthropic, 400_000, 300, 3),
            &["--context-length", "100k"],
        ),
        case("claude-log-generated", claude_code_log(&list, 5), &["--context-length", "12k", "--force"]),
        case("claude-log-compacted", claude_log_compacted(), &["--context-length", "12k"]),
        case(
            "claude-log-since-compaction",
            claude_log_compacted(),
            &["--context-length", "6k", "--since-compaction"],
        ),
    ]
}

/// Every run on Responses, and on logs of Codex.
pub(crate) fn responses() -> Vec<Case> {
    let list = generated_long(WireFormat::Responses, 300);
    vec![
        case("responses-below-threshold", responses_rich(), &[]),
        case("responses-rich", responses_rich(), &["--context-length", "10k"]),
        case(
            "responses-rich-focus",
            responses_rich(),
            &["--context-length", "10k", "--focus", "update_plan"],
        ),
        case("responses-generated", list.document(), &["--context-length", "12k", "--force"]),
        case(
            "responses-generated-body",
            list.body("You are a careful helper."),
            &["--context-length", "12k", "--force"],
        ),
        case(
            "responses-big",
            big_transcript(WireFormat::Responses, 400_000, 300, 3),
            &["--context-length", "100k"],
        ),
        case("codex-log-generated", codex_log(&list, 5), &["--context-length", "12k", "--force"]),
        case("codex-log-compacted", codex_log_compacted(), &["--context-length", "10k"]),
        case(
            "codex-log-since-compaction",
            codex_log_compacted(),
            &["--context-length", "6k", "--since-compaction"],
        ),
    ]
}
