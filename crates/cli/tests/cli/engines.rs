//! Engines in other processes: installed ones, and this program as one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::harness::World;
use serde_json::{Value, json};
use throughline_engine::{
    CompressOutcome, CompressRequest, Compressed, Compressor, CompressorSetup, ContextEngine, ModelInForce,
    NewItem,
};
use throughline_plugin::{EngineBounds, Launch, PlainServices, ProcessEngine};

fn model() -> ModelInForce {
    let json = json!({
        "model": "worker", "provider": "here", "window_tokens": 32_000,
        "limits": {
            "threshold_configured_tokens": 16_000, "threshold_tokens": 16_000, "reserved_output_tokens": 2_000,
            "hygiene_tokens": 27_200, "tail_permille": 200, "tail_tokens": 3_200, "summary_cap_tokens": 1_600,
            "summary_floor_tokens": 500, "protect_first_n": 1, "protect_last_n": 4,
        },
    });
    serde_json::from_value(json).unwrap()
}

/// A conversation of so many turns, each with a call of a tool.
fn request(turns: usize) -> CompressRequest {
    let mut messages = Vec::new();
    let mut say = |json: Value, tokens: u64| messages.push(json!({ "json": json, "tokens": tokens }));
    for turn in 0..turns {
        say(json!({ "role": "user", "content": format!("Question {turn}: {}", "words ".repeat(100)) }), 130);
        let call = json!({ "id": format!("c{turn}"), "type": "function",
            "function": { "name": "read", "arguments": format!("{{\"path\":\"src/file{turn}.rs\"}}") } });
        say(json!({ "role": "assistant", "content": null, "tool_calls": [call] }), 40);
        say(
            json!({ "role": "tool", "tool_call_id": format!("c{turn}"), "content": "line\n".repeat(200) }),
            400,
        );
        say(json!({ "role": "assistant", "content": format!("Answer {turn}.") }), 10);
    }
    let prompt: u64 = 580 * turns as u64 + 100;
    let json = json!({
        "conversation": { "session": "s1", "dialect": "chat", "fixed_tokens": 100, "prompt_tokens": prompt,
            "messages": messages },
        "trigger": "preflight", "room": "left",
    });
    serde_json::from_str(&json.to_string()).unwrap()
}

fn process(name: &str, program: &Path, arguments: &[&str], folder: &Path) -> ProcessEngine {
    let launch = Launch {
        program: program.to_path_buf(),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        folder: folder.to_path_buf(),
    };
    ProcessEngine::new(name, launch, EngineBounds::default(), Arc::<PlainServices>::default())
}

#[expect(clippy::disallowed_methods, reason = "whether everything has to run is said in the environment")]
fn must_run() -> bool {
    std::env::var("THROUGHLINE_REQUIRE_ALL").is_ok_and(|value| value == "1")
}

async fn compacted(engine: &dyn ContextEngine, request: &CompressRequest) -> Box<Compressed> {
    engine.update_model(&model()).await.unwrap();
    let outcome = engine.compress(request).await.unwrap();
    let CompressOutcome::Completed(compressed) = outcome else { unreachable!("{outcome:?}") };
    compressed
}

#[tokio::test]
async fn this_program_behind_its_own_protocol_compacts_as_it_does_itself() {
    let home = tempfile::tempdir().unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_throughline"));
    let home_is = format!("THROUGHLINE_HOME={}", home.path().display());
    let program = program.display().to_string();
    let arguments = [home_is.as_str(), program.as_str(), "engine", "--stdio"];
    let engine = process("throughline", Path::new("/usr/bin/env"), &arguments, home.path());
    let request = request(40);
    let behind = compacted(&engine, &request).await;
    let inside = compacted(&Compressor::new(CompressorSetup::by_rules()), &request).await;
    assert_eq!(behind.view, inside.view);
    assert_eq!(engine.introduction().await.unwrap().name, "compressor");
    assert!(engine.should_compress(20_000).await.unwrap());
    assert!(!engine.should_compress(10_000).await.unwrap());
    assert_eq!(engine.status().await.unwrap().threshold_tokens, 16_000);
}

#[tokio::test]
async fn the_sliding_window_keeps_calls_and_results_together() {
    let found = std::process::Command::new("python3").arg("--version").output();
    if found.is_err() {
        assert!(!must_run(), "python3 not found");
        eprintln!("skipped: python3 not found");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/engines/sliding-window");
    let engine = process("sliding-window", Path::new("python3"), &["engine.py"], &folder);
    let request = request(40);
    let compressed = compacted(&engine, &request).await;
    let kept: Vec<usize> = compressed
        .view
        .iter()
        .filter_map(|item| match item {
            NewItem::Kept { item } => Some(*item),
            _ => None,
        })
        .collect();
    assert_eq!(kept[0], 0, "the first stays");
    assert!(kept.len() > 4 && kept.len() < 100, "{}", kept.len());
    let covered = &compressed.summary.as_ref().unwrap().covers;
    assert_eq!(kept.len() + covered.len(), 160, "every message is kept or covered");
    // A call and its result are two neighbours: both stay, or both go.
    for call in (1..160).step_by(4) {
        assert_eq!(kept.contains(&call), kept.contains(&(call + 1)), "message {call}");
    }
    assert!(compressed.report.tokens.after <= 8_000, "{:?}", compressed.report.tokens);
}

#[test]
fn engines_are_listed_with_what_is_wrong_with_them() {
    let world = World::with_config("context:\n  engine: window\n");
    let place = world.home().join("plugins/context_engine");
    for (name, manifest) in [
        ("window", Some("version: 2.1\ndescription: Keeps the newest.\ncommand: [sh, engine.sh]\n")),
        ("gone", Some("command: [no-such-program, --fast]\n")),
        ("beside", Some("command: [./engine.sh]\n")),
        ("empty", Some("name: empty\n")),
        ("bare", None),
        ("_draft", None),
    ] {
        std::fs::create_dir_all(place.join(name)).unwrap();
        if let Some(manifest) = manifest {
            std::fs::write(place.join(name).join("plugin.yaml"), manifest).unwrap();
        }
    }
    insta::assert_snapshot!("plugins", world.seen(&["plugins"]));
    let listed = world.run(&["plugins", "--json"]).json();
    assert_eq!(listed["selected"], "window");
    assert_eq!(listed["engines"].as_array().unwrap().len(), 6);
    let unknown = World::with_config("context:\n  engine: nowhere\n");
    assert!(unknown.seen(&["plugins"]).contains("names `nowhere`, which is not there"));
}
