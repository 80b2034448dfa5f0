//! The usage and cost of calls.

use serde::Serialize;
use throughline_tokens::{Catalogue, PricedCall, Usage};
use throughline_wire::ReportedUsage;

/// The price list.
#[derive(Clone, Debug)]
pub(crate) struct Tariff {
    pub(crate) catalogue: Catalogue,
    pub(crate) model: String,
    pub(crate) provider: String,
}

/// Calls, tokens by bucket, and cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bill {
    /// Number of calls to the model, including those for summaries and repeated reads.
    pub calls: u64,
    /// Tokens by bucket.
    pub usage: Usage,
    /// The part of the cache writes that lasts an hour.
    pub cache_write_1h: u64,
    /// The cost in millionths of a dollar.
    pub micro_usd: u64,
    /// Number of calls without a price, which the amount leaves out.
    pub unpriced_calls: u64,
    /// The largest prompt.
    pub largest_prompt_tokens: u64,
    /// Number of compactions.
    pub compactions: u64,
    /// The part of the amount for summaries.
    pub summaries_micro_usd: u64,
    /// Number of calls for summaries.
    pub summary_calls: u64,
    /// Number of long results that were stored as artifacts when first seen.
    pub set_aside: u64,
    /// Number of calls that read such a result again.
    pub reread_calls: u64,
    /// Number of calls that loaded a deferred tool.
    pub found_tools: u64,
    /// The part of the tokens read from the cache that is system prompt and tools.
    pub fixed_read: u64,
    /// The amount after each call of the conversation, in order; empty in a sum of several bills.
    #[serde(skip)]
    pub after_calls: Vec<u64>,
}

/// The purpose of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Conversation,
    Summary,
    Reread,
    /// Loading a deferred tool.
    FindTools,
}

impl Bill {
    /// Adds a call.
    pub(crate) fn book(
        &mut self,
        tariff: &Tariff,
        purpose: Purpose,
        reported: ReportedUsage,
        fixed_tokens: u64,
        at_ms: i64,
    ) {
        let ReportedUsage { usage, cache_write_1h } = reported;
        let call =
            PricedCall { model: &tariff.model, provider: &tariff.provider, at_ms, usage, cache_write_1h };
        let micro_usd = tariff.catalogue.cost(&call).micro_usd;
        self.calls += 1;
        self.usage += usage;
        self.fixed_read += usage.cache_read.min(fixed_tokens);
        self.cache_write_1h += cache_write_1h;
        self.micro_usd += micro_usd.unwrap_or(0);
        self.unpriced_calls += u64::from(micro_usd.is_none());
        self.largest_prompt_tokens = self.largest_prompt_tokens.max(usage.prompt());
        match purpose {
            Purpose::Conversation => self.after_calls.push(self.micro_usd),
            Purpose::Summary => {
                self.summary_calls += 1;
                self.summaries_micro_usd += micro_usd.unwrap_or(0);
            }
            Purpose::Reread => self.reread_calls += 1,
            Purpose::FindTools => self.found_tools += 1,
        }
    }

    /// Returns the share of all prompt tokens that was read from the cache.
    #[must_use]
    pub fn cache_read_share(&self) -> f64 {
        self.usage.cache_read as f64 / self.usage.prompt().max(1) as f64
    }

    /// Adds another bill.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.usage += other.usage;
        self.cache_write_1h += other.cache_write_1h;
        self.micro_usd += other.micro_usd;
        self.unpriced_calls += other.unpriced_calls;
        self.largest_prompt_tokens = self.largest_prompt_tokens.max(other.largest_prompt_tokens);
        self.compactions += other.compactions;
        self.summaries_micro_usd += other.summaries_micro_usd;
        self.summary_calls += other.summary_calls;
        self.set_aside += other.set_aside;
        self.reread_calls += other.reread_calls;
        self.found_tools += other.found_tools;
        self.fixed_read += other.fixed_read;
    }
}

/// The assumed cost of summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryCost {
    /// The cost of the conversation's own model.
    ByModel,
    /// None: rules write them.
    Free,
}
