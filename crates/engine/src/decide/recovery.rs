//! Decides what to do after a failed call: one pure step at a time, from the error and the steps tried so far.
//!
//! If the prompt is too long, it is compacted; a window is learnt only if the provider stated one. If the output cap is too
//! large, it is lowered for this call, without changing prompt or window. If the request has too many bytes, old images are
//! removed first. Temporary errors are waited for. Before giving up, another model is called if the request fits it. Every
//! loop ends: compactions, lowered caps, waits and models are counted.
//!
//! Not for: carrying out a step.

use std::fmt;

use serde::{Deserialize, Serialize};
use throughline_provider::{ConnectStage, ProviderError, ProviderErrorKind, Refusal, Retry};
use throughline_tokens::Limits;

use crate::decide::trigger::Automatic;

pub use crate::decide::recovery_action::RecoveryAction;

/// Waits to get one call through.
const MOST_WAITS: u32 = 3;
/// Waits after a provider took too long: each time may be billed.
const MOST_WAITS_AFTER_TIMEOUT: u32 = 1;
/// A provider that asks for more than this is not waited for.
const LONGEST_WAIT_MS: u64 = 60_000;
/// The first wait of our own choice; each further one is twice as long.
const FIRST_WAIT_MS: u64 = 1_000;
/// Output caps tried to get one call through.
const MOST_CAPS: u32 = 3;
/// Kept free beside prompt and answer where both are known, for what a provider adds.
const CAP_MARGIN_TOKENS: u64 = 64;
/// The same where the prompt is only estimated, as a share of the window.
const ESTIMATE_MARGIN_PERCENT: u64 = 2;
/// An answer that could be paid for, but with fewer tokens than this, is none.
const LEAST_AFFORDABLE_TOKENS: u64 = 256;
/// Where nobody states a limit in bytes, the next request has this share of the last.
const UNSTATED_BYTES_PERCENT: u64 = 75;
/// Of a limit, so much is aimed at: sizes after a compaction are estimates.
const AIM_PERCENT: u64 = 90;
/// A smaller window than this is a misreading.
pub(crate) const SMALLEST_BELIEVABLE_WINDOW: u64 = 512;

/// Figures of the call that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailureContext<'a> {
    /// Whether compaction happens on its own.
    pub automatic: Automatic,
    /// Who waits when a provider is busy.
    pub waiting: WaitPolicy,
    /// The model's window, as far as it is known.
    pub window_tokens: u64,
    /// The prompt that was sent, as well as it is known.
    pub prompt_tokens: u64,
    /// The body that was sent.
    pub body_bytes: u64,
    /// What replacing older pictures by labels would save.
    pub old_image_bytes: u64,
    /// The output cap that was sent.
    pub output_cap_tokens: Option<u64>,
    /// Whether anything of the answer has been passed on already.
    pub answer: PartialAnswer,
    /// Models that have not been asked yet, in the order they are to be.
    pub alternatives: &'a [AlternativeModel],
    /// A random number below a thousand, so that many callers do not come back at the same moment.
    pub jitter_permille: u64,
}

/// Whether anything of an answer has been passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialAnswer {
    /// Nothing: the call may be made again.
    Nothing,
    /// Some of it: a second call would say it again, in other words.
    Begun,
}

/// Another model that could be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AlternativeModel {
    /// Its name.
    pub model: String,
    /// The largest prompt that leaves room for its answer.
    pub prompt_room_tokens: u64,
}

/// Who waits when a provider is busy or takes too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitPolicy {
    /// The call itself, for as long as is reasonable.
    #[default]
    Here,
    /// Who waits for the call: clients of a gateway retry by rules of their own, and show that they wait.
    ByCaller,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecoveryStep {
    /// Compact and send again.
    Compact {
        /// The window the provider stated, where it is smaller than the one we believed in.
        learn_window_tokens: Option<u64>,
        /// What the whole prompt has to come below, where that is not the usual.
        target_tokens: Option<u64>,
    },
    /// Send again with a lower output cap.
    LowerCap {
        /// The cap.
        tokens: u64,
    },
    /// Replace older pictures by labels and send again.
    RemoveOldImages,
    /// Ask another model.
    AskAnother {
        /// Which of the alternatives.
        alternative: usize,
    },
    /// Send the same again after a while.
    Wait {
        /// How long.
        ms: u64,
    },
    /// Nothing helps.
    GiveUp(RecoveryAdvice),
}

/// What a person can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAdvice {
    /// Automatic compaction is off.
    TurnCompactionOn,
    /// System prompt, tools and the last messages alone are too large.
    MakeRoom,
    /// The output cap cannot be met.
    SetOutputCap,
    /// The last message has too many bytes or too large a picture.
    SmallerPictures,
    /// The model cannot see.
    ModelThatSees,
    /// Money.
    TopUp,
    /// The key.
    CheckKey,
    /// The model's name.
    CheckModel,
    /// The address or its wire.
    CheckAddress,
    /// The call may succeed later without any change.
    TryLater,
    /// Say it differently.
    Rephrase,
    /// The request itself.
    CheckRequest,
    /// The answer broke off after it had begun.
    AskAgain,
}

impl RecoveryAdvice {
    /// Whether it is about the endpoint rather than the conversation.
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

/// A call that could not be got through. The conversation is as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryFailure {
    /// What went wrong the last time.
    pub trouble: ProviderError,
    /// What was tried, in order.
    pub tried: Vec<RecoveryAction>,
    /// What can be done.
    pub advice: RecoveryAdvice,
    /// The same by the upstream, which knows the setting or variable to change.
    #[serde(default)]
    pub hint: Option<String>,
    /// The response in place of the last answer, unchanged: a gateway passes it on to its client.
    #[serde(skip)]
    pub refusal: Option<Box<Refusal>>,
}

impl RecoveryFailure {
    /// What can be done: in the words of the upstream, if it has any.
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

    /// Whether another compaction may be tried: not too many yet, and the last one was not in vain.
    fn may_compact(&self) -> bool {
        let is_compaction = |one: &RecoveryAction| {
            matches!(one, RecoveryAction::Compacted { .. } | RecoveryAction::CompactedInVain { .. })
        };
        let last = self.tried.iter().rev().find(|one| is_compaction(one));
        self.here.automatic == Automatic::On
            && self.count(is_compaction) < Limits::COMPACTIONS_PER_CALL
            && !matches!(last, Some(RecoveryAction::CompactedInVain { .. }))
    }

    /// Whether a window that was stated is smaller than the one that was believed in.
    fn is_smaller(&self, window: &u64) -> bool {
        (SMALLEST_BELIEVABLE_WINDOW..self.here.window_tokens).contains(window)
    }

    fn prompt_too_long(&self, stated_window: Option<u64>) -> RecoveryStep {
        if self.may_compact() {
            let learn_window_tokens = stated_window.filter(|window| self.is_smaller(window));
            let compacted = self.count(|one| matches!(one, RecoveryAction::Compacted { .. })) > 0;
            // The usual size was refused once more and nobody says what would fit: half of it is tried.
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
        // In a window so much smaller the prompt is what takes the room: an answer cut short would only put it off.
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
        // What is stated but not lower than what was refused cannot be meant.
        let lower = stated.filter(|cap| here.output_cap_tokens.is_none_or(|sent| *cap < sent));
        let lower = lower.or_else(|| Some(here.output_cap_tokens? / 2));
        let tries = self.count(|one| matches!(one, RecoveryAction::LoweredCap { .. }));
        match lower {
            Some(tokens) if tokens > 0 && tries < MOST_CAPS => RecoveryStep::LowerCap { tokens },
            // No room for any answer: then it is the prompt that is too long after all.
            Some(0) if window.is_some() => self.prompt_too_long(None),
            _ => RecoveryStep::GiveUp(RecoveryAdvice::SetOutputCap),
        }
    }

    fn payload_too_large(&self, limit_bytes: Option<u64>, sent_bytes: Option<u64>) -> RecoveryStep {
        let here = self.here;
        let images_left = here.old_image_bytes > 0
            && self.count(|one| matches!(one, RecoveryAction::RemovedImages { .. })) == 0;
        // Replacing pictures makes a new view, which is a compaction as far as the setting is concerned.
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

    /// Another model that takes more than the one that refused.
    fn larger_model_or(&self, advice: RecoveryAdvice) -> RecoveryStep {
        self.model_with_room(self.here.prompt_tokens.max(self.here.window_tokens), advice)
    }

    /// Another model that takes this prompt.
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
