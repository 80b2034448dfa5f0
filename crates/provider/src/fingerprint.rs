//! What was sent, as hashes: enough to say later what changed, small enough to keep with a session.
//!
//! Marks are left out, so that a mark that moved is no change. Not for: telling two prompts apart for certain; a hash of
//! 32 bits an item is made for saying where two prompts part, not for security.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use throughline_transcript::{ContentHash, Message};
use throughline_wire::Request;

use crate::cache_marks::CacheMarks;

/// Parameters that are part of what providers cache by, or decide which cache is asked. Others (temperature, caps,
/// streaming) may differ from call to call.
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
    /// Hashes a piece of JSON without its marks. Callers that keep messages keep this with them.
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

/// What a prompt consisted of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The model.
    pub model: PieceHash,
    /// Tool definitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<PieceHash>,
    /// The system prompt, where it stands outside the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<PieceHash>,
    /// How many messages at the beginning of the list are a system prompt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub leading_instructions: usize,
    /// Parameters that matter to the cache.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, PieceHash>,
    /// Messages in their order.
    #[serde(with = "row")]
    pub items: Vec<PieceHash>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Fingerprint {
    /// Of a request that is sent with these messages, whose hashes the caller keeps.
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

/// A row of hashes as one string: a list of ten thousand stays readable by any tool and small.
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
