//! `throughline models` against servers that say what they have.

use serde_json::Value;
use throughline_testkit::{Reply, ScriptedUpstream, ServedModel, ServerKind, UpstreamOptions};

use crate::harness::World;

/// A server that has these models, for as long as the test runs.
struct Served {
    upstream: ScriptedUpstream,
    _runtime: tokio::runtime::Runtime,
}

fn served(kind: ServerKind, models: &[(&str, u64)]) -> Served {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let models = models.iter().map(|(id, window)| ServedModel::with_window(id, *window)).collect();
    let options = UpstreamOptions { kind, models, ..UpstreamOptions::default() };
    let upstream = runtime.block_on(ScriptedUpstream::start_with(options, Vec::<Reply>::new())).unwrap();
    Served { upstream, _runtime: runtime }
}

fn json(stdout: &[u8]) -> Value {
    serde_json::from_slice(stdout).unwrap()
}

#[test]
fn the_endpoint_itself_says_how_large_a_window_is() {
    for (kind, provider, source) in [
        (ServerKind::LlamaCpp, "llama.cpp", "said by the llama.cpp server"),
        (ServerKind::Ollama, "ollama", "said by Ollama, as loaded"),
        (ServerKind::LmStudio, "lmstudio", "said by LM Studio"),
        (ServerKind::Vllm, "custom", "said by the endpoint's list of models"),
    ] {
        let served = served(kind, &[("tiny", 12_288)]);
        let base = format!("{}/v1", served.upstream.url());
        let world = World::with_config(&format!(
            "model: {{provider: {provider}, base_url: '{base}', default: tiny}}"
        ));
        let ended = world.run(&["models", "--json"]);
        assert_eq!(ended.code, Some(0), "{provider}: {}", ended.stderr);
        let page = json(&ended.stdout);
        assert_eq!(page["window"]["tokens"], 12_288, "{provider}");
        assert!(page["window"]["source"].as_str().unwrap().starts_with(source), "{page}");
        assert_eq!(page["threshold"]["effective_tokens"], 6_144);
        let offline = json(&world.run(&["models", "--json", "--offline"]).stdout);
        assert_eq!(offline["window"]["source"], "default, nobody knows this model");
        let own = json(&world.run(&["models", "--json", "--set", "model.context_length=8192"]).stdout);
        assert_eq!(
            (own["window"]["tokens"].as_u64(), own["window"]["source"].as_str()),
            (Some(8_192), Some("configured"))
        );
    }
}

#[test]
fn what_an_endpoint_has_is_listed() {
    let served = served(ServerKind::OpenRouter, &[("a/large", 400_000), ("b/small", 9_000)]);
    let world =
        World::with_config(&format!("model: {{provider: custom, base_url: '{}/v1'}}", served.upstream.url()));
    let page = json(&world.run(&["models", "--json"]).stdout);
    let names: Vec<_> =
        page["models"].as_array().unwrap().iter().map(|model| model["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a/large", "b/small"]);
    assert_eq!(page["models"][1]["window"]["tokens"], 9_000);
    let table = String::from_utf8(world.run(&["models"]).stdout).unwrap();
    assert!(table.contains("a/large") && table.contains("400k"), "{table}");
}

#[test]
fn without_an_endpoint_the_catalogue_answers() {
    let world = World::new();
    let ended = world.run(&["models", "claude-sonnet-4-5"]);
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains("ANTHROPIC_API_KEY"), "{}", ended.stderr);
    let page = String::from_utf8(ended.stdout).unwrap();
    assert!(
        page.contains("200,000 tokens, catalogue entry `claude-sonnet-4`") && page.contains("$3.00"),
        "{page}"
    );
    assert!(!page.contains("default"), "{page}");
    assert!(world.run(&["models", "--json"]).stdout.len() > 1_000);
    std::fs::write(
        world.home().join("models.json"),
        r#"{"version": 1, "models": [{"name": "claude-sonnet-4-5", "window": 123456}]}"#,
    )
    .unwrap();
    let own = json(&world.run(&["models", "claude-sonnet-4-5", "--json"]).stdout);
    assert_eq!(own["window"]["tokens"], 123_456);
    assert_eq!(own["window"]["source"], "your catalogue file, entry `claude-sonnet-4-5`");
}

#[test]
fn what_is_wrong_is_said_with_what_mends_it() {
    let world = World::new();
    let set = |value: &str| world.run(&["models", "--list", "--set", value]);
    let misspelt = set("model.provider=ollam");
    assert_eq!(misspelt.code, Some(4));
    assert!(misspelt.stderr.contains("did you mean `ollama`"), "{}", misspelt.stderr);
    let silent = set("model.base_url=http://127.0.0.1:9/v1");
    assert_eq!(silent.code, Some(9));
    assert!(silent.stderr.contains("`model.base_url`"), "{}", silent.stderr);
    std::fs::write(world.home().join("models.json"), "[").unwrap();
    let broken = world.run(&["models", "x"]);
    assert_eq!(broken.code, Some(4));
    assert!(broken.stderr.contains("models.json") && broken.stderr.contains("line 1"), "{}", broken.stderr);
}

#[test]
fn a_key_is_never_shown() {
    let world = World::with_config("model: {provider: anthropic, default: claude-x}");
    let key = "sk-ant-abcdefgh1234567890";
    let ended = world.run_with(&["models", "--offline"], b"", &[("ANTHROPIC_API_KEY", key)]);
    let told = format!("{}{}", String::from_utf8(ended.stdout).unwrap(), ended.stderr);
    assert!(told.contains("$ANTHROPIC_API_KEY") && !told.contains(key), "{told}");
}
