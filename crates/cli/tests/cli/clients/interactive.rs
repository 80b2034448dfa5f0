//! Real clients as a person uses them: at a terminal, through the gateway, against an upstream that answers by script.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throughline_testkit::{Gate, RecordedRequest, Reply, ReplyFault, Script, ServerKind, SummarisingClient};

use crate::clients::gateway::Gateway;
use crate::clients::installed::installed;
use crate::clients::job::Job;
use crate::clients::terminal::Terminal;
use crate::clients::{claude_code, codex};

/// What a person asks, and what the model answers: words that appear nowhere else on a screen.
const FIRST: &str = "Name a bird of the harbour";
const FIRST_ANSWER: &str = "A cormorant lives there.";
const SECOND: &str = "Name another bird please";
const SECOND_ANSWER: &str = "A razorbill lives there too.";
const THIRD: &str = "Name the last bird now";
const THIRD_ANSWER: &str = "A guillemot is the last one.";
/// Keys.
const ESCAPE: &str = "\u{1b}";
const CLEAR_LINE: &str = "\u{15}";
/// What every call beside the conversation is answered with.
const TITLE: &str = "Birds";

/// The text of the last message.
fn last(request: &RecordedRequest) -> String {
    let json = request.json();
    let messages = [&json["messages"], &json["input"]].into_iter().find_map(Value::as_array);
    messages.and_then(|messages| messages.last()).map(Value::to_string).unwrap_or_default()
}

/// Whether a request is one of the conversation itself: the person's words are all that its last text says. A title call
/// has them inside of other words.
fn says(request: &RecordedRequest, words: &str) -> bool {
    let message: Value = serde_json::from_str(&last(request)).unwrap_or_default();
    match &message["content"] {
        Value::String(text) => text == words,
        parts => parts
            .as_array()
            .and_then(|parts| parts.last())
            .and_then(|part| part["text"].as_str())
            .is_some_and(|text| text == words),
    }
}

/// A model that answers the three questions; the first answer waits at the gate in its middle, where there is one.
fn model(first: Option<Gate>) -> Script {
    let mut first = first;
    Script::answering(move |request| {
        if says(request, FIRST) {
            let reply = Reply::text(FIRST_ANSWER);
            return match first.take() {
                Some(gate) => reply.failing_after(2, ReplyFault::Wait(gate)),
                None => reply,
            };
        }
        for (question, answer) in [(SECOND, SECOND_ANSWER), (THIRD, THIRD_ANSWER)] {
            if says(request, question) {
                return Reply::text(answer);
            }
        }
        Reply::text(TITLE)
    })
}

async fn job(model_name: &str, kind: ServerKind, script: Script) -> Job {
    // A window that none of these conversations meets.
    Job::with_script(model_name, 200_000, kind, script, 1).await
}

fn summaries(job: &Job, client: SummarisingClient) -> usize {
    job.upstream.calls().iter().filter(|call| call.summarising_client() == Some(client)).count()
}

/// The calls of the conversation itself that say these words.
fn calls_that_say(job: &Job, words: &str) -> Vec<RecordedRequest> {
    job.upstream.calls().into_iter().filter(|call| says(call, words)).collect()
}

/// What `last` means is a conversation in which these words are the last that were said, for every command; its id.
fn last_conversation(gateway: &Gateway, said: &str) -> String {
    // A client shows words as they arrive. Only the end of the answer waits until it is in the record.
    let began = Instant::now();
    let mut shown = gateway.ask(&["sessions", "show", "last"]);
    while !shown.trim_end().ends_with(said) {
        assert!(began.elapsed() < Duration::from_secs(60), "{shown}");
        std::thread::sleep(Duration::from_millis(10));
        shown = gateway.ask(&["sessions", "show", "last"]);
    }
    let usage: Value = serde_json::from_str(&gateway.ask(&["usage", "last", "--json"])).unwrap();
    let id = usage["session"]["id"].as_str().unwrap().to_owned();
    assert_eq!(gateway.listed()[0]["id"], json!(id));
    let preview = gateway.ask(&["compress", "--session", "last", "--preview", "--json"]);
    let preview: Value = serde_json::from_str(&preview).unwrap();
    assert_eq!(
        preview["report"]["messages"]["before"], usage["session"]["counters"]["messages"],
        "{preview:#}"
    );
    id
}

/// Calls that bring no tools: for titles, that is.
fn side_calls(job: &Job) -> usize {
    let has_tools = |body: &Value| body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    job.upstream.calls().iter().filter(|call| !has_tools(&call.json())).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_at_a_terminal_answers_compacts_and_quits() {
    let Some(program) = installed(claude_code::PROGRAM) else { return };
    let job = job(claude_code::MODEL, ServerKind::Anthropic, model(None)).await;
    let mut gateway = Gateway::before(&job.upstream.url());
    let mut terminal = Terminal::claude_code(&job, &program, claude_code::MODEL, gateway.url());
    for (question, answer) in [(FIRST, FIRST_ANSWER), (SECOND, SECOND_ANSWER)] {
        terminal.enter(question);
        terminal.see(answer);
    }
    assert_eq!(calls_that_say(&job, FIRST).len(), 1);
    assert!(side_calls(&job) > 0, "it asks for a title first");
    let conversation = last_conversation(&gateway, SECOND_ANSWER);
    assert_eq!(gateway.listed().len(), 1, "{}", gateway.screen());
    terminal.enter("/compact");
    terminal.see("Compacted");
    assert_eq!(summaries(&job, SummarisingClient::ClaudeCode), 1, "{}", terminal.screen());
    // The request for the summary is no conversation.
    assert_eq!(last_conversation(&gateway, SECOND_ANSWER), conversation);
    assert_eq!(gateway.listed().len(), 1, "{}", gateway.screen());
    terminal.enter(THIRD);
    terminal.see(THIRD_ANSWER);
    terminal.enter("/exit");
    assert_eq!(terminal.end(), 0);
    last_conversation(&gateway, THIRD_ANSWER);
    let listed = gateway.listed();
    assert_eq!(listed.len(), 2, "{}", gateway.screen());
    assert_eq!(listed[0]["link"]["kind"], "client_compaction");
    assert_eq!(listed[0]["link"]["parent"], json!(conversation));
    // A title call that was answered before its conversation began is a new conversation at first.
    let corrected = gateway.screen().matches("is a side call of").count();
    assert_eq!(gateway.opened("new conversation") - corrected, 1, "{}", gateway.screen());
    gateway.signalled_to_stop();
    assert!(gateway.screen().contains(", 1 new conversation"), "{}", gateway.screen());
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_at_a_terminal_continues_after_a_cancelled_first_answer() {
    let Some(program) = installed(claude_code::PROGRAM) else { return };
    let gate = Gate::new();
    let job = job(claude_code::MODEL, ServerKind::Anthropic, model(Some(gate.clone()))).await;
    let gateway = Gateway::before(&job.upstream.url());
    let mut terminal = Terminal::claude_code(&job, &program, claude_code::MODEL, gateway.url());
    terminal.enter(FIRST);
    gate.until_reached().await;
    terminal.press(ESCAPE);
    job.upstream.until_hung_up().await;
    // A question that was cancelled before its answer began is put back into the line.
    terminal.press(CLEAR_LINE);
    terminal.enter(SECOND);
    terminal.see(SECOND_ANSWER);
    assert!(!terminal.screen().contains(FIRST_ANSWER), "{}", terminal.screen());
    terminal.enter("/exit");
    assert_eq!(terminal.end(), 0);
    assert!(side_calls(&job) > 0, "it asks for a title first");
    last_conversation(&gateway, SECOND_ANSWER);
    for one in gateway.listed() {
        let shown = gateway.ask(&["sessions", "show", one["id"].as_str().unwrap()]);
        assert!(!shown.trim_end().ends_with(TITLE), "a call for a title is listed: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_at_a_terminal_answers_compacts_and_quits() {
    let Some(program) = installed(codex::PROGRAM) else { return };
    let job = job(codex::MODEL, ServerKind::OpenAi, model(None)).await;
    let gateway = Gateway::before(&job.upstream.url());
    let home = codex::home(&job, gateway.url(), "");
    let mut terminal = Terminal::codex(&job, &program, &home);
    for (question, answer) in [(FIRST, FIRST_ANSWER), (SECOND, SECOND_ANSWER)] {
        terminal.enter(question);
        // It refuses /compact while a turn is not over, which it is some time after the answer is on the screen.
        terminal.until(&format!("the end of the turn after {answer}"), |screen| {
            screen.split_once(answer).is_some_and(|(_, after)| after.contains("Worked for"))
        });
    }
    terminal.enter("/compact");
    terminal.see("Context compacted");
    assert_eq!(summaries(&job, SummarisingClient::Codex), 1, "{}", terminal.screen());
    terminal.enter(THIRD);
    terminal.see(THIRD_ANSWER);
    terminal.enter("/quit");
    assert_eq!(terminal.end(), 0);
    last_conversation(&gateway, THIRD_ANSWER);
    assert_eq!((gateway.opened("new conversation"), gateway.opened("client compaction of")), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_at_a_terminal_continues_after_a_cancelled_first_answer() {
    let Some(program) = installed(codex::PROGRAM) else { return };
    let gate = Gate::new();
    let job = job(codex::MODEL, ServerKind::OpenAi, model(Some(gate.clone()))).await;
    let gateway = Gateway::before(&job.upstream.url());
    let home = codex::home(&job, gateway.url(), "");
    let mut terminal = Terminal::codex(&job, &program, &home);
    terminal.enter(FIRST);
    gate.until_reached().await;
    terminal.press(ESCAPE);
    job.upstream.until_hung_up().await;
    terminal.see("interrupted");
    terminal.press(CLEAR_LINE);
    terminal.enter(SECOND);
    terminal.see(SECOND_ANSWER);
    terminal.enter("/quit");
    assert_eq!(terminal.end(), 0);
}
