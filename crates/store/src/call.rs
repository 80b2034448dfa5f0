//! Calls: one row for every request to a model, for any purpose.

use throughline_tokens::Usage;

use crate::ids::{Millis, SessionId};

/// The id of a preamble: the parts of a request before the messages. It is a hash of the content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct PreambleId(pub String);

/// System prompt, tools and the parameters that affect caching, as raw JSON, as sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredPreamble {
    /// The system prompt or instructions.
    pub system: Option<String>,
    /// Tool definitions.
    pub tools: Option<String>,
    /// A JSON object of parameters.
    pub parameters: Option<String>,
}

impl StoredPreamble {
    /// Returns its id: a hash of all parts, with their borders and absent ones marked.
    #[must_use]
    pub fn id(&self) -> PreambleId {
        let mut hasher = blake3::Hasher::new();
        for part in [&self.system, &self.tools, &self.parameters] {
            let length = part.as_ref().map_or(u64::MAX, |part| part.len() as u64);
            hasher.update(&length.to_le_bytes());
            hasher.update(part.as_deref().unwrap_or_default().as_bytes());
        }
        PreambleId(hasher.finalize().to_hex().as_str()[..32].to_owned())
    }
}

/// Whether the tokens of a call are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageKind {
    /// The provider reported them.
    #[default]
    Measured,
    /// The provider reported none; they are estimated.
    Estimated,
}

/// A call to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewCall {
    /// The call's id at its source (a request id, a log's message id); a second call with the same key in the same session is not recorded
    /// again.
    pub key: Option<String>,
    /// The model that answered.
    pub model: String,
    /// The provider.
    pub provider: String,
    /// The task: `chat`, `compression`, `title`, ...
    pub task: String,
    /// Tokens by bucket.
    pub usage: Usage,
    /// Whether they are measured.
    pub usage_kind: UsageKind,
    /// The usage object as the provider sent it.
    pub usage_raw: Option<String>,
    /// Cost in millionths of a dollar; `None` when a bucket has no price.
    pub cost_micro_usd: Option<u64>,
    /// What the same tokens would have cost without a cache.
    pub uncached_micro_usd: Option<u64>,
    /// When it started.
    pub at_ms: Millis,
    /// Its duration.
    pub latency_ms: Option<u64>,
    /// Time until the first token.
    pub first_token_ms: Option<u64>,
    /// The error, if it failed.
    pub error: Option<String>,
    /// The preamble that was sent.
    pub preamble: Option<PreambleId>,
    /// The position in the session up to which its view was sent.
    pub sent_to_seq: Option<u64>,
    /// Why the cache was not read, if known.
    pub cache_miss: Option<String>,
    /// The name of the request's access token, at a gateway that requires one.
    pub access_token: Option<String>,
}

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCall {
    /// Its position in the order of calls.
    pub id: u64,
    /// The session whose view was sent.
    pub session: SessionId,
    /// The call.
    pub call: NewCall,
}

/// The grouping of totals of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageBy {
    /// One total.
    Everything,
    /// The day, in UTC shifted by an offset.
    Day {
        /// Minutes east of UTC.
        offset_minutes: i32,
    },
    /// The model.
    Model,
    /// The project of the session.
    Project,
    /// The task of the call.
    Task,
    /// The program the session comes from.
    Program,
    /// Why the provider's cache was not read, without figures that differ between calls; empty if it was read, or if unknown.
    CacheMiss,
    /// The name of the access token; empty if none was required.
    AccessToken,
}

/// The beginnings or parts of recorded descriptions of cache misses, and the reason under which each is counted. A description that matches
/// none of these is a reason of its own.
pub(crate) const MISS_REASONS: [(&str, &str); 10] = [
    ("first call", "first call"),
    ("another model", "another model"),
    ("the tools changed", "tools changed"),
    ("the system prompt changed", "system prompt changed"),
    ("parameters changed", "parameters changed"),
    ("messages changed", "messages changed"),
    ("the call before had no cache marks", "no cache markers before"),
    ("expired after", "expired"),
    ("tokens are below the minimum", "below the minimum"),
    ("nothing changed", "dropped by the provider"),
];

/// Returns the reason under which a recorded description of a cache miss is counted.
pub(crate) fn miss_reason(words: &str) -> &str {
    MISS_REASONS.iter().find(|(part, _)| words.contains(part)).map_or(words, |(_, reason)| reason)
}

impl UsageBy {
    /// Returns the day of a time as text, in the timezone with this offset in minutes.
    pub(crate) fn day_name(at_ms: Millis, offset_minutes: i32) -> String {
        let shifted = at_ms.saturating_add(i64::from(offset_minutes) * 60_000);
        let day = jiff::Timestamp::from_millisecond(shifted).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        day.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
    }
}

/// A filter of calls. The default accepts all of them.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// Only those of this chain of sessions.
    pub chain_of: Option<SessionId>,
    /// Only those at or after this time.
    pub since_ms: Option<Millis>,
    /// Only those before this time.
    pub until_ms: Option<Millis>,
}

/// The totals of a group of calls.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct UsageTotal {
    /// The common value of the calls: a day (`2026-11-15`), a model, ...; empty for one total.
    pub group: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of failed calls.
    pub failed: u64,
    /// Number of calls with estimated usage.
    pub estimated: u64,
    /// Tokens by bucket.
    pub usage: Usage,
    /// Cost of those with a price.
    pub cost_micro_usd: u64,
    /// Number of calls without a price.
    pub unpriced: u64,
    /// What the calls with a price would have cost without a cache.
    pub uncached_micro_usd: u64,
    /// The total latency.
    pub latency_ms: u64,
    /// Number of sessions.
    pub sessions: u64,
}

impl UsageTotal {
    /// Returns the prompt tokens that were not read from a cache.
    #[must_use]
    pub fn unread_tokens(&self) -> u64 {
        self.usage.input.saturating_add(self.usage.cache_write)
    }
}

/// How often a tool was called.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ToolCount {
    /// The tool.
    pub tool: String,
    /// Messages that call it or contain its results.
    pub messages: u64,
    /// Their tokens.
    pub tokens: u64,
}
