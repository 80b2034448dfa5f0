//! The limits in force and the size of the pending request.

use throughline_tokens::Calibrator;

use super::prompt_state::PromptState;
use crate::context_engine::status::{PendingRequest, Pressure};
use crate::decide::trigger::ModelSwitch;
use crate::limits::in_force::ModelInForce;
use crate::prompt::estimate::Estimator;

/// The model's limits and what is known about the size of its prompts.
pub(super) struct Budget {
    pub(super) model: ModelInForce,
    pub(super) estimator: Estimator,
    /// Whether a model with a smaller window took over since the last call.
    pub(super) switch: ModelSwitch,
    /// Whether the provider refuses a request whose cap on output does not fit beside the prompt.
    pub(super) checks_caps: bool,
}

impl Budget {
    pub(super) fn new(model: ModelInForce, calibrator: Calibrator) -> Self {
        Self { model, estimator: Estimator::new(calibrator), switch: ModelSwitch::No, checks_caps: false }
    }

    /// The whole request as it would be sent now.
    pub(super) fn pending(&self, prompt: &PromptState) -> PendingRequest {
        let view = &prompt.view;
        self.estimator.pending(prompt.fixed_tokens(), view.estimated_tokens(), view.len())
    }

    /// How full the session is with a prompt of this size.
    pub(super) fn pressure_at(&self, tokens: u64) -> Pressure {
        Pressure {
            tokens,
            threshold_tokens: self.model.limits.threshold_tokens,
            window_tokens: self.model.window_tokens,
        }
    }
}
