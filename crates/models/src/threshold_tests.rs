//! Tests of the threshold of each model.

use throughline_config::{Loader, Settings};
use throughline_engine::ThresholdOrigin;
use throughline_tokens::Limits;

use super::{limit_policy, threshold_for};

fn settings(yaml: &str) -> Settings {
    Loader::new().file("config.yaml", yaml.as_bytes()).load().unwrap().settings
}

#[test]
fn the_most_particular_setting_wins() {
    let general = ThresholdOrigin::General;
    let codex = ThresholdOrigin::CodexRaise;
    let pattern = |name: &str| ThresholdOrigin::Pattern { pattern: name.to_owned() };
    // settings, provider, model -> ratio, tokens, why
    let cases = [
        ("", "anthropic", "claude-opus-4-8", 0.5, None, general.clone()),
        (
            "compression: {threshold: 0.6, threshold_tokens: 90k}",
            "openai",
            "gpt-5",
            0.6,
            Some(90_000),
            general.clone(),
        ),
        // Codex: raised by default, and only there.
        ("", "openai-codex", "gpt-5.5", 0.85, None, codex.clone()),
        ("", "openai-codex", "openai/GPT-5.5-high", 0.85, None, codex.clone()),
        ("", "openai", "gpt-5.5", 0.5, None, general.clone()),
        ("", "openai-codex", "gpt-5.3-codex", 0.5, None, general.clone()),
        ("", "openai-codex", "gpt-5", 0.5, None, general.clone()),
        // Never lowered, easily turned off.
        ("compression: {threshold: 0.9}", "openai-codex", "gpt-5.5", 0.9, None, general.clone()),
        (
            "compression: {codex_gpt55_autoraise: false}",
            "openai-codex",
            "gpt-5.5",
            0.5,
            None,
            general.clone(),
        ),
        // An absolute threshold is not raised.
        (
            "compression: {threshold_tokens: 200k}",
            "openai-codex",
            "gpt-5.5",
            0.85,
            Some(200_000),
            codex.clone(),
        ),
        // A pattern takes precedence over everything.
        (
            "compression: {models: {'gpt-5*': {threshold: 0.4}}}",
            "openai-codex",
            "gpt-5.5",
            0.4,
            None,
            pattern("gpt-5*"),
        ),
        (
            "compression: {threshold: 0.7, models: {opus: {threshold_tokens: 150k}}}",
            "anthropic",
            "claude-opus-4-8",
            0.7,
            Some(150_000),
            pattern("opus"),
        ),
        (
            "compression: {threshold_tokens: 90k, models: {opus: {threshold: 0.7}}}",
            "anthropic",
            "claude-opus-4-8",
            0.7,
            None,
            pattern("opus"),
        ),
    ];
    for (yaml, provider, model, ratio, tokens, origin) in cases {
        let chosen = threshold_for(&settings(yaml).compression, provider, model);
        assert_eq!(
            (chosen.ratio, chosen.tokens, chosen.origin),
            (ratio, tokens, origin),
            "{model} with {yaml}"
        );
    }
}

#[test]
fn only_the_raise_is_announced() {
    let notice = ThresholdOrigin::CodexRaise.notice("gpt-5.5").unwrap();
    assert!(notice.contains("85 %") && notice.contains("codex_gpt55_autoraise: false"), "{notice}");
    assert_eq!(ThresholdOrigin::General.notice("gpt-5.5"), None);
}

#[test]
fn threshold_in_tokens_holds_outright() {
    // Settings -> configured and effective threshold in a window of 200,000.
    let cases = [
        ("threshold: 0.5", 100_000, 100_000),
        ("threshold_tokens: 40k", 40_000, 40_000),
        ("threshold_tokens: 150k", 150_000, 150_000),
        ("threshold_tokens: 150001", 150_001, 150_001),
        // The hard limit, with two percent of the window free.
        ("threshold_tokens: 199k", 199_000, 196_000),
        ("threshold: 1.0", 200_000, 196_000),
        // For another window.
        ("threshold_tokens: 300k", 100_000, 100_000),
    ];
    for (yaml, configured, effective) in cases {
        let settings = settings(&format!("compression: {{{yaml}}}"));
        let threshold = threshold_for(&settings.compression, "", "");
        let limits = Limits::compute(&limit_policy(&settings, &threshold, 200_000, None)).unwrap();
        let found = limits.threshold_tokens;
        assert_eq!((found.configured, found.effective), (configured, effective), "{yaml}");
        assert_eq!(found.reason.is_some(), configured != effective, "{yaml}");
    }
}

#[test]
fn the_requests_own_cap_is_reserved_before_the_configured_one() {
    let settings = settings("model: {max_tokens: 8000}");
    let threshold = threshold_for(&settings.compression, "anthropic", "claude");
    let reserved = |cap| limit_policy(&settings, &threshold, 200_000, cap).reserved_output_tokens;
    assert_eq!(reserved(Some(32_000)), 32_000);
    assert_eq!(reserved(None), 8_000);
}

#[test]
fn a_mode_of_economy_is_a_set_of_means_and_each_has_its_own_key() {
    use throughline_tokens::{Economy, ToolDeferral};

    use super::economy_of;
    let economy = |yaml: &str| {
        let settings = settings(yaml).economy;
        economy_of(&settings, settings.mode)
    };
    assert_eq!(economy(""), Economy::OFF);
    assert_eq!(economy("economy: balanced"), Economy::BALANCED);
    assert_eq!(economy("economy: {mode: thrift, tool_results: off, tools: off}"), Economy::BALANCED);
    let thrift = |tools| Economy { tools, ..Economy::THRIFT };
    assert_eq!(economy("economy: thrift"), thrift(ToolDeferral::ByList));
    assert_eq!(economy("economy: {mode: thrift, tool_references: on}"), thrift(ToolDeferral::ByReference));
    assert_eq!(economy("economy: {tool_references: on}"), Economy::OFF);
    assert_eq!(economy("economy: {cold_cache: on}"), Economy { cold_cache: true, ..Economy::OFF });
}
