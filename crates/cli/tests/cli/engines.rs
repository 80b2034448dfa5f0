//! Engines in other processes: installed ones, and this program as one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::harness::World;
use serde_json::{Value, json};
use throughline_engine::{
    CompactedView, CompressOutcome, CompressRequest, Compressor, CompressorSetup, ContextEngine,
    ModelInForce, NewItem,
};
use throughline_plugin::{EngineBounds, Launch, PlainServices, ProcessEngine};
use throughline_testkit::{Missing, skip};

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

/// Where an example is.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/engines").join(name)
}

/// Whether Python is there; where it has to be and is not, the test fails.
pub(crate) fn found_python() -> bool {
    let found = std::process::Command::new("python3").arg("--version").output().is_ok();
    if !found {
        skip(&Missing::Program { name: "python3", installed_by: "your system's package manager" });
    }
    found
}

/// The example in Rust, made as its README says, in a directory like the one it comes in.
pub(crate) fn outline_program() -> (PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("outline");
    let made = std::process::Command::new("rustc")
        .args(["-O", "--edition", "2024", "-Dwarnings", "engine.rs", "-o"])
        .arg(&program)
        .current_dir(example("outline"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (program, folder)
}

async fn compacted(engine: &dyn ContextEngine, request: &CompressRequest) -> Box<CompactedView> {
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
    if !found_python() {
        return;
    }
    let folder = example("sliding-window");
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
    assert_eq!(kept.last(), Some(&159), "the newest stays");
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
    assert_eq!(listed["engines"].as_array().unwrap().len(), 7);
    let unknown = World::with_config("context:\n  engine: nowhere\n");
    assert!(unknown.seen(&["plugins"]).contains("names `nowhere`, which does not exist"));
}

/// A world with the example in Rust installed.
fn world_with_outline() -> World {
    let world = World::with_config("context:\n  engine: outline\n");
    let place = world.home().join("plugins/context_engine/outline");
    std::fs::create_dir_all(&place).unwrap();
    let (program, _folder) = outline_program();
    std::fs::copy(program, place.join("outline")).unwrap();
    std::fs::copy(example("outline").join("plugin.yaml"), place.join("plugin.yaml")).unwrap();
    world
}

#[test]
fn an_installed_engine_is_checked_and_what_it_does_is_reported() {
    let world = world_with_outline();
    let place = world.home().join("plugins/context_engine/outline");
    let place = place.to_str().unwrap();
    let checked = world.run(&["plugins", "check", place]);
    let seen = String::from_utf8(checked.stdout.clone()).unwrap();
    assert_eq!(checked.code, Some(0), "{seen}{}", checked.stderr);
    assert!(seen.contains("  passed    holds a long conversation on the anthropic wire\n"), "{seen}");
    assert!(seen.ends_with("21 checks: 20 passed, 1 left out, 0 failed\n"), "{seen}");
    let checked = world.run(&["plugins", "check", "--json", place]).json();
    assert_eq!(checked["passes"], true);
    assert_eq!(checked["checks"][0]["verdict"], "passed");
}

#[test]
fn an_engine_that_breaks_the_protocol_is_reported_with_place_and_words() {
    let world = World::with_config("");
    // Answers everything with `true`.
    let script = r#"while read -r line; do id=${line#*\"id\":}; id=${id%%,*}
        case $line in
          *'"initialize"'*) r='{"protocol":1,"name":"yes"}' ;;
          *) r=true ;;
        esac
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$r}"; done"#;
    let checked = world.run(&["plugins", "check", "--", "sh", "-c", script]);
    let seen = String::from_utf8(checked.stdout.clone()).unwrap();
    assert_eq!(checked.code, Some(3), "{seen}");
    let told = [
        "  passed    says who it is\n",
        "  FAILED    says so when it does not know a method\n            it answers true\n            \
         the protocol says: an engine that does not know a method answers with code -32601\n",
        "  FAILED    tells small prompts from large ones\n            of a prompt of 1 tokens",
        "  FAILED    holds a long conversation on the chat wire\n            a compaction failed: ",
        "  left out  describes its tools\n",
    ];
    for lines in told {
        assert!(seen.contains(lines), "{lines}: {seen}");
    }
    assert!(checked.stderr.contains(" of 21 checks failed"), "{}", checked.stderr);
    let missing = world.run(&["plugins", "check", "nowhere"]);
    assert_eq!(missing.code, Some(6), "{}", missing.stderr);
    let missing = world.run(&["plugins", "check", "--", "no-such-program"]);
    assert!(missing.stderr.contains("is neither in PATH"), "{}", missing.stderr);
    assert_eq!(world.run(&["plugins", "check"]).code, Some(2));
}

/// Everything that is said in a check, both ways, is as the schema has it.
#[test]
fn whatever_is_said_is_as_the_schema_has_it() {
    let (outline, folder) = outline_program();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let own =
        format!("THROUGHLINE_HOME={} {} engine --stdio", home.display(), env!("CARGO_BIN_EXE_throughline"));
    let world = World::with_config("");
    let printed = world.run(&["plugins", "schema"]).stdout;
    let schema: Value = serde_json::from_slice(&printed).unwrap();
    let mut held = Held { said: BTreeSet::new(), schema };
    for engine in [own, outline.display().to_string()] {
        let (asked, answered) = (folder.path().join("asked"), folder.path().join("answered"));
        // Of each process a file of its own.
        let line = format!("tee {}.$$ | {engine} | tee {}.$$", asked.display(), answered.display());
        let checked = world.run(&["plugins", "check", "--", "sh", "-c", &line]);
        assert_eq!(checked.code, Some(0), "{}{}", String::from_utf8_lossy(&checked.stdout), checked.stderr);
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let asked = entry.unwrap().path();
            if let Some(number) =
                asked.to_str().unwrap().strip_prefix(&format!("{}/asked.", folder.path().display()))
            {
                let answered = folder.path().join(format!("answered.{number}"));
                held.against(&lines_of(&asked), &lines_of(&answered));
                std::fs::remove_file(asked).unwrap();
            }
        }
    }
    // Every method of the protocol was asked and answered, but those that only a model or a person bring about.
    let methods = held.schema["$defs"]["params"]["$defs"].as_object().unwrap().keys();
    let silent: Vec<_> = methods.filter(|method| !held.said.contains(*method)).collect();
    assert_eq!(silent, ["host/summarise", "host/store_delete", "host/store_list", "host/log"]);
}

fn lines_of(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The schema, and the methods it was held against.
struct Held {
    schema: Value,
    said: BTreeSet<String>,
}

impl Held {
    fn against(&mut self, host: &[Value], engine: &[Value]) {
        for (asks, answers, kind) in [(host, engine, "hostQuestion"), (engine, host, "engineQuestion")] {
            for question in asks.iter().filter(|line| line["method"].is_string()) {
                let method = question["method"].as_str().unwrap();
                if method == "no_such_method" {
                    continue;
                }
                let questions = self.part(kind);
                assert_eq!(mismatch(&self.schema, questions, question), None, "{method}: {question}");
                let mut bent = question.clone();
                bent["params"] = json!(7);
                assert!(mismatch(&self.schema, questions, &bent).is_some(), "{method} with a number");
                let answer =
                    answers.iter().find(|line| line["method"].is_null() && line["id"] == question["id"]);
                let Some(answer) = answer else { continue };
                assert_eq!(mismatch(&self.schema, self.part("answer"), answer), None, "{method}: {answer}");
                if let Some(result) = answer.get("result") {
                    let results = &self.part("results")["$defs"][method];
                    assert_eq!(mismatch(&self.schema, results, result), None, "{method}: {result}");
                    self.said.insert(method.to_owned());
                }
            }
        }
    }

    fn part(&self, name: &str) -> &Value {
        &self.schema["$defs"][name]
    }
}

/// Where a value is not as a schema has it; for the words of JSON Schema that this one uses, and no others.
fn mismatch(whole: &Value, schema: &Value, value: &Value) -> Option<String> {
    schema.as_object().unwrap().iter().find_map(|(word, wanted)| {
        let fits = |schema: &&Value| mismatch(whole, schema, value).is_none();
        let says = |fine: bool| (!fine).then(|| format!("{word} {wanted}: {value}"));
        match word.as_str() {
            "description" | "$defs" => None,
            "$ref" => {
                let place = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                mismatch(whole, whole.pointer(place).unwrap(), value)
            }
            "const" => says(wanted == value),
            "enum" => says(wanted.as_array().unwrap().contains(value)),
            "oneOf" => says(wanted.as_array().unwrap().iter().filter(fits).count() == 1),
            "anyOf" => says(wanted.as_array().unwrap().iter().any(|schema| fits(&schema))),
            "type" => says(match wanted {
                Value::Array(types) => types.iter().any(|wanted| is_of(value, wanted)),
                one => is_of(value, one),
            }),
            "required" => says(
                wanted.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
            ),
            "properties" => wanted.as_object().unwrap().iter().find_map(|(name, schema)| {
                let found = mismatch(whole, schema, value.get(name)?)?;
                Some(format!("{name}: {found}"))
            }),
            "items" => value.as_array()?.iter().find_map(|item| mismatch(whole, wanted, item)),
            "minimum" => says(value.as_i64().is_none_or(|number| number >= wanted.as_i64().unwrap())),
            "minLength" => {
                says(value.as_str().is_none_or(|text| text.len() as u64 >= wanted.as_u64().unwrap()))
            }
            other => unreachable!("`{other}` is not understood here"),
        }
    })
}

fn is_of(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        other => unreachable!("`{other}` is no type"),
    }
}

#[test]
fn the_schema_tells_right_from_wrong() {
    let schema: Value = serde_json::from_str(throughline_plugin::PROTOCOL_SCHEMA).unwrap();
    let wrong = [
        json!({ "kind": "completed", "view": [] }),
        json!({ "kind": "no_op", "reason": "tired", "detail": "" }),
        json!({ "kind": "completed", "view": [{ "kind": "kept", "item": -1 }], "quality": "rules", "report": {} }),
        json!("completed"),
    ];
    for outcome in wrong {
        assert!(mismatch(&schema, &schema["$defs"]["outcome"], &outcome).is_some(), "{outcome}");
    }
    let right = json!({ "kind": "no_op", "reason": "empty", "detail": "nothing was said" });
    assert_eq!(mismatch(&schema, &schema["$defs"]["outcome"], &right), None);
}
