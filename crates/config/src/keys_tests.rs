//! Tests of finding keys, and of suggestions for misspelt ones.

use super::*;

#[test]
fn a_slip_finds_the_key_that_was_meant() {
    for (slip, meant) in [
        ("compression.treshold", "compression.threshold"),
        ("compression.threshhold", "compression.threshold"),
        ("compresion.threshold", "compression.threshold"),
        ("compression.protect_last", "compression.protect_last_n"),
        ("compression.protect-first-n", "compression.protect_first_n"),
        ("compression.Enabled", "compression.enabled"),
        ("compresssion", "compression"),
        ("threshold", "compression.threshold"),
        ("model.threshold", "compression.threshold"),
        ("model.contxt_length", "model.context_length"),
        ("auxiliary.timeout", "auxiliary.compression.timeout"),
        ("prompt_cache.cache_ttl", "prompt_caching.cache_ttl"),
        ("tool_outputs", "tool_output"),
        ("compression_threshold", "compression.threshold"),
    ] {
        assert_eq!(nearest(slip).as_deref(), Some(meant), "{slip}");
    }
}

#[test]
fn what_resembles_nothing_gets_no_suggestion() {
    for stranger in ["terminal", "browser.timeout_policy", "kanban", "xyz", "", ".", "compression.in_place"] {
        assert_eq!(nearest(stranger), None, "{stranger}");
    }
    assert_eq!(nearest(&"x".repeat(100_000)), None);
}

#[test]
fn distance_counts_swaps_as_one() {
    assert_eq!(edit_distance("", "abc"), 3);
    assert_eq!(edit_distance("abc", ""), 3);
    assert_eq!(edit_distance("abc", "abc"), 0);
    assert_eq!(edit_distance("abc", "acb"), 1);
    assert_eq!(edit_distance("kitten", "sitting"), 3);
    assert_eq!(edit_distance("ab", "ba"), 1);
}

#[test]
fn every_key_has_a_variable_that_leads_back_to_it() {
    assert_eq!(env_name("compression.threshold"), "THROUGHLINE_COMPRESSION__THRESHOLD");
    for leaf in leaves() {
        assert_eq!(key_of_env(&env_name(&leaf.key)).as_deref(), Some(leaf.key.as_str()));
    }
    assert_eq!(key_of_env("THROUGHLINE_HOME"), None);
    assert_eq!(key_of_env("THROUGHLINE_REQUIRE_ALL"), None);
    assert_eq!(key_of_env("THROUGHLINE_NOW"), None);
    assert_eq!(key_of_env("THROUGHLINE_SEED"), None);
    assert_eq!(key_of_env("PATH"), None);
}

#[test]
fn entries_are_found_even_with_dots_in_their_names() {
    let path = |key| match find(key) {
        Some(Found::Value { path, .. }) => path.join("|"),
        Some(Found::Entry { path, .. }) => format!("entry {}", path.join("|")),
        Some(Found::Entries { path, .. }) => format!("table {}", path.join("|")),
        Some(Found::Section { keys }) => format!("section of {}", keys.len()),
        None => "nothing".to_owned(),
    };
    assert_eq!(path("compression.threshold"), "compression|threshold");
    assert_eq!(path("compression.models"), "table compression|models");
    assert_eq!(path("compression.models.gpt-5.5.threshold"), "compression|models|gpt-5.5|threshold");
    assert_eq!(path("compression.models.gpt-5.5"), "entry compression|models|gpt-5.5");
    assert_eq!(path("compression.models."), "nothing");
    assert_eq!(path("security"), "section of 1");
    assert_eq!(path("auxiliary"), "section of 9");
    assert_eq!(path("compress"), "nothing");
    assert_eq!(path(""), "nothing");
}

#[test]
fn old_names_lead_to_keys_that_exist() {
    for (old, new) in OLD_NAMES {
        let new = new.replace('*', "some.model");
        let old = old.replace('*', "some.model");
        assert!(matches!(find(&new), Some(Found::Value { .. })), "{new}");
        assert!(find(&old).is_none(), "{old} is a key of its own");
        assert_eq!(renamed(&old).as_deref(), Some(new.as_str()));
        let Some(Found::Value { path, .. }) = find(&new) else { unreachable!() };
        assert!(old_paths(&path).iter().any(|path| path.join(".") == old), "{new} forgets {old}");
    }
    for (section, key) in SECTIONS_AS_VALUES {
        assert!(matches!(find(section), Some(Found::Section { .. })), "{section}");
        assert!(matches!(find(key), Some(Found::Value { .. })), "{key}");
    }
    for key in NOT_USED_HERE {
        assert!(find(key).is_none() && renamed(key).is_none(), "{key} is used after all");
    }
}

#[test]
fn entries_hold_only_values_that_may_be_missing() {
    for leaf in leaves() {
        let LeafShape::Entries(members) = leaf.shape else { continue };
        for member in members {
            let KeyShape::Leaf(kind) = member.shape else {
                panic!("{}.{} is not a value", leaf.key, member.name)
            };
            assert!(kind.optional || kind.is_textual(), "{}.{} needs a value", leaf.key, member.name);
        }
    }
}
