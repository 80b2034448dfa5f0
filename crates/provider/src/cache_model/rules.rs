//! The caching rules of providers.

use std::time::Duration;

use throughline_tokens::{Catalogue, PriceBasis, PricedCall, Usage};

use crate::cache_policy::CachePolicy;

/// How a provider caches prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheStyle {
    /// Only marked prefixes, as Anthropic does: an entry at each mark, found from a few blocks further on, for five minutes or an hour.
    Marks,
    /// Any prefix, as OpenAI does: in steps, from a minimum size on, by model and `prompt_cache_key`.
    Automatic {
        /// How long an entry lives after its last use.
        lifetime: Duration,
        /// Whether writing costs extra.
        writes: CacheWrites,
    },
    /// No caching.
    None,
}

/// Whether writing to a cache without marks costs extra.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheWrites {
    /// For models with a price for it.
    AsPriced,
    /// Writing to the cache costs nothing extra.
    Free,
}

impl CacheStyle {
    /// The cache without marks, with the guaranteed minimum lifetime.
    pub const AUTOMATIC: Self =
        Self::Automatic { lifetime: Duration::from_secs(300), writes: CacheWrites::AsPriced };

    /// Returns the style of an endpoint for prompts sent under this policy.
    #[must_use]
    pub fn of(policy: CachePolicy) -> Self {
        match policy {
            CachePolicy::Marks { .. } => Self::Marks,
            CachePolicy::Key | CachePolicy::Unmarked => Self::AUTOMATIC,
        }
    }
}

impl CacheWrites {
    /// Whether writes are charged for a model.
    pub(super) fn charged_for(self, catalogue: &Catalogue, model: &str, at_ms: i64) -> bool {
        let usage = Usage { cache_write: 1, ..Usage::default() };
        let call = PricedCall { model, provider: "", at_ms, usage, cache_write_1h: 0 };
        let is_priced = || {
            let basis = catalogue.cost(&call).basis;
            matches!(basis, PriceBasis::List(_) | PriceBasis::OwnFile)
        };
        self == Self::AsPriced && is_priced()
    }
}
