//! Conversations that are taken up: after a call that failed, and on a server that speaks another wire than they began on.

use serde_json::Value;
use throughline_testkit::{RecordedRequest, Reply, Script};

use crate::chat::{Served, served, world_of};
use crate::harness::World;
use crate::samples::claude_log;
use crate::terminal::Terminal;

/// What people said in a request of the chat wire, in order.
fn said(request: &RecordedRequest) -> Vec<String> {
    let body = request.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let of_user = messages.iter().filter(|message| message["role"] == "user");
    of_user.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A model that fails while a file says so.
fn failing_at_first(failures: usize) -> Served {
    let mut left = failures;
    served(Script::answering(move |_| {
        if left > 0 {
            left -= 1;
            return Reply::error(401, "invalid_request_error", "Incorrect API key provided");
        }
        Reply::text("Blue.")
    }))
}

#[test]
fn a_question_whose_call_failed_is_asked_again_and_not_repeated() {
    let served = failing_at_first(2);
    let world = world_of(&served);
    let first = world.run(&["chat", "-q", "Which colour is it?"]);
    assert_eq!(first.code, Some(9), "{}", first.stderr);
    assert!(first.stderr.contains("without recording it twice"), "{}", first.stderr);
    let resume = ["chat", "--resume", "last", "-q", "Which colour is it?"];
    assert_eq!(world.run(&resume).code, Some(9));
    let ended = world.run(&resume);
    assert_eq!((ended.code, ended.text().as_str()), (Some(0), "Blue.\n"), "{}", ended.stderr);
    for call in served.upstream.calls() {
        assert_eq!(said(&call), ["Which colour is it?"]);
    }
    // What was answered may be asked again.
    assert_eq!(world.run(&resume).code, Some(0));
    assert_eq!(said(served.upstream.calls().last().unwrap()).len(), 2);
}

#[test]
fn retry_asks_again_at_the_terminal() {
    let served = failing_at_first(1);
    let world = world_of(&served);
    let mut terminal = Terminal::start(&world, &["chat"]);
    terminal.prompt();
    terminal.press("/retry\r");
    terminal.see("nothing to retry");
    terminal.prompt();
    terminal.press("Which colour is it?\r");
    terminal.see("/retry sends it again without repeating it");
    terminal.prompt();
    terminal.press("/retry\r");
    terminal.see("Blue.");
    terminal.prompt();
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    for call in served.upstream.calls() {
        assert_eq!(said(&call), ["Which colour is it?"]);
    }
}

/// A server that speaks the chat wire and no other.
fn chat_only() -> Served {
    served(Script::answering(|request| {
        if request.path != "/v1/chat/completions" {
            return Reply::error(404, "not_found_error", "no such path");
        }
        Reply::text(format!("Heard {}.", said(request).last().map_or("", String::as_str)))
    }))
}

/// A Codex rollout log with one exchange.
fn codex_log() -> String {
    let line = |kind: &str, payload: Value| {
        serde_json::json!({ "timestamp": "2026-11-14T10:00:00.000Z", "type": kind, "payload": payload })
            .to_string()
    };
    let message = |role: &str, kind: &str, text: &str| {
        line(
            "response_item",
            serde_json::json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] }),
        )
    };
    [
        line(
            "session_meta",
            serde_json::json!({ "id": "0198c0de-0000-7000-8000-000000000001", "timestamp": "2026-11-14T10:00:00.000Z",
                "cwd": "/home/ada/parser", "originator": "codex_cli", "cli_version": "0.50.0" }),
        ),
        message("user", "input_text", "The gate is blue."),
        message("assistant", "output_text", "Noted."),
    ]
    .join("\n")
}

#[test]
fn imported_sessions_go_on_at_a_server_that_speaks_only_the_chat_wire() {
    for (name, log) in
        [("claude.jsonl", claude_log("5e551011", "Port the parser", 2)), ("codex.jsonl", codex_log())]
    {
        let served = chat_only();
        let world: World = world_of(&served);
        world.write(name, log);
        let imported = world.run(&["import", name]);
        assert_eq!(imported.code, Some(0), "{name}: {}", imported.stderr);
        let ended = world.run(&["chat", "--resume", "last", "-q", "And now?"]);
        assert_eq!(ended.code, Some(0), "{name}: {}", ended.stderr);
        assert_eq!(ended.text(), "Heard And now?.\n", "{name}");
        let calls = served.upstream.calls();
        assert_eq!(calls.len(), 1, "{name}");
        assert!(said(&calls[0]).len() > 1, "{name}: what was said before goes along");
    }
}

#[test]
fn a_wire_that_cannot_be_translated_is_named_with_what_to_do() {
    let served = chat_only();
    let world = world_of(&served);
    world.write("codex.jsonl", codex_log());
    assert_eq!(world.run(&["import", "codex.jsonl"]).code, Some(0));
    let other = [
        "chat",
        "--resume",
        "last",
        "-q",
        "And now?",
        "--set",
        "model.provider=anthropic",
        "--set",
        "model.api_key=k",
    ];
    let ended = world.run(&other);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    for words in ["uses the responses wire format", "--model openrouter:NAME"] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}
