//! The model of a conversation, and every limit that follows from its window.

use serde::{Deserialize, Serialize};
use throughline_compaction::Budgets;
use throughline_tokens::{CachePrices, Limits};

/// The model in force, as an engine sees it.
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
    /// What its provider's cache costs; the usual ratio where that is not known.
    #[serde(default)]
    pub prices: CachePrices,
    /// What notes by a model have to do with the price of a compaction. The built-in engine alone asks.
    #[serde(skip)]
    pub notes_price: NotesPrice,
}

/// What notes by a model have to do with the price of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotesPrice {
    /// They are part of it.
    #[default]
    OfCompaction,
    /// They are paid from what was saved, if that is enough; rules write where it is not.
    FromSavings,
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
    /// From here on a conversation that was just opened is compacted whatever stood in the way before.
    pub hygiene_tokens: u64,
    /// As far as a view may grow where a compaction would not pay for itself; zero from a host that does not say.
    #[serde(default)]
    pub hard_limit_tokens: u64,
    /// System prompt and tools that the limits were computed beside.
    #[serde(default)]
    pub fixed_tokens: u64,
    /// Share of the threshold that the newest messages may have, in thousandths.
    pub tail_permille: u64,
    /// Tokens of the newest messages, which stay as they are.
    pub tail_tokens: u64,
    /// Tokens up to which the last messages may stretch it; zero, from a host that does not say, is one and a half.
    #[serde(default)]
    pub stretched_tail_tokens: u64,
    /// Tokens the protected messages in front may have; zero, from a host that does not say, is half a tail.
    #[serde(default)]
    pub head_tokens: u64,
    /// Tokens that head, notes and tail may have together after a compaction; zero where none were configured.
    #[serde(default)]
    pub target_tokens: u64,
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
    /// The budgets of one compaction.
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

    /// As far as a view may grow where a compaction would not pay for itself.
    #[must_use]
    pub fn hard_limit_tokens(&self) -> u64 {
        match self.limits.hard_limit_tokens {
            0 => self.prompt_room_tokens().max(self.limits.threshold_tokens),
            tokens => tokens,
        }
    }

    /// The largest prompt that leaves room for the answer.
    #[must_use]
    pub fn prompt_room_tokens(&self) -> u64 {
        self.window_tokens.saturating_sub(self.limits.reserved_output_tokens)
    }
}
