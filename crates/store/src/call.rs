//! Calls: one row for every request to a model, of whatever kind.

use throughline_tokens::Usage;

use crate::ids::{Millis, SessionId};

/// What stands before the messages of a request, found by its own hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct PreambleId(pub String);

/// System prompt, tools and the parameters that matter to a cache, as raw JSON, as sent.
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
    /// The name it is found by: a hash of all its parts, with their borders and with absent ones marked.
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

/// How the tokens of a call are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageKind {
    /// The provider said so.
    #[default]
    Measured,
    /// The provider said nothing; counted by us.
    Estimated,
}

/// A call to be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewCall {
    /// What identifies the call to its source (a request id, a log's message id); a second call of the same key in the
    /// same session is not recorded again.
    pub key: Option<String>,
    /// The model that answered.
    pub model: String,
    /// Who was asked.
    pub provider: String,
    /// What for: `chat`, `compression`, `title`, ...
    pub task: String,
    /// Tokens by bucket.
    pub usage: Usage,
    /// How they are known.
    pub usage_kind: UsageKind,
    /// The usage object as the provider sent it.
    pub usage_raw: Option<String>,
    /// Cost in millionths of a dollar; `None` when a bucket has no price.
    pub cost_micro_usd: Option<u64>,
    /// What the same tokens would have cost without a cache.
    pub uncached_micro_usd: Option<u64>,
    /// When it began.
    pub at_ms: Millis,
    /// How long it took.
    pub latency_ms: Option<u64>,
    /// How long until the first token.
    pub first_token_ms: Option<u64>,
    /// What went wrong.
    pub error: Option<String>,
    /// The preamble that was sent.
    pub preamble: Option<PreambleId>,
    /// The place in the session up to which its view was sent.
    pub sent_to_seq: Option<u64>,
    /// Why the cache was not read, where that is known.
    pub cache_miss: Option<String>,
    /// The name of the access token of the request, at a gateway that requires one.
    pub access_token: Option<String>,
}

/// A call as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCall {
    /// Its place in the order of calls.
    pub id: u64,
    /// The session it was made for, whose view was sent.
    pub session: SessionId,
    /// Everything else.
    pub call: NewCall,
}

/// What to add calls up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageBy {
    /// One total.
    Everything,
    /// The day, in UTC shifted by so many minutes.
    Day {
        /// Minutes east of UTC.
        offset_minutes: i32,
    },
    /// The model.
    Model,
    /// The project of the session.
    Project,
    /// What the call was for.
    Task,
    /// The program the session comes from.
    Program,
    /// Why the provider's cache was not read, without figures that differ from call to call; empty where it was read, or
    /// where unknown.
    CacheMiss,
    /// The name of the access token it was made for; empty where none was demanded.
    AccessToken,
}

/// How the recorded words for a cache miss begin or what they hold, and the reason they are counted under. Words that none of
/// these fits are a reason of their own.
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

/// The reason that the recorded words for a cache miss are counted under.
pub(crate) fn miss_reason(words: &str) -> &str {
    MISS_REASONS.iter().find(|(part, _)| words.contains(part)).map_or(words, |(_, reason)| reason)
}

impl UsageBy {
    /// The name of the day a time falls on, for a clock so many minutes east of UTC.
    pub(crate) fn day_name(at_ms: Millis, offset_minutes: i32) -> String {
        let shifted = at_ms.saturating_add(i64::from(offset_minutes) * 60_000);
        let day = jiff::Timestamp::from_millisecond(shifted).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        day.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
    }
}

/// Which calls to add up. The default is all of them.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// Only those of this chain of sessions.
    pub chain_of: Option<SessionId>,
    /// Only those at or after this time.
    pub since_ms: Option<Millis>,
    /// Only those before this time.
    pub until_ms: Option<Millis>,
}

/// Totals of a group of calls.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct UsageTotal {
    /// What the calls have in common: a day (`2026-11-15`), a model, ...; empty for everything.
    pub group: String,
    /// How many.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How many had to be estimated.
    pub estimated: u64,
    /// Tokens by bucket.
    pub usage: Usage,
    /// Cost of those with a price.
    pub cost_micro_usd: u64,
    /// How many have no price.
    pub unpriced: u64,
    /// What the calls with a price would have cost without a cache.
    pub uncached_micro_usd: u64,
    /// Time spent waiting.
    pub latency_ms: u64,
    /// Sessions they were made for.
    pub sessions: u64,
}

impl UsageTotal {
    /// Tokens of the prompts that were not read from a cache.
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
    /// Messages that call it or hold its results.
    pub messages: u64,
    /// Their tokens.
    pub tokens: u64,
}
