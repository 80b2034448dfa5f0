//! The model a conversation is held with, and every limit that follows from its window.

use serde::{Deserialize, Serialize};
use throughline_compaction::Budgets;
use throughline_tokens::Limits;

/// The model in force, as an engine is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInForce {
    /// Its name.
    pub model: String,
    /// Who serves it.
    pub provider: String,
    /// Its window.
    pub window_tokens: u64,
    /// What follows from it.
    pub limits: EngineLimits,
}

/// Limits in tokens and messages, as configured and as in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineLimits {
    /// Where a compaction was asked to start.
    pub threshold_configured_tokens: u64,
    /// Where it does.
    pub threshold_tokens: u64,
    /// Tokens kept free for the answer.
    pub reserved_output_tokens: u64,
    /// From here on a conversation is compacted whatever stood in the way before.
    pub hygiene_tokens: u64,
    /// Share of the threshold that the newest messages may have, in thousandths.
    pub tail_permille: u64,
    /// Tokens of the newest messages, which stay as they are.
    pub tail_tokens: u64,
    /// Most a summary may have.
    pub summary_cap_tokens: u64,
    /// Least room a summary is given.
    pub summary_floor_tokens: u64,
    /// Messages kept in front.
    pub protect_first_n: usize,
    /// Messages kept at the end.
    pub protect_last_n: usize,
}

impl From<&Limits> for EngineLimits {
    fn from(limits: &Limits) -> Self {
        let budgets = Budgets::from(limits);
        Self {
            threshold_configured_tokens: limits.threshold_tokens.configured,
            threshold_tokens: budgets.threshold_tokens,
            reserved_output_tokens: limits.reserved_output_tokens.effective,
            hygiene_tokens: limits.hygiene_tokens.effective,
            tail_permille: budgets.tail_permille,
            tail_tokens: budgets.tail_tokens,
            summary_cap_tokens: budgets.summary_cap_tokens,
            summary_floor_tokens: budgets.summary_floor_tokens,
            protect_first_n: budgets.protect_first_n,
            protect_last_n: budgets.protect_last_n,
        }
    }
}

impl ModelInForce {
    /// The budgets of one compaction.
    #[must_use]
    pub fn budgets(&self) -> Budgets {
        let limits = &self.limits;
        Budgets {
            window_tokens: self.window_tokens,
            threshold_tokens: limits.threshold_tokens,
            tail_permille: limits.tail_permille,
            tail_tokens: limits.tail_tokens,
            summary_cap_tokens: limits.summary_cap_tokens,
            summary_floor_tokens: limits.summary_floor_tokens,
            protect_first_n: limits.protect_first_n,
            protect_last_n: limits.protect_last_n,
        }
    }

    /// The largest prompt that leaves room for the answer.
    #[must_use]
    pub fn prompt_room_tokens(&self) -> u64 {
        self.window_tokens.saturating_sub(self.limits.reserved_output_tokens)
    }
}
