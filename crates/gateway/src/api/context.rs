//! The tokens of calls and compactions over time: the data behind the context chart of the page.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::Response;
use serde::Serialize;
use serde_json::{Value, json};
use throughline_engine::LimitsInUse;
use throughline_store::{
    CallContext, ItemEntry, NewCall, NodeHead, Owner, Session, SessionId, Store, StoreError, Summary,
    SummaryId, SummaryNode, ViewChange, ViewMessage,
};
use throughline_tokens::{Catalogue, Limits, PricedCall, Usage};

use super::error::ApiError;
use super::query::Query;
use super::read::ask;
use super::response::json as as_json;
use super::session_handle::endpoint;
use crate::http::inbound::InboundRequest;
use crate::http::response_body::ResponseBody;
use crate::tenant::Tenant;

/// The most messages at the start of a session that can be a client's own summary.
const CLIENT_SUMMARY_MESSAGES: u64 = 8;
/// The largest value of `points`.
const MOST_POINTS: usize = 10_000;
/// The most calls without a cache hit, or with an error, that a chart shows beyond its points.
const MISSED_SHOWN: usize = 100;

#[derive(Serialize)]
struct CallsPage {
    session: Session,
    /// The current window and threshold.
    limits: LimitsEntry,
    turnings: Vec<ViewChange>,
    /// The window and the threshold that each compaction recorded.
    past_limits: Vec<PastLimits>,
    /// The number of calls of the conversation.
    total_calls: usize,
    /// The number of calls that missed the cache or failed.
    missed_calls: usize,
    /// All calls, or the selection of `shown_in_chart` if the request names `points`.
    calls: Vec<CallEntry>,
}

/// A call with its cost by bucket, if its prices are known.
#[derive(Serialize)]
struct CallEntry {
    #[serde(flatten)]
    call: CallContext,
    cost_by_bucket: Option<BTreeMap<&'static str, u64>>,
}

impl CallEntry {
    fn of(call: CallContext, catalogue: &Catalogue) -> Self {
        let cost_by_bucket = call.cost_micro_usd.and_then(|cost| buckets(&call, cost, catalogue));
        Self { call, cost_by_bucket }
    }
}

/// Divides the recorded cost of a call among its buckets, in proportion to their prices.
fn buckets(call: &CallContext, cost: u64, catalogue: &Catalogue) -> Option<BTreeMap<&'static str, u64>> {
    let by = |provider| {
        let (model, at_ms) = (call.model.as_str(), call.at_ms);
        let (usage, cache_write_1h) = (call.usage, call.cache_write_1h);
        catalogue.cost_by_bucket(&PricedCall { model, provider, at_ms, usage, cache_write_1h })
    };
    // The name of an upstream may not be that of a seller; the maker's prices give the shares then.
    let parts = by(&call.provider).or_else(|| by(""))?;
    let sum: u64 = parts.iter().map(|(_, amount)| amount).sum();
    // Prices may have changed since the call; the recorded cost is the sum.
    let part = |amount: u64| {
        let share = u128::from(amount) * u128::from(cost) / u128::from(sum.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    };
    Some(parts.into_iter().map(|(name, amount)| (name, part(amount))).collect())
}

#[derive(Default, Serialize)]
struct LimitsEntry {
    window_tokens: Option<u64>,
    threshold_tokens: Option<u64>,
}

#[derive(Serialize)]
struct PastLimits {
    at_ms: i64,
    window_tokens: Option<u64>,
    threshold_tokens: Option<u64>,
}

/// `GET /api/sessions/{id}/calls`.
pub(super) async fn calls(
    gateway: &Tenant,
    inbound: &InboundRequest,
    reference: &str,
    query: &Query,
) -> Result<Response<ResponseBody>, ApiError> {
    let points = query.number("points", 1, MOST_POINTS)?;
    let (reference, now_ms) = (reference.to_owned(), gateway.setup.host.now_ms());
    let found = ask(gateway, move |store, owner| {
        let session = Session::find_tip(store, owner, &reference)?;
        let calls = CallContext::of_chain(store, owner, &session)?;
        let turnings = ViewChange::all(store, owner, &session)?;
        let past_limits: Vec<_> = store.summaries(owner, &session.id)?.iter().map(PastLimits::of).collect();
        let in_use = LimitsInUse::load(store, owner, &session.id, now_ms)?;
        let root = store.chain(owner, &session.id)?.into_iter().next().map(|root| root.id);
        let limits =
            LimitsEntry { window_tokens: in_use.map(|in_use| in_use.window_tokens), threshold_tokens: None };
        Ok((session, turnings, past_limits, calls, limits, root))
    });
    let (session, turnings, past_limits, calls, limits, root) = found.await?;
    let catalogue = Arc::clone(&gateway.config.now().catalogue);
    let total_calls = calls.len();
    let missed_calls = calls.iter().filter(|call| is_missed(call)).count();
    let calls = match points {
        Some(points) => for_chart(calls, points),
        None => calls,
    };
    let calls = calls.into_iter().map(|call| CallEntry::of(call, &catalogue)).collect();
    let mut page = CallsPage { session, limits, turnings, past_limits, total_calls, missed_calls, calls };
    let known = root.and_then(|root| gateway.feed.activity.pressure(&root));
    if let Some(known) = known {
        page.limits = LimitsEntry {
            window_tokens: Some(known.pressure.window_tokens),
            threshold_tokens: Some(known.pressure.threshold_tokens),
        };
    } else if let Some(limits) = resolved_limits(gateway, inbound, &page.session).await {
        page.limits =
            LimitsEntry { window_tokens: page.limits.window_tokens.or(limits.window_tokens), ..limits };
    }
    as_json(&page)
}

fn is_missed(call: &CallContext) -> bool {
    call.cache_miss.is_some() || call.error.is_some()
}

/// The figures of a call that decide whether a chart shows it.
struct ChartFigures {
    prompt_tokens: u64,
    cost_micro_usd: Option<u64>,
    is_missed: bool,
}

/// Returns the calls that a chart with `points` points shows, in order.
fn for_chart(calls: Vec<CallContext>, points: usize) -> Vec<CallContext> {
    let figures = calls.iter().map(|call| ChartFigures {
        prompt_tokens: call.usage.prompt(),
        cost_micro_usd: call.cost_micro_usd,
        is_missed: is_missed(call),
    });
    let shown = shown_in_chart(&figures.collect::<Vec<_>>(), points);
    calls.into_iter().zip(shown).filter_map(|(call, is_shown)| is_shown.then_some(call)).collect()
}

/// Selects the calls of a chart: of each of `points` stretches the call with the largest prompt and the most expensive one, and the
/// newest calls that missed the cache or failed. Selects all calls if there are at most `points`.
fn shown_in_chart(calls: &[ChartFigures], points: usize) -> Vec<bool> {
    let mut shown = vec![calls.len() <= points; calls.len()];
    let mut show = |at: Option<usize>| {
        if let Some(place) = at.and_then(|at| shown.get_mut(at)) {
            *place = true;
        }
    };
    for point in 0..points {
        let (from, to) = (point * calls.len() / points, (point + 1) * calls.len() / points);
        let stretch = || (from..to).filter_map(|at| Some((at, calls.get(at)?)));
        show(stretch().max_by_key(|(_, call)| call.prompt_tokens).map(|(at, _)| at));
        show(stretch().max_by_key(|(_, call)| call.cost_micro_usd).map(|(at, _)| at));
    }
    let missed = calls.iter().enumerate().rev().filter(|(_, call)| call.is_missed);
    missed.take(MISSED_SHOWN).for_each(|(at, _)| show(Some(at)));
    shown
}

/// The limits of the next call of a conversation. `None` if its model is unknown or has no upstream.
async fn resolved_limits(
    gateway: &Tenant,
    inbound: &InboundRequest,
    session: &Session,
) -> Option<LimitsEntry> {
    let model = session.model.as_deref()?;
    let endpoint = endpoint(gateway, inbound, session.wire_format, model).ok()?;
    let target = gateway.target_for(endpoint, model, session.wire_format).await.ok()?;
    let limits = Limits::beside(&target.policy, 0).ok()?;
    Some(LimitsEntry {
        window_tokens: Some(limits.window_tokens),
        threshold_tokens: Some(limits.threshold_tokens.effective),
    })
}

impl PastLimits {
    fn of(summary: &Summary) -> Self {
        let figure = |name: &str| summary.figures.get(name).and_then(Value::as_u64);
        Self {
            at_ms: summary.created_ms,
            window_tokens: figure("window_tokens"),
            threshold_tokens: figure("threshold_tokens"),
        }
    }
}

/// An item of the view after a compaction. A message that the view before also contains is only referenced.
#[derive(Serialize)]
#[serde(untagged)]
enum AfterItem<'a> {
    Kept { kind: &'static str, session: &'a SessionId, seq: u64, tokens: u64 },
    Written(ItemEntry<'a>),
}

impl<'a> AfterItem<'a> {
    fn of(item: &'a ViewMessage, first_seq: u64) -> Result<Self, StoreError> {
        match item {
            ViewMessage::Verbatim(message) if message.seq < first_seq => Ok(Self::Kept {
                kind: "verbatim",
                session: &message.session,
                seq: message.seq,
                tokens: message.tokens,
            }),
            item => ItemEntry::of(item).map(Self::Written),
        }
    }
}

/// `GET /api/sessions/{id}/compaction`: the view with which the session began, and the view before it.
pub(super) async fn compaction(
    gateway: &Tenant,
    reference: &str,
) -> Result<Response<ResponseBody>, ApiError> {
    let reference = reference.to_owned();
    let found = ask(gateway, move |store, owner| {
        let session = Session::find(store, owner, &reference)?;
        let change =
            ViewChange::all(store, owner, &session)?.into_iter().rev().find(|change| change.to == session.id);
        let Some(change) = change else { return Ok(None) };
        let before = match &change.from {
            Some(from) => store.view(owner, from, None)?,
            None => Vec::new(),
        };
        let mut after = store.view(owner, &session.id, Some(session.first_seq))?;
        if after.is_empty() {
            after = client_summary(store, owner, &session)?;
        }
        let summaries = store.summaries(owner, &session.id)?;
        let summary = summaries.into_iter().rev().find(|summary| summary.session == session.id);
        let tree = tree_tops(store, owner, summary.as_ref())?;
        let calls: Vec<_> = store.calls(owner, &session.id)?.into_iter().map(|stored| stored.call).collect();
        Ok(Some((session, change, before, after, summary, tree, calls)))
    });
    let (session, change, before, after, summary, tree, calls) =
        found.await?.ok_or_else(|| ApiError::not_found("the session did not begin with a compaction"))?;
    let refused = |error| ApiError::of_store(gateway, &error);
    let before = before.iter().map(ItemEntry::of).collect::<Result<Vec<_>, _>>().map_err(refused)?;
    let after = after
        .iter()
        .map(|item| AfterItem::of(item, session.first_seq))
        .collect::<Result<Vec<_>, _>>()
        .map_err(refused)?;
    let price = input_price(&calls, change.at_ms, &gateway.config.now().catalogue);
    as_json(&json!({
        "session": session,
        "turning": change,
        "input_micro_usd_per_million": price,
        "before": before,
        "after": after,
        "summary": summary,
        "nodes": tree,
    }))
}

/// The machine-written messages at the start of a session whose client compacted by itself.
fn client_summary(
    store: &dyn Store,
    owner: &Owner,
    session: &Session,
) -> Result<Vec<ViewMessage>, StoreError> {
    let until = session.first_seq.saturating_add(CLIENT_SUMMARY_MESSAGES).min(session.next_seq);
    let begun = store.view(owner, &session.id, Some(until))?;
    let is_written = |item: &ViewMessage| {
        item.message().is_some_and(|message| {
            message.machine_written || message.decode().is_some_and(|message| message.is_client_summary())
        })
    };
    Ok(begun.into_iter().take_while(is_written).collect())
}

/// The price of a million uncached prompt tokens at the time of a compaction, for the model of the last call before it.
fn input_price(calls: &[NewCall], at_ms: i64, catalogue: &Catalogue) -> Option<u64> {
    let own = |call: &&NewCall| call.task != "compression";
    let before = calls.iter().filter(own).rfind(|call| call.at_ms <= at_ms);
    let call = before.or_else(|| calls.iter().find(own))?;
    let usage = Usage { input: 1_000_000, ..Usage::default() };
    let by = |provider| {
        let priced = PricedCall { model: &call.model, provider, at_ms, usage, cache_write_1h: 0 };
        catalogue.cost(&priced).micro_usd
    };
    by(&call.provider).or_else(|| call.cost_micro_usd.and_then(|_| by("")))
}

/// The top nodes of a summary's tree; empty if it has none.
fn tree_tops(
    store: &dyn Store,
    owner: &Owner,
    summary: Option<&Summary>,
) -> Result<Vec<NodeHead>, StoreError> {
    let named = summary.and_then(|summary| summary.figures.get(SummaryNode::TOP_NODES));
    let named = named.and_then(Value::as_array).into_iter().flatten();
    let ids: Vec<SummaryId> = named.filter_map(Value::as_u64).map(SummaryId).collect();
    if ids.is_empty() { Ok(Vec::new()) } else { store.node_heads(owner, &ids) }
}

/// `GET /api/summaries/{id}`: the text of a summary or node, and the nodes below it.
pub(super) async fn summary(
    gateway: &Arc<Tenant>,
    reference: &str,
) -> Result<Response<ResponseBody>, ApiError> {
    let id: SummaryId =
        reference.parse().map_err(|_| ApiError::invalid("the id of a summary is a number"))?;
    let found = ask(gateway, move |store, owner| {
        let summary = match store.summary(owner, id) {
            Err(StoreError::UnknownSummary { .. }) => return Ok(None),
            found => found?,
        };
        let head = store.node_heads(owner, &[id])?.into_iter().next();
        let children: Vec<SummaryId> = match &head {
            Some(head) => head.node.children.iter().map(|child| child.id).collect(),
            None => Vec::new(),
        };
        let children = if children.is_empty() {
            tree_tops(store, owner, Some(&summary))?
        } else {
            store.node_heads(owner, &children)?
        };
        Ok(Some(json!({ "summary": summary, "head": head, "children": children })))
    });
    let found = found.await?.ok_or_else(|| ApiError::not_found("there is no such summary"))?;
    as_json(&found)
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
