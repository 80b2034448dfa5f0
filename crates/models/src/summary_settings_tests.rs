//! Tests of routes from settings, in order, and of messages that name the setting to change.

use std::time::Duration;

use throughline_config::Loader;
use throughline_provider::{ClientOptions, RetryLimits, TimeLimits};
use throughline_testkit::{Script, ScriptedUpstream, ServedModel, ServerKind, UpstreamOptions};
use throughline_transcript::WireFormat;

use super::*;

fn settings(yaml: &str) -> Settings {
    Loader::new().file("config.yaml", yaml.to_owned()).load().unwrap().settings
}

/// Returns the order of models in words.
fn order(wishes: Option<SummarySettings>) -> String {
    match wishes {
        None => "rules".to_owned(),
        Some(wishes) => {
            let mut names: Vec<String> =
                wishes.others.iter().map(|wish| format!("{}:{}", wish.provider, wish.model)).collect();
            match wishes.own_model {
                OwnModel::First => names.insert(0, "own".to_owned()),
                OwnModel::ByClientKey => names.insert(0, "own by the client's key".to_owned()),
                OwnModel::Last => names.push("own".to_owned()),
                OwnModel::Never => {}
            }
            names.join(" ")
        }
    }
}

#[test]
fn the_order_of_models_follows_from_the_settings() {
    // With an own key, and with keys of several owners, where only named models are called.
    let cases = [
        ("{}", "own", "rules"),
        ("auxiliary: {compression: {provider: main}}", "own", "own"),
        ("auxiliary: {compression: {model: Main}}", "own", "own"),
        ("auxiliary: {compression: {provider: Rules, model: x}}", "rules", "rules"),
        ("auxiliary: {compression: {provider: rules, fallbacks: main}}", "rules", "rules"),
        ("auxiliary: {compression: {model: gpt-5-mini}}", "auto:gpt-5-mini own", "auto:gpt-5-mini"),
        (
            "auxiliary: {compression: {model: gpt-5-mini, fallbacks: 'main, b'}}",
            "auto:gpt-5-mini auto:b own",
            "auto:gpt-5-mini auto:b own",
        ),
        (
            "auxiliary: {compression: {provider: openai, model: a, fallbacks: 'b, ollama:c:8b'}}",
            "openai:a openai:b ollama:c:8b own",
            "openai:a openai:b ollama:c:8b",
        ),
        (
            "auxiliary: {compression: {fallbacks: 'openrouter:g, h'}}",
            "own openrouter:g auto:h",
            "openrouter:g auto:h",
        ),
        (
            "auxiliary: {compression: {model: main, fallbacks: 'openrouter:g'}}",
            "own openrouter:g",
            "own openrouter:g",
        ),
        ("compression: {summary_model: old}", "auto:old own", "auto:old"),
    ];
    for (yaml, on_our_key, on_anothers) in cases {
        let settings = settings(yaml);
        assert_eq!(order(SummarySettings::of(&settings)), on_our_key, "{yaml}");
        let several = SummarySettings::for_clients(&settings, ClientOwners::Several);
        assert_eq!(order(several), on_anothers, "{yaml}");
        // With the keys of one owner's clients, the conversation's own model writes if no other is named.
        let one = order(SummarySettings::for_clients(&settings, ClientOwners::One));
        assert_eq!(one, if yaml == "{}" { "own by the client's key" } else { on_anothers }, "{yaml}");
    }
}

#[tokio::test]
async fn routes_know_their_windows_and_problems_name_their_setting() {
    let options = UpstreamOptions {
        kind: ServerKind::LlamaCpp,
        models: vec![ServedModel::with_window("small", 4_096)],
        ..UpstreamOptions::default()
    };
    let upstream = ScriptedUpstream::start_with(options, Script::row([])).await.unwrap();
    let yaml = format!(
        "auxiliary: {{compression: {{provider: llama.cpp, model: small, base_url: '{}/v1', wire: chat, timeout: 7, fallbacks: 'openai:gpt-5-mini'}}}}",
        upstream.url()
    );
    let settings = settings(&yaml);
    let wishes = SummarySettings::of(&settings).unwrap();
    let client = Client::new(ClientOptions {
        limits: TimeLimits::REMOTE,
        retries: RetryLimits::ONCE,
        proxy: None,
        jitter_seed: 1,
    });
    let search = RouteSearch {
        settings: &settings,
        catalogue: &Catalogue::shipped(),
        client: &client.unwrap(),
        variable: &|_| None,
        learnt: &|_| None,
    };
    let found = search.find(&wishes).await;
    let route = &found.routes[0];
    assert_eq!((route.target.model.as_str(), route.target.provider.as_str()), ("small", "llama.cpp"));
    assert_eq!((route.target.policy.window_tokens, route.target.wire_format), (4_096, WireFormat::Chat));
    assert_eq!(route.time_limit, Duration::from_secs(7));
    assert!(
        found.problems[0].contains("there is no key for openai: set the variable OPENAI_API_KEY"),
        "{:?}",
        found.problems
    );
}

#[tokio::test]
async fn a_provider_without_a_model_is_reported() {
    let settings = settings("auxiliary: {compression: {provider: openai}}");
    let wishes = SummarySettings::of(&settings).unwrap();
    let client = Client::new(ClientOptions {
        limits: TimeLimits::REMOTE,
        retries: RetryLimits::ONCE,
        proxy: None,
        jitter_seed: 1,
    });
    let search = RouteSearch {
        settings: &settings,
        catalogue: &Catalogue::shipped(),
        client: &client.unwrap(),
        variable: &|_| None,
        learnt: &|_| None,
    };
    let found = search.find(&wishes).await;
    assert_eq!(found.routes.len(), 0);
    assert_eq!(
        found.problems,
        ["a model for summaries cannot be asked: `auxiliary.compression.model` has to name it"]
    );
}
