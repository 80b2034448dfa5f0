//! The figures exchanged between host and engine: the pending request, measured usage, the current status.

use serde::{Deserialize, Serialize};
use throughline_store::SessionId;
use throughline_tokens::Usage;

use crate::limits::in_force::ModelInForce;

/// The size of a request that is about to be sent, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRequest {
    /// System prompt and tools, estimated.
    pub fixed_tokens: u64,
    /// Messages, estimated.
    pub message_tokens: u64,
    /// How many there are.
    pub messages: usize,
    /// Everything, as well as it is known.
    pub total_tokens: u64,
    /// How well that is.
    pub basis: SizeBasis,
}

/// Where a size comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SizeBasis {
    /// Estimated from the text, corrected by what was learnt of the model.
    Estimated,
    /// The last prompt as the provider counted it, and an estimate of what came since.
    Measured {
        /// That prompt.
        last_prompt_tokens: u64,
        /// The estimated rest.
        added_tokens: u64,
    },
}

/// What a call used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredUsage {
    /// The session whose view was sent.
    pub session: SessionId,
    /// As the provider counted it; `None` when it said nothing.
    pub usage: Option<Usage>,
}

/// How full things are. For people and machines, never for the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Tokens of the whole prompt.
    pub tokens: u64,
    /// Where a compaction starts.
    pub threshold_tokens: u64,
    /// The window.
    pub window_tokens: u64,
}

impl Pressure {
    /// Share of the threshold, in thousandths; beyond a thousand when it is passed.
    #[must_use]
    pub fn of_threshold_permille(&self) -> u64 {
        permille(self.tokens, self.threshold_tokens)
    }
}

fn permille(part: u64, whole: u64) -> u64 {
    part.saturating_mul(1_000).checked_div(whole).unwrap_or(0)
}

/// How an engine stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineStatus {
    /// The engine.
    pub engine: String,
    /// The model.
    pub model: String,
    /// The last prompt as a provider counted it; `None` before the first, and after a compaction until the next.
    pub last_prompt_tokens: Option<u64>,
    /// Where a compaction was asked to start.
    pub threshold_configured_tokens: u64,
    /// Where it does.
    pub threshold_tokens: u64,
    /// The window.
    pub window_tokens: u64,
    /// Compactions of this conversation.
    pub compactions: u64,
    /// How full it is, by the last prompt.
    pub pressure: Pressure,
}

impl EngineStatus {
    /// The status of an engine that goes by the limits of the model in force.
    #[must_use]
    pub fn of(engine: &str, model: ModelInForce, last_prompt_tokens: Option<u64>, compactions: u64) -> Self {
        let (threshold_tokens, window_tokens) = (model.limits.threshold_tokens, model.window_tokens);
        Self {
            engine: engine.to_owned(),
            model: model.model,
            last_prompt_tokens,
            threshold_configured_tokens: model.limits.threshold_configured_tokens,
            threshold_tokens,
            window_tokens,
            compactions,
            pressure: Pressure { tokens: last_prompt_tokens.unwrap_or(0), threshold_tokens, window_tokens },
        }
    }
}
