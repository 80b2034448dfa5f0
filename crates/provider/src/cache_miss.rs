//! Finds why a prompt was not read from the provider's cache, by comparing what was sent before with what is sent now.
//!
//! Only tokens that were read count as a hit, not those written. Changes are searched in the order in which providers cache (model, tools,
//! system, parameters, messages), because the first change invalidates everything after it. Not for: undoing the change.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throughline_tokens::Usage;

use crate::fingerprint::Fingerprint;

/// A prompt that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentPrompt {
    /// A hash per part of the prompt.
    pub fingerprint: Fingerprint,
    /// The time of sending, in milliseconds since 1970.
    pub sent_at_ms: i64,
    /// The size of the prompt as the provider counted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Whether the provider caches it, on request or automatically.
    #[serde(default = "usually")]
    pub is_cached: bool,
}

fn usually() -> bool {
    true
}

/// The behaviour of a provider's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRules {
    /// How long an entry lives after its last use, if known.
    pub lifetime: Option<Duration>,
    /// Prompts below this many tokens are not cached.
    pub minimum_tokens: Option<u64>,
}

/// The result of a call with regard to the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CacheOutcome {
    /// The earlier prompt was read from the cache.
    Hit,
    /// The provider does not report cache use.
    NotReported,
    /// It is the first call.
    FirstCall,
    /// The model changed; each has its own cache.
    ModelChanged,
    /// The tools changed, which precede everything else.
    ToolsChanged,
    /// The system prompt changed.
    SystemChanged,
    /// Parameters changed that are part of the cache key.
    ParametersChanged {
        /// The names of the parameters.
        names: Vec<String>,
    },
    /// The messages changed, from this one on.
    MessagesChanged {
        /// Position in the list, from zero.
        item: usize,
    },
    /// The previous call had no cache marks, so it was not cached.
    NotMarked,
    /// Nothing changed, but the entry had expired.
    Expired {
        /// Seconds since the previous call.
        idle_secs: u64,
    },
    /// The prompt or the previous one is too small to be cached.
    BelowMinimum {
        /// The size of that prompt.
        prompt_tokens: u64,
        /// The size of the smallest cached prompt.
        minimum_tokens: u64,
    },
    /// Nothing changed, but the entry was missing: the provider dropped it, or another of its machines answered.
    Unexplained,
}

impl CacheOutcome {
    /// Compares a call with the previous one. `usage` is `None` if the provider did not report on its cache.
    #[must_use]
    pub fn of_call(
        before: Option<&SentPrompt>,
        now: &SentPrompt,
        usage: Option<&Usage>,
        rules: CacheRules,
    ) -> CacheOutcome {
        let Some(usage) = usage else { return CacheOutcome::NotReported };
        let prompt = now.prompt_tokens.unwrap_or_else(|| usage.prompt());
        let below = rules.minimum_tokens.filter(|minimum| usage.cache_read == 0 && prompt < *minimum);
        if let Some(minimum_tokens) = below {
            return CacheOutcome::BelowMinimum { prompt_tokens: prompt, minimum_tokens };
        }
        let Some(before) = before else {
            // Another conversation may have cached the same beginning.
            return if usage.cache_read > 0 { CacheOutcome::Hit } else { CacheOutcome::FirstCall };
        };
        if !before.is_cached && usage.cache_read == 0 {
            return CacheOutcome::NotMarked;
        }
        let readable = before.prompt_tokens.unwrap_or(prompt).min(prompt);
        let change = first_change(&before.fingerprint, &now.fingerprint);
        // If nothing changed, reading at least half is a hit; less may be a shared beginning. If something changed, reading at least nine
        // tenths is a hit: the change cost almost nothing.
        let (parts, of) = if change.is_some() { (9, 10) } else { (1, 2) };
        if usage.cache_read > 0 && usage.cache_read.saturating_mul(of) >= readable.saturating_mul(parts) {
            return CacheOutcome::Hit;
        }
        if let Some(change) = change {
            return change;
        }
        // A prompt too small to be cached cannot be read.
        let small = rules.minimum_tokens.zip(before.prompt_tokens).filter(|(minimum, sent)| sent < minimum);
        if let Some((minimum_tokens, prompt_tokens)) = small {
            return CacheOutcome::BelowMinimum { prompt_tokens, minimum_tokens };
        }
        let idle_ms = now.sent_at_ms.saturating_sub(before.sent_at_ms).max(0).unsigned_abs();
        let expired = rules.lifetime.is_some_and(|lifetime| Duration::from_millis(idle_ms) > lifetime);
        if expired { CacheOutcome::Expired { idle_secs: idle_ms / 1_000 } } else { CacheOutcome::Unexplained }
    }
}

/// Returns the first difference, in the order in which providers cache.
fn first_change(before: &Fingerprint, now: &Fingerprint) -> Option<CacheOutcome> {
    if before.model != now.model {
        return Some(CacheOutcome::ModelChanged);
    }
    if before.tools != now.tools {
        return Some(CacheOutcome::ToolsChanged);
    }
    let item = before.items.iter().zip(&now.items).position(|(before, now)| before != now);
    let leading = before.leading_instructions.max(now.leading_instructions);
    let in_leading = item.is_some_and(|item| item < leading);
    if before.system != now.system || in_leading {
        return Some(CacheOutcome::SystemChanged);
    }
    let all = before.parameters.keys().chain(now.parameters.keys());
    let mut names: Vec<String> =
        all.filter(|name| before.parameters.get(*name) != now.parameters.get(*name)).cloned().collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        return Some(CacheOutcome::ParametersChanged { names });
    }
    item.map(|item| CacheOutcome::MessagesChanged { item })
}

impl fmt::Display for CacheOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hit => f.write_str("read from the cache"),
            Self::NotReported => f.write_str("the provider does not say"),
            Self::FirstCall => f.write_str("first call"),
            Self::ModelChanged => f.write_str("another model"),
            Self::ToolsChanged => f.write_str("the tools changed"),
            Self::SystemChanged => f.write_str("the system prompt changed"),
            Self::ParametersChanged { names } => write!(f, "parameters changed: {}", names.join(", ")),
            Self::MessagesChanged { item } => write!(f, "messages changed from item {item} on"),
            Self::NotMarked => f.write_str("the call before had no cache marks"),
            Self::Expired { idle_secs } => write!(f, "expired after {idle_secs} s"),
            Self::BelowMinimum { prompt_tokens, minimum_tokens } => {
                write!(f, "{prompt_tokens} tokens are below the minimum of {minimum_tokens}")
            }
            Self::Unexplained => f.write_str("nothing changed, dropped by the provider"),
        }
    }
}

impl CacheOutcome {
    /// Whether a usage report contains cache figures.
    #[must_use]
    pub fn is_reported_in(usage_json: &str) -> bool {
        const NAMES: [&str; 6] = [
            "\"cached_tokens\"",
            "\"cache_read_input_tokens\"",
            "\"cache_creation_input_tokens\"",
            "\"cached_input_tokens\"",
            "\"prompt_cache_hit_tokens\"",
            "\"cache_write_tokens\"",
        ];
        NAMES.iter().any(|name| usage_json.contains(name))
    }
}

#[cfg(test)]
#[path = "cache_miss_tests.rs"]
mod tests;
