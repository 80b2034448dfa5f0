//! Tests of the limits that apply, and of their sources.

use throughline_config::Loader;

use super::*;

fn settings(yaml: &str) -> Settings {
    Loader::new().file("config.yaml", yaml.to_owned()).load().unwrap().settings
}

fn sources<'a>(settings: &'a Settings, catalogue: &'a Catalogue, model: &'a str) -> LimitSources<'a> {
    LimitSources {
        model,
        provider: None,
        settings,
        configured: None,
        catalogue,
        endpoint: None,
        learnt: None,
        recorded: None,
        output_cap_tokens: None,
    }
}

#[test]
fn recorded_client_of_claude_code_worked_in_the_usual_window_unless_a_prompt_was_larger() {
    let (settings, catalogue) = (settings("{}"), Catalogue::shipped());
    let with = |largest_prompt_tokens| {
        let recorded = Some(RecordedClient::ClaudeCode { largest_prompt_tokens });
        resolve_limits(&LimitSources { recorded, ..sources(&settings, &catalogue, "claude-opus-4-6") })
    };
    let large = catalogue.of("claude-opus-4-6").facts.window_tokens;
    assert!(large > 200_000, "the test needs a model with a large window");
    let usual = with(200_000);
    assert_eq!(usual.window.tokens, 200_000);
    assert!(usual.window_origin("claude-opus-4-6").contains("Claude Code"));
    assert_eq!(with(200_001).window.tokens, large);
    assert_eq!(with(0).window.tokens, large, "a log without counts says nothing");
}

#[test]
fn recorded_client_counts_for_less_than_what_the_user_set() {
    let own = settings("model: {models: {opus: {context_length: 500000}}}");
    let recorded = Some(RecordedClient::ClaudeCode { largest_prompt_tokens: 9 });
    let catalogue = Catalogue::shipped();
    let found = resolve_limits(&LimitSources { recorded, ..sources(&own, &catalogue, "claude-opus-4-6") });
    assert_eq!(found.window.tokens, 500_000);
    let file = r#"{"version":1,"models":[{"name":"claude-opus-4-6","window":300000}]}"#;
    let (none, catalogue) = (settings("{}"), Catalogue::with_file(file).unwrap());
    let found = resolve_limits(&LimitSources { recorded, ..sources(&none, &catalogue, "claude-opus-4-6") });
    assert_eq!(found.window.tokens, 300_000);
}

#[test]
fn window_of_another_model_is_not_taken_over_in_silence() {
    let settings = settings("model: {default: small, context_length: 9000}");
    let (catalogue, configured) = (Catalogue::shipped(), WindowSetting::of(&settings));
    let with = |model| {
        resolve_limits(&LimitSources {
            configured: configured.as_ref(),
            ..sources(&settings, &catalogue, model)
        })
    };
    assert_eq!((with("small").window.tokens, with("small").unused_window), (9_000, None));
    let other = with("gpt-5");
    assert_eq!(other.window.tokens, 400_000);
    let words = other.unused_window.unwrap();
    assert!(
        words.contains("`small`") && words.contains("9000") && words.contains("`model.models`"),
        "{words}"
    );
}

#[test]
fn codex_subscription_has_one_window_and_threshold_however_the_model_is_written() {
    let (settings, catalogue) = (settings("{}"), Catalogue::shipped());
    for model in ["gpt-5.5", "openai/gpt-5.5", "GPT-5.5"] {
        let provider = Some(EndpointKind::OpenAiCodex);
        let found = resolve_limits(&LimitSources { provider, ..sources(&settings, &catalogue, model) });
        assert_eq!((found.window.tokens, found.threshold.ratio), (272_000, 0.85), "{model}");
    }
}
