//! The keys: lookup, old names, variables, and the key most similar to a misspelt one.

use std::sync::LazyLock;

use crate::kind::ValueKind;
use crate::problem::{ConfigErrorKind, show_key};
use crate::schema::{KeyShape, SchemaMember, SchemaSection, join};
use crate::settings::Settings;

/// The prefix of Throughline's variables.
const ENV_PREFIX: &str = "THROUGHLINE_";
/// Variables with that prefix that are not settings.
const OTHER_VARIABLES: [&str; 4] =
    ["THROUGHLINE_HOME", "THROUGHLINE_NOW", "THROUGHLINE_REQUIRE_ALL", "THROUGHLINE_SEED"];

/// Former names of settings. A `*` matches the name of an entry.
const OLD_NAMES: [(&str, &str); 10] = [
    ("compression.summary_model", "auxiliary.compression.model"),
    ("compression.summary_provider", "auxiliary.compression.provider"),
    ("compression.summary_base_url", "auxiliary.compression.base_url"),
    ("compression.model_thresholds.*", "compression.models.*.threshold"),
    ("auxiliary.compression.key_env", "auxiliary.compression.api_key_env"),
    ("model.cache_ttl", "prompt_caching.cache_ttl"),
    ("model.model", "model.default"),
    ("provider", "model.provider"),
    ("base_url", "model.base_url"),
    ("context_length", "model.context_length"),
];

/// Sections that may be written as a single value (`model` by Hermes), and the key of that value.
const SECTIONS_AS_VALUES: [(&str, &str); 2] = [("model", "model.default"), ("economy", "economy.mode")];

/// Settings of Hermes in shared sections that have no meaning here. Listed because some resemble ours.
const NOT_USED_HERE: [&str; 24] = [
    "compression.in_place",
    "compression.hygiene_hard_message_limit",
    "compression.hygiene_max_turn_hold_seconds",
    "compression.hygiene_timeout_seconds",
    "compression.codex_gpt55_autoraise_notice",
    "compression.codex_app_server_auto",
    "compression.codex_responses_native",
    "compression.codex_responses_compact_threshold",
    "compression.checkpoint_required",
    "compression.progress_notices",
    "compression.min_tail_user_messages",
    "compression.max_attempts",
    "compression.idle_compact_after_seconds",
    "compression.proactive_prune_tokens",
    "compression.proactive_prune_min_result_chars",
    "compression.proactive_prune_min_reclaim_tokens",
    "compression.context_timeout_seconds",
    "compression.context_total_ceiling_seconds",
    "auxiliary.compression.api_mode",
    "auxiliary.compression.extra_body",
    "auxiliary.compression.reasoning_effort",
    "tool_output.max_bytes",
    "tool_output.max_lines",
    "tool_output.max_line_length",
];

static MEMBERS: LazyLock<Vec<SchemaMember>> = LazyLock::new(Settings::members);
static LEAVES: LazyLock<Vec<Leaf>> = LazyLock::new(|| {
    let mut leaves = Vec::new();
    collect_leaves("", &MEMBERS, &mut leaves);
    leaves
});

/// A key with a value, or with any number of entries.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) key: String,
    pub(crate) shape: LeafShape,
}

#[derive(Debug, Clone)]
pub(crate) enum LeafShape {
    Value(ValueKind),
    Entries(&'static [SchemaMember]),
}

/// The top-level sections.
pub(crate) fn members() -> &'static [SchemaMember] {
    &MEMBERS
}

/// Every key in the order it is shown.
pub(crate) fn leaves() -> &'static [Leaf] {
    &LEAVES
}

fn collect_leaves(path: &str, members: &'static [SchemaMember], leaves: &mut Vec<Leaf>) {
    for member in members {
        let key = join(path, member.name);
        match &member.shape {
            KeyShape::Leaf(kind) => leaves.push(Leaf { key, shape: LeafShape::Value(*kind) }),
            KeyShape::Entries(members) => leaves.push(Leaf { key, shape: LeafShape::Entries(members) }),
            KeyShape::Section(members) => collect_leaves(&key, members, leaves),
        }
    }
}

/// The schema element a dotted key names.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    /// A setting: its key as a path, and its kind.
    Value { path: Vec<String>, kind: ValueKind },
    /// A table: its path and the members of its entries.
    Entries { path: Vec<String>, members: &'static [SchemaMember] },
    /// One entry of a table.
    Entry { path: Vec<String>, members: &'static [SchemaMember] },
    /// A section and the keys in it.
    Section { keys: Vec<String> },
}

/// Looks a dotted key up. Names of entries may contain dots.
pub(crate) fn find(key: &str) -> Option<Found> {
    if key.is_empty() {
        return None;
    }
    let path = |key: &str| key.split('.').map(str::to_owned).collect::<Vec<_>>();
    for leaf in leaves() {
        match &leaf.shape {
            LeafShape::Value(kind) if leaf.key == key => {
                return Some(Found::Value { path: path(key), kind: *kind });
            }
            LeafShape::Entries(members) => {
                if leaf.key == key {
                    return Some(Found::Entries { path: path(key), members });
                }
                let Some(rest) = key.strip_prefix(&join(&leaf.key, "")).filter(|rest| !rest.is_empty())
                else {
                    continue;
                };
                let mut path = path(&leaf.key);
                if let Some((name, member)) = rest.rsplit_once('.')
                    && !name.is_empty()
                    && let Some(member) = members.iter().find(|known| known.name == member)
                    && let KeyShape::Leaf(kind) = member.shape
                {
                    path.extend([name.to_owned(), member.name.to_owned()]);
                    return Some(Found::Value { path, kind });
                }
                path.push(rest.to_owned());
                return Some(Found::Entry { path, members });
            }
            LeafShape::Value(_) => {}
        }
    }
    let prefix = join(key, "");
    let keys: Vec<String> =
        leaves().iter().filter(|leaf| leaf.key.starts_with(&prefix)).map(|leaf| leaf.key.clone()).collect();
    (!keys.is_empty()).then_some(Found::Section { keys })
}

/// Returns the current name of a key, if the given name is an old one.
pub(crate) fn renamed(key: &str) -> Option<String> {
    OLD_NAMES.iter().find_map(|(old, new)| match old.strip_suffix('*') {
        Some(prefix) => {
            key.strip_prefix(prefix).filter(|name| !name.is_empty()).map(|name| new.replace('*', name))
        }
        None => (*old == key).then(|| (*new).to_owned()),
    })
}

/// Whether a key is an old name of a whole table, such as `compression.model_thresholds`.
pub(crate) fn is_renamed_table(key: &str) -> bool {
    OLD_NAMES.iter().any(|(old, _)| old.strip_suffix(".*") == Some(key))
}

/// The paths of the old names of a setting.
pub(crate) fn old_paths(path: &[String]) -> Vec<Vec<String>> {
    let key = path.join(".");
    OLD_NAMES
        .iter()
        .filter_map(|(old, new)| {
            let split = |key: &str| key.split('.').map(str::to_owned).collect::<Vec<_>>();
            let Some((before, after)) = new.split_once('*') else {
                return (*new == key).then(|| split(old));
            };
            let name = key.strip_prefix(before)?.strip_suffix(after)?;
            let mut path = split(old.trim_end_matches(".*"));
            path.push(name.to_owned());
            Some(path)
        })
        .collect()
}

/// Returns the key whose value a section written as a single value sets.
pub(crate) fn section_as_value(section: &str) -> Option<&'static str> {
    SECTIONS_AS_VALUES.iter().find(|(name, _)| *name == section).map(|(_, key)| *key)
}

/// Whether a key belongs to Hermes and has no meaning here.
pub(crate) fn is_not_used_here(key: &str) -> bool {
    NOT_USED_HERE.contains(&key)
}

/// The variable that sets a key.
pub(crate) fn env_name(key: &str) -> String {
    format!("{ENV_PREFIX}{}", key.replace('.', "__").to_uppercase())
}

/// Returns the key for a variable; `None` if it is not a setting of Throughline.
pub(crate) fn key_of_env(name: &str) -> Option<String> {
    // Windows ignores the case of variable names.
    let name = name.to_uppercase();
    if OTHER_VARIABLES.contains(&name.as_str()) {
        return None;
    }
    name.strip_prefix(ENV_PREFIX).map(|rest| rest.replace("__", ".").to_lowercase())
}

/// Returns the error for an unknown key.
pub(crate) fn unknown(key: &str) -> ConfigErrorKind {
    ConfigErrorKind::UnknownKey { key: show_key(key), nearest: nearest(key) }
}

/// Returns the member of the same section most similar to a misspelt one.
pub(crate) fn nearest_member(path: &str, word: &str, members: &[SchemaMember]) -> Option<String> {
    const MAX_COMPARED_CHARS: usize = 120;
    if word.chars().count() > MAX_COMPARED_CHARS {
        return None;
    }
    let word = word.to_lowercase().replace(['-', ' '], "_");
    members
        .iter()
        .filter_map(|member| close(&word, member.name).map(|distance| (distance, member.name)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| join(path, name))
}

/// Returns the key most similar to a given one: in spelling, or with the same last word in another section.
pub(crate) fn nearest(key: &str) -> Option<String> {
    const MAX_COMPARED_CHARS: usize = 120;
    let key = key.to_lowercase().replace(['-', ' '], "_");
    if key.chars().count() > MAX_COMPARED_CHARS {
        return None;
    }
    let (section, word) = key.rsplit_once('.').unwrap_or(("", &key));
    let candidates = leaves().iter().map(|leaf| leaf.key.as_str()).chain(sections());
    candidates
        .filter_map(|candidate| {
            let (candidate_section, candidate_word) = candidate.rsplit_once('.').unwrap_or(("", candidate));
            let within_section = if candidate_section == section {
                close(word, candidate_word)
            } else if candidate_word == word && word.len() > 3 {
                // The right word in the wrong section ranks between a near and a far misspelling.
                Some(2)
            } else {
                None
            };
            let whole = close(&key, candidate);
            within_section.into_iter().chain(whole).min().map(|distance| (distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

/// The names of all sections.
fn sections() -> impl Iterator<Item = &'static str> {
    static SECTIONS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut sections: Vec<String> = Vec::new();
        for leaf in leaves() {
            let mut rest = leaf.key.as_str();
            while let Some((section, _)) = rest.rsplit_once('.') {
                if !sections.iter().any(|known| known == section) {
                    sections.push(section.to_owned());
                }
                rest = section;
            }
        }
        sections
    });
    SECTIONS.iter().map(String::as_str)
}

/// Returns the number of edits between two words, if small enough for a typing error: a third of the length, at least one.
fn close(given: &str, known: &str) -> Option<usize> {
    let limit = (known.chars().count() / 3).clamp(1, 4);
    let distance = edit_distance(given, known);
    (distance <= limit).then_some(distance)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn edit_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, &a) in left.iter().enumerate() {
        let mut row = Vec::with_capacity(right.len() + 1);
        row.push(i + 1);
        for (j, &b) in right.iter().enumerate() {
            let mut best = (last[j + 1] + 1).min(row[j] + 1).min(last[j] + usize::from(a != b));
            if i > 0 && j > 0 && a == right[j - 1] && left[i - 1] == b {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
