//! The cost of calls, and the cost of the same requests without Throughline.
//!
//! The record has every message as the client sent it and every view that was sent, so the difference in tokens of each request is known.
//! The amount paid follows from the provider's reports. The client's own cost is an estimate: the same prompt plus those tokens, read from
//! the provider's cache as far as the previous request reaches and written from there on; not read at all if that request missed the cache
//! for a reason on the client's side. A request that would have exceeded the window is counted with the size of the window.
//!
//! Not for: future savings (`throughline-replay`).

use std::collections::BTreeMap;

use serde::Serialize;
use throughline_tokens::{Catalogue, PricedCall, Usage};

use crate::call::{CallFilter, NewCall, StoredCall, UsageBy};
use crate::error::Result;
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::session::SessionFilter;
use crate::store::Store;
use crate::views::item::ViewMessage;

/// The task of calls that only compactions make.
const NOTES_TASK: &str = "compression";
/// The name of a rendition that replaces a result whose whole text is an artifact.
const SHORTENED: &str = "artifact";
/// The cache lifetime of a prompt that was not marked for an hour.
const USUAL_CACHE_MS: Millis = 5 * 60 * 1_000;
/// The cache lifetime of a prompt that was.
const HOUR_CACHE_MS: Millis = 60 * 60 * 1_000;
/// A reason for a miss that changes by Throughline cause too.
const OWN_MISS: &str = "messages changed";

/// The cost and savings of a group of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SavingsTotal {
    /// The common value of the group; empty for everything.
    pub group: String,
    /// Number of calls, including those for notes.
    pub calls: u64,
    /// The amount paid, in millionths of a dollar.
    pub paid_micro_usd: u64,
    /// The estimated cost of the same requests without Throughline.
    pub direct_micro_usd: u64,
    /// The part saved by compactions; negative if they cost more.
    pub compaction_micro_usd: i64,
    /// The part saved by shortened tool results.
    pub tool_results_micro_usd: i64,
    /// The part paid for notes by a model.
    pub notes_micro_usd: i64,
    /// Prompt tokens that were not sent.
    pub tokens_left_out: u64,
    /// Number of calls whose cost without Throughline was estimated; for the others it is the amount paid.
    pub estimated: u64,
    /// Number of calls that would have exceeded the window.
    pub beyond_window: u64,
    /// Number of calls without a price, which are in none of the amounts.
    pub unpriced: u64,
}

impl SavingsTotal {
    /// Returns the amount saved, in millionths of a dollar.
    #[must_use]
    pub fn saved_micro_usd(&self) -> i64 {
        signed(self.direct_micro_usd) - signed(self.paid_micro_usd)
    }

    fn add(&mut self, call: &CallSavings) {
        self.calls += 1;
        let (Some(paid), Some(direct)) = (call.paid, call.direct) else {
            self.unpriced += 1;
            return;
        };
        self.paid_micro_usd = self.paid_micro_usd.saturating_add(paid);
        self.direct_micro_usd = self.direct_micro_usd.saturating_add(direct);
        let saved = signed(direct) - signed(paid);
        if call.is_for_notes {
            self.notes_micro_usd += saved;
        } else {
            let left_out = i128::from(call.left_out.compacted + call.left_out.shortened).max(1);
            let results = i128::from(saved) * i128::from(call.left_out.shortened) / left_out;
            let results = i64::try_from(results).unwrap_or_default();
            self.tool_results_micro_usd += results;
            self.compaction_micro_usd += saved - results;
        }
        self.tokens_left_out += call.left_out.compacted + call.left_out.shortened;
        self.estimated += u64::from(call.is_estimated);
        self.beyond_window += u64::from(call.is_beyond_window);
    }
}

/// Cost and savings in several groupings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Savings {
    /// The total.
    pub total: SavingsTotal,
    /// By day, in UTC.
    pub by_day: Vec<SavingsTotal>,
    /// By model.
    pub by_model: Vec<SavingsTotal>,
    /// By the program of the conversation.
    pub by_program: Vec<SavingsTotal>,
    /// By the name of the access token; the group without a name is calls without one.
    pub by_access_token: Vec<SavingsTotal>,
}

impl Savings {
    /// Returns the totals of the calls that match a filter.
    pub fn of(store: &dyn Store, owner: &Owner, filter: &CallFilter, catalogue: &Catalogue) -> Result<Self> {
        let mut groups: [BTreeMap<String, SavingsTotal>; 4] = Default::default();
        let mut savings = Self::default();
        let conversations = match &filter.chain_of {
            Some(id) => vec![id.clone()],
            None => {
                let all = SessionFilter {
                    since_ms: filter.since_ms,
                    include_attached: true,
                    ..SessionFilter::default()
                };
                store.conversations(owner, &all)?.into_iter().map(|one| one.tip.id).collect()
            }
        };
        for id in conversations {
            for call in conversation(store, owner, &id, catalogue)? {
                let is_in = filter.since_ms.is_none_or(|since| call.at_ms >= since)
                    && filter.until_ms.is_none_or(|until| call.at_ms < until);
                if !is_in {
                    continue;
                }
                savings.total.add(&call);
                let names = [
                    UsageBy::day_name(call.at_ms, 0),
                    call.model.clone(),
                    call.program.clone(),
                    call.access_token.clone(),
                ];
                for (name, group) in names.into_iter().zip(&mut groups) {
                    let total = group.entry(name.clone()).or_default();
                    total.group = name;
                    total.add(&call);
                }
            }
        }
        let [by_day, by_model, by_program, by_access_token] =
            groups.map(|group| group.into_values().collect());
        Ok(Self { by_day, by_model, by_program, by_access_token, ..savings })
    }
}

/// Tokens of the client's messages that a request left out, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OmittedTokens {
    compacted: u64,
    shortened: u64,
}

/// A call with its cost without Throughline.
struct CallSavings {
    at_ms: Millis,
    model: String,
    program: String,
    access_token: String,
    paid: Option<u64>,
    direct: Option<u64>,
    left_out: OmittedTokens,
    is_for_notes: bool,
    is_estimated: bool,
    is_beyond_window: bool,
}

/// A call with the sizes of its messages.
struct SizedCall {
    stored: StoredCall,
    program: String,
    /// The client's messages, and the messages as sent, by the estimate in the record.
    said_tokens: u64,
    sent_tokens: u64,
    shortened_tokens: u64,
}

/// Returns the calls of a session's conversation, in order.
fn conversation(
    store: &dyn Store,
    owner: &Owner,
    member: &SessionId,
    catalogue: &Catalogue,
) -> Result<Vec<CallSavings>> {
    let calls = sized_calls(store, owner, member)?;
    let scale = Scale::of(&calls);
    let caches = Caching::of(&calls);
    let mut before: Option<DirectPrompt> = None;
    Ok(calls.iter().map(|call| direct(call, scale, caches, &mut before, catalogue)).collect())
}

fn sized_calls(store: &dyn Store, owner: &Owner, member: &SessionId) -> Result<Vec<SizedCall>> {
    let chain = store.chain(owner, member)?;
    // Cumulative tokens of the conversation by position. The transcript of an older session ends where that session does.
    let tip = chain.last().map_or(member, |last| &last.id);
    let mut said: Vec<(u64, u64)> = Vec::new();
    let mut sum = 0_u64;
    for message in store.transcript(owner, tip)? {
        sum = sum.saturating_add(message.tokens);
        said.push((message.seq, sum));
    }
    let said_before = |seq: u64| match said.partition_point(|(place, _)| *place < seq) {
        0 => 0,
        count => said.get(count - 1).map_or(0, |(_, sum)| *sum),
    };
    let mut sized = Vec::new();
    for session in &chain {
        // The store returns the calls of the whole chain.
        let mut calls = store.calls(owner, &session.id)?;
        calls.retain(|stored| stored.session == session.id);
        if calls.is_empty() {
            continue;
        }
        // The tokens of the view at its start, and those each of its own messages added.
        let (mut began, mut began_shortened) = (0_u64, 0_u64);
        let mut own: Vec<(u64, u64, u64)> = Vec::new();
        for item in store.view(owner, &session.id, None)? {
            let shortened = match &item {
                ViewMessage::Rendition(message, rendition)
                    if rendition.kinds.iter().any(|kind| kind == SHORTENED) =>
                {
                    message.tokens.saturating_sub(rendition.tokens)
                }
                _ => 0,
            };
            match item.message().filter(|message| message.session == session.id) {
                Some(message) => own.push((message.seq, item.tokens(), shortened)),
                None => {
                    began = began.saturating_add(item.tokens());
                    began_shortened = began_shortened.saturating_add(shortened);
                }
            }
        }
        own.sort_unstable();
        // Cumulative sums, so that no call adds them up again.
        let (mut tokens, mut shortened) = (began, began_shortened);
        let mut sums: Vec<(u64, u64, u64)> = Vec::with_capacity(own.len());
        for (seq, more, less) in own {
            tokens = tokens.saturating_add(more);
            shortened = shortened.saturating_add(less);
            sums.push((seq, tokens, shortened));
        }
        let program = session.origin.program.clone();
        for stored in calls {
            let to_seq = stored.call.sent_to_seq;
            let count = to_seq.map_or(0, |to| sums.partition_point(|(seq, _, _)| *seq < to));
            let last = count.checked_sub(1).and_then(|last| sums.get(last));
            let (sent_tokens, shortened_tokens) =
                last.map_or((began, began_shortened), |(_, tokens, shortened)| (*tokens, *shortened));
            let said_tokens = to_seq.map_or(sent_tokens, said_before);
            sized.push(SizedCall {
                stored,
                program: program.clone(),
                said_tokens,
                sent_tokens,
                shortened_tokens,
            });
        }
    }
    sized.sort_by_key(|call| (call.stored.call.at_ms, call.stored.id));
    Ok(sized)
}

/// Tokens of the provider per thousand of the estimate: the growth of its counts over the longest run of calls of one session, relative to
/// the growth of the estimate.
#[derive(Clone, Copy)]
struct Scale(u64);

impl Scale {
    /// Estimates are off by less than this in either direction; larger ratios have another cause.
    const RANGE: (u64, u64) = (500, 2_000);

    fn of(calls: &[SizedCall]) -> Self {
        let runs = calls.chunk_by(|one, two| one.stored.session == two.stored.session);
        let grown = runs.filter_map(|run| {
            let (first, last) = (run.first()?, run.last()?);
            let estimated = last.sent_tokens.checked_sub(first.sent_tokens).filter(|grown| *grown > 0)?;
            let counted = last.stored.call.usage.prompt().checked_sub(first.stored.call.usage.prompt())?;
            Some((estimated, counted))
        });
        let permille =
            grown.max().map_or(1_000, |(estimated, counted)| counted.saturating_mul(1_000) / estimated);
        Self(permille.clamp(Self::RANGE.0, Self::RANGE.1))
    }

    fn real(self, estimated: u64) -> u64 {
        u64::try_from(u128::from(estimated) * u128::from(self.0) / 1_000).unwrap_or(u64::MAX)
    }
}

/// How the provider of a conversation caches, according to its reports.
#[derive(Clone, Copy)]
struct Caching {
    reads: bool,
    charges_writes: bool,
    lifetime_ms: Millis,
}

impl Caching {
    fn of(calls: &[SizedCall]) -> Self {
        let usages = || calls.iter().map(|call| &call.stored.call);
        let charges_writes = usages().any(|call| call.usage.cache_write > 0);
        let for_an_hour = usages().any(|call| hour_writes(call) > 0);
        Self {
            reads: charges_writes || usages().any(|call| call.usage.cache_read > 0),
            charges_writes,
            lifetime_ms: if for_an_hour { HOUR_CACHE_MS } else { USUAL_CACHE_MS },
        }
    }
}

/// The client's own previous request.
#[derive(Clone, Copy)]
struct DirectPrompt {
    tokens: u64,
    at_ms: Millis,
}

/// Computes the cost of a call as the client would have made it.
fn direct(
    sized: &SizedCall,
    scale: Scale,
    caches: Caching,
    before: &mut Option<DirectPrompt>,
    catalogue: &Catalogue,
) -> CallSavings {
    let call = &sized.stored.call;
    let is_for_notes = call.task == NOTES_TASK;
    let difference = scale.real(sized.said_tokens.saturating_sub(sized.sent_tokens));
    let shortened = scale.real(sized.shortened_tokens).min(difference);
    let is_made_directly = !is_for_notes && call.sent_to_seq.is_some();
    let left_out = match is_made_directly {
        true => OmittedTokens { compacted: difference - shortened, shortened },
        false => OmittedTokens::default(),
    };
    let priced = |usage: Usage, cache_write_1h: u64| {
        let (model, at_ms) = (call.model.as_str(), call.at_ms);
        let by = |provider| {
            catalogue.cost(&PricedCall { model, provider, at_ms, usage, cache_write_1h }).micro_usd
        };
        // The name of an upstream may not be a seller's; then the amount paid was computed with the maker's price.
        by(&call.provider).or_else(|| call.cost_micro_usd.and_then(|_| by("")))
    };
    let mut made = CallSavings {
        at_ms: call.at_ms,
        model: call.model.clone(),
        program: sized.program.clone(),
        access_token: call.access_token.clone().unwrap_or_default(),
        paid: call.cost_micro_usd,
        direct: if is_for_notes { Some(0) } else { call.cost_micro_usd },
        left_out,
        is_for_notes,
        is_estimated: false,
        is_beyond_window: false,
    };
    if !is_made_directly || call.error.is_some() {
        return made;
    }
    let window = catalogue.of(&call.model).facts.window_tokens;
    let whole = call.usage.prompt().saturating_add(difference);
    made.is_beyond_window = whole > window && difference > 0;
    let tokens = if made.is_beyond_window { window.max(call.usage.prompt()) } else { whole };
    let last = before.replace(DirectPrompt { tokens, at_ms: call.at_ms });
    if difference == 0 {
        return made;
    }
    let is_missed = call.cache_miss.as_deref().is_some_and(|reason| !reason.contains(OWN_MISS));
    let is_warm = |last: &DirectPrompt| call.at_ms.saturating_sub(last.at_ms) < caches.lifetime_ms;
    let read = match last.filter(is_warm) {
        Some(last) if caches.reads && !is_missed => last.tokens.min(tokens),
        // Tokens that our request did not read from the cache would not have been read by the client's either.
        _ => call.usage.cache_read.min(tokens),
    };
    let rest = tokens - read;
    let write = if caches.charges_writes { rest.saturating_sub(call.usage.input) } else { 0 };
    let usage = Usage { input: rest - write, cache_read: read, cache_write: write, ..call.usage };
    let for_an_hour = if caches.lifetime_ms == HOUR_CACHE_MS { write } else { 0 };
    made.direct = priced(usage, for_an_hour);
    made.is_estimated = true;
    made
}

/// Returns the cache writes of a call that last an hour, as its provider reported them.
pub(crate) fn hour_writes(call: &NewCall) -> u64 {
    let raw = call.usage_raw.as_deref().unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(raw).unwrap_or_default();
    value["cache_creation"]["ephemeral_1h_input_tokens"].as_u64().unwrap_or(0)
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "savings_tests.rs"]
mod tests;
