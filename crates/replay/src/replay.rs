//! A conversation priced twice, on the same terms.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use throughline_engine::{SessionError, ToolOutputPolicy};
use throughline_provider::{CachePolicy, CacheSeller, CacheStyle, CacheTtl, PrefixCache};
use throughline_tokens::{Catalogue, LimitPolicy, TokenModel};
use throughline_transcript::WireFormat;

use crate::baseline::{Baseline, PromptError};
use crate::bill::{Bill, Purpose, SummaryCost, Tariff};
use crate::fake_provider::{FakeProvider, ReplayClock};
use crate::fixed_prompt::FixedPrompt;
use crate::managed::{ManagedBill, ManagedReplay};
use crate::recording::{LoggedCall, Recording};

/// The terms of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The model whose prices, window and tokens count.
    pub model: String,
    /// Its window, and when the conversation is compacted.
    pub limits: LimitPolicy,
    /// How long Throughline has prompts cached; `None` for as long as the recorded client asked.
    pub ttl: Option<CacheTtl>,
    /// What is done about long results, beside their limits.
    pub tool_output: ToolOutputPolicy,
    /// What summaries cost.
    pub summaries: SummaryCost,
    /// Prices and sizes.
    pub catalogue: Catalogue,
}

/// A conversation priced twice.
#[derive(Clone, Debug, Serialize)]
pub struct SessionReplay {
    /// Tokens of system prompt and tools in every prompt.
    pub fixed_tokens: u64,
    /// How long the recorded client had prompts cached.
    pub ttl_without: CacheTtl,
    /// How long Throughline had.
    pub ttl_with: CacheTtl,
    /// As the recorded client sent it.
    pub without: Bill,
    /// Through the managed call.
    pub with: Bill,
    /// Why prompts of the managed call were not read from the cache, and how often.
    pub cache_misses: BTreeMap<&'static str, u64>,
    /// What the log itself says was used, where it does; its figures for output are often only beginnings.
    pub logged: Bill,
}

/// Why a conversation could not be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// No answer stands in it.
    #[error("there is no answer of a model in it")]
    NoCalls,
    /// One of the recorded prompts could not be priced.
    #[error("a recorded prompt could not be priced: {0}")]
    Prompt(#[from] PromptError),
    /// The managed call failed.
    #[error("the managed call failed: {0}")]
    Managed(#[from] SessionError),
}

/// Prices a conversation as it was recorded and through the managed call. Needs a runtime with time.
pub async fn replay(recording: &Recording, options: &ReplayOptions) -> Result<SessionReplay, ReplayError> {
    if recording.calls.is_empty() {
        return Err(ReplayError::NoCalls);
    }
    let known = options.catalogue.of(&options.model);
    let token_model = TokenModel::of(known.family_on(recording.wire_format));
    let fixed = FixedPrompt::of(recording, &token_model);
    let recorded = recorded_ttl(recording);
    let ttl_with = options.ttl.or(recorded).unwrap_or_default();
    let ttl_without = recorded.unwrap_or(ttl_with);
    let policy = |ttl| cache_policy(recording.wire_format, &options.model, ttl);
    let cache = |policy| PrefixCache::with_catalogue(CacheStyle::of(policy), options.catalogue.clone());
    let tariff = Tariff {
        catalogue: options.catalogue.clone(),
        model: options.model.clone(),
        // Only Anthropic's own wire says who sells the model.
        provider: if recording.wire_format == WireFormat::Anthropic {
            "anthropic".to_owned()
        } else {
            String::new()
        },
    };
    let summaries = options.summaries;
    let baseline = Baseline {
        recording,
        fixed: &fixed,
        policy: policy(ttl_without),
        token_model: &token_model,
        tariff: &tariff,
        summaries,
    };
    let without = baseline.bill(cache(baseline.policy))?;
    let policy = policy(ttl_with);
    let clock = Arc::new(ReplayClock::default());
    let provider =
        Arc::new(FakeProvider::new(recording.wire_format, token_model, tariff.clone(), clock, cache(policy)));
    let managed = ManagedReplay {
        recording,
        fixed: &fixed,
        provider,
        policy,
        limits: options.limits,
        summaries,
        tool_output: options.tool_output.clone(),
    };
    let ManagedBill { bill: with, cache_misses } = managed.run().await?;
    Ok(SessionReplay {
        fixed_tokens: fixed.tokens,
        ttl_without,
        ttl_with,
        without,
        with,
        cache_misses,
        logged: logged(recording, &tariff),
    })
}

/// What the log itself says.
fn logged(recording: &Recording, tariff: &Tariff) -> Bill {
    let mut bill = Bill { compactions: recording.compactions.len() as u64, ..Bill::default() };
    // Whoever names another model wants to know what that one would cost.
    let is_recorded_model = recording.model.as_deref() == Some(tariff.model.as_str());
    for call in &recording.logged {
        let model = call.model.clone().filter(|_| is_recorded_model).unwrap_or_else(|| tariff.model.clone());
        let LoggedCall { usage, at_ms, .. } = call;
        let reported =
            throughline_wire::ReportedUsage { usage: usage.usage, cache_write_1h: usage.cache_write_1h };
        bill.book(&Tariff { model, ..tariff.clone() }, Purpose::Conversation, reported, *at_ms);
    }
    bill
}

/// How long the recorded client had prompts cached, as far as what was reported tells.
fn recorded_ttl(recording: &Recording) -> Option<CacheTtl> {
    let reported = || recording.calls.iter().filter_map(|call| call.usage.as_ref());
    if reported().any(|usage| usage.cache_write_1h > 0) {
        return Some(CacheTtl::OneHour);
    }
    reported().any(|usage| usage.usage.cache_write > 0).then_some(CacheTtl::FiveMinutes)
}

/// How prompts are cached on this wire by whoever most likely sells the model there.
fn cache_policy(wire_format: WireFormat, model: &str, ttl: CacheTtl) -> CachePolicy {
    let is_claude = model.to_ascii_lowercase().contains("claude");
    let seller = match wire_format {
        WireFormat::Anthropic => CacheSeller::Anthropic,
        WireFormat::Chat if is_claude => CacheSeller::OpenRouter,
        WireFormat::Chat | WireFormat::Responses => CacheSeller::OpenAi,
    };
    CachePolicy::of(seller, wire_format, model, ttl)
}
