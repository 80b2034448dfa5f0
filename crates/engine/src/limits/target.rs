//! A model at an endpoint, with everything needed to call it.

use std::sync::Arc;

use throughline_provider::{CachePolicy, CacheTtl};
use throughline_store::{GuardScope, Millis};
use throughline_tokens::{
    CachePrices, LimitError, LimitPolicy, Limits, TokenModel, ToolBudgets, Usage, WriteDuration,
};
use throughline_transcript::WireFormat;

use crate::limits::in_force::{EngineLimits, ModelInForce, NotesPrice};
use crate::limits::price_source::PriceSource;
use crate::limits::threshold_origin::ThresholdOrigin;
use crate::upstream::Upstream;

/// Limits derived from prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EconomyLimits {
    /// The size at which a compaction starts, if below the threshold.
    pub(crate) threshold_tokens: u64,
    /// The size from which a compaction on a cold cache pays.
    pub(crate) cold_tokens: u64,
    /// The target size of the messages after a compaction, unless configured.
    pub(crate) target_tokens: u64,
    /// The estimated size of the messages after it.
    pub(crate) left_tokens: u64,
    /// How a model's notes count in the price of a compaction.
    pub(crate) notes_price: NotesPrice,
}

/// A model that can be called.
#[derive(Clone)]
pub struct ModelTarget {
    /// Its name in requests.
    pub model: String,
    /// The provider that serves it.
    pub provider: String,
    /// The address of the endpoint; values learnt about the model apply to this address.
    pub endpoint: String,
    /// The wire format of its requests.
    pub wire_format: WireFormat,
    /// Its window and the configured limits.
    pub policy: LimitPolicy,
    /// The source of the window, as text to follow its size.
    pub window_origin: String,
    /// The reason for its threshold.
    pub threshold_origin: ThresholdOrigin,
    /// How its prompts are cached.
    pub cache: CachePolicy,
    /// Prompts with fewer tokens are not cached; `None` if not known.
    pub cache_minimum_tokens: Option<u64>,
    /// The prices of its calls.
    pub price_source: PriceSource,
    /// The endpoint that answers.
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
    /// Returns the model with its limits for requests with this output limit, and a system prompt and tools of this size.
    pub(crate) fn in_force(
        &self,
        output_cap_tokens: Option<u64>,
        fixed_tokens: u64,
        prices: CachePrices,
        economy: Option<EconomyLimits>,
    ) -> Result<ModelInForce, LimitError> {
        // Clients that do not know the window request an output limit as large as the window: ignore it.
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

    /// Returns the cache prices of its provider.
    pub(crate) fn prices(&self, at_ms: Millis) -> CachePrices {
        let written_for = match self.cache {
            CachePolicy::Marks { ttl: CacheTtl::OneHour, .. } => WriteDuration::AnHour,
            CachePolicy::Marks { .. } | CachePolicy::Key | CachePolicy::Unmarked => WriteDuration::Minutes,
        };
        CachePrices::of(written_for, |usage, cache_write_1h| {
            self.price_source.cost(&self.model, at_ms, usage, cache_write_1h).micro_usd
        })
    }

    /// Returns the price of a million uncached prompt tokens, if known and not zero.
    pub(crate) fn input_price(&self, at_ms: Millis) -> Option<u64> {
        let usage = Usage { input: 1_000_000, ..Usage::default() };
        self.price_source.cost(&self.model, at_ms, usage, 0).micro_usd.filter(|price| *price > 0)
    }

    pub(crate) fn token_model(&self) -> TokenModel {
        TokenModel::for_model(&self.model, self.wire_format)
    }

    /// Returns the limits for tool results in its window.
    pub(crate) fn tool_budgets(&self) -> ToolBudgets {
        let LimitPolicy { window_tokens, tool_result_chars, tool_step_chars, tool_preview_chars, .. } =
            self.policy;
        ToolBudgets::compute(Some(window_tokens), tool_result_chars, tool_step_chars, tool_preview_chars)
    }

    /// Returns the scope under which values learnt about it are stored.
    pub(crate) fn scope(&self) -> GuardScope {
        GuardScope::Model { endpoint: self.endpoint.clone(), model: self.model.clone() }
    }
}
