//! The limits in force and the size of the pending request.

use throughline_tokens::Calibrator;

use super::prompt_state::PromptState;
use crate::context_engine::status::{PendingRequest, Pressure};
use crate::decide::trigger::ModelSwitch;
use crate::limits::in_force::ModelInForce;
use crate::prompt::estimate::Estimator;

/// The model's limits and the known sizes of its prompts.
pub(super) struct Budget {
    pub(super) model: ModelInForce,
    pub(super) estimator: Estimator,
    /// Whether the model changed to one with a smaller window since the last call.
    pub(super) switch: ModelSwitch,
    /// Whether the provider refuses a request whose output limit exceeds the space left by the prompt.
    pub(super) checks_caps: bool,
}

impl Budget {
    pub(super) fn new(model: ModelInForce, calibrator: Calibrator) -> Self {
        Self { model, estimator: Estimator::new(calibrator), switch: ModelSwitch::No, checks_caps: false }
    }

    /// Returns the size of the request that would be sent now.
    pub(super) fn pending(&self, prompt: &PromptState) -> PendingRequest {
        let view = &prompt.view;
        self.estimator.pending(prompt.fixed_tokens(), view.estimated_tokens(), view.len())
    }

    /// Returns the size relative to the limits for a prompt of this size.
    pub(super) fn pressure_at(&self, tokens: u64) -> Pressure {
        Pressure {
            tokens,
            threshold_tokens: self.model.limits.threshold_tokens,
            window_tokens: self.model.window_tokens,
        }
    }
}
