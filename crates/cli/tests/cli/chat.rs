//! `throughline chat` for scripts: one question, one answer, and what is said when there is nobody to ask.

use serde_json::Value;
use throughline_provider::{CacheStyle, PrefixCache};
use throughline_testkit::{Reply, Script, ScriptedUpstream, ServedModel, UpstreamOptions};
use throughline_wire::{AnswerDraft, AnswerPart, ToolCall};

use crate::harness::World;

/// A model that answers by script, for as long as the test runs.
pub(crate) struct Served {
    pub(crate) upstream: ScriptedUpstream,
    _runtime: tokio::runtime::Runtime,
}

pub(crate) fn served(script: impl Into<Script>) -> Served {
    served_as(&["worker"], script)
}

fn served_models(names: &[&str]) -> Served {
    served_as(names, Vec::<Reply>::new())
}

fn served_as(names: &[&str], script: impl Into<Script>) -> Served {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let models = names.iter().map(|name| ServedModel::with_window(name, 32_768)).collect();
    let cache = Some(PrefixCache::new(CacheStyle::None));
    let options = UpstreamOptions { models, cache, ..UpstreamOptions::default() };
    let upstream = runtime.block_on(ScriptedUpstream::start_with(options, script)).unwrap();
    Served { upstream, _runtime: runtime }
}

/// A world whose settings name that model.
pub(crate) fn world_of(served: &Served) -> World {
    World::with_config(&format!(
        "model: {{provider: custom, base_url: '{}/v1', default: worker, context_length: 32768}}\n\
         auxiliary: {{compression: {{provider: rules}}}}\n",
        served.upstream.url()
    ))
}

pub(crate) fn wanting(id: &str, tool: &str, arguments: &str) -> Reply {
    Reply::answer(AnswerDraft::of_parts(vec![AnswerPart::ToolCall(ToolCall {
        id: id.to_owned(),
        name: tool.to_owned(),
        arguments: arguments.to_owned(),
    })]))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_question_is_answered_on_stdout_and_recorded() {
    let served = served(vec![Reply::text("Two **and** two make four.")]);
    let world = world_of(&served);
    let ended = world.run(&["chat", "-q", "How much is two and two?"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(text(&ended.stdout), "Two **and** two make four.\n");
    let found = text(&world.run(&["search", "two and two"]).stdout);
    assert!(found.contains("How much is two and two?"), "{found}");
}

#[test]
fn as_json_with_what_it_took() {
    let replies = vec![wanting("c1", "read_file", r#"{"path":"a.txt"}"#), Reply::text("It says one.")];
    let served = served(replies);
    let world = world_of(&served);
    world.write("a.txt", "one\n");
    let ended = world.run(&["chat", "-q", "What does a.txt say?", "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let answer: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(answer["text"], "It says one.");
    assert_eq!((answer["calls"].as_u64(), answer["tools"].as_u64()), (Some(2), Some(1)));
    assert_eq!(answer["context"]["window_tokens"], 32_768);
    assert_eq!(answer["stop"], "end_of_turn");
    assert!(served.upstream.calls()[1].text().contains("1\\tone"));
}

#[test]
fn what_is_piped_in_goes_with_the_question_and_nobody_is_asked() {
    let replies = vec![
        wanting("c1", "terminal", r#"{"command":"touch made.txt"}"#),
        Reply::text("I may not."),
        Reply::text("Looks fine."),
    ];
    let served = served(replies);
    let world = world_of(&served);
    let ended = world.run_with(&["chat", "-q", "Review this:"], b"fn main() {}\n", &[]);
    assert_eq!((ended.code, text(&ended.stdout).as_str()), (Some(0), "I may not.\n"), "{}", ended.stderr);
    assert!(served.upstream.calls()[0].text().contains("Review this:\\n\\nfn main() {}"));
    assert!(!world.path("made.txt").exists(), "without a person there is no approval");
    assert!(served.upstream.calls()[1].text().contains("there is no user to ask"));
    let ended = world.run_with(&["chat"], b"Is this all right?\n", &[]);
    assert_eq!((ended.code, text(&ended.stdout).as_str()), (Some(0), "Looks fine.\n"), "{}", ended.stderr);
}

#[test]
fn a_conversation_is_taken_up_with_the_same_bytes() {
    let served = served(vec![Reply::text("Noted."), Reply::text("Blue.")]);
    let world = world_of(&served);
    assert_eq!(world.run(&["chat", "-q", "The gate is blue."]).code, Some(0));
    // What would make another prompt now does not.
    world.write("AGENTS.md", "Speak of nothing but boats.\n");
    let ended = world.run(&["chat", "--resume", "last", "-q", "Which colour is it?"]);
    assert_eq!(text(&ended.stdout), "Blue.\n", "{}", ended.stderr);
    let calls = served.upstream.calls();
    let (first, second) = (calls[0].text(), calls[1].text());
    assert!(second.starts_with(first.trim_end_matches("]}")), "{first}\n{second}");
    assert!(!second.contains("boats"));
}

#[test]
fn files_of_the_project_and_notes_stand_in_the_prompt() {
    let served = served(vec![Reply::text("Yes.")]);
    let world = world_of(&served);
    world.write("AGENTS.md", "Run make check before you are done.\n");
    std::fs::write(world.home().join("MEMORY.md"), "- the staging port is 8790\n").unwrap();
    assert_eq!(world.run(&["chat", "-q", "Ready?"]).code, Some(0));
    let system = served.upstream.calls()[0].json()["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(system.contains("Run make check") && system.contains("the staging port is 8790"), "{system}");
    assert!(system.trim_end().ends_with("The date is 2026-11-15."), "{system}");
}

#[test]
fn without_a_model_it_says_how_to_get_one() {
    let world = World::new();
    let several = served_models(&["large", "small"]);
    let base = format!("model.base_url={}/v1", several.upstream.url());
    let ended = world.run(&["chat", "-q", "Hello?", "--set", &base]);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("large, small") && ended.stderr.contains("--model large"),
        "{}",
        ended.stderr
    );
    let key = [("OPENAI_API_KEY", "sk-nobody")];
    let ended = world.run_with(&["chat", "-q", " ", "--model", "gpt-5.5"], b"", &key);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let ended = world.run(&["chat", "-q", "Hello?", "--provider", "antropic"]);
    assert_eq!(ended.code, Some(4));
    assert!(ended.stderr.contains("did you mean `anthropic`?"), "{}", ended.stderr);
}

#[test]
fn a_dead_endpoint_and_a_wrong_key_are_shown_with_what_to_do() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dead = runtime.block_on(throughline_testkit::refused_url()).unwrap();
    let world = World::with_config(&format!(
        "model: {{provider: custom, base_url: '{dead}/v1', default: worker, context_length: 32768}}\n"
    ));
    let ended = world.run(&["chat", "-q", "Hello?"]);
    assert_eq!(ended.code, Some(9), "{}", ended.stderr);
    assert!(ended.stderr.contains("start the server at"), "{}", ended.stderr);
    let served = served(vec![Reply::error(401, "invalid_request_error", "Incorrect API key provided")]);
    let ended = world_of(&served).run(&["chat", "-q", "Hello?"]);
    assert_eq!(ended.code, Some(9));
    assert!(ended.stderr.contains("api_key_env"), "{}", ended.stderr);
}

#[test]
fn the_first_thing_said_is_what_is_wrong_and_what_mends_it() {
    let cases = [
        (
            "a wrong key",
            Reply::error(401, "invalid_request_error", "Incorrect API key provided"),
            "model.api_key=own-key",
            "the key was not accepted (HTTP 401): check the key in `model.api_key`",
        ),
        (
            "another wire",
            Reply::html(200, "Welcome"),
            "model.wire=chat",
            "a web page answered instead of a model (HTTP 200): what answers at ADDRESS/v1/chat/completions does not speak Chat Completions: check `model.base_url` and `model.wire`",
        ),
        (
            "an unknown model",
            Reply::error(404, "invalid_request_error", "The model `worker` does not exist"),
            "model.wire=chat",
            "the model is not known there (HTTP 404): `worker` is not known at ADDRESS/v1: set `model.default` to one of its models (`throughline models` lists them)",
        ),
    ];
    for (case, reply, set, said) in cases {
        let served = served(vec![reply]);
        let ended = world_of(&served).run(&["chat", "-q", "Hello?", "--set", set]);
        assert_eq!(ended.code, Some(9), "{case}: {}", ended.stderr);
        let said = format!("error: {}", said.replace("ADDRESS", &served.upstream.url()));
        assert_eq!(ended.stderr.lines().next(), Some(said.as_str()), "{case}");
    }
    let served = served(Vec::<Reply>::new());
    let world = world_of(&served);
    let ended = world.run(&["chat", "-q", "Hello?", "--set", "model.context_length=1000"]);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    assert!(ended.stderr.starts_with("error: system prompt and tools take "), "{}", ended.stderr);
    assert!(ended.stderr.contains("`model.context_length`"), "{}", ended.stderr);
}

#[test]
fn an_engine_that_cannot_be_had_is_no_reason_to_take_another() {
    let served = served(Vec::<Reply>::new());
    let world = world_of(&served);
    let choose =
        |name: &str| world.run(&["chat", "-q", "Hello?", "--set", &format!("context.engine={name}")]);
    let unknown = choose("nowhere");
    assert_eq!(unknown.code, Some(4));
    assert!(
        unknown.stderr.starts_with(
            "error: there is no context engine `nowhere`, which `context.engine` names; there are `compressor`"
        ),
        "{}",
        unknown.stderr
    );
    assert_eq!(served.upstream.calls().len(), 0);
}

#[test]
fn unknown_engine_gives_way_to_the_fallback_that_is_configured() {
    let served = served(vec![Reply::text("Four.")]);
    let world = world_of(&served);
    let sets = ["--set", "context.engine=nowhere", "--set", "context.fallback=compressor"];
    let ended = world.run(&[&["chat", "-q", "Two and two?"], sets.as_slice()].concat());
    assert_eq!((ended.code, text(&ended.stdout).as_str()), (Some(0), "Four.\n"), "{}", ended.stderr);
    let told = ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("warning: there is no context engine `nowhere`"), "{told}");
    assert!(told.contains("`compressor` is used instead, as `context.fallback` says"), "{told}");
}

#[test]
fn a_broken_engine_stops_no_conversation_and_is_reported_once() {
    // What lies in the directory, and what is said of it.
    let table = [
        ("bare", None, "plugin.yaml is missing"),
        ("torn", Some("command: [\n"), "plugin.yaml"),
        ("mute", Some("version: 1\n"), "`command` is missing"),
        ("other", Some("name: another\ncommand: [sh]\n"), "names the engine `another`"),
        ("gone", Some("command: [no-such-program]\n"), "no-such-program cannot be started"),
        ("dead", Some("command: [sh, -c, 'exit 3']\n"), "exit status: 3"),
        ("future", Some(FUTURE), "it speaks version 9 of the protocol"),
    ];
    for (name, manifest, words) in table {
        let served = served(vec![Reply::text("Four.")]);
        let world = world_of(&served);
        let place = world.home().join("plugins/context_engine").join(name);
        std::fs::create_dir_all(&place).unwrap();
        if let Some(manifest) = manifest {
            std::fs::write(place.join("plugin.yaml"), manifest).unwrap();
        }
        let ended = world.run(&["chat", "-q", "Two and two?", "--set", &format!("context.engine={name}")]);
        assert_eq!(ended.code, Some(0), "{name}: {}", ended.stderr);
        assert_eq!(text(&ended.stdout), "Four.\n", "{name}");
        // Lines are wrapped.
        let told = ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(words), "{name}: {told}");
        assert!(told.contains("is not compacted until it answers"), "{name}: {told}");
        assert_eq!(told.matches("the context engine").count(), 1, "{name} is told of once: {told}");
        let listed = world.run(&["plugins", "--json"]).json();
        let one = listed["engines"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        let is_seen = !["dead", "future"].contains(&name);
        assert_eq!(one["problem"].is_string(), is_seen, "{one}");
    }
}

/// An engine from later times.
const FUTURE: &str = r#"
command:
  - sh
  - -c
  - 'read -r line; printf "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocol\":9,\"name\":\"future\"}}\n"; cat'
"#;

#[test]
fn diagnostics_show_the_call_and_its_decisions_when_they_are_requested() {
    let served = served((0..3).map(|_| Reply::text("Four.")).collect::<Vec<_>>());
    let world = world_of(&served);
    let question = &["chat", "-q", "How much is two and two?"];
    let quiet = world.run(question);
    assert!(!quiet.stderr.contains("DEBUG"), "{}", quiet.stderr);
    let filter = ("RUST_LOG", "throughline_engine=debug,throughline_provider=debug");
    let ended = world.run_with(question, b"", &[filter]);
    assert_eq!(text(&ended.stdout), "Four.\n", "diagnostics are on stderr");
    for part in ["call{session=", "decided before the call", "the answer began", "close"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let ended = world.run_with(question, b"", &[filter, ("RUST_LOG_FORMAT", "json")]);
    let lines = ended.stderr.lines().filter(|line| line.starts_with('{'));
    let events: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().any(|event| event["span"]["name"] == "call"), "{}", ended.stderr);
    let refused = world.run_with(question, b"", &[("RUST_LOG", "throughline=loudly")]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("RUST_LOG"), "{}", refused.stderr);
}
