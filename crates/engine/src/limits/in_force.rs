//! The model of a conversation, and every limit that follows from its window.

use serde::{Deserialize, Serialize};
use throughline_compaction::Budgets;
use throughline_tokens::{CachePrices, Limits};

/// The current model of a conversation, as an engine sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInForce {
    /// The name of the model.
    pub model: String,
    /// The provider that serves it.
    pub provider: String,
    /// Its window.
    pub window_tokens: u64,
    /// The limits that follow from the window.
    pub limits: EngineLimits,
    /// The cache prices of its provider; default ratios if they are not known.
    #[serde(default)]
    pub prices: CachePrices,
    /// How a model's notes count in the price of a compaction. Used only by the built-in engine.
    #[serde(skip)]
    pub notes_price: NotesPrice,
}

/// How a model's notes count in the price of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotesPrice {
    /// Their cost is part of it.
    #[default]
    OfCompaction,
    /// They are paid from past savings if those suffice; otherwise rules write the notes.
    FromSavings,
}

/// Limits in tokens and messages, as configured and as applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineLimits {
    /// The configured threshold.
    pub threshold_configured_tokens: u64,
    /// The threshold that applies.
    pub threshold_tokens: u64,
    /// Tokens reserved for the answer.
    pub reserved_output_tokens: u64,
    /// A conversation that was just opened is compacted from this size on, regardless of guards.
    pub hygiene_tokens: u64,
    /// The size up to which a view may grow while a compaction would not pay for itself; zero if the host does not set it.
    #[serde(default)]
    pub hard_limit_tokens: u64,
    /// Tokens of the system prompt and tools for which the limits were computed.
    #[serde(default)]
    pub fixed_tokens: u64,
    /// The share of the threshold for the newest messages, in thousandths.
    pub tail_permille: u64,
    /// Tokens of the newest messages, which stay unchanged.
    pub tail_tokens: u64,
    /// Tokens up to which the last messages may extend the tail; zero if the host does not set it, which means one and a half tails.
    #[serde(default)]
    pub stretched_tail_tokens: u64,
    /// Tokens of the protected messages at the beginning; zero if the host does not set it, which means half a tail.
    #[serde(default)]
    pub head_tokens: u64,
    /// Tokens of head, notes and tail together after a compaction; zero if not configured.
    #[serde(default)]
    pub target_tokens: u64,
    /// The maximum size of a summary.
    pub summary_cap_tokens: u64,
    /// The minimum budget of a summary.
    pub summary_floor_tokens: u64,
    /// Number of messages protected at the beginning.
    pub protect_first_n: usize,
    /// Number of messages protected at the end.
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
            hard_limit_tokens: limits.hard_limit_tokens.effective,
            fixed_tokens: limits.fixed_tokens,
            tail_permille: budgets.tail_permille,
            tail_tokens: budgets.tail_tokens,
            stretched_tail_tokens: budgets.stretched_tail_tokens,
            head_tokens: budgets.head_tokens,
            target_tokens: budgets.target_tokens.unwrap_or(0),
            summary_cap_tokens: budgets.summary_cap_tokens,
            summary_floor_tokens: budgets.summary_floor_tokens,
            protect_first_n: budgets.protect_first_n,
            protect_last_n: budgets.protect_last_n,
        }
    }
}

impl ModelInForce {
    /// Returns the budgets of one compaction.
    #[must_use]
    pub fn budgets(&self) -> Budgets {
        let limits = &self.limits;
        Budgets {
            window_tokens: self.window_tokens,
            threshold_tokens: limits.threshold_tokens,
            tail_permille: limits.tail_permille,
            tail_tokens: limits.tail_tokens,
            stretched_tail_tokens: match limits.stretched_tail_tokens {
                0 => limits.tail_tokens.saturating_mul(3) / 2,
                tokens => tokens,
            },
            head_tokens: if limits.head_tokens == 0 { limits.tail_tokens / 2 } else { limits.head_tokens },
            target_tokens: Some(limits.target_tokens).filter(|tokens| *tokens > 0),
            summary_cap_tokens: limits.summary_cap_tokens,
            summary_floor_tokens: limits.summary_floor_tokens,
            protect_first_n: limits.protect_first_n,
            protect_last_n: limits.protect_last_n,
        }
    }

    /// Returns the size up to which a view may grow while a compaction would not pay for itself.
    #[must_use]
    pub fn hard_limit_tokens(&self) -> u64 {
        match self.limits.hard_limit_tokens {
            0 => self.prompt_room_tokens().max(self.limits.threshold_tokens),
            tokens => tokens,
        }
    }

    /// Returns the largest prompt that leaves space for the answer.
    #[must_use]
    pub fn prompt_room_tokens(&self) -> u64 {
        self.window_tokens.saturating_sub(self.limits.reserved_output_tokens)
    }
}
