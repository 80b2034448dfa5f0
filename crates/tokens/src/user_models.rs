//! The user's catalogue file, which overrides the shipped catalogue value by value.
//!
//! The file is JSON: `{"version": 1, "models": [{"name": "my-model", "window": 32768, ...}]}`. Names match as in the shipped catalogue. Not
//! for: reading the file, which is the caller's.

use std::sync::Arc;

use serde::Deserialize;
use throughline_transcript::WireFormat;

use crate::catalogue::{ModelFacts, normalise, stands_in};
use crate::model::{Family, TokenModel};
use crate::prices::{Cost, PriceBasis, PricedCall, Rates};

/// The version of the file that this program reads.
const VERSION: u32 = 1;
/// Larger figures are typing errors.
const LARGEST_TOKENS: u64 = 100_000_000;
const DEAREST_USD: f64 = 1_000_000.0;

/// The shipped catalogue, overridden by the user's file if there is one.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Shared, because every model target has a catalogue.
    own: Arc<Vec<OwnEntry>>,
}

/// The facts about a model, and which of them come from the user's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CataloguedModel {
    /// The effective values.
    pub facts: ModelFacts,
    /// The matching entry of the user's file, if there is one.
    pub own_entry: Option<String>,
    /// The values from that entry.
    pub own_values: Vec<OwnValue>,
}

/// A value in a user's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnValue {
    /// The window.
    Window,
    /// The longest answer.
    MaxOutput,
    /// How text is split into tokens.
    Family,
    /// The smallest prompt that is cached.
    CacheMinimum,
    /// Prices.
    Prices,
}

/// Why a file is not a valid catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// The file has the wrong form.
    #[error("line {line}, column {column}: {detail}")]
    Form {
        /// Line, from one.
        line: usize,
        /// Column, from one.
        column: usize,
        /// What is wrong.
        detail: String,
    },
    /// The file has a newer version.
    #[error("version {found} is newer than {VERSION}, the newest that can be read")]
    Version {
        /// The version in the file.
        found: u32,
    },
    /// A value is out of range.
    #[error("`{name}`: {value} must be {allowed}")]
    Value {
        /// The name of the entry.
        name: String,
        /// The value.
        value: &'static str,
        /// The range that is allowed.
        allowed: &'static str,
    },
    /// Two entries have the same name.
    #[error("`{name}` is given twice")]
    Twice {
        /// The name of the entry.
        name: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    models: Vec<OwnEntry>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnEntry {
    name: String,
    window: Option<u64>,
    max_output: Option<u64>,
    family: Option<Family>,
    cache_minimum: Option<u64>,
    /// US dollars per million tokens; the last rates that apply to a call are used.
    #[serde(default)]
    rates: Vec<Rates>,
}

impl CataloguedModel {
    /// Returns how the model splits text: by the user's file, or else the catalogue, or else as the wire format suggests.
    #[must_use]
    pub fn family_on(&self, wire: WireFormat) -> Family {
        if self.own_values.contains(&OwnValue::Family) {
            self.facts.family
        } else {
            self.facts.family_on(wire)
        }
    }
}

impl TokenModel {
    /// Returns the estimator for a model's family. For a model that no catalogue lists, the wire format suggests the family.
    #[must_use]
    pub fn for_model(model: &str, wire_format: WireFormat) -> Self {
        Self::of(Catalogue::shipped_facts(model).family_on(wire_format))
    }
}

impl Catalogue {
    /// The window of a model that no catalogue lists.
    pub const DEFAULT_WINDOW_TOKENS: u64 = 200_000;

    /// Returns the shipped catalogue.
    #[must_use]
    pub fn shipped() -> Self {
        Self::default()
    }

    /// Returns the shipped catalogue overridden by the text of a user's file.
    pub fn with_file(text: &str) -> Result<Self, CatalogueError> {
        let file: File = serde_json::from_str(text).map_err(|error| {
            let full = error.to_string();
            let detail = full.split(" at line ").next().unwrap_or(&full).to_owned();
            CatalogueError::Form { line: error.line(), column: error.column(), detail }
        })?;
        if file.version > VERSION {
            return Err(CatalogueError::Version { found: file.version });
        }
        let mut own: Vec<OwnEntry> = Vec::with_capacity(file.models.len());
        for entry in file.models {
            let entry = OwnEntry { name: normalise(entry.name.trim()), ..entry };
            entry.check()?;
            if own.iter().any(|other| other.name == entry.name) {
                return Err(CatalogueError::Twice { name: entry.name });
            }
            own.push(entry);
        }
        Ok(Self { own: Arc::new(own) })
    }

    /// The facts about a model.
    #[must_use]
    pub fn of(&self, model: &str) -> CataloguedModel {
        let mut facts = Catalogue::shipped_facts(model);
        let Some(own) = self.entry(model) else {
            return CataloguedModel { facts, own_entry: None, own_values: Vec::new() };
        };
        let mut own_values = Vec::new();
        if let Some(window) = own.window {
            facts.window_tokens = window;
            own_values.push(OwnValue::Window);
        }
        if let Some(most) = own.max_output {
            facts.max_output_tokens = Some(most);
            own_values.push(OwnValue::MaxOutput);
        }
        if let Some(family) = own.family {
            facts.family = family;
            own_values.push(OwnValue::Family);
        }
        if let Some(least) = own.cache_minimum {
            facts.cache_minimum_tokens = Some(least);
            own_values.push(OwnValue::CacheMinimum);
        }
        if !own.rates.is_empty() {
            own_values.push(OwnValue::Prices);
        }
        CataloguedModel { facts, own_entry: Some(own.name.clone()), own_values }
    }

    /// Returns the cost of a call: by the user's prices if the file has them, or else by list price.
    #[must_use]
    pub fn cost(&self, call: &PricedCall<'_>) -> Cost {
        let own = self.entry(call.model).filter(|entry| !entry.rates.is_empty());
        let Some(own) = own else { return call.list_cost() };
        let rates = own.rates.iter().rev().find(|rates| rates.applies(call));
        let unknown = |basis| Cost { micro_usd: None, uncached_micro_usd: None, basis };
        match rates.map(|rates| rates.amounts(call, 1.0)) {
            Some(Ok((amount, uncached))) => Cost {
                micro_usd: Some(amount),
                uncached_micro_usd: Some(uncached),
                basis: PriceBasis::OwnFile,
            },
            Some(Err(bucket)) => unknown(PriceBasis::UnpricedBucket(bucket)),
            None => unknown(PriceBasis::UnknownSeller),
        }
    }

    /// Returns the cost of a call by bucket, in millionths of a dollar, each named as in [`Usage`](crate::Usage); `None` if there is no
    /// price.
    #[must_use]
    pub fn cost_by_bucket(&self, call: &PricedCall<'_>) -> Option<[(&'static str, u64); 4]> {
        let own = self.entry(call.model).filter(|entry| !entry.rates.is_empty());
        let Some(own) = own else { return call.list_cost_by_bucket() };
        own.rates.iter().rev().find(|rates| rates.applies(call))?.by_bucket(call, 1.0)
    }

    /// Returns the longest entry that occurs in the name of a model.
    fn entry(&self, model: &str) -> Option<&OwnEntry> {
        let name = normalise(model);
        let fitting = self.own.iter().filter(|entry| stands_in(&entry.name, &name));
        fitting.max_by_key(|entry| entry.name.len())
    }
}

impl OwnEntry {
    fn check(&self) -> Result<(), CatalogueError> {
        let refuse = |value, allowed| Err(CatalogueError::Value { name: self.name.clone(), value, allowed });
        let size = |value: Option<u64>| value.is_none_or(|value| (1..=LARGEST_TOKENS).contains(&value));
        if self.name.is_empty() {
            return refuse("name", "the name of a model or a part of it");
        }
        if !size(self.window) {
            return refuse("window", "between 1 and 100000000");
        }
        if !size(self.max_output)
            || self.window.zip(self.max_output).is_some_and(|(window, most)| most > window)
        {
            return refuse("max_output", "between 1 and the window");
        }
        if !size(self.cache_minimum) {
            return refuse("cache_minimum", "between 1 and 100000000");
        }
        let priced = self.rates.iter().flat_map(Rates::all).all(|price| (0.0..=DEAREST_USD).contains(&price));
        if !priced {
            return refuse("rates", "US dollars a million tokens, not negative");
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "user_models_tests.rs"]
mod tests;
