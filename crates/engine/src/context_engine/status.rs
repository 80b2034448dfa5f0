//! The figures exchanged between host and engine: the pending request, measured usage, the current status.

use serde::{Deserialize, Serialize};
use throughline_store::SessionId;
use throughline_tokens::Usage;

use crate::limits::in_force::ModelInForce;

/// The size of a whole request that is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRequest {
    /// Estimated tokens of system prompt and tools.
    pub fixed_tokens: u64,
    /// Estimated tokens of the messages.
    pub message_tokens: u64,
    /// Number of messages.
    pub messages: usize,
    /// Tokens of everything, with the best known figures.
    pub total_tokens: u64,
    /// How that figure was obtained.
    pub basis: SizeBasis,
}

/// How a size was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SizeBasis {
    /// Estimated from the text, corrected by past calls of the model.
    Estimated,
    /// The last prompt as the provider counted it, plus an estimate of everything since.
    Measured {
        /// Tokens of that prompt.
        last_prompt_tokens: u64,
        /// Estimated tokens added since.
        added_tokens: u64,
    },
}

/// The measured usage of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredUsage {
    /// The session whose view was sent.
    pub session: SessionId,
    /// The usage as the provider counted it; `None` if it reported none.
    pub usage: Option<Usage>,
}

/// The size of a conversation relative to its limits. For people and machines, never for the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Tokens of the whole prompt.
    pub tokens: u64,
    /// The size at which a compaction starts.
    pub threshold_tokens: u64,
    /// The model's window.
    pub window_tokens: u64,
}

impl Pressure {
    /// Returns the size in thousandths of the threshold; more than a thousand above it.
    #[must_use]
    pub fn of_threshold_permille(&self) -> u64 {
        permille(self.tokens, self.threshold_tokens)
    }
}

fn permille(part: u64, whole: u64) -> u64 {
    part.saturating_mul(1_000).checked_div(whole).unwrap_or(0)
}

/// The state of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineStatus {
    /// The name of the engine.
    pub engine: String,
    /// The name of the model.
    pub model: String,
    /// The last prompt as a provider counted it; `None` before the first answer, and between a compaction and the next answer.
    pub last_prompt_tokens: Option<u64>,
    /// The configured threshold.
    pub threshold_configured_tokens: u64,
    /// The threshold that applies.
    pub threshold_tokens: u64,
    /// The model's window.
    pub window_tokens: u64,
    /// Number of compactions of this conversation.
    pub compactions: u64,
    /// The size relative to the limits, by the last prompt.
    pub pressure: Pressure,
}

impl EngineStatus {
    /// Returns the status of an engine that uses the limits of the current model.
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
