//! Tests of choosing the thresholds of a model by its name.

use crate::Loader;

fn chosen(patterns: &[&str], model: &str) -> Option<String> {
    let entries: Vec<String> =
        patterns.iter().map(|pattern| format!("    \"{pattern}\": {{threshold: 0.6}}")).collect();
    let file = format!("compression:\n  models:\n{}\n", entries.join("\n"));
    let loaded = Loader::new().file("config.yaml", file).load().unwrap();
    loaded.settings.compression.for_model(model).map(|(pattern, thresholds)| {
        assert_eq!(thresholds.threshold, Some(0.6));
        assert_eq!(thresholds.threshold_tokens, None);
        pattern.to_owned()
    })
}

#[test]
fn a_plain_name_fits_anywhere_and_a_star_fits_the_whole() {
    assert_eq!(chosen(&["gpt-5"], "openai/gpt-5.5-codex").as_deref(), Some("gpt-5"));
    assert_eq!(chosen(&["gpt-5*"], "openai/gpt-5.5-codex"), None);
    assert_eq!(chosen(&["gpt-5*"], "gpt-5.5-codex").as_deref(), Some("gpt-5*"));
    assert_eq!(chosen(&["*opus*4*"], "anthropic/Claude-Opus-4.6").as_deref(), Some("*opus*4*"));
    assert_eq!(chosen(&["*"], "").as_deref(), Some("*"));
    assert_eq!(chosen(&["a*a"], "a"), None);
    assert_eq!(chosen(&["a*a"], "aa").as_deref(), Some("a*a"));
    assert_eq!(chosen(&["a*b*c"], "a-b-x"), None);
    assert_eq!(chosen(&["GLM-5.2"], "z-ai/glm-5.2").as_deref(), Some("GLM-5.2"));
    assert_eq!(chosen(&["gpt", "claude"], "gemini"), None);
}

#[test]
fn the_longest_pattern_wins() {
    assert_eq!(chosen(&["*", "gpt", "gpt-5", "gpt-5.5"], "gpt-5.5-mini").as_deref(), Some("gpt-5.5"));
    assert_eq!(chosen(&["**********", "gpt"], "gpt-5").as_deref(), Some("gpt"));
    assert_eq!(chosen(&["gpt*", "*gpt"], "gpt").as_deref(), Some("*gpt"), "of equals the first in order");
}

#[test]
fn economy_is_a_word_or_a_section() {
    use crate::EconomyMode::{Balanced, Off, Thrift};
    for (file, mode) in [
        ("", Off),
        ("economy: off\n", Off),
        ("economy: balanced\n", Balanced),
        ("economy: { mode: off }\n", Off),
        ("economy:\n  mode: thrift\n  cold_cache: no\n", Thrift),
    ] {
        let settings = Loader::new().file("config.yaml", file).load().unwrap().settings;
        assert_eq!(settings.economy.mode, mode, "{file}");
    }
    let error = Loader::new().file("config.yaml", "economy: { mode: cheap }\n").load().unwrap_err();
    assert!(error.to_string().contains("off, balanced or thrift"), "{error}");
}

#[test]
fn economy_of_a_token_counts_before_that_of_a_client() {
    use crate::EconomyMode::{Balanced, Off, Thrift};
    let file = "economy:\n  mode: balanced\n  clients: { codex: { mode: off } }\n  tokens: { ci: { mode: thrift } }\n";
    let economy = Loader::new().file("config.yaml", file).load().unwrap().settings.economy;
    assert_eq!(economy.mode_for("claude-code", None), Balanced);
    assert_eq!(economy.mode_for("codex", None), Off);
    assert_eq!(economy.mode_for("codex", Some("ci")), Thrift);
    assert_eq!(economy.mode_for("codex", Some("other")), Off);
}
