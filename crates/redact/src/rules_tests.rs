//! Tests that the table of formats is complete and well-formed, and that each rule matches its own sample.

use std::collections::BTreeSet;

use super::*;
use crate::samples_tests::{Dice, expand};
use crate::{Redactor, mask};

#[test]
fn every_rule_is_complete() {
    let rules = load();
    let mut ids = BTreeSet::new();
    for rule in &rules {
        assert!(ids.insert(rule.id), "two rules are called {}", rule.id);
        assert!(!rule.sample.is_empty(), "{} has no sample", rule.id);
        assert!(rule.sample.contains('<'), "the sample of {} is a literal", rule.id);
        assert!(!rule.pattern.is_empty(), "{} has no pattern", rule.id);
        assert_ne!(rule.words.is_empty(), rule.names.is_empty(), "{} needs either words or names", rule.id);
        assert!(rule.regex().is_some(), "the pattern of {} does not compile", rule.id);
        assert!(rule.words.iter().all(|word| word.len() >= 3), "{} has a word that is too short", rule.id);
    }
}

#[test]
fn every_line_of_the_table_is_understood() {
    let fields = ["kind", "word", "back", "find", "test", "name", "value", "sample", "line", "reach"];
    for line in
        TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with('['))
    {
        let (field, value) = line.split_once(": ").unwrap_or_else(|| panic!("not a field: {line}"));
        assert!(fields.contains(&field), "unknown field in {line}");
        assert!(!value.trim().is_empty(), "empty field in {line}");
        if field == "test" {
            assert!(["random", "inside"].contains(&value), "unknown test in {line}");
        }
        if field == "reach" {
            assert!(value.parse::<usize>().is_ok(), "not a number in {line}");
        }
    }
    assert!(
        load()
            .iter()
            .filter(|rule| TABLE.contains(&format!("[{}]\nback", rule.id)))
            .all(|r| r.back.is_some())
    );
}

#[test]
fn the_table_covers_at_least_a_hundred_and_fifty_formats() {
    assert!(load().len() >= 150, "only {} rules", load().len());
}

#[test]
fn every_rule_finds_its_own_sample_and_names_it() {
    let redactor = Redactor::new();
    let mut dice = Dice::new(1);
    let mut failures = Vec::new();
    for rule in load() {
        for _ in 0..20 {
            let seeded = expand(rule.sample, &mut dice);
            let findings = redactor.find(&seeded.text);
            if !findings.iter().any(|finding| finding.kind == rule.kind)
                || seeded.leaks_into(&redactor.redact(&seeded.text))
            {
                failures.push(format!("{}: {findings:?} in {}", rule.id, seeded.text));
            }
        }
    }
    assert!(failures.is_empty(), "{} samples missed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_kind_makes_a_mask_that_is_recognised() {
    for rule in load() {
        let mut masked = String::new();
        mask::write(&mut masked, rule.kind);
        assert_eq!(mask::length_at_start(&masked), Some(masked.len()), "{}", rule.kind);
    }
}

#[test]
fn a_secret_longer_than_the_window_is_covered_whole() {
    let key = format!("sk-ant-api03-{}", Dice::new(3).characters("w", 5000));
    let redacted = Redactor::new().redact(&key).into_owned();
    assert_eq!(redacted, "[redacted:anthropic_key]");
}

#[test]
fn patterns_compile_only_when_their_word_occurs() {
    let rules = load();
    assert!(rules.iter().all(|rule| rule.compiled.get().is_none()));
    let github = rules.iter().find(|rule| rule.id == "github_token").unwrap();
    assert!(github.match_at("nothing here", 0, "ghp_").is_none());
    assert!(github.compiled.get().is_none());
}
