//! Decides what to do after a failed call: one pure step at a time, from the error and the steps tried so far.
//!
//! A prompt that is too long is compacted; a window is learnt only if the provider stated one. An output limit that is too large is lowered
//! for this call, without changing prompt or window. If the request has too many bytes, old images are removed first. Temporary errors are
//! waited for. Before giving up, another model is called if the request fits it. Every loop ends, because compactions, lowered limits,
//! waits and models are counted.
//!
//! Not for: carrying out a step.

use std::fmt;

use serde::{Deserialize, Serialize};
use throughline_provider::{ConnectStage, ProviderError, ProviderErrorKind, Refusal, Retry};
use throughline_tokens::Limits;

use crate::decide::trigger::Automatic;

pub use crate::decide::recovery_action::RecoveryAction;

/// Limit of waits for one call.
const MOST_WAITS: u32 = 3;
/// Limit of waits after provider timeouts: each attempt may be billed.
const MOST_WAITS_AFTER_TIMEOUT: u32 = 1;
/// Wait at most this long; a provider that requests a longer wait is not waited for.
const LONGEST_WAIT_MS: u64 = 60_000;
/// The first wait if the provider states none; each further one is twice as long.
const FIRST_WAIT_MS: u64 = 1_000;
/// Limit of output limits tried for one call.
const MOST_CAPS: u32 = 3;
/// Reserved besides prompt and answer if both are known, for tokens that a provider adds.
const CAP_MARGIN_TOKENS: u64 = 64;
/// The same if the prompt is only estimated, as a percentage of the window.
const ESTIMATE_MARGIN_PERCENT: u64 = 2;
/// The smallest output limit worth a call if the account cannot pay for more.
const LEAST_AFFORDABLE_TOKENS: u64 = 256;
/// If no byte limit is stated, the next request has this percentage of the last one's bytes.
const UNSTATED_BYTES_PERCENT: u64 = 75;
/// Percentage of a limit to aim at, because sizes after a compaction are estimates.
const AIM_PERCENT: u64 = 90;
/// A stated window smaller than this is taken for a misreading.
pub(crate) const SMALLEST_BELIEVABLE_WINDOW: u64 = 512;

/// The figures of the failed call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailureContext<'a> {
    /// Whether automatic compaction is on.
    pub automatic: Automatic,
    /// Who waits if a provider is busy.
    pub waiting: WaitPolicy,
    /// The model's window, as far as known.
    pub window_tokens: u64,
    /// The size of the sent prompt, with the best known figures.
    pub prompt_tokens: u64,
    /// The size of the sent body.
    pub body_bytes: u64,
    /// Bytes saved by replacing older images with labels.
    pub old_image_bytes: u64,
    /// The output limit in the request.
    pub output_cap_tokens: Option<u64>,
    /// Whether any part of the answer has been passed on.
    pub answer: PartialAnswer,
    /// Models not called yet, in order of preference.
    pub alternatives: &'a [AlternativeModel],
    /// A random number below a thousand, so that many callers do not retry at the same moment.
    pub jitter_permille: u64,
}

/// Whether any part of an answer has been passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialAnswer {
    /// Nothing was: the call may be repeated.
    Nothing,
    /// A part was: a second call would repeat it in other words.
    Begun,
}

/// A fallback model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AlternativeModel {
    /// Its name.
    pub model: String,
    /// The largest prompt that leaves space for its answer.
    pub prompt_room_tokens: u64,
}

/// Who waits if a provider is busy or times out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitPolicy {
    /// The managed call, for a limited time.
    #[default]
    Here,
    /// The caller: clients of a gateway retry by their own rules, and show that they wait.
    ByCaller,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecoveryStep {
    /// Compact and resend.
    Compact {
        /// The window that the provider stated, if smaller than the assumed one.
        learn_window_tokens: Option<u64>,
        /// The size that the whole prompt must stay below, if not the usual one.
        target_tokens: Option<u64>,
    },
    /// Resend with a lower output limit.
    LowerCap {
        /// The new limit.
        tokens: u64,
    },
    /// Replace older images with labels and resend.
    RemoveOldImages,
    /// Call another model.
    AskAnother {
        /// The index in the alternatives.
        alternative: usize,
    },
    /// Resend the same request after a wait.
    Wait {
        /// The duration.
        ms: u64,
    },
    /// Give up.
    GiveUp(RecoveryAdvice),
}

/// Advice for the user after a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAdvice {
    /// Turn automatic compaction on.
    TurnCompactionOn,
    /// Shorten the system prompt, the tools or the last messages, which alone are too large.
    MakeRoom,
    /// Set an output limit that the provider accepts.
    SetOutputCap,
    /// Send fewer bytes or smaller images in the last message.
    SmallerPictures,
    /// Choose a model that accepts images.
    ModelThatSees,
    /// Add credit to the account.
    TopUp,
    /// Check the API key.
    CheckKey,
    /// Check the model's name.
    CheckModel,
    /// Check the address or the wire format.
    CheckAddress,
    /// Try later: the call may succeed without any change.
    TryLater,
    /// Rephrase the request, which the provider refused.
    Rephrase,
    /// Check the request itself.
    CheckRequest,
    /// Repeat the request: the answer broke off after it had begun.
    AskAgain,
}

impl RecoveryAdvice {
    /// Whether the problem is the endpoint rather than the conversation.
    fn is_about_endpoint(self) -> bool {
        match self {
            Self::TopUp
            | Self::CheckKey
            | Self::CheckModel
            | Self::CheckAddress
            | Self::CheckRequest
            | Self::TryLater
            | Self::ModelThatSees
            | Self::SetOutputCap => true,
            Self::TurnCompactionOn
            | Self::MakeRoom
            | Self::SmallerPictures
            | Self::Rephrase
            | Self::AskAgain => false,
        }
    }
}

impl fmt::Display for RecoveryAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TurnCompactionOn => {
                "automatic compaction is off: set `compression.enabled: true`, compact by hand, or choose a model with a larger window"
            }
            Self::MakeRoom => {
                "what is left cannot be compacted: choose a model with a larger window, shorten the system prompt or the tools, or begin a new conversation"
            }
            Self::SetOutputCap => "set a lower output cap (`model.max_tokens`)",
            Self::SmallerPictures => "send a smaller picture, or less at once",
            Self::ModelThatSees => "leave the picture out, or choose a model that takes pictures",
            Self::TopUp => "top up the account or choose another provider (`model.provider`)",
            Self::CheckKey => "check the key of the provider and the variable that holds it",
            Self::CheckModel => "check the name of the model (`model.default`)",
            Self::CheckAddress => "check the address (`model.base_url`) and the wire it speaks",
            Self::TryLater => "try again later, or choose another model (`model.default`)",
            Self::Rephrase => "say it in other words",
            Self::CheckRequest => "check the parameters of the request",
            Self::AskAgain => "ask again; what had arrived is in the record",
        })
    }
}

/// A call that failed for good. The conversation is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryFailure {
    /// The last error.
    pub trouble: ProviderError,
    /// The steps tried, in order.
    pub tried: Vec<RecoveryAction>,
    /// Advice for the user.
    pub advice: RecoveryAdvice,
    /// The upstream's own advice, which names the setting or variable to change.
    #[serde(default)]
    pub hint: Option<String>,
    /// The provider's last response, unchanged: a gateway passes it on to its client.
    #[serde(skip)]
    pub refusal: Option<Box<Refusal>>,
}

impl RecoveryFailure {
    /// Returns the advice as text: the upstream's own, if there is one.
    #[must_use]
    pub fn advice_words(&self) -> String {
        let hint = self.hint.clone().filter(|_| self.advice.is_about_endpoint());
        hint.unwrap_or_else(|| self.advice.to_string())
    }
}

impl fmt::Display for RecoveryFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.trouble)?;
        for (at, tried) in self.tried.iter().enumerate() {
            let lead = if at == 0 { "; tried: " } else { ", then " };
            write!(f, "{lead}{tried}")?;
        }
        write!(f, "; the conversation is intact; {}", self.advice_words())
    }
}

impl std::error::Error for RecoveryFailure {}

/// Decides the next step.
#[must_use]
pub(crate) fn next_step(
    trouble: &ProviderError,
    tried: &[RecoveryAction],
    here: &FailureContext<'_>,
) -> RecoveryStep {
    if here.answer == PartialAnswer::Begun {
        return RecoveryStep::GiveUp(RecoveryAdvice::AskAgain);
    }
    let case = RecoveryCase { trouble, tried, here };
    match &trouble.kind {
        ProviderErrorKind::PromptTooLong { window_tokens, .. } => case.prompt_too_long(*window_tokens),
        ProviderErrorKind::OverAllowance { allowed_tokens, .. } => case.over_allowance(*allowed_tokens),
        ProviderErrorKind::OutputCapTooLarge { largest_cap_tokens, window_tokens, prompt_tokens } => {
            case.cap_too_large(*largest_cap_tokens, *window_tokens, *prompt_tokens)
        }
        ProviderErrorKind::PayloadTooLarge { limit_bytes, sent_bytes } => {
            case.payload_too_large(*limit_bytes, *sent_bytes)
        }
        ProviderErrorKind::ImageRefused { complaint } => case.image_refused(*complaint),
        ProviderErrorKind::Quota { affordable_tokens } => case.quota(*affordable_tokens),
        ProviderErrorKind::RateLimit
        | ProviderErrorKind::Overload
        | ProviderErrorKind::Timeout
        | ProviderErrorKind::Interrupted
        | ProviderErrorKind::ServerFault
        | ProviderErrorKind::Unknown
        | ProviderErrorKind::Unreachable { stage: ConnectStage::Connect | ConnectStage::Closed } => {
            case.passing()
        }
        ProviderErrorKind::Auth | ProviderErrorKind::Forbidden => {
            RecoveryStep::GiveUp(RecoveryAdvice::CheckKey)
        }
        ProviderErrorKind::UnknownModel => RecoveryStep::GiveUp(RecoveryAdvice::CheckModel),
        ProviderErrorKind::WrongWire { .. }
        | ProviderErrorKind::Unreachable { stage: ConnectStage::Name | ConnectStage::Tls } => {
            RecoveryStep::GiveUp(RecoveryAdvice::CheckAddress)
        }
        ProviderErrorKind::ContentPolicy => RecoveryStep::GiveUp(RecoveryAdvice::Rephrase),
        ProviderErrorKind::MalformedRequest { .. } => RecoveryStep::GiveUp(RecoveryAdvice::CheckRequest),
    }
}

struct RecoveryCase<'a> {
    trouble: &'a ProviderError,
    tried: &'a [RecoveryAction],
    here: &'a FailureContext<'a>,
}

impl RecoveryCase<'_> {
    fn count(&self, is: impl Fn(&RecoveryAction) -> bool) -> u32 {
        u32::try_from(self.tried.iter().filter(|one| is(one)).count()).unwrap_or(u32::MAX)
    }

    /// Whether another compaction may be tried: fewer than the limit were made, and the last one was effective.
    fn may_compact(&self) -> bool {
        let is_compaction = |one: &RecoveryAction| {
            matches!(one, RecoveryAction::Compacted { .. } | RecoveryAction::CompactedInVain { .. })
        };
        let last = self.tried.iter().rev().find(|one| is_compaction(one));
        self.here.automatic == Automatic::On
            && self.count(is_compaction) < Limits::COMPACTIONS_PER_CALL
            && !matches!(last, Some(RecoveryAction::CompactedInVain { .. }))
    }

    /// Whether a stated window is smaller than the assumed one.
    fn is_smaller(&self, window: &u64) -> bool {
        (SMALLEST_BELIEVABLE_WINDOW..self.here.window_tokens).contains(window)
    }

    fn prompt_too_long(&self, stated_window: Option<u64>) -> RecoveryStep {
        if self.may_compact() {
            let learn_window_tokens = stated_window.filter(|window| self.is_smaller(window));
            let compacted = self.count(|one| matches!(one, RecoveryAction::Compacted { .. })) > 0;
            // The usual size was refused again and the provider states no limit: try half of it.
            let half = || self.here.prompt_tokens / 2;
            let target_tokens = (compacted && learn_window_tokens.is_none()).then(half);
            return RecoveryStep::Compact { learn_window_tokens, target_tokens };
        }
        self.larger_model_or(self.why_no_compaction())
    }

    fn over_allowance(&self, allowed_tokens: Option<u64>) -> RecoveryStep {
        if self.may_compact() {
            let target = allowed_tokens.map_or(self.here.prompt_tokens / 2, aim);
            return RecoveryStep::Compact { learn_window_tokens: None, target_tokens: Some(target) };
        }
        self.fitting_model_or(self.why_no_compaction())
    }

    fn cap_too_large(&self, largest: Option<u64>, window: Option<u64>, prompt: Option<u64>) -> RecoveryStep {
        let here = self.here;
        // With a window that much smaller, the prompt is the problem: a lower output limit would only delay the failure.
        let fills = |window: &u64| prompt.unwrap_or(here.prompt_tokens) > window / 2;
        if window.is_some_and(|window| self.is_smaller(&window) && fills(&window)) && self.may_compact() {
            return self.prompt_too_long(window);
        }
        let room = match (window, prompt) {
            (Some(window), Some(prompt)) => Some(window.saturating_sub(prompt + CAP_MARGIN_TOKENS)),
            (Some(window), None) => {
                let margin = window.saturating_mul(ESTIMATE_MARGIN_PERCENT) / 100;
                Some(window.saturating_sub(here.prompt_tokens + margin))
            }
            _ => None,
        };
        let stated = largest.into_iter().chain(room).min();
        // A stated limit that is not below the refused one cannot be right.
        let lower = stated.filter(|cap| here.output_cap_tokens.is_none_or(|sent| *cap < sent));
        let lower = lower.or_else(|| Some(here.output_cap_tokens? / 2));
        let tries = self.count(|one| matches!(one, RecoveryAction::LoweredCap { .. }));
        match lower {
            Some(tokens) if tokens > 0 && tries < MOST_CAPS => RecoveryStep::LowerCap { tokens },
            // No space for any answer, so the prompt is too long after all.
            Some(0) if window.is_some() => self.prompt_too_long(None),
            _ => RecoveryStep::GiveUp(RecoveryAdvice::SetOutputCap),
        }
    }

    fn payload_too_large(&self, limit_bytes: Option<u64>, sent_bytes: Option<u64>) -> RecoveryStep {
        let here = self.here;
        let images_left = here.old_image_bytes > 0
            && self.count(|one| matches!(one, RecoveryAction::RemovedImages { .. })) == 0;
        // Replacing images makes a new view, which the setting treats as a compaction.
        if images_left && here.automatic == Automatic::On {
            return RecoveryStep::RemoveOldImages;
        }
        if self.may_compact() {
            let sent = sent_bytes.unwrap_or(here.body_bytes).max(1);
            let limit = limit_bytes.filter(|limit| *limit < sent);
            let limit = limit.unwrap_or_else(|| sent.saturating_mul(UNSTATED_BYTES_PERCENT) / 100);
            let share = u128::from(here.prompt_tokens) * u128::from(aim(limit)) / u128::from(sent);
            let target_tokens = Some(u64::try_from(share).unwrap_or(u64::MAX));
            return RecoveryStep::Compact { learn_window_tokens: None, target_tokens };
        }
        let advice = match here.automatic {
            Automatic::On => RecoveryAdvice::SmallerPictures,
            Automatic::Off => RecoveryAdvice::TurnCompactionOn,
        };
        self.fitting_model_or(advice)
    }

    fn image_refused(&self, complaint: throughline_provider::ImageComplaint) -> RecoveryStep {
        use throughline_provider::ImageComplaint;
        let advice = match complaint {
            ImageComplaint::NotSupported => RecoveryAdvice::ModelThatSees,
            ImageComplaint::TooLarge { .. } | ImageComplaint::TooMany | ImageComplaint::Unreadable => {
                RecoveryAdvice::SmallerPictures
            }
        };
        let removed = self.count(|one| matches!(one, RecoveryAction::RemovedImages { .. })) > 0;
        if self.here.old_image_bytes > 0 && !removed && self.here.automatic == Automatic::On {
            return RecoveryStep::RemoveOldImages;
        }
        RecoveryStep::GiveUp(advice)
    }

    fn quota(&self, affordable_tokens: Option<u64>) -> RecoveryStep {
        let lowered = self.count(|one| matches!(one, RecoveryAction::LoweredCap { .. }));
        let fits = |cap: &u64| {
            *cap >= LEAST_AFFORDABLE_TOKENS && self.here.output_cap_tokens.is_none_or(|sent| *cap < sent)
        };
        match affordable_tokens.filter(fits) {
            Some(tokens) if lowered < MOST_CAPS => RecoveryStep::LowerCap { tokens },
            _ => self.fitting_model_or(RecoveryAdvice::TopUp),
        }
    }

    fn passing(&self) -> RecoveryStep {
        let waits = self.count(|one| matches!(one, RecoveryAction::Waited { .. }));
        let wait = match self.trouble.retry() {
            Retry::No => None,
            Retry::After(wait) => {
                let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                Some(ms).filter(|ms| *ms <= LONGEST_WAIT_MS)
            }
            Retry::Backoff => {
                let longest = FIRST_WAIT_MS << waits.min(16);
                Some(longest / 2 + longest / 2 * self.here.jitter_permille.min(999) / 1_000)
            }
        };
        let is_timeout = self.trouble.kind == ProviderErrorKind::Timeout;
        let most = if is_timeout { MOST_WAITS_AFTER_TIMEOUT } else { MOST_WAITS };
        match wait {
            Some(ms) if waits < most && self.here.waiting == WaitPolicy::Here => RecoveryStep::Wait { ms },
            _ => self.fitting_model_or(RecoveryAdvice::TryLater),
        }
    }

    fn why_no_compaction(&self) -> RecoveryAdvice {
        match self.here.automatic {
            Automatic::On => RecoveryAdvice::MakeRoom,
            Automatic::Off => RecoveryAdvice::TurnCompactionOn,
        }
    }

    /// Returns a step to another model with a larger window than the one that refused, or gives up with `advice`.
    fn larger_model_or(&self, advice: RecoveryAdvice) -> RecoveryStep {
        self.model_with_room(self.here.prompt_tokens.max(self.here.window_tokens), advice)
    }

    /// Returns a step to another model that this prompt fits, or gives up with `advice`.
    fn fitting_model_or(&self, advice: RecoveryAdvice) -> RecoveryStep {
        self.model_with_room(self.here.prompt_tokens, advice)
    }

    fn model_with_room(&self, tokens: u64, advice: RecoveryAdvice) -> RecoveryStep {
        let fits = |one: &AlternativeModel| one.prompt_room_tokens > tokens;
        match self.here.alternatives.iter().position(fits) {
            Some(alternative) => RecoveryStep::AskAnother { alternative },
            None => RecoveryStep::GiveUp(advice),
        }
    }
}

fn aim(limit: u64) -> u64 {
    limit.saturating_mul(AIM_PERCENT) / 100
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
