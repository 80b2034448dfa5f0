//! Tests that the default file and the code agree: same keys, same ranges, every key described.

use super::*;
use crate::keys::{self, LeafShape};
use crate::{Loader, ValueOrigin};

#[test]
fn the_default_file_sets_every_key_and_no_other() {
    let layer = defaults();
    assert_eq!(layer.errors, []);
    assert_eq!(layer.warnings, []);
    let in_file: Vec<&str> = layer.assignments.iter().map(|assignment| assignment.key.as_str()).collect();
    let in_code: Vec<&str> = keys::leaves()
        .iter()
        .filter(|leaf| matches!(leaf.shape, LeafShape::Value(_)))
        .map(|leaf| leaf.key.as_str())
        .collect();
    assert_eq!(in_file, in_code, "default.yaml and settings.rs list other keys, or in another order");
    for leaf in keys::leaves() {
        assert!(describe(&leaf.key).is_some(), "default.yaml lacks {}", leaf.key);
    }
}

#[test]
fn every_key_is_explained_with_what_it_may_be() {
    for leaf in keys::leaves() {
        let about = describe(&leaf.key).unwrap_or_default();
        let allowed = match leaf.shape {
            LeafShape::Value(kind) => format!("Allowed: {}.", kind.to_string().trim_end_matches('.')),
            LeafShape::Entries(members) => {
                let names: Vec<&str> = members.iter().map(|member| member.name).collect();
                match names.as_slice() {
                    [only] => format!("each with {only}."),
                    [one, other] => format!("each with {one} or {other} or both."),
                    [first @ .., last] => format!("each with {} or {last}.", first.join(", ")),
                    [] => unreachable!("entries hold something"),
                }
            }
        };
        assert!(about.ends_with(&allowed), "{} must say '{allowed}', but says:\n{about}", leaf.key);
        let meaning = about.split("Allowed:").next().unwrap_or_default().trim();
        assert!(meaning.len() > 20 && meaning.ends_with(['.', '0']), "{} has no explanation", leaf.key);
    }
}

#[test]
fn every_section_is_introduced() {
    for leaf in keys::leaves() {
        for (at, _) in leaf.key.match_indices('.') {
            let section = &leaf.key[..at];
            assert!(describe(section).is_some_and(|about| about.len() > 20), "{section} is not introduced");
        }
    }
}

#[test]
fn defaults_alone_are_valid_and_known_as_defaults() {
    let loaded = Loader::new().load().unwrap();
    assert!(loaded.warnings.is_empty());
    assert!(loaded.values.iter().all(|value| value.origin == ValueOrigin::Default));
    assert_eq!(loaded.values.len(), keys::leaves().len());
}

#[test]
fn the_default_file_works_as_a_file_of_ones_own() {
    let loaded = Loader::new().file("config.yaml", Settings::default_file()).load().unwrap();
    assert!(loaded.warnings.is_empty());
    assert_eq!(loaded.settings, Loader::new().load().unwrap().settings);
}

#[test]
fn lines_of_the_default_file_fit_a_terminal() {
    for (index, line) in TEXT.lines().enumerate() {
        assert!(line.chars().count() <= 92, "line {} is too long", index + 1);
        assert!(!line.ends_with(' ') && !line.contains('\t'), "line {} has stray white space", index + 1);
    }
}
