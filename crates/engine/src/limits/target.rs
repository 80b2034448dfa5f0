//! A model at an endpoint, with everything a call needs to know of it.

use std::sync::Arc;

use throughline_provider::{CachePolicy, CacheTtl};
use throughline_store::{GuardScope, Millis};
use throughline_tokens::{
    CachePrices, LimitError, LimitPolicy, Limits, TokenModel, ToolBudgets, Usage, WrittenFor,
};
use throughline_transcript::WireFormat;

use crate::limits::in_force::{EngineLimits, ModelInForce, NotesPrice};
use crate::limits::price_source::PriceSource;
use crate::limits::threshold_origin::ThresholdOrigin;
use crate::upstream::Upstream;

/// Limits that were decided in money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EconomyLimits {
    /// Where a compaction starts, if that is sooner than the threshold.
    pub(crate) threshold_tokens: u64,
    /// From here on a compaction pays on a cold cache.
    pub(crate) cold_tokens: u64,
    /// What the messages are to have after a compaction, unless that is configured.
    pub(crate) target_tokens: u64,
    /// What the messages then have, by our estimate.
    pub(crate) left_tokens: u64,
    /// What notes by a model have to do with the price of a compaction.
    pub(crate) notes_price: NotesPrice,
}

/// A model that can be asked.
#[derive(Clone)]
pub struct ModelTarget {
    /// Its name, as requests give it.
    pub model: String,
    /// Who serves it.
    pub provider: String,
    /// Where: what was learnt of the model holds for this address.
    pub endpoint: String,
    /// The wire it is asked on.
    pub wire_format: WireFormat,
    /// Its window and everything the settings ask for.
    pub policy: LimitPolicy,
    /// Where its window came from, to be written after its size.
    pub window_origin: String,
    /// Why its threshold is what it is.
    pub threshold_origin: ThresholdOrigin,
    /// How its prompts are cached.
    pub cache: CachePolicy,
    /// Prompts below this many tokens are not cached, where that is known.
    pub cache_minimum_tokens: Option<u64>,
    /// What its calls cost.
    pub price_source: PriceSource,
    /// Who answers.
    pub upstream: Arc<dyn Upstream>,
}

impl std::fmt::Debug for ModelTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("model", &self.model)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

impl ModelTarget {
    /// The model with its limits, when a request has this cap on output, and a system prompt and tools of this size.
    pub(crate) fn in_force(
        &self,
        output_cap_tokens: Option<u64>,
        fixed_tokens: u64,
        prices: CachePrices,
        economy: Option<EconomyLimits>,
    ) -> Result<ModelInForce, LimitError> {
        // Room for as much as the whole window holds is asked for by clients that do not know the window.
        let meant = output_cap_tokens.filter(|cap| *cap < self.policy.window_tokens);
        let policy = LimitPolicy {
            reserved_output_tokens: meant.unwrap_or(self.policy.reserved_output_tokens),
            ..self.policy
        };
        let mut limits = Limits::beside(&policy, fixed_tokens)?;
        if let Some(economy) = economy {
            let sooner = Some(economy.threshold_tokens)
                .filter(|tokens| *tokens < limits.threshold_tokens.effective)
                .or(policy.threshold_tokens);
            let target_tokens = policy.target_tokens.or(Some(economy.target_tokens));
            let policy = LimitPolicy { threshold_tokens: sooner, target_tokens, ..policy };
            limits = Limits::beside(&policy, fixed_tokens)?;
        }
        Ok(ModelInForce {
            model: self.model.clone(),
            provider: self.provider.clone(),
            window_tokens: limits.window_tokens,
            limits: EngineLimits::from(&limits),
            prices,
            notes_price: economy.map(|economy| economy.notes_price).unwrap_or_default(),
        })
    }

    /// What its provider's cache costs.
    pub(crate) fn prices(&self, at_ms: Millis) -> CachePrices {
        let written_for = match self.cache {
            CachePolicy::Marks { ttl: CacheTtl::OneHour, .. } => WrittenFor::AnHour,
            CachePolicy::Marks { .. } | CachePolicy::Key | CachePolicy::Unmarked => WrittenFor::Minutes,
        };
        CachePrices::of(written_for, |usage, cache_write_1h| {
            self.price_source.cost(&self.model, at_ms, usage, cache_write_1h).micro_usd
        })
    }

    /// The price of a million prompt tokens that no cache is involved in, where it is known and not zero.
    pub(crate) fn input_price(&self, at_ms: Millis) -> Option<u64> {
        let usage = Usage { input: 1_000_000, ..Usage::default() };
        self.price_source.cost(&self.model, at_ms, usage, 0).micro_usd.filter(|price| *price > 0)
    }

    pub(crate) fn token_model(&self) -> TokenModel {
        TokenModel::for_model(&self.model, self.wire_format)
    }

    /// What results of tools may take up in its window.
    pub(crate) fn tool_budgets(&self) -> ToolBudgets {
        let LimitPolicy { window_tokens, tool_result_chars, tool_step_chars, tool_preview_chars, .. } =
            self.policy;
        ToolBudgets::compute(Some(window_tokens), tool_result_chars, tool_step_chars, tool_preview_chars)
    }

    /// What is learnt of it is kept under this.
    pub(crate) fn scope(&self) -> GuardScope {
        GuardScope::Model { endpoint: self.endpoint.clone(), model: self.model.clone() }
    }
}
