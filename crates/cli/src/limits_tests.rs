//! The origin of model, window and limits.

use throughline_config::Loader;
use throughline_transcript::{DecodeOptions, decode};

use super::*;
use crate::app::App;

fn transcript(json: &str) -> Transcript {
    decode(json.as_bytes().to_vec(), &DecodeOptions::default()).unwrap()
}

fn app(sets: &[&str]) -> App {
    let mut app = App::for_tests("/nowhere/at/all".into());
    app.sets = sets.iter().map(|set| (*set).to_owned()).collect();
    app
}

fn args() -> WindowArgs {
    WindowArgs { context_length: None, model: None, max_output_tokens: None }
}

fn situation(sets: &[&str], args: &WindowArgs, json: &str) -> TranscriptLimits {
    TranscriptLimits::of(&app(sets), args, &[], &transcript(json), CountMethod::Estimate)
        .map_err(|f| f.render())
        .unwrap()
}

fn limit(situation: &TranscriptLimits, name: &str) -> LimitInForce {
    situation.limits().into_iter().find(|(found, _)| found == name).unwrap().1
}

const PLAIN: &str = r#"{"messages":[{"role":"user","content":"hi"}]}"#;

#[test]
fn the_defaults_of_the_design_hold_for_200000_tokens() {
    let found = situation(&[], &args(), PLAIN);
    assert_eq!(found.window.value, 200_000);
    assert!(found.window.origin.contains("no model is named"));
    assert_eq!(found.budgets.threshold_tokens, 100_000);
    assert_eq!(found.budgets.tail_tokens, 20_000);
    assert_eq!(found.budgets.summary_cap_tokens, 10_000);
    assert_eq!(found.budgets.tail_permille, 200);
}

#[test]
fn the_model_of_the_command_line_outranks_that_of_the_transcript() {
    let body = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}"#;
    let found = situation(&["model.default=gpt-5"], &args(), body);
    assert_eq!(
        found.model,
        Some(WithOrigin { value: "gpt-4o".to_owned(), origin: "the transcript".to_owned() })
    );
    assert_eq!(found.window.value, 128_000);
    let found = situation(&[], &WindowArgs { model: Some("gpt-5".to_owned()), ..args() }, body);
    assert_eq!(found.window.value, 400_000);
    let found = situation(&["model.default=gpt-5"], &args(), PLAIN);
    assert_eq!(found.model.unwrap().origin, "model.default");
}

#[test]
fn an_unknown_model_gets_the_default_window_and_says_so() {
    let found = situation(&[], &WindowArgs { model: Some("frobnicator-9".to_owned()), ..args() }, PLAIN);
    assert_eq!(found.window.value, 200_000);
    assert_eq!(found.window.origin, "default, this model is unknown");
}

#[test]
fn the_reserved_answer_comes_from_the_request_before_the_settings() {
    let body = r#"{"max_tokens":90000,"messages":[{"role":"user","content":"hi"}]}"#;
    let found =
        situation(&["model.max_tokens=5"], &WindowArgs { context_length: Some(160_000), ..args() }, body);
    let threshold = limit(&found, "threshold_tokens");
    assert_eq!((threshold.configured, threshold.effective), (80_000, 160_000 - 90_000 - 3_200));
    assert!(threshold.reason.unwrap().contains("90000"));
    assert_eq!(limit(&found, "reserved_output_tokens").reason.unwrap(), "from the request's own cap");
    let found = situation(&["model.max_tokens=5"], &args(), PLAIN);
    assert_eq!(limit(&found, "reserved_output_tokens").effective, 5);
}

#[test]
fn a_clamped_ratio_is_shown_with_its_reason() {
    let found = situation(&["compression.target_ratio=0.01"], &args(), PLAIN);
    let tail = limit(&found, "tail_budget_tokens");
    assert_eq!((tail.configured, tail.effective), (1_000, 10_000));
    assert!(tail.reason.unwrap().starts_with("target_ratio 0.01"));
}

#[test]
fn thresholds_of_a_model_and_of_codex_are_named() {
    let gpt = WindowArgs { model: Some("gpt-5.5".to_owned()), context_length: Some(100_000), ..args() };
    let found = situation(&["compression.models={gpt-5: {threshold: 0.7}}"], &gpt, PLAIN);
    assert_eq!(found.budgets.threshold_tokens, 70_000);
    assert_eq!(limit(&found, "threshold_tokens").reason.unwrap(), "from compression.models.gpt-5");
    let found = situation(&["model.provider=openai-codex"], &gpt, PLAIN);
    assert_eq!(found.budgets.threshold_tokens, 85_000);
    let found =
        situation(&["model.provider=openai-codex", "compression.codex_gpt55_autoraise=false"], &gpt, PLAIN);
    assert_eq!(found.budgets.threshold_tokens, 50_000);
}

#[test]
fn windows_too_small_are_refused() {
    for tokens in [1, 511] {
        let args = WindowArgs { context_length: Some(tokens), ..args() };
        let failure = TranscriptLimits::of(&app(&[]), &args, &[], &transcript(PLAIN), CountMethod::Estimate)
            .map(|_| ())
            .unwrap_err();
        assert_eq!(failure.exit(), Exit::BadInput);
    }
}

#[test]
fn settings_of_the_limits_all_exist() {
    // The names in messages are settings that a user can type.
    let loaded = Loader::new().load().unwrap();
    for key in
        ["model.context_length", "model.default", "model.max_tokens", "compression.codex_gpt55_autoraise"]
    {
        assert!(loaded.values.iter().any(|value| value.key == key), "{key}");
    }
}
