//! Tests of the models that a configured window applies to.

use super::*;
use crate::loader::Loader;

fn loaded(file: &str, sets: &[&str]) -> Loaded {
    let loader = Loader::new().file("config.yaml", file.as_bytes());
    sets.iter().fold(loader, |loader, set| loader.set(set)).load().unwrap()
}

#[test]
fn window_of_a_file_belongs_to_the_default_model() {
    let window = loaded("model:\n  default: small\n  context_length: 9000\n", &[]).window_setting().unwrap();
    assert_eq!((window.tokens, window.origin.as_str()), (9_000, "configured in config.yaml:3"));
    assert!(window.counts_for("small") && window.counts_for("maker/Small"));
    assert!(!window.counts_for("gpt-5"));
}

#[test]
fn window_of_a_file_without_a_default_model_counts_for_every_model() {
    let window = loaded("model: {context_length: 9000}", &[]).window_setting().unwrap();
    assert_eq!(window.scope, WindowScope::Endpoint);
    assert!(window.counts_for("gpt-5"));
}

#[test]
fn window_of_the_command_line_counts_for_every_model_of_the_run() {
    let window = loaded("model: {default: small}", &["model.context_length=8192"]).window_setting().unwrap();
    assert_eq!((window.origin.as_str(), &window.scope), ("configured by --set", &WindowScope::Run));
    assert!(window.counts_for("gpt-5"));
}

#[test]
fn window_setting_is_absent_where_nothing_sets_it() {
    assert_eq!(loaded("model: {default: small}", &[]).window_setting(), None);
}
