//! Decides whether prompts are marked for caching and for how long they are cached, and describes it.
//!
//! Marks are for providers that cache only marked prompts. Others cache prefixes automatically and need only a stable prefix. Not for:
//! placing marks.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throughline_transcript::{ContentHash, WireFormat};

/// How long a cached prefix is kept after its last use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheTtl {
    /// Five minutes; writing costs a quarter more than plain input.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// An hour; writing costs twice as much as plain input.
    #[serde(rename = "1h")]
    OneHour,
}

impl CacheTtl {
    /// Parses the value used in configuration.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word.trim() {
            "5m" => Some(Self::FiveMinutes),
            "1h" => Some(Self::OneHour),
            _ => None,
        }
    }

    /// Returns the value used in configuration and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FiveMinutes => "5m",
            Self::OneHour => "1h",
        }
    }

    /// Returns the duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        match self {
            Self::FiveMinutes => Duration::from_secs(300),
            Self::OneHour => Duration::from_secs(3_600),
        }
    }

    /// Returns the mark. Without a lifetime, providers assume five minutes.
    pub(crate) fn marker(self) -> &'static str {
        match self {
            Self::FiveMinutes => r#"{"type":"ephemeral"}"#,
            Self::OneHour => r#"{"type":"ephemeral","ttl":"1h"}"#,
        }
    }
}

impl fmt::Display for CacheTtl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The sellers whose caches differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheSeller {
    /// Anthropic.
    Anthropic,
    /// OpenRouter.
    OpenRouter,
    /// OpenAI, by key or by subscription.
    OpenAi,
    /// Any other seller.
    Other,
}

/// Where a wire format accepts marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkLayout {
    /// On the blocks of Anthropic messages.
    Anthropic,
    /// On the text parts of chat messages, which OpenRouter passes on.
    ChatParts,
}

/// How prompts are cached at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePolicy {
    /// With our marks.
    Marks {
        /// Where the marks are placed.
        layout: MarkLayout,
        /// The lifetime.
        ttl: CacheTtl,
        /// The seller of the model.
        seller: CacheSeller,
    },
    /// The provider finds prefixes itself; a key routes all calls of a conversation to the same machine.
    Key,
    /// Up to the provider, without marks or a key.
    Unmarked,
}

impl CachePolicy {
    /// The policy for a model at an endpoint.
    ///
    /// ```
    /// use throughline_provider::{CachePolicy, CacheSeller, CacheTtl};
    /// use throughline_transcript::WireFormat;
    ///
    /// let policy = CachePolicy::of(CacheSeller::OpenAi, WireFormat::Chat, "gpt-5", CacheTtl::FiveMinutes);
    /// assert_eq!(policy, CachePolicy::Key);
    /// ```
    #[must_use]
    pub fn of(seller: CacheSeller, wire_format: WireFormat, model: &str, ttl: CacheTtl) -> Self {
        let marks = |layout| Self::Marks { layout, ttl, seller };
        match (seller, wire_format) {
            (CacheSeller::Anthropic, WireFormat::Anthropic) => marks(MarkLayout::Anthropic),
            (_, WireFormat::Anthropic) if is_claude(model) => marks(MarkLayout::Anthropic),
            (CacheSeller::OpenRouter, WireFormat::Chat) if is_claude(model) => marks(MarkLayout::ChatParts),
            (CacheSeller::OpenAi, WireFormat::Chat | WireFormat::Responses) => Self::Key,
            _ => Self::Unmarked,
        }
    }
}

/// The line shown at startup.
impl fmt::Display for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Marks { ttl, seller, .. } => {
                let who = match seller {
                    CacheSeller::Anthropic => "Claude via Anthropic",
                    CacheSeller::OpenRouter => "Claude via OpenRouter",
                    CacheSeller::OpenAi | CacheSeller::Other => "Claude via an Anthropic-compatible endpoint",
                };
                write!(f, "Prompt caching: ENABLED ({who}, {ttl} TTL)")
            }
            Self::Key => f.write_str("Prompt caching: automatic (OpenAI, by prefix and key)"),
            Self::Unmarked => f.write_str("Prompt caching: left to the provider"),
        }
    }
}

/// Whether a name is one of Claude's, with any seller's prefix.
fn is_claude(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    name.split(['/', '.', ':', '@', '-', '_']).any(|word| word == "claude")
}

impl CachePolicy {
    /// Returns a key that is equal for every call of a conversation and reveals nothing about it. OpenAI routes calls with equal keys to
    /// the same machine, whose cache has the prefix.
    #[must_use]
    pub fn prompt_cache_key(conversation: &str) -> String {
        let hash = ContentHash::of(conversation).to_string();
        format!("throughline-{}", &hash[..32])
    }
}

#[cfg(test)]
#[path = "cache_policy_tests.rs"]
mod tests;
