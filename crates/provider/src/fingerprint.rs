//! Hashes of a sent prompt: enough to find later what changed, small enough to store with a session.
//!
//! Marks are left out, so a moved mark is not a change. Not for: deciding for certain whether two prompts are equal; 32 bits per item serve
//! to find where two prompts differ, not for security.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use throughline_transcript::{ContentHash, Message};
use throughline_wire::Request;

use crate::cache_marks::CacheMarks;

/// Parameters that are part of the cache key, or that route a request to a cache. Others (temperature, output limits, streaming) may differ
/// between calls.
const CACHED_BY: [&str; 13] = [
    "tool_choice",
    "parallel_tool_calls",
    "thinking",
    "reasoning",
    "reasoning_effort",
    "response_format",
    "text",
    "output_config",
    "context_management",
    "web_search_options",
    "prompt_cache_key",
    "service_tier",
    "speed",
];

/// The hash of one piece of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PieceHash(u32);

impl PieceHash {
    /// Hashes a piece of JSON without its marks. Callers store the result with each message.
    #[must_use]
    pub fn of(json: &str) -> Self {
        let hash = ContentHash::of(&CacheMarks::removed_from(json)).0;
        Self(u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]))
    }
}

impl Serialize for PieceHash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:08x}", self.0))
    }
}

impl<'de> Deserialize<'de> for PieceHash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        parse_hash(&text).ok_or_else(|| serde::de::Error::custom("a hash is eight hexadecimal digits"))
    }
}

fn parse_hash(text: &str) -> Option<PieceHash> {
    (text.len() == 8).then(|| u32::from_str_radix(text, 16).ok().map(PieceHash)).flatten()
}

/// The hashes of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The model.
    pub model: PieceHash,
    /// Tool definitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<PieceHash>,
    /// The system prompt, if it is outside the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<PieceHash>,
    /// Number of messages at the beginning of the list that are a system prompt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub leading_instructions: usize,
    /// The parameters that affect the cache.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, PieceHash>,
    /// The messages, in order.
    #[serde(with = "row")]
    pub items: Vec<PieceHash>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Fingerprint {
    /// Creates the fingerprint of a request with these messages, whose hashes the caller has stored.
    #[must_use]
    pub fn of(request: &Request, messages: &[Message], items: Vec<PieceHash>) -> Self {
        let leading = messages.iter().take_while(|message| message.role().is_instructions()).count();
        let parameters = request
            .members()
            .filter(|(name, value)| CACHED_BY.contains(name) && value.0 != "null")
            .map(|(name, value)| (name.to_owned(), PieceHash::of(value.0)));
        Self {
            model: PieceHash::of(&request.model().unwrap_or_default()),
            tools: request.tools().map(|tools| PieceHash::of(tools.0)),
            system: request.system().map(|system| PieceHash::of(system.0)),
            leading_instructions: leading,
            parameters: parameters.collect(),
            items,
        }
    }
}

/// Serialises a row of hashes as one string, so that a list of ten thousand stays small and readable.
mod row {
    use std::fmt::Write as _;

    use super::{Deserialize, Deserializer, PieceHash, Serializer, parse_hash};

    pub(super) fn serialize<S: Serializer>(items: &[PieceHash], to: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(items.len() * 8);
        for item in items {
            let _ = write!(text, "{:08x}", item.0);
        }
        to.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PieceHash>, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        let pieces =
            text.as_bytes().chunks(8).map(|piece| std::str::from_utf8(piece).ok().and_then(parse_hash));
        let items: Option<Vec<PieceHash>> = pieces.collect();
        items.ok_or_else(|| serde::de::Error::custom("items are hashes of eight hexadecimal digits each"))
    }
}
