//! Decides from figures alone whether a compaction is due.
//!
//! Before a call, the decision uses the size of the whole pending request. After an answer, it uses the prompt as the provider counted it,
//! without the answer, which counts only in the next request. Settings that turn compaction off do so everywhere except for manual
//! compactions.
//!
//! Not for: whether an attempt is allowed now (see `guard`), and refused calls (see `recovery`).

use serde::{Deserialize, Serialize};
use throughline_store::Millis;

use crate::limits::in_force::ModelInForce;

/// What started a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The pending request is over the threshold.
    Preflight,
    /// The last measured prompt is over the threshold.
    Settle,
    /// A provider refused the prompt as too long.
    Overflow,
    /// The user requested it.
    Manual,
    /// The next model has a smaller window.
    ModelSwitch,
    /// The conversation was idle for so long that the provider's cache has expired.
    Idle,
    /// A conversation that was just opened is close to the end of the window.
    Hygiene,
    /// No compaction is due yet; a summary is prepared in advance.
    Ahead,
    /// A call was made after the provider's cache had expired.
    ColdCache,
}

impl Trigger {
    /// Whether the compaction is automatic and therefore has to pay for itself. One requested by the user or forced by a refused prompt
    /// does not.
    #[must_use]
    pub fn must_pay(self) -> bool {
        match self {
            Self::Preflight
            | Self::Settle
            | Self::ModelSwitch
            | Self::Idle
            | Self::Hygiene
            | Self::Ahead
            | Self::ColdCache => true,
            Self::Overflow | Self::Manual => false,
        }
    }

    /// Whether a call is waiting for the compaction.
    pub(crate) fn has_caller(self) -> bool {
        match self {
            Self::Preflight
            | Self::Settle
            | Self::Overflow
            | Self::ModelSwitch
            | Self::Hygiene
            | Self::ColdCache => true,
            Self::Manual | Self::Idle | Self::Ahead => false,
        }
    }

    /// Returns its name in the record and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Preflight => "preflight",
            Self::Settle => "settle",
            Self::Overflow => "overflow",
            Self::Manual => "manual",
            Self::ModelSwitch => "model_switch",
            Self::Idle => "idle",
            Self::Hygiene => "hygiene",
            Self::Ahead => "ahead",
            Self::ColdCache => "cold_cache",
        }
    }
}

/// Whether automatic compaction is on (`compression.enabled`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Automatic {
    /// Automatic compaction is on.
    On,
    /// Only the user starts compactions.
    Off,
}

/// The urgency of a compaction, which decides what may prevent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Urgency {
    /// It saves money and keeps the model's answers accurate; guards may postpone it.
    Due,
    /// It was postponed for too long, or the user requested it: guards do not apply.
    Overdue,
    /// Nothing can be sent without it.
    Must,
}

/// Whether to compact the conversation now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionVerdict {
    /// Do not compact.
    Stay(StayReason),
    /// Compact.
    Compact {
        /// The reason.
        trigger: Trigger,
        /// The urgency.
        urgency: Urgency,
    },
}

/// Why a conversation is not compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StayReason {
    /// Automatic compaction is turned off.
    TurnedOff,
    /// The prompt is below the threshold.
    RoomLeft,
    /// The provider's cache may still be valid: rewriting the prompt would cost more than it saves.
    CacheWarm,
}

/// The figures before a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreflightInput<'a> {
    /// Whether automatic compaction is on.
    pub automatic: Automatic,
    /// The engine's decision about the pending request.
    pub engine_wants: bool,
    /// The whole pending request: system prompt, tools and messages.
    pub pending_tokens: u64,
    /// Number of messages in it.
    pub messages: usize,
    /// The model and its limits.
    pub model: &'a ModelInForce,
    /// Whether the previous call used a model with a larger window.
    pub switch: ModelSwitch,
    /// Whether the conversation was just opened or resumed.
    pub since: CallSince,
}

/// Whether a call is the first since the conversation was opened or resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallSince {
    /// The first call: the hygiene limit applies to it.
    Opened,
    /// A later one.
    AnotherCall,
}

/// Whether the model changed since the last call to one with a smaller window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelSwitch {
    /// It did not, or the window is no smaller.
    No,
    /// The window is smaller.
    ToSmallerWindow,
}

/// A conversation with fewer messages is never compacted for hygiene: it is only head and tail.
const HYGIENE_LEAST_MESSAGES: usize = 4;
/// A summary is prepared from this percentage of the threshold on.
const PREPARE_FROM_PERCENT: u64 = 80;

/// Decides before a call.
#[must_use]
pub(crate) fn before_call(figures: &PreflightInput<'_>) -> CompactionVerdict {
    let limits = &figures.model.limits;
    if figures.automatic == Automatic::Off {
        return CompactionVerdict::Stay(StayReason::TurnedOff);
    }
    let just_opened = figures.since == CallSince::Opened && figures.messages >= HYGIENE_LEAST_MESSAGES;
    let urgency = if figures.pending_tokens > figures.model.hard_limit_tokens() {
        Urgency::Must
    } else if just_opened && figures.pending_tokens >= limits.hygiene_tokens {
        Urgency::Overdue
    } else if figures.engine_wants {
        Urgency::Due
    } else {
        return CompactionVerdict::Stay(StayReason::RoomLeft);
    };
    let trigger = match (figures.engine_wants, figures.switch) {
        (_, ModelSwitch::ToSmallerWindow) => Trigger::ModelSwitch,
        (true, ModelSwitch::No) => Trigger::Preflight,
        (false, ModelSwitch::No) => Trigger::Hygiene,
    };
    CompactionVerdict::Compact { trigger, urgency }
}

/// Decides after an answer, by the engine's decision about the measured prompt.
#[must_use]
pub(crate) fn after_answer(automatic: Automatic, engine_wants: bool) -> CompactionVerdict {
    match (automatic, engine_wants) {
        (Automatic::Off, _) => CompactionVerdict::Stay(StayReason::TurnedOff),
        (Automatic::On, false) => CompactionVerdict::Stay(StayReason::RoomLeft),
        (Automatic::On, true) => {
            CompactionVerdict::Compact { trigger: Trigger::Settle, urgency: Urgency::Due }
        }
    }
}

/// Whether a summary should be prepared in the background.
#[must_use]
pub(crate) fn near_threshold(automatic: Automatic, tokens: u64, threshold_tokens: u64) -> bool {
    automatic == Automatic::On
        && tokens.saturating_mul(100) >= threshold_tokens.saturating_mul(PREPARE_FROM_PERCENT)
}

/// A cancelled preparation is repeated once the prompt has grown by this percentage of the threshold. Between [`PREPARE_FROM_PERCENT`] and
/// the threshold that makes at most four, each for a longer conversation.
const PREPARE_AGAIN_PERCENT: u64 = 5;

/// Whether to prepare a summary again, after a preparation was cancelled at `cancelled_at` tokens.
#[must_use]
pub(crate) fn may_prepare_again(tokens: u64, cancelled_at: u64, threshold_tokens: u64) -> bool {
    let grown = tokens.saturating_sub(cancelled_at);
    grown.saturating_mul(100) >= threshold_tokens.saturating_mul(PREPARE_AGAIN_PERCENT)
}

/// The figures while a conversation is idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleInput {
    /// Whether automatic compaction is on.
    pub automatic: Automatic,
    /// Tokens of the prompt that the next call would send.
    pub tokens: u64,
    /// Tokens of system prompt and tools in it.
    pub fixed_tokens: u64,
    /// The size at which a compaction starts.
    pub threshold_tokens: u64,
    /// The size from which a compaction on a cold cache pays, if computed.
    pub cold_tokens: Option<u64>,
    /// The time of the last answer.
    pub last_call_ms: Millis,
    /// How long the provider caches a prompt.
    pub cache_ttl_ms: u64,
    /// The current time.
    pub now_ms: Millis,
}

/// An idle conversation is compacted from this percentage of the messages that the threshold allows. On a cold cache it saves money at any
/// size, but each one loses detail. Over the recorded sessions, at 50 % there are three times as many compactions as the client made
/// itself, at 75 % two and a half times; the bill is 85.7 and 87.4 % of the client's (`throughline replay`, the same cache lifetime on both
/// sides).
const IDLE_FROM_PERCENT: u64 = 75;

/// Decides while a conversation is idle: once the cache has expired, a new view loses nothing in it.
#[must_use]
pub(crate) fn while_idle(figures: &IdleInput) -> CompactionVerdict {
    if figures.automatic == Automatic::Off {
        return CompactionVerdict::Stay(StayReason::TurnedOff);
    }
    let messages = |tokens: u64| tokens.saturating_sub(figures.fixed_tokens);
    let has_room = match figures.cold_tokens {
        Some(cold_tokens) => figures.tokens < cold_tokens,
        None => {
            let from = messages(figures.threshold_tokens).saturating_mul(IDLE_FROM_PERCENT);
            messages(figures.tokens).saturating_mul(100) <= from
        }
    };
    if has_room {
        return CompactionVerdict::Stay(StayReason::RoomLeft);
    }
    if idle_for_ms(figures) < figures.cache_ttl_ms {
        return CompactionVerdict::Stay(StayReason::CacheWarm);
    }
    CompactionVerdict::Compact { trigger: Trigger::Idle, urgency: Urgency::Due }
}

/// Returns the time until [`while_idle`] should be called; `None` if time alone changes nothing.
#[must_use]
pub(crate) fn idle_in_ms(figures: &IdleInput) -> Option<u64> {
    match while_idle(figures) {
        CompactionVerdict::Stay(StayReason::CacheWarm) => {
            Some(figures.cache_ttl_ms.saturating_sub(idle_for_ms(figures)))
        }
        CompactionVerdict::Compact { .. } => Some(0),
        CompactionVerdict::Stay(_) => None,
    }
}

fn idle_for_ms(figures: &IdleInput) -> u64 {
    // If the clock was set back, no time counts as passed.
    u64::try_from(figures.now_ms.saturating_sub(figures.last_call_ms)).unwrap_or(0)
}

/// Whether the change from one model to another reduces the window.
#[must_use]
pub(crate) fn switch(old: &ModelInForce, new: &ModelInForce) -> ModelSwitch {
    if new.prompt_room_tokens() < old.prompt_room_tokens()
        || new.limits.threshold_tokens < old.limits.threshold_tokens
    {
        ModelSwitch::ToSmallerWindow
    } else {
        ModelSwitch::No
    }
}

#[cfg(test)]
#[path = "trigger_tests.rs"]
mod tests;
