//! Sizes and budgets for the benchmarks, from the product's own estimator.

use throughline_compaction::Budgets;
use throughline_tokens::{Family, MessageSize, TokenModel, profile_message, profile_text};
use throughline_transcript::Message;

/// Measures text and messages as the product does for a model family.
pub(crate) struct Estimator {
    model: TokenModel,
}

impl Default for Estimator {
    fn default() -> Self {
        Self { model: TokenModel::of(Family::Claude) }
    }
}

impl Estimator {
    pub(crate) fn text(&self, text: &str) -> u64 {
        self.model.estimate(&profile_text(text))
    }

    pub(crate) fn message(&self, message: &Message) -> u64 {
        MessageSize::new(profile_message(message), &self.model).tokens
    }

    pub(crate) fn budgets(&self, window: u64, target_ratio: f64) -> Budgets {
        let threshold = window / 2;
        Budgets {
            window_tokens: window,
            threshold_tokens: threshold,
            tail_permille: (target_ratio * 1000.0) as u64,
            tail_tokens: (threshold as f64 * target_ratio) as u64,
            summary_cap_tokens: 12_000.min((window / 20).max(2_000.min(window / 8))),
            summary_floor_tokens: 2_000,
            protect_first_n: 3,
            protect_last_n: 20,
        }
    }
}
