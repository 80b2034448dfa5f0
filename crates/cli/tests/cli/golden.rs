//! What must not change while the code is rebuilt: outputs of `compress --json`, and lists of what users and scripts rely on.
//!
//! Files are in `tests/golden`; `INSTA_UPDATE=always` writes them anew. Related nets, which are not repeated here:
//! `basics.rs` (texts of help), `config/src/reference_tests.rs` (every setting is in `default.yaml`),
//! `gateway/tests/gateway/golden_requests.rs` and its folder (bodies at the upstream) and `golden_lists.rs` beside it (routes, API,
//! metrics), `store/src/sqlite/migrate_tests.rs` (tables), `src/args_tests.rs` (commands and flags).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use throughline_store::{Holder, LockRequest, Owner, SqliteStore, Store as _};
use throughline_testkit::{check_golden, check_golden_folder, json_lines, updates_golden};

use crate::golden_inputs::{self, Case};
use crate::harness::{Ended, World};
use crate::record::recorded;
use crate::samples::{claude_log, long_chat, short_chat};

/// A larger output is stored with a hash of its messages instead of the messages.
const MOST_BYTES: usize = 60_000;

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(path)
}

fn check_list(name: &str, lines: impl IntoIterator<Item = String>) {
    let lines: BTreeSet<String> = lines.into_iter().collect();
    let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
    check_golden(&golden(&format!("lists/{name}.txt")), &text);
}

// Outputs of `compress --json`.

#[test]
fn outputs_of_compress_on_the_chat_wire_are_the_recorded_ones() {
    check_cases(golden_inputs::chat());
}

#[test]
fn outputs_of_compress_on_the_anthropic_wire_are_the_recorded_ones() {
    check_cases(golden_inputs::anthropic());
}

#[test]
fn outputs_of_compress_on_the_responses_wire_are_the_recorded_ones() {
    check_cases(golden_inputs::responses());
}

/// The whole way: below the threshold, compacted and continued, compacted once more, nothing new.
#[test]
fn outputs_of_compress_on_a_recorded_session_are_the_recorded_ones() {
    let world = recorded();
    let compress = |more: &[&str]| {
        let arguments = [&["compress", "--session", "last", "--json"], more].concat();
        described(&arguments, &world.run(&arguments))
    };
    let mut text = compress(&["--preview"]);
    text.push_str(&compress(&["--context-length", "16k"]));
    world.write("parser.jsonl", claude_log("5e551011", "Port the parser", 70));
    assert_eq!(world.run(&["import", "parser.jsonl"]).code, Some(0));
    text.push_str(&compress(&["--context-length", "16k", "--preview"]));
    text.push_str(&compress(&["--context-length", "16k"]));
    text.push_str(&compress(&["--context-length", "16k", "--force"]));
    check_golden(&golden("compress/recorded-session.txt"), &text);
}

/// What was compacted, compacted again: once with nothing new, once after more work.
#[test]
fn outputs_of_compress_on_its_own_output_are_the_recorded_ones() {
    let world = World::new();
    let mut text = String::new();
    world.write("input", long_chat(60).to_string());
    let first = ["compress", "input", "--context-length", "16k", "--out", "once"];
    assert_eq!(world.run(&first).code, Some(0));
    for more in [&[][..], &["--force"]] {
        let arguments = [&["compress", "once", "--json", "--context-length", "16k"], more].concat();
        text.push_str(&described(&arguments, &world.run(&arguments)));
    }
    let mut grown: Value = serde_json::from_slice(&world.read("once")).unwrap();
    let more = long_chat(45)["messages"].as_array().unwrap()[1..].to_vec();
    grown["messages"].as_array_mut().unwrap().extend(more);
    world.write("grown", grown.to_string());
    let arguments = ["compress", "grown", "--json", "--context-length", "16k"];
    text.push_str(&described(&arguments, &world.run(&arguments)));
    check_golden(&golden("compress/chat-compacted-again.txt"), &text);
}

#[test]
fn every_golden_output_has_its_run() {
    let cases = [golden_inputs::chat(), golden_inputs::anthropic(), golden_inputs::responses()].concat();
    let names: Vec<String> = cases.iter().map(|case| format!("{}.txt", case.name)).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.extend(["recorded-session.txt", "chat-compacted-again.txt"]);
    // While files are written, other tests may still be at it.
    if !updates_golden() {
        check_golden_folder(&golden("compress"), &names);
    }
}

fn check_cases(cases: Vec<Case>) {
    let world = World::new();
    let mut differing = Vec::new();
    for case in cases {
        world.write("input", &case.input);
        let arguments = [&["compress", "input", "--json"], case.arguments].concat();
        let text = described(&arguments, &world.run(&arguments));
        let path = golden(&format!("compress/{}.txt", case.name));
        let checked = std::panic::catch_unwind(|| check_golden(&path, &text));
        if checked.is_err() {
            differing.push(case.name);
        }
    }
    assert!(differing.is_empty(), "{} outputs differ, as told above: {differing:?}", differing.len());
}

/// A run as its golden file has it: exit code, stderr, stdout in lines. Only durations are left out.
fn described(arguments: &[&str], ended: &Ended) -> String {
    let mut text = format!("$ throughline {}\nexit code {}\n", arguments.join(" "), ended.code.unwrap());
    if !ended.stderr.is_empty() {
        let _ = write!(text, "--- stderr ---\n{}", ended.stderr);
    }
    let stdout = without_durations(&ended.text());
    let (report, messages) = stdout.split_at(stdout.find(",\"messages\":[").unwrap_or(stdout.len()));
    if json_lines(&stdout).len() > MOST_BYTES && !messages.is_empty() {
        let hash = blake3::hash(messages.as_bytes()).to_hex();
        let _ = write!(text, "--- stdout, without its messages ---\n{}", json_lines(report));
        let _ = writeln!(text, "--- messages: {} bytes, blake3 {hash} ---", messages.len());
    } else {
        let _ = write!(text, "--- stdout ---\n{}", json_lines(&stdout));
    }
    text
}

/// Durations differ from run to run; the names of what is measured stay.
fn without_durations(stdout: &str) -> String {
    let timings = regex::Regex::new(r#""timings_us":\{[^}]*\}"#).unwrap();
    let number = regex::Regex::new(r":\d+").unwrap();
    timings
        .replace(stdout, |found: &regex::Captures<'_>| number.replace_all(&found[0], ":0").into_owned())
        .into_owned()
}

// Lists.

/// Every key with its default, and what the members of entries are called.
const ENTRIES: &str = "\
compression:
  models: {NAME: {threshold: 0.4, threshold_tokens: 5000}}
economy:
  clients: {NAME: {mode: off}}
  tokens: {NAME: {mode: off}}
model:
  models: {NAME: {context_length: 5000}}
gateway:
  upstreams: {NAME: {base_url: 'http://127.0.0.1:9', wires: chat, models: x, api_key_env: A_KEY, parallel_requests: 2}}
";

#[test]
fn settings_and_their_defaults_are_the_recorded_ones() {
    let listed = |world: &World| {
        let ended = world.run(&["config", "show", "--json"]);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let shown = ended.json();
        assert_eq!(shown["warnings"], serde_json::json!([]));
        let settings = shown["settings"].as_array().unwrap().clone();
        settings
            .into_iter()
            .map(|one| (one["key"].as_str().unwrap().to_owned(), one["value"].clone()))
            .collect::<Vec<_>>()
    };
    let defaults = listed(&World::new());
    let known: BTreeSet<&String> = defaults.iter().map(|(key, _)| key).collect();
    let mut lines: Vec<String> = defaults.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let with_entries = listed(&World::with_config(ENTRIES));
    let entries = with_entries.iter().filter(|(key, _)| !known.contains(key));
    lines.extend(entries.map(|(key, value)| format!("{key}, for example {value}")));
    check_list("settings", lines);
    // A variable of the environment for each of them.
    let world = World::new();
    for (key, value) in &defaults {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if value.is_null() || text.is_empty() {
            continue;
        }
        let variable = format!("THROUGHLINE_{}", key.to_uppercase().replace('.', "__"));
        let ended = world.run_with(&["config", "get", key, "--json"], b"", &[(&variable, &text)]);
        assert_eq!(ended.code, Some(0), "{variable}: {}", ended.stderr);
        assert!(
            ended.text().contains(&variable),
            "{variable} is not where {key} comes from: {}",
            ended.text()
        );
    }
}

#[test]
fn exit_codes_are_the_recorded_ones() {
    let world = World::new();
    world
        .write("short", short_chat().to_string())
        .write("words", "no transcript")
        .write("long", long_chat(60).to_string());
    let mut lines = Vec::new();
    let mut run = |world: &World, what: &str, arguments: &[&str]| {
        let code = world.run(arguments).code.unwrap();
        lines.push(format!("{code} {what}: {}", arguments.join(" ")));
    };
    run(&world, "done", &["compress", "short"]);
    run(&world, "done", &["--version"]);
    run(&world, "no such command", &["compres", "short"]);
    run(&world, "no such flag", &["compress", "short", "--no-such-flag"]);
    run(&world, "flags that exclude each other", &["compress", "short", "--preview", "--out", "x"]);
    run(&world, "two outputs on stdout", &["compress", "short", "--json", "--out", "-"]);
    run(&world, "not a transcript", &["compress", "words"]);
    run(&world, "not a transcript", &["inspect", "words"]);
    run(&world, "window too small", &["compress", "long", "--context-length", "200"]);
    run(&world, "no such session", &["sessions", "show", "nobody"]);
    run(&world, "no such setting", &["config", "get", "compression.nothing"]);
    run(&world, "a value out of range", &["inspect", "short", "--set", "compression.threshold=7"]);
    run(&world, "an unknown setting", &["inspect", "short", "--set", "compression.nothing=7"]);
    run(&world, "no such folder for the output", &["compress", "short", "--out", "nowhere/x"]);
    run(&world, "no such file", &["compress", "missing"]);
    run(&world, "no record to back up", &["backup", "none.tar"]);
    let not_ours = World::new();
    std::fs::write(not_ours.home().join("record.db"), "some text that is longer than a header would be")
        .unwrap();
    run(&not_ours, "not a record", &["sessions"]);
    let busy = recorded();
    let store = SqliteStore::open(&busy.home().join("record.db"), 0).unwrap();
    let session = store.resolve(&Owner::default(), "last").unwrap();
    let now_ms = 1_794_744_000_000 - 60_000;
    let holder =
        Holder { host: "elsewhere".to_owned(), process_id: 4711, process_start: 1, what: "chat".to_owned() };
    let request = LockRequest {
        name: LockRequest::conversation_name(session.chain),
        holder,
        now_ms,
        expires_ms: now_ms + 600_000,
    };
    store.lock(&request, &|_| true).unwrap();
    run(&busy, "somebody else is at work", &["compress", "--session", "last", "--force"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dead = runtime.block_on(throughline_testkit::refused_url()).unwrap();
    let unanswered = World::with_config(&format!(
        "model: {{provider: custom, base_url: '{dead}/v1', default: worker, context_length: 32768}}\n"
    ));
    run(&unanswered, "no answer", &["chat", "-q", "Hello?"]);
    // A defect of the program cannot be had on demand; its number is in the help with the others.
    let help = world.run(&["--help"]).text();
    let documented = help.split("Exit codes:\n").nth(1).unwrap().lines().take_while(|line| !line.is_empty());
    let documented = documented
        .filter_map(|line| line.trim().split_once("  "))
        .filter(|(code, _)| code.parse::<u8>().is_ok());
    lines.extend(documented.map(|(code, _)| format!("{code} is documented")));
    check_list("exit-codes", lines);
}

/// Names and types of all members that `--json` prints, command by command.
#[test]
fn members_of_json_outputs_are_the_recorded_ones() {
    let world = recorded();
    world
        .write("long", long_chat(60).to_string())
        .write("more.jsonl", claude_log("5e551012", "Another one", 12));
    let mut lines = BTreeSet::new();
    for arguments in [
        &["compress", "long", "--context-length", "16k"][..],
        &["compress", "--session", "last", "--context-length", "16k"],
        &["inspect", "long", "--context-length", "16k"],
        &["import", "more.jsonl"],
        &["sessions"],
        &["sessions", "show", "last"],
        &["sessions", "show", "last", "--view", "model"],
        &["sessions", "show", "last", "--full"],
        &["sessions", "tree", "last"],
        &["search", "parser"],
        &["usage", "last"],
        &["insights"],
        &["replay", "more.jsonl"],
        &["models"],
        &["plugins"],
        &["doctor"],
        &["backup", "saved.tar"],
        &["config", "show"],
        &["config", "get", "compression.threshold"],
        &["config", "check"],
        &["config", "path"],
        &["mcp", "--show"],
        &["token", "new", "ada"],
        &["token", "list"],
        &["lcm", "tree", "last"],
        &["lcm", "show", "n1"],
    ] {
        let ended = world.run(&[arguments, &["--json"]].concat());
        let name = arguments.join(" ");
        if ended.stdout.is_empty() {
            lines.insert(format!("{name}: exit code {}, no output", ended.code.unwrap()));
            continue;
        }
        for document in serde_json::Deserializer::from_slice(&ended.stdout).into_iter::<Value>() {
            members(&document.unwrap(), &name, &mut lines);
        }
    }
    check_list("json-members", lines);
}

/// Adds a line for each member of a value and its type.
fn members(value: &Value, path: &str, lines: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "fraction",
        Value::Number(_) => "integer",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    lines.insert(format!("{path}: {kind}"));
    match value {
        Value::Array(elements) => {
            elements.iter().for_each(|element| members(element, &format!("{path}[]"), lines))
        }
        Value::Object(map) => {
            map.iter().for_each(|(name, value)| members(value, &format!("{path} .{name}"), lines))
        }
        _ => {}
    }
}

/// The protocol of engines: every message of it is in its schema.
#[test]
fn engine_protocol_is_the_recorded_one() {
    let schema = World::new().run(&["plugins", "schema"]).stdout;
    let parsed: Value = serde_json::from_slice(&schema).unwrap();
    let mut lines = vec![
        format!("blake3 of the schema: {}", blake3::hash(&schema).to_hex()),
        format!("id of the schema: {}", parsed["$id"].as_str().unwrap()),
        format!("version: {}", throughline_plugin::ProcessEngine::PROTOCOL_VERSION),
    ];
    lines.extend(parsed["$defs"].as_object().unwrap().keys().map(|name| format!("definition: {name}")));
    check_list("engine-protocol", lines);
}

/// What readers of a compacted conversation look for: the tag, the headings in their order, the end.
#[test]
fn marks_of_a_summary_are_the_recorded_ones() {
    let world = World::new();
    world.write("long", long_chat(60).to_string());
    let json = world.run(&["compress", "long", "--context-length", "16k", "--json"]).json();
    let summary = json["summary"].as_str().unwrap();
    let messages = json["messages"].as_array().unwrap();
    let contents = messages.iter().filter_map(|message| message["content"].as_str());
    let text = contents.into_iter().find(|text| text.contains("## Active Task")).unwrap();
    let mut found = vec![text.lines().next().unwrap().split_inclusive(']').next().unwrap().to_owned()];
    found.extend(text.lines().filter(|line| line.starts_with("## ")).map(str::to_owned));
    found.push(text.lines().last().unwrap().to_owned());
    let headings = summary.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!((headings, found.len()), (13, 15), "{found:#?}");
    // In their order, which counts.
    check_golden(&golden("lists/summary-marks.txt"), &(found.join("\n") + "\n"));
}
