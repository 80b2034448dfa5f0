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

/// A server that answers one path like this, for as long as the test runs.
fn answering(path: &str, reply: Reply) -> Served {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let options = UpstreamOptions { pages: vec![(path.to_owned(), reply)], ..UpstreamOptions::default() };
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
        assert_eq!(offline["window"]["source"], "default, this model is unknown");
        let own = json(&world.run(&["models", "--json", "--set", "model.context_length=8192"]).stdout);
        assert_eq!(
            (own["window"]["tokens"].as_u64(), own["window"]["source"].as_str()),
            (Some(8_192), Some("configured by --set"))
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

/// The first line says what is wrong and which setting or variable mends it, whether a list or one model is asked for.
#[test]
fn the_first_thing_said_is_what_is_wrong_and_what_mends_it() {
    let openai = r#"{"error":{"message":"Incorrect API key provided: own-key","code":"invalid_api_key"}}"#;
    let anthropic =
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    let cases = [
        (
            "a wrong key",
            Reply::json(401, openai),
            "the key was not accepted (HTTP 401): check the key in MY_KEY, or name another variable in `model.api_key_env`",
        ),
        (
            "the wire of Anthropic where Chat Completions was set",
            Reply::json(401, anthropic),
            "the key was not accepted (HTTP 401): ADDRESS requires its key as the anthropic wire sends it: set `model.wire` to `anthropic`, or check `model.base_url`",
        ),
        (
            "a page for people",
            Reply::html(200, "Welcome"),
            "the answer is of another wire: what answers at ADDRESS/models does not speak Chat Completions: check `model.base_url` and `model.wire`",
        ),
        (
            "nothing at this path",
            Reply::json(404, r#"{"detail":"Not Found"}"#),
            "there is no such path at this address (HTTP 404): ADDRESS/models does not exist: `model.base_url` usually ends in /v1, and `model.wire` says which wire is spoken (Chat Completions now)",
        ),
    ];
    for (case, reply, said) in cases {
        let served = answering("/here/models", reply);
        let address = format!("{}/here", served.upstream.url());
        let config = format!("model: {{base_url: '{address}', api_key_env: MY_KEY, wire: chat}}");
        let world = World::with_config(&config);
        let said = said.replace("ADDRESS", &address);
        let keys = [("MY_KEY", "own-key")];
        let list = world.run_with(&["models", "--list"], b"", &keys);
        assert_eq!(list.code, Some(9), "{case}");
        assert_eq!(list.stderr.lines().next(), Some(format!("error: {said}").as_str()), "{case}");
        assert!(!list.stderr.contains("own-key"), "{case}: {}", list.stderr);
        let one = world.run_with(&["models", "some-model"], b"", &keys);
        assert_eq!(one.code, Some(0), "{case}: what is known is shown all the same");
        let note = format!("note: {said}; showing what is known all the same");
        assert_eq!(one.stderr.lines().next(), Some(note.as_str()), "{case}");
    }
}

#[test]
fn a_model_that_an_endpoint_does_not_have_is_reported() {
    let listed = r#"{"data":[{"id":"fable-9-20260101"},{"id":"small:latest"},{"id":"Maker/Large"}]}"#;
    let served = answering("/here/models", Reply::json(200, listed));
    let world = World::with_config(&format!("model: {{base_url: '{}/here'}}", served.upstream.url()));
    for known in ["fable-9", "fable-9-20260101", "small", "maker/large", "maker/large:free"] {
        assert_eq!(world.run(&["models", known]).stderr, "", "{known}");
    }
    for unknown in ["fable", "small:8b", "large"] {
        let said = world.run(&["models", unknown]).stderr;
        assert!(said.starts_with(&format!("note: `{unknown}` is not among the 3 models at")), "{said}");
        assert!(said.contains("set `model.default` to one of them"), "{said}");
    }
    assert_eq!(world.run(&["models", "fable", "--offline"]).stderr, "");
}

#[test]
fn a_window_configured_without_a_model_is_about_any() {
    let world = World::with_config("model: {context_length: 8192}");
    let page = json(&world.run(&["models", "claude-sonnet-4-5", "--json"]).stdout);
    assert_eq!(page["window"]["tokens"], 8_192);
    assert!(page["window"]["source"].as_str().unwrap().starts_with("configured in"), "{page}");
    let other = json(&world.run(&["models", "x", "--json", "--set", "model.default=y"]).stdout);
    assert_eq!(other["window"]["source"], "default, this model is unknown");
}

#[test]
fn a_key_is_never_shown() {
    let world = World::with_config("model: {provider: anthropic, default: claude-x}");
    let key = "sk-ant-abcdefgh1234567890";
    let ended = world.run_with(&["models", "--offline"], b"", &[("ANTHROPIC_API_KEY", key)]);
    let told = format!("{}{}", String::from_utf8(ended.stdout).unwrap(), ended.stderr);
    assert!(told.contains("$ANTHROPIC_API_KEY") && !told.contains(key), "{told}");
}
