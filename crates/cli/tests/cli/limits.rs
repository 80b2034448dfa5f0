//! One conversation, one window: every command resolves the same settings to the same limits and says the same about
//! where they came from.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use throughline_testkit::Reply;

use crate::chat::{Served, served};
use crate::harness::{NOW, World};
use crate::samples::claude_log;

/// A gateway of this world, stopped when it goes out of scope.
struct Gateway {
    process: Child,
    address: String,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // One that ended by itself needs no more ending.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Gateway {
    fn start(world: &World, upstream: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(["serve", "--bind", "127.0.0.1:0", "--upstream", upstream])
            .current_dir(world.path("."))
            .env_clear()
            .env("THROUGHLINE_HOME", world.home())
            .env("HOME", world.user())
            .env("THROUGHLINE_NOW", NOW)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = lines.find_map(|line| Some(line.ok()?.split_once("http://")?.1.trim().to_owned()));
        // The rest of its greeting is read, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address: first.unwrap() }
    }

    /// Sends one request of a chat, and gives the status line of the answer.
    fn ask(&self, model: &str) -> String {
        let body =
            json!({ "model": model, "messages": [{ "role": "user", "content": "hello there" }] }).to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }
}

/// Window, its origin and the threshold, as a command shows them.
type Shown = (Option<u64>, String, Option<u64>);

fn shown(page: &Value, threshold: &Value) -> Shown {
    let origin = page.get("origin").or_else(|| page.get("source")).and_then(Value::as_str);
    (page["tokens"].as_u64(), origin.unwrap_or_default().to_owned(), threshold.as_u64())
}

/// What the six commands show for one model.
fn by_all_commands(
    world: &World,
    served: &Served,
    model: &str,
    through_gateway: bool,
) -> Vec<(&'static str, Shown)> {
    let run = |arguments: &[&str]| {
        let ended = world.run(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        ended.json()
    };
    let messages: Vec<Value> = (0..6)
        .map(|at| json!({ "role": if at % 2 == 0 { "user" } else { "assistant" }, "content": format!("words {at}") }))
        .collect();
    world.write("talk.json", json!({ "messages": messages }).to_string());
    let mut found = Vec::new();
    let page = run(&["models", model, "--json"]);
    // Names are sent that the server does not list; that has to be said explicitly.
    let provider = page["endpoint"]["provider"].as_str().unwrap_or_default().to_owned();
    found.push(("models", shown(&page["window"], &page["threshold"]["effective_tokens"])));
    let page = run(&["inspect", "talk.json", "--model", model, "--json"]);
    found.push(("inspect", shown(&page["window"], &page["limits"]["threshold_tokens"]["effective"])));
    let page = run(&["compress", "talk.json", "--model", model, "--json"]);
    let threshold = &page["report"]["plan"]["limits"]["threshold_tokens"]["effective"];
    found.push(("compress", shown(&page["window"], threshold)));
    let page = run(&["replay", "talk.json", "--model", model, "--json"]);
    let one = &page["conversations"][0];
    let window = json!({ "tokens": one["window_tokens"], "origin": one["window_origin"] });
    found.push(("replay", shown(&window, &one["threshold_tokens"])));
    let page = run(&["chat", "-q", "hello", "--provider", &provider, "--model", model, "--json"]);
    let context = &page["context"];
    let window = json!({ "tokens": context["window_tokens"], "origin": context["window_origin"] });
    found.push(("chat", shown(&window, &context["threshold_tokens"])));
    let after_chat = run(&["usage", "last", "--json"]);
    let context = &after_chat["context"];
    found.push((
        "usage after chat",
        shown(&context["window"], &context["limits"]["threshold_tokens"]["effective"]),
    ));
    if through_gateway {
        let gateway = Gateway::start(world, &served.upstream.url());
        let status = gateway.ask(model);
        assert!(status.contains("200"), "{status}");
        drop(gateway);
        let page = run(&["usage", "last", "--json"]);
        let context = &page["context"];
        found.push(("serve", shown(&context["window"], &context["limits"]["threshold_tokens"]["effective"])));
    }
    found
}

#[test]
fn limits_are_the_same_in_every_command() {
    let table = [
        (
            "windows of single models",
            "models: {worker: {context_length: 24576}}",
            "worker",
            (24_576, "model.models.worker", 12_288),
        ),
        (
            "the window of the default model",
            "default: worker, context_length: 20000",
            "worker",
            (20_000, "config.yaml", 10_000),
        ),
        (
            "a file of the user's",
            "default: worker",
            "worker-of-mine",
            (32_768, "your catalogue file", 16_384),
        ),
        (
            "the catalogue, with the maker's name",
            "default: worker",
            "openai/gpt-5",
            (400_000, "catalogue entry `gpt-5`", 200_000),
        ),
        ("nobody knows", "default: worker", "worker", (200_000, "default", 100_000)),
    ];
    for (what, settings, model, (window, origin, threshold)) in table {
        let served = served(vec![Reply::text("hello"), Reply::text("hello")]);
        let world = World::with_config(&format!(
            "model: {{provider: custom, base_url: '{}/v1', {settings}}}\nauxiliary: {{compression: {{provider: rules}}}}\n",
            served.upstream.url()
        ));
        let own = r#"{"version":1,"models":[{"name":"worker-of-mine","window":32768}]}"#;
        std::fs::write(world.home().join("models.json"), own).unwrap();
        let found = by_all_commands(&world, &served, model, true);
        let (_, first) = found.first().cloned().unwrap();
        assert_eq!((first.0, first.2), (Some(window), Some(threshold)), "{what}: {first:?}");
        assert!(first.1.contains(origin), "{what}: {first:?}");
        for (command, other) in &found {
            assert_eq!(*other, first, "{what}: {command}");
        }
    }
}

#[test]
fn limits_of_a_codex_subscription_are_the_same_in_every_command() {
    for model in ["gpt-5.5", "openai/gpt-5.5"] {
        let served = served(vec![Reply::text("hello")]);
        let world = World::with_config(&format!(
            "model: {{provider: openai-codex, base_url: '{}/v1', api_key: token, default: gpt-5.5}}\n\
             auxiliary: {{compression: {{provider: rules}}}}\n",
            served.upstream.url()
        ));
        for (command, (window, _, threshold)) in by_all_commands(&world, &served, model, false) {
            assert_eq!((window, threshold), (Some(272_000), Some(231_200)), "{model}: {command}");
        }
    }
}

#[test]
fn window_of_a_claude_code_log_is_the_same_in_every_command() {
    let world = World::new();
    world.write("session.jsonl", claude_log("s1", "", 30));
    let windows = |arguments: &[&str]| world.run(arguments).json()["window"].clone();
    let inspected = windows(&["inspect", "session.jsonl", "--json"]);
    assert_eq!(inspected["tokens"], 200_000, "{inspected}");
    assert!(inspected["origin"].as_str().unwrap().contains("Claude Code"), "{inspected}");
    assert_eq!(windows(&["compress", "session.jsonl", "--json"]), inspected);
    let replayed = world.run(&["replay", "session.jsonl", "--json"]).json();
    let one = &replayed["conversations"][0];
    assert_eq!((&one["window_tokens"], &one["window_origin"]), (&inspected["tokens"], &inspected["origin"]));
    assert_eq!(world.run(&["import", "session.jsonl"]).code, Some(0));
    let used = world.run(&["usage", "last", "--json"]).json();
    assert_eq!(used["context"]["window"], inspected);
    let set = windows(&["inspect", "session.jsonl", "--json", "--context-length", "1m"]);
    assert_eq!(set["tokens"], 1_000_000);
}

#[test]
fn window_of_the_command_line_counts_for_the_model_that_is_named() {
    let served = served(vec![Reply::text("hello"), Reply::text("hello")]);
    let world = World::with_config(&format!(
        "model: {{provider: custom, base_url: '{}/v1', default: worker, context_length: 20000}}\n\
         auxiliary: {{compression: {{provider: rules}}}}\n",
        served.upstream.url()
    ));
    let ask = |more: &[&str]| {
        let line = [&["chat", "-q", "hello", "--provider", "custom", "--model", "gpt-5", "--json"][..], more]
            .concat();
        let ended = world.run(&line);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        (ended.json()["context"]["window_tokens"].as_u64(), ended.stderr)
    };
    let (window, words) = ask(&["--set", "model.context_length=8192"]);
    assert_eq!((window, words.contains("model.context_length")), (Some(8_192), false), "{words}");
    let (window, words) = ask(&[]);
    assert_eq!(window, Some(400_000));
    assert!(words.contains("`model.context_length`") && words.contains("`worker`"), "it is said: {words}");
}
