//! Throughline inside Hermes, in its slot for a context engine: found by its own discovery, chosen by its settings, driven
//! through its own loop and commands.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_provider::{CacheStyle, PrefixCache};
use throughline_testkit::{Reply, Script, ScriptedUpstream, ServedModel, ServerKind, UpstreamOptions};
use throughline_wire::{AnswerDraft, AnswerPart, ToolCall};

use crate::clients::installed::installed;
use crate::clients::process::run;

const PYTHON: &str = "hermes/bin/python";
const MODEL: &str = "worker";
const WINDOW_TOKENS: u64 = 100_000;
/// What a person says so often, some three thousand tokens each time.
const TURNS: usize = 40;

/// A model that calls the engine's tool when it is told to, and agrees otherwise.
async fn upstream(tool: &'static str) -> ScriptedUpstream {
    let script = Script::answering(move |request| {
        let json = request.json();
        let last =
            json["messages"].as_array().and_then(|messages| messages.last().cloned()).unwrap_or_default();
        if last["role"] == "user" && last["content"].to_string().contains("Use your tool") {
            let call = ToolCall {
                id: "call_1".to_owned(),
                name: tool.to_owned(),
                arguments: json!({ "number": 1 }).to_string(),
            };
            return Reply::answer(AnswerDraft::of_parts(vec![AnswerPart::ToolCall(call)]));
        }
        Reply::text("All right.")
    });
    let options = UpstreamOptions {
        cache: Some(PrefixCache::new(CacheStyle::None)),
        models: vec![ServedModel::with_window(MODEL, WINDOW_TOKENS)],
        kind: ServerKind::OpenAi,
        ..UpstreamOptions::default()
    };
    ScriptedUpstream::start_with(options, script).await.unwrap()
}

/// Runs Hermes with an engine, and gives what came of it.
async fn facts(python: &Path, engine: &str, tool: &'static str) -> Value {
    let upstream = upstream(tool).await;
    let folder = tempfile::tempdir().unwrap();
    let (home, work) = (folder.path().join("hermes"), folder.path().join("work"));
    std::fs::create_dir_all(home.join("plugins/throughline")).unwrap();
    std::fs::create_dir(&work).unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in ["__init__.py", "plugin.yaml"] {
        let from = here.join("../../integrations/hermes/throughline").join(file);
        std::fs::copy(from, home.join("plugins/throughline").join(file)).unwrap();
    }
    let config = format!(
        "model:\n  provider: custom\n  base_url: {}/v1\n  api_key: sk-of-the-client\n  default: {MODEL}\n  \
         context_length: {WINDOW_TOKENS}\n  max_tokens: 4000\ncontext:\n  engine: throughline\ncompression:\n  threshold: 0.3\n\
         plugins:\n  enabled: [throughline]\n",
        upstream.url()
    );
    std::fs::write(home.join("config.yaml"), config).unwrap();
    let mut hermes = Command::new(python);
    hermes
        .arg(here.join("tests/cli/clients/hermes_engine.py"))
        .args([&TURNS.to_string(), tool])
        .current_dir(&work)
        .env_clear()
        .env("HOME", folder.path())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HERMES_HOME", &home)
        .env("THROUGHLINE_HOME", folder.path().join("throughline"))
        .env("HERMES_THROUGHLINE_COMMAND", engine);
    let ended = run(&mut hermes, &folder.path().join("screen"), Duration::from_secs(600));
    assert!(ended.status.is_some_and(|status| status.success()), "{:?}: {}", ended.status, ended.screen);
    let facts = ended.screen.lines().find_map(|line| line.strip_prefix("FACTS "));
    serde_json::from_str(facts.unwrap_or_else(|| panic!("{}", ended.screen))).unwrap()
}

fn check(facts: &Value) {
    assert_eq!(facts["engine"], "throughline", "{facts:#}");
    assert!(facts["compactions"].as_u64().unwrap() >= 2, "{facts:#}");
    // Two messages a turn, had nothing been compacted.
    assert!(facts["messages"].as_u64().unwrap() < TURNS as u64, "{facts:#}");
    assert_eq!(facts["answer_after_kill"], "All right.", "{facts:#}");
    assert_eq!(facts["runs_again"], true, "{facts:#}");
    assert!(facts["compactions_by_hand"].as_u64().unwrap() >= 1, "{facts:#}");
    assert_eq!(facts["focus"], json!(["the garden"]), "{facts:#}");
    assert_eq!(facts["answer_after_compress"], "All right.", "{facts:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hermes_is_kept_going_by_throughline_as_its_engine() {
    let Some(python) = installed(PYTHON) else { return };
    let engine = format!("{} engine --stdio", env!("CARGO_BIN_EXE_throughline"));
    check(&facts(&python, &engine, "").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_of_an_engine_can_be_called_in_hermes() {
    let Some(python) = installed(PYTHON) else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("outline");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/engines/outline");
    let mut rustc = Command::new("rustc");
    rustc.args(["-O", "--edition", "2024", "engine.rs", "-o"]).arg(&program).current_dir(example);
    assert!(rustc.status().unwrap().success());
    let facts = facts(&python, program.to_str().unwrap(), "outline_read").await;
    check(&facts);
    assert_eq!(facts["tools"], json!(["outline_read"]), "{facts:#}");
    assert_eq!(facts["tool_results"], json!([r#"{"result": "Hello."}"#]), "{facts:#}");
}
