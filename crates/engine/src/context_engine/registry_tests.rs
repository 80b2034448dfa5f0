//! Tests of selecting an engine by name, and of the error if there is none.

use std::path::PathBuf;
use std::sync::Arc;

use super::{EngineDirectory, EngineFactory, Registry, RegistryError};
use crate::context_engine::outcome::{CompressOutcome, CompressRequest};
use crate::context_engine::status::{EngineStatus, MeasuredUsage, Pressure};
use crate::context_engine::tool::ToolRequest;
use crate::context_engine::{ContextEngine, EngineFuture, answered};
use crate::limits::in_force::ModelInForce;
use throughline_compaction::NoOpReason;

/// The smallest possible engine.
struct Plain(&'static str);

impl ContextEngine for Plain {
    fn name(&self) -> &str {
        self.0
    }

    fn update_model<'a>(&'a self, _model: &'a ModelInForce) -> EngineFuture<'a, ()> {
        answered(())
    }

    fn update_from_response<'a>(&'a self, _usage: &'a MeasuredUsage) -> EngineFuture<'a, ()> {
        answered(())
    }

    fn should_compress(&self, prompt_tokens: u64) -> EngineFuture<'_, bool> {
        answered(prompt_tokens >= 100)
    }

    fn compress<'a>(&'a self, _request: &'a CompressRequest) -> EngineFuture<'a, CompressOutcome> {
        answered(CompressOutcome::NoOp { reason: NoOpReason::Empty, detail: String::new() })
    }

    fn status(&self) -> EngineFuture<'_, EngineStatus> {
        answered(EngineStatus {
            engine: self.0.to_owned(),
            model: String::new(),
            last_prompt_tokens: None,
            threshold_configured_tokens: 100,
            threshold_tokens: 100,
            window_tokens: 200,
            compactions: 0,
            pressure: Pressure::default(),
        })
    }
}

fn factory(name: &'static str) -> EngineFactory {
    Arc::new(move || Arc::new(Plain(name)))
}

fn registry() -> Registry {
    let mut registry = Registry::new(factory("compressor")).with_built_in("lossless", factory("lossless"));
    registry.register("window", factory("window")).unwrap();
    registry
}

fn directory(name: &str) -> EngineDirectory {
    EngineDirectory { name: name.to_owned(), path: PathBuf::from("plugins/context_engine").join(name) }
}

fn run(directory: &EngineDirectory) -> Result<Arc<dyn ContextEngine>, String> {
    match directory.name.as_str() {
        "broken" => Err("it has no manifest".to_owned()),
        _ => Ok(Arc::new(Plain("from a directory"))),
    }
}

/// Returns the name of the selected engine, or the error message.
fn chosen(configured: &str, directories: &[&str]) -> String {
    let directories: Vec<_> = directories.iter().copied().map(directory).collect();
    match registry().select(configured, &directories, &run) {
        Ok(engine) => engine.name().to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn names_and_places() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("", &[], "compressor"),
        ("compressor", &[], "compressor"),
        ("  compressor ", &[], "compressor"),
        // An installed engine is not activated by itself, not even under the name of the built-in one.
        ("compressor", &["lcm", "compressor"], "compressor"),
        ("window", &[], "window"),
        ("lossless", &[], "lossless"),
        ("lossless", &["lossless"], "from a directory"),
        ("lcm", &["lcm"], "from a directory"),
        // A directory takes precedence over an engine that a program registered.
        ("window", &["window"], "from a directory"),
        (
            "broken",
            &["broken"],
            "the context engine `broken` in plugins/context_engine/broken cannot be run: it has no manifest",
        ),
        (
            "lcm",
            &[],
            "there is no context engine `lcm`, which `context.engine` names; there are `window` (registered), `compressor` (built in) and `lossless` (built in)",
        ),
        (
            "lcn",
            &["lcm", "_draft", ".git"],
            "there is no context engine `lcn`, which `context.engine` names; there are `lcm` (in plugins/context_engine/lcm), `window` (registered), `compressor` (built in) and `lossless` (built in)",
        ),
        (
            "_draft",
            &["_draft"],
            "there is no context engine `_draft`, which `context.engine` names; there are `window` (registered), `compressor` (built in) and `lossless` (built in)",
        ),
    ];
    for (configured, directories, expected) in cases {
        assert_eq!(chosen(configured, directories), *expected, "{configured} with {directories:?}");
    }
}

#[test]
fn a_name_belongs_to_one_engine() {
    let mut registry = registry();
    for name in ["compressor", "", "window"] {
        let error = registry.register(name, factory("other")).unwrap_err();
        assert!(matches!(error, RegistryError::NameTaken { .. }), "{name}: {error}");
    }
}

#[tokio::test]
async fn what_an_engine_need_not_implement_has_an_answer() {
    let engine = registry().select("window", &[], &run).unwrap();
    assert_eq!(engine.tool_schemas().await.unwrap(), []);
    let call = ToolRequest {
        session: throughline_store::SessionId::from_text("s"),
        name: "lcm_grep".to_owned(),
        arguments: serde_json::Value::Null,
        max_chars: None,
    };
    let error = engine.handle_tool_call(&call).await.unwrap_err();
    assert_eq!(error.to_string(), "the context engine `window` has no tool `lcm_grep`");
    assert!(engine.session_reset().await.is_ok());
    assert!(engine.should_compress(100).await.unwrap());
}
