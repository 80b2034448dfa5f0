//! Decides from figures alone whether a compaction is due.
//!
//! Before a call, the size of the whole pending request counts. After an answer, the prompt as the provider counted it does;
//! the answer itself counts only with the next request. Settings that turn compaction off do so everywhere except for manual
//! compactions.
//!
//! Not for: whether an attempt is allowed now (see `guard`), and refused calls (see `recovery`).

use serde::{Deserialize, Serialize};
use throughline_store::Millis;

use crate::limits::in_force::ModelInForce;

/// What brought a compaction about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The pending request is over the threshold.
    Preflight,
    /// The last measured prompt is over the threshold.
    Settle,
    /// A provider refused the prompt as too long.
    Overflow,
    /// A person asked for it.
    Manual,
    /// A model with a smaller window takes over.
    ModelSwitch,
    /// Nothing was said for so long that the provider's cache is cold anyway.
    Idle,
    /// A conversation that was just opened is close to the end of the window.
    Hygiene,
    /// Nothing is due: a summary is prepared for when it will be.
    Ahead,
    /// A call comes after the provider's cache has expired.
    ColdCache,
}

impl Trigger {
    /// Whether it comes about by itself, so that the compaction has to pay for itself. A person's wish and a prompt that
    /// was refused do not.
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

    /// Whether a call waits for it.
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

    /// Its name in the record and in reports.
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

/// Whether compaction happens on its own (`compression.enabled`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Automatic {
    /// It does.
    On,
    /// Only when a person asks for it.
    Off,
}

/// How much a compaction matters, which decides what may stand in its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Urgency {
    /// It saves money and keeps the model sharp; guards may put it off.
    Due,
    /// It was put off for too long, or a person wants it: guards no longer count.
    Overdue,
    /// Without it nothing can be sent.
    Must,
}

/// Whether the conversation shall be compacted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionVerdict {
    /// It stays as it is.
    Stay(StayReason),
    /// It shall be compacted.
    Compact {
        /// Because of this.
        trigger: Trigger,
        /// And it matters so much.
        urgency: Urgency,
    },
}

/// Why a conversation stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StayReason {
    /// Automatic compaction is turned off.
    TurnedOff,
    /// There is room.
    RoomLeft,
    /// The provider's cache may still be warm: rewriting the prompt would cost more than it saves.
    CacheWarm,
}

/// Figures before a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreflightInput<'a> {
    /// Whether compaction happens on its own.
    pub automatic: Automatic,
    /// What the engine said about the pending request.
    pub engine_wants: bool,
    /// The whole pending request: system prompt, tools and messages.
    pub pending_tokens: u64,
    /// Messages in it.
    pub messages: usize,
    /// The model and its limits.
    pub model: &'a ModelInForce,
    /// Whether a larger model had the conversation before.
    pub switch: ModelSwitch,
    /// Whether the conversation was just opened or resumed.
    pub since: CallSince,
}

/// Which call it is since the conversation was opened or resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallSince {
    /// The first: the last net before the window is full holds for it.
    Opened,
    /// A later one.
    AnotherCall,
}

/// Whether the model changed since the last call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelSwitch {
    /// It did not, or its window is no smaller.
    No,
    /// Its window is smaller.
    ToSmallerWindow,
}

/// Fewer messages are never compacted for hygiene: they are head and tail.
const HYGIENE_LEAST_MESSAGES: usize = 4;
/// From this share of the threshold on, a summary is prepared.
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

/// Decides after an answer, by what the engine said about the measured prompt.
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

/// A preparation that was cancelled is begun again once the prompt has grown by this share of the threshold. Between
/// [`PREPARE_FROM_PERCENT`] and the threshold that makes four at most, each about a longer conversation.
const PREPARE_AGAIN_PERCENT: u64 = 5;

/// Whether a summary is prepared again after a preparation was cancelled when the prompt had `cancelled_at` tokens.
#[must_use]
pub(crate) fn may_prepare_again(tokens: u64, cancelled_at: u64, threshold_tokens: u64) -> bool {
    let grown = tokens.saturating_sub(cancelled_at);
    grown.saturating_mul(100) >= threshold_tokens.saturating_mul(PREPARE_AGAIN_PERCENT)
}

/// Figures while nothing happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleInput {
    /// Whether compaction happens on its own.
    pub automatic: Automatic,
    /// The prompt as the next call would send it.
    pub tokens: u64,
    /// System prompt and tools in it.
    pub fixed_tokens: u64,
    /// Where a compaction starts.
    pub threshold_tokens: u64,
    /// From how many tokens on a compaction pays on a cold cache, where that was worked out.
    pub cold_tokens: Option<u64>,
    /// When the last call was answered.
    pub last_call_ms: Millis,
    /// How long the provider keeps a prompt.
    pub cache_ttl_ms: u64,
    /// The current time.
    pub now_ms: Millis,
}

/// While nothing happens, a compaction is worth while from this share of the messages that the threshold allows. On a cold
/// cache it saves money at any size, but each one costs memory. Over the recorded sessions, at 50 % there are three times
/// as many compactions as the client made itself, at 75 % two and a half times; the bill is 85.7 and 87.4 % of the
/// client's (`throughline replay`, the same cache lifetime on both sides).
const IDLE_FROM_PERCENT: u64 = 75;

/// Decides while nothing happens: a cold cache makes a new view cost nothing that is not lost already.
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

/// How long until [`while_idle`] should be asked; `None` when time alone will not make a difference.
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
    // A clock that was set back means nothing has passed.
    u64::try_from(figures.now_ms.saturating_sub(figures.last_call_ms)).unwrap_or(0)
}

/// Whether one model taking over from another leaves less room.
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
