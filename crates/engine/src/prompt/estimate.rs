//! Estimates the size of the next request, from the last prompt that the provider counted.
//!
//! The measured part is exact whatever the tokenizer is. Only the changes since are estimated, with a correction learnt for the model.
//! Without a measured prompt, everything is estimated. Some servers count only what their cache did not hold: a count far below the
//! estimate is therefore not used.

use throughline_tokens::{Calibrator, Observation};

use crate::context_engine::status::{PendingRequest, SizeBasis};

/// Prompts with a smaller estimate are mostly overhead, so any count of them is accepted.
const SMALLEST_JUDGED_TOKENS: u64 = 1_000;
/// A count below the estimate divided by this does not cover the whole prompt. The estimates for all model families are within a factor of
/// two of the counts, and the calibrator accepts no ratio above four.
const LARGEST_RATIO: u64 = 4;

/// Whether a provider's count can cover the whole prompt.
pub(crate) fn counts_whole_prompt(measured_tokens: u64, estimated_tokens: u64) -> bool {
    estimated_tokens < SMALLEST_JUDGED_TOKENS
        || measured_tokens.saturating_mul(LARGEST_RATIO) >= estimated_tokens
}

/// A counted prompt and its estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) measured_tokens: u64,
    pub(crate) estimated_tokens: u64,
}

/// Known sizes for one model in one view.
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

    /// Returns the last counted prompt of this view.
    pub(crate) fn last_prompt_tokens(&self) -> Option<u64> {
        self.anchor.map(|anchor| anchor.measured_tokens)
    }

    /// Returns the size of a request with these estimates.
    pub(crate) fn pending(&self, fixed_tokens: u64, message_tokens: u64, messages: usize) -> PendingRequest {
        let estimated = fixed_tokens.saturating_add(message_tokens);
        let (total_tokens, basis) = match self.anchor {
            None => (self.calibrator.correct(estimated), SizeBasis::Estimated),
            Some(Anchor { measured_tokens, estimated_tokens }) => {
                let added = self.calibrator.correct(estimated.saturating_sub(estimated_tokens));
                // The system prompt or the tools became smaller.
                let removed = self.calibrator.correct(estimated_tokens.saturating_sub(estimated));
                let basis = SizeBasis::Measured { last_prompt_tokens: measured_tokens, added_tokens: added };
                (measured_tokens.saturating_add(added).saturating_sub(removed), basis)
            }
        };
        PendingRequest { fixed_tokens, message_tokens, messages, total_tokens, basis }
    }

    /// Sets the anchor to a prompt that a provider counted. Returns the estimate and the count of what was added since the previous anchor,
    /// for calibration. A count that cannot cover the prompt is ignored.
    pub(crate) fn measured(&mut self, measured_tokens: u64, estimated_tokens: u64) -> Option<(u64, u64)> {
        if !counts_whole_prompt(measured_tokens, estimated_tokens) {
            return None;
        }
        let before = self.anchor.replace(Anchor { measured_tokens, estimated_tokens });
        // For the first prompt of a view, everything counts as added.
        let Anchor { measured_tokens: counted, estimated_tokens: estimated } =
            before.unwrap_or(Anchor { measured_tokens: 0, estimated_tokens: 0 });
        let lesson = (estimated_tokens.checked_sub(estimated)?, measured_tokens.saturating_sub(counted));
        let learnt = self.calibrator.observe(lesson.0, lesson.1);
        (learnt == Observation::Learnt).then_some(lesson)
    }

    /// Sets the anchor to a prompt that was counted before this process started. It was used for calibration then.
    pub(crate) fn resume(&mut self, measured_tokens: u64, estimated_tokens: u64) {
        self.anchor = counts_whole_prompt(measured_tokens, estimated_tokens)
            .then_some(Anchor { measured_tokens, estimated_tokens });
    }

    /// Sets the calibration that other conversations have learnt in the meantime.
    pub(crate) fn set_calibrator(&mut self, calibrator: Calibrator) {
        self.calibrator = calibrator;
    }

    /// Removes the anchor, because the view was replaced.
    pub(crate) fn forget_prompt(&mut self) {
        self.anchor = None;
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
