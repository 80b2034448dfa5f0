//! Facts about models by name: window, longest answer, family, smallest cached prompt. The values are data (`models.json`).
//!
//! A catalogue is the last resort: a configured window and one learnt from the provider take precedence.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use throughline_transcript::WireFormat;

use crate::exact::Encoding;
use crate::model::Family;
use crate::user_models::Catalogue;

/// The facts about a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ModelFacts {
    /// The entry with these values; `None` for the defaults.
    pub entry: Option<&'static str>,
    /// Its window.
    pub window_tokens: u64,
    /// The longest answer it can give, if known. It is never reserved automatically.
    pub max_output_tokens: Option<u64>,
    /// How it splits text into tokens.
    pub family: Family,
    /// The public encoding that counts its tokens exactly, if there is one.
    pub encoding: Option<Encoding>,
    /// The smallest prompt that its provider caches, if known.
    pub cache_minimum_tokens: Option<u64>,
}

impl ModelFacts {
    /// Returns how the model splits text into tokens. For an unknown model, the wire format suggests it.
    #[must_use]
    pub fn family_on(&self, wire: WireFormat) -> Family {
        match (self.entry, wire) {
            (Some(_), _) => self.family,
            (None, WireFormat::Anthropic) => Family::Claude,
            (None, WireFormat::Responses) => Family::O200k,
            (None, WireFormat::Chat) => Family::Generic,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogueEntry {
    name: String,
    window: u64,
    max_output: Option<u64>,
    family: Family,
    cache_minimum: Option<u64>,
}

static ENTRIES: LazyLock<Vec<CatalogueEntry>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../models.json")).unwrap_or_default());

impl Catalogue {
    /// Looks a model up by its name. The longest entry that occurs in the name at the start of a word is used; dots equal dashes, and case
    /// is ignored.
    ///
    /// ```
    /// use throughline_tokens::Catalogue;
    ///
    /// assert_eq!(Catalogue::shipped_facts("anthropic/claude-opus-4.8").entry, Catalogue::shipped_facts("claude-opus-4-8").entry);
    /// assert_eq!(Catalogue::shipped_facts("my-own-model").entry, None);
    /// ```
    #[must_use]
    pub fn shipped_facts(model: &str) -> ModelFacts {
        let name = normalise(model);
        let fitting = ENTRIES.iter().filter(|entry| stands_in(&entry.name, &name));
        let best = fitting.max_by_key(|entry| entry.name.len());
        ModelFacts {
            entry: best.map(|entry| entry.name.as_str()),
            window_tokens: best.map_or(Catalogue::DEFAULT_WINDOW_TOKENS, |entry| entry.window),
            max_output_tokens: best.and_then(|entry| entry.max_output),
            family: best.map_or(Family::Generic, |entry| entry.family),
            encoding: Encoding::for_model(model),
            cache_minimum_tokens: best.and_then(|entry| entry.cache_minimum),
        }
    }

    /// The names of all entries, in the order of the file.
    #[must_use]
    pub fn shipped_names() -> Vec<&'static str> {
        ENTRIES.iter().map(|entry| entry.name.as_str()).collect()
    }
}

pub(crate) fn normalise(model: &str) -> String {
    model.chars().map(|c| if matches!(c, '.' | '_' | ' ') { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Whether an entry starts a word of the name and, if it ends with a version, also ends there: `gpt-4-1` is not in `gpt-4-1106` and `o1`
/// not in `o1x`, but `llama` is in `llama3`.
pub(crate) fn stands_in(entry: &str, name: &str) -> bool {
    name.match_indices(entry).any(|(at, _)| {
        let before = name[..at].chars().next_back();
        let after = name[at + entry.len()..].chars().next();
        let has_version = entry.ends_with(|c: char| c.is_ascii_digit());
        let cuts_version = has_version && after.is_some_and(|c| c.is_ascii_alphanumeric());
        !before.is_some_and(|c| c.is_ascii_alphanumeric()) && !cuts_version
    })
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
