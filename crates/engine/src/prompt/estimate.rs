//! Estimates the size of the next request, from the last prompt that the provider counted.
//!
//! The measured part is exact whatever the tokenizer is. Only the changes since are estimated, with a correction learnt for
//! the model. Without a measured prompt, everything is estimated. Some servers count only what their cache did not hold: a
//! count far below the estimate measures something else than the prompt, and is not used.

use throughline_tokens::{Calibrator, Observation};

use crate::context_engine::status::{PendingRequest, SizeBasis};

/// Prompts estimated below this are mostly overhead: any count of them is believed.
const SMALLEST_JUDGED_TOKENS: u64 = 1_000;
/// A count below the estimate divided by this is not a count of the whole prompt. The estimates of all model families are
/// within a factor of two of their counts, and the calibrator believes in no ratio beyond four.
const LARGEST_RATIO: u64 = 4;

/// Whether a provider's count can be that of the whole prompt.
pub(crate) fn counts_whole_prompt(measured_tokens: u64, estimated_tokens: u64) -> bool {
    estimated_tokens < SMALLEST_JUDGED_TOKENS
        || measured_tokens.saturating_mul(LARGEST_RATIO) >= estimated_tokens
}

/// A prompt that was counted, and what it had been estimated at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) measured_tokens: u64,
    pub(crate) estimated_tokens: u64,
}

/// What is known about sizes for one model in one view.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estimator {
    calibrator: Calibrator,
    anchor: Option<Anchor>,
}

impl Estimator {
    pub(crate) fn new(calibrator: Calibrator) -> Self {
        Self { calibrator, anchor: None }
    }

    pub(crate) fn calibrator(&self) -> &Calibrator {
        &self.calibrator
    }

    /// The last prompt that was counted in this view.
    pub(crate) fn last_prompt_tokens(&self) -> Option<u64> {
        self.anchor.map(|anchor| anchor.measured_tokens)
    }

    /// The size of a request with these estimates.
    pub(crate) fn pending(&self, fixed_tokens: u64, message_tokens: u64, messages: usize) -> PendingRequest {
        let estimated = fixed_tokens.saturating_add(message_tokens);
        let (total_tokens, basis) = match self.anchor {
            None => (self.calibrator.correct(estimated), SizeBasis::Estimated),
            Some(Anchor { measured_tokens, estimated_tokens }) => {
                let added = self.calibrator.correct(estimated.saturating_sub(estimated_tokens));
                // A system prompt or tools that became smaller.
                let removed = self.calibrator.correct(estimated_tokens.saturating_sub(estimated));
                let basis = SizeBasis::Measured { last_prompt_tokens: measured_tokens, added_tokens: added };
                (measured_tokens.saturating_add(added).saturating_sub(removed), basis)
            }
        };
        PendingRequest { fixed_tokens, message_tokens, messages, total_tokens, basis }
    }

    /// A provider counted a prompt that had been estimated at so many tokens. Returns what that teaches: an addition that
    /// was estimated at the first figure and counted as the second. A count that cannot be the prompt's
    /// changes nothing.
    pub(crate) fn measured(&mut self, measured_tokens: u64, estimated_tokens: u64) -> Option<(u64, u64)> {
        if !counts_whole_prompt(measured_tokens, estimated_tokens) {
            return None;
        }
        let before = self.anchor.replace(Anchor { measured_tokens, estimated_tokens });
        // The first prompt of a view is an addition to nothing.
        let Anchor { measured_tokens: counted, estimated_tokens: estimated } =
            before.unwrap_or(Anchor { measured_tokens: 0, estimated_tokens: 0 });
        let lesson = (estimated_tokens.checked_sub(estimated)?, measured_tokens.saturating_sub(counted));
        let learnt = self.calibrator.observe(lesson.0, lesson.1);
        (learnt == Observation::Learnt).then_some(lesson)
    }

    /// A prompt that was counted before this process began: it teaches nothing that was not learnt then.
    pub(crate) fn resume(&mut self, measured_tokens: u64, estimated_tokens: u64) {
        self.anchor = counts_whole_prompt(measured_tokens, estimated_tokens)
            .then_some(Anchor { measured_tokens, estimated_tokens });
    }

    /// What others learnt of the model in the meantime.
    pub(crate) fn set_calibrator(&mut self, calibrator: Calibrator) {
        self.calibrator = calibrator;
    }

    /// The view is another one: what was counted says nothing about it.
    pub(crate) fn forget_prompt(&mut self) {
        self.anchor = None;
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
