//! A conversation priced twice, under the same conditions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use throughline_engine::{SessionError, ToolOutputPolicy};
use throughline_provider::{CachePolicy, CacheSeller, CacheStyle, CacheTtl, PrefixCache};
use throughline_tokens::TokenModel;
use throughline_transcript::WireFormat;

use crate::baseline::{Baseline, PromptError};
use crate::bill::{Bill, Purpose, SummaryCost, Tariff};
use crate::client_prompt::FixedSplit;
use crate::fake_provider::{FakeProvider, ReplayClock};
use crate::fixed_prompt::FixedPrompt;
use crate::managed::{ManagedBill, ManagedReplay};
use crate::observer::RequestObserver;
use crate::options::ReplayOptions;
use crate::recording::{LoggedCall, Recording};
use crate::reread::RECALL_TOOL;

/// The instructions for the model for reading a shortened result.
const RECALL_WORDS: &str = "Read any lines of it with recall_artifact {\"artifact\": \"{artifact}\", \"first_line\": 1, \"count\": 200}.";

/// A conversation priced twice.
#[derive(Clone, Debug, Serialize)]
pub struct SessionReplay {
    /// Tokens of system prompt and tools in every prompt.
    pub fixed_tokens: u64,
    /// The composition of the prompt before the messages, if the log leaves it out and a client's own is used.
    pub fixed_split: Option<FixedSplit>,
    /// The cache lifetime that the recorded client requested, as far as the reported usage shows it.
    pub ttl_without: CacheTtl,
    /// The cache lifetime that Throughline requested.
    pub ttl_with: CacheTtl,
    /// As the recorded client sent it.
    pub without: Bill,
    /// Through the managed call.
    pub with: Bill,
    /// The maximum of the amount paid with Throughline after any call, in thousandths of the amount without it.
    pub worst_permille: u64,
    /// The reasons why prompts of the managed call were not read from the cache, with their counts.
    pub cache_misses: BTreeMap<&'static str, u64>,
    /// The usage stated in the log, if any; its output figures are often incomplete.
    pub logged: Bill,
}

/// Why a conversation could not be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It has no answers.
    #[error("it contains no answer of a model")]
    NoCalls,
    /// One of the recorded prompts could not be priced.
    #[error("a recorded prompt could not be priced: {0}")]
    Prompt(#[from] PromptError),
    /// The managed call failed.
    #[error("the managed call failed: {0}")]
    Managed(#[from] SessionError),
}

/// Prices a conversation as it was recorded and through the managed call. Needs a runtime with a timer.
pub async fn replay(recording: &Recording, options: &ReplayOptions) -> Result<SessionReplay, ReplayError> {
    observed(recording, options, None).await
}

/// Like [`replay`], and `observer` receives every request of the conversation that the managed call sends.
pub async fn replay_observed(
    recording: &Recording,
    options: &ReplayOptions,
    observer: RequestObserver,
) -> Result<SessionReplay, ReplayError> {
    observed(recording, options, Some(observer)).await
}

async fn observed(
    recording: &Recording,
    options: &ReplayOptions,
    observer: Option<RequestObserver>,
) -> Result<SessionReplay, ReplayError> {
    if recording.calls.is_empty() {
        return Err(ReplayError::NoCalls);
    }
    let known = options.catalogue.of(&options.model);
    let token_model = TokenModel::of(known.family_on(recording.wire_format));
    let fixed = FixedPrompt::of(recording, options, &token_model);
    let recorded = recorded_ttl(recording);
    let ttl_with = options.ttl.or(recorded).unwrap_or_default();
    let ttl_without = recorded.unwrap_or(ttl_with);
    let policy = |ttl| cache_policy(recording.wire_format, &options.model, ttl);
    let cache = |policy| PrefixCache::with_catalogue(CacheStyle::of(policy), options.catalogue.clone());
    let tariff = Tariff {
        catalogue: options.catalogue.clone(),
        model: options.model.clone(),
        // Only Anthropic's own format implies the seller of the model.
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
    let mut provider =
        FakeProvider::new(recording.wire_format, token_model, tariff.clone(), clock, cache(policy));
    provider.observer = observer;
    let provider = Arc::new(provider);
    let managed = ManagedReplay {
        recording,
        fixed: &fixed,
        provider,
        policy,
        limits: options.limits,
        summaries,
        summary_wait: options.summary_wait.filter(|_| summaries == SummaryCost::ByModel),
        tool_output: tool_output(options),
        own_tools: &options.own_tools,
    };
    let ManagedBill { bill: with, cache_misses } = managed.run().await?;
    let sums = with.after_calls.iter().zip(&without.after_calls);
    let worst_permille = sums.map(|(with, without)| with * 1_000 / without.max(&1)).max().unwrap_or(0);
    Ok(SessionReplay {
        worst_permille,
        fixed_tokens: fixed.tokens,
        fixed_split: fixed.split,
        ttl_without,
        ttl_with,
        without,
        with,
        cache_misses,
        logged: logged(recording, &tariff),
    })
}

/// Returns the policy for long results: shortened ones are read again with our tool.
fn tool_output(options: &ReplayOptions) -> ToolOutputPolicy {
    let mut policy = options.tool_output.clone();
    if options.limits.economy.tool_results {
        policy.recall.get_or_insert_with(|| RECALL_WORDS.to_owned());
        policy.lookups.push(RECALL_TOOL.to_owned());
    }
    policy
}

/// Returns the usage stated in the log.
fn logged(recording: &Recording, tariff: &Tariff) -> Bill {
    let mut bill = Bill { compactions: recording.compactions.len() as u64, ..Bill::default() };
    // If the user names another model, its prices apply.
    let is_recorded_model = recording.model.as_deref() == Some(tariff.model.as_str());
    for call in &recording.logged {
        let model = call.model.clone().filter(|_| is_recorded_model).unwrap_or_else(|| tariff.model.clone());
        let LoggedCall { usage, at_ms, .. } = call;
        let reported =
            throughline_wire::ReportedUsage { usage: usage.usage, cache_write_1h: usage.cache_write_1h };
        let tariff = Tariff { model, ..tariff.clone() };
        bill.book(&tariff, Purpose::Conversation, reported, 0, *at_ms);
    }
    bill
}

/// Returns how long the recorded client's prompts were cached, as far as the reported usage shows it.
fn recorded_ttl(recording: &Recording) -> Option<CacheTtl> {
    let reported = || recording.calls.iter().filter_map(|call| call.usage.as_ref());
    if reported().any(|usage| usage.cache_write_1h > 0) {
        return Some(CacheTtl::OneHour);
    }
    reported().any(|usage| usage.usage.cache_write > 0).then_some(CacheTtl::FiveMinutes)
}

/// Returns how the most likely seller of the model in this wire format caches prompts.
fn cache_policy(wire_format: WireFormat, model: &str, ttl: CacheTtl) -> CachePolicy {
    let is_claude = model.to_ascii_lowercase().contains("claude");
    let seller = match wire_format {
        WireFormat::Anthropic => CacheSeller::Anthropic,
        WireFormat::Chat if is_claude => CacheSeller::OpenRouter,
        WireFormat::Chat | WireFormat::Responses => CacheSeller::OpenAi,
    };
    CachePolicy::of(seller, wire_format, model, ttl)
}
