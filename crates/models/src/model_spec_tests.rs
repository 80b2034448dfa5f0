//! Tests of models from settings, and of the source of every value.

use throughline_config::Loader;
use throughline_engine::ThresholdOrigin;
use throughline_provider::{WindowQuestion, WindowRoom, WindowSource};

use super::*;

fn settings(yaml: &str) -> Settings {
    Loader::new().file("config.yaml", yaml.to_owned()).load().unwrap().settings
}

fn no_variables(_: &str) -> Option<String> {
    None
}

fn before<'a>(settings: &'a Settings, catalogue: &'a Catalogue) -> ModelFactSources<'a> {
    ModelFactSources { settings, catalogue, said: None, learnt: None }
}

#[test]
fn a_name_may_say_who_serves_it() {
    let settings =
        settings("model: {default: small, provider: openai, api_key_env: MINE, context_length: 9000}");
    let main = ModelSpec::main(&settings);
    let other = main.named("large");
    assert_eq!((other.provider.as_str(), other.api_key_env.as_str()), ("openai", "MINE"));
    let counts = |wish: &ModelSpec| wish.window.as_ref().is_some_and(|window| window.counts_for(&wish.model));
    assert!(!counts(&other), "what is configured is about the configured model");
    assert!(counts(&main.named("small")));
    let elsewhere = main.named("openrouter:google/gemini-2.5-pro");
    assert_eq!(elsewhere.model, "google/gemini-2.5-pro");
    assert_eq!((elsewhere.provider.as_str(), elsewhere.api_key_env.as_str()), ("openrouter", ""));
    let tagged = main.named("qwen3:8b");
    assert_eq!((tagged.model.as_str(), tagged.provider.as_str()), ("qwen3:8b", "openai"));
    assert_eq!(main.named("ollama:qwen3:8b").model, "qwen3:8b");
    // A window for another model is stored so that it can be reported as not applied; at another endpoint none applies.
    assert!(elsewhere.window.is_some() && !counts(&elsewhere));
    assert_eq!(main.named("ollama:small").window, None);
}

#[test]
fn fallbacks_keep_their_order() {
    let settings = settings(
        "model: {default: a, fallbacks: ' b , ollama:qwen3:8b,,c'}\nauxiliary: {compression: {model: s, fallbacks: 't'}}",
    );
    let names = |wish: &ModelSpec| -> Vec<String> {
        wish.fallbacks(&settings).into_iter().map(|wish| wish.model).collect()
    };
    assert_eq!(names(&ModelSpec::main(&settings)), ["b", "qwen3:8b", "c"]);
    assert_eq!(names(&ModelSpec::for_summaries(&settings).unwrap()), ["t"]);
}

#[test]
fn fallback_that_cannot_be_at_the_main_endpoint_is_asked_where_there_is_a_key() {
    let settings =
        settings("model: {default: served, provider: llama.cpp, fallbacks: 'claude-haiku-4-5, b'}");
    let fallbacks = ModelSpec::main(&settings).fallbacks(&settings);
    let providers: Vec<&str> = fallbacks.iter().map(|wish| wish.provider.as_str()).collect();
    assert_eq!(providers, ["auto", "llama.cpp"]);
}

#[test]
fn summaries_are_left_to_the_main_model_unless_another_is_named() {
    for yaml in [
        "{}",
        "auxiliary: {compression: {provider: main}}",
        "auxiliary: {compression: {provider: openai, model: main}}",
        "auxiliary: {compression: {provider: auto}}",
    ] {
        assert_eq!(ModelSpec::for_summaries(&settings(yaml)), None, "{yaml}");
    }
    let own =
        ModelSpec::for_summaries(&settings("auxiliary: {compression: {provider: ollama, model: tiny}}"))
            .unwrap();
    assert_eq!((own.prefix, own.model.as_str()), ("auxiliary.compression", "tiny"));
}

#[test]
fn summary_model_without_a_provider_is_at_the_main_endpoint() {
    let custom = "base_url: 'http://127.0.0.1:9/v1', api_key_env: MINE, wire: chat, default: large";
    // Main endpoint; the summary setting; the model called there: provider, address, variable of the key.
    let cases = [
        (custom, "model: small", "auto http://127.0.0.1:9/v1 MINE"),
        (custom, "model: gpt-5-mini", "auto http://127.0.0.1:9/v1 MINE"),
        (custom, "provider: main, model: small", "auto http://127.0.0.1:9/v1 MINE"),
        (custom, "model: small, api_key_env: OTHER", "auto http://127.0.0.1:9/v1 OTHER"),
        (custom, "provider: openai, model: small", "openai  "),
        (custom, "base_url: 'http://127.0.0.1:8/v1', model: small", "auto http://127.0.0.1:8/v1 "),
        ("provider: anthropic", "model: claude-haiku-4-5", "anthropic  "),
        ("provider: anthropic", "model: gpt-5-mini", "auto  "),
        ("provider: llama.cpp", "model: small", "llama.cpp  "),
        ("provider: llama.cpp", "model: claude-haiku-4-5", "auto  "),
        ("provider: llama.cpp", "provider: main, model: claude-haiku-4-5", "llama.cpp  "),
        ("default: claude-sonnet-4-5", "model: claude-haiku-4-5", "auto  "),
        ("default: claude-sonnet-4-5", "provider: main, model: claude-haiku-4-5", "auto  "),
    ];
    for (main, summaries, asked) in cases {
        let settings = settings(&format!("model: {{{main}}}\nauxiliary: {{compression: {{{summaries}}}}}"));
        let wish = ModelSpec::for_summaries(&settings).unwrap();
        let found = format!("{} {} {}", wish.provider, wish.base_url, wish.api_key_env);
        assert_eq!(found, asked, "{main}; {summaries}");
        assert!(summaries.contains(&format!("model: {}", wish.model)), "{summaries}: {}", wish.model);
    }
    let settings = settings(&format!(
        "model: {{{custom}}}\nauxiliary: {{compression: {{model: small, fallbacks: 'b, ollama:c:8b'}}}}"
    ));
    let fallbacks = ModelSpec::for_summaries(&settings).unwrap().fallbacks(&settings);
    let places: Vec<(&str, &str)> =
        fallbacks.iter().map(|wish| (wish.model.as_str(), wish.base_url.as_str())).collect();
    assert_eq!(places, [("b", "http://127.0.0.1:9/v1"), ("c:8b", "")]);
}

#[test]
fn windows_say_where_they_came_from() {
    let catalogue = Catalogue::shipped();
    let said =
        EndpointWindow { tokens: 40_000, question: WindowQuestion::LlamaProps, room: WindowRoom::Allocated };
    let found = |yaml: &str, said: Option<EndpointWindow>, learnt: Option<u64>| {
        let settings = settings(yaml);
        let wish = ModelSpec::main(&settings);
        let endpoint = wish.endpoint(no_variables).unwrap();
        let found = ModelAtEndpoint::of(
            &wish,
            Some(endpoint),
            &ModelFactSources { said, learnt, ..before(&settings, &catalogue) },
        );
        (found.window.tokens, found.window.source)
    };
    let local = "model: {default: qwen3, provider: llama.cpp, models: {qwen: {context_length: 30000}}}";
    let plain = "model: {default: nobody-knows, provider: llama.cpp}";
    assert_eq!(
        found("model: {default: qwen3, provider: llama.cpp, context_length: 20000}", Some(said), Some(1_000)),
        (20_000, WindowSource::Configured("configured".to_owned()))
    );
    assert_eq!(
        found(local, Some(said), Some(1_000)),
        (30_000, WindowSource::ModelOverride("model.models.qwen".to_owned()))
    );
    assert_eq!(
        found(plain, Some(said), Some(1_000)),
        (40_000, WindowSource::Endpoint(WindowQuestion::LlamaProps, WindowRoom::Allocated))
    );
    assert_eq!(found(plain, None, Some(1_000)), (1_000, WindowSource::Learnt));
    assert_eq!(found(plain, None, None).1, WindowSource::Default);
}

#[test]
fn limits_and_cache_follow_from_model_and_endpoint() {
    let catalogue = Catalogue::shipped();
    let settings = settings(
        "model: {default: gpt-5.5, provider: openai-codex, api_key: t}\nprompt_caching: {cache_ttl: 1h}",
    );
    let wish = ModelSpec::main(&settings);
    let endpoint = wish.endpoint(no_variables).unwrap();
    let codex = ModelAtEndpoint::of(&wish, Some(endpoint), &before(&settings, &catalogue));
    assert_eq!(codex.threshold.origin, ThresholdOrigin::CodexRaise);
    assert_eq!(codex.cache, CachePolicy::Key);
    assert_eq!((codex.window.tokens, codex.window.source), (272_000, WindowSource::SellerLimit));
    let claude = wish.named("openrouter:anthropic/claude-sonnet-4.5");
    let endpoint = claude.endpoint(|name| (name == "OPENROUTER_API_KEY").then(|| "k".to_owned())).unwrap();
    let claude = ModelAtEndpoint::of(&claude, Some(endpoint), &before(&settings, &catalogue));
    assert_eq!(claude.cache.to_string(), "Prompt caching: ENABLED (Claude via OpenRouter, 1h TTL)");
    assert_eq!(claude.policy.window_tokens, claude.window.tokens);
    let missing = wish.named("anthropic:claude-x").endpoint(no_variables).unwrap_err().to_string();
    assert!(missing.contains("ANTHROPIC_API_KEY") && missing.contains("`model.api_key_env`"), "{missing}");
}
