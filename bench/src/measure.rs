//! Sizes and budgets for the benchmarks, computed by the product's own estimator.

use throughline_compaction::{
    Attempt, Budgets, Conversation, Options, PayCheck, PruneRules, RuleSummariser, compact,
};
use throughline_redact::Redactor;
use throughline_tokens::{ContentProfile, Family, LimitPolicy, Limits, TextProfile, TokenModel};
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
        self.model.estimate(&TextProfile::of(text))
    }

    pub(crate) fn message(&self, message: &Message) -> u64 {
        self.model.estimate_content(&ContentProfile::of_message(message))
    }

    /// Compacts by rules with the default settings. `clock_us` returns the time for the report.
    pub(crate) fn compact(
        &self,
        conversation: &Conversation<'_>,
        budgets: &Budgets,
        redactor: &Redactor,
        clock_us: &(dyn Fn() -> u64 + Send + Sync),
    ) -> Attempt {
        self.compact_about(None, conversation, budgets, redactor, clock_us)
    }

    /// Does the same with a focus.
    pub(crate) fn compact_about(
        &self,
        focus: Option<&str>,
        conversation: &Conversation<'_>,
        budgets: &Budgets,
        redactor: &Redactor,
        clock_us: &(dyn Fn() -> u64 + Send + Sync),
    ) -> Attempt {
        let options = Options {
            force: true,
            focus,
            budgets,
            prune: PruneRules::default(),
            redactor: Some(redactor),
            corrections: &[],
            recall: None,
            pay: PayCheck::Skip,
            cut_at: None,
            tells_pinned: false,
            shown_tokens: &|tokens| tokens,
            count_tokens: &|text| self.text(text),
            count_message: &|message| self.message(message),
            clock_us,
        };
        pollster::block_on(compact(conversation, &options, &RuleSummariser))
    }

    /// The default budgets, except for the share of the tail.
    pub(crate) fn budgets(&self, window_tokens: u64, target_ratio: f64) -> Result<Budgets, String> {
        let policy = LimitPolicy { target_ratio, ..LimitPolicy::for_window(window_tokens) };
        Limits::compute(&policy).map(|limits| Budgets::from(&limits)).map_err(|error| error.to_string())
    }
}
