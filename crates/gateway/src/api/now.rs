//! Active conversations: how full each window is, what fills it, and the cost of the last minutes.

use std::collections::BTreeMap;

use hyper::Response;
use serde::Serialize;
use throughline_store::{
    CallFilter, Conversation, Millis, Owner, SentTokens, SessionFilter, SessionId, Store, StoreError,
    UsageBy, UsageTotal,
};

use super::error::ApiError;
use super::names::first_words_of;
use super::query::Query;
use super::response::json as as_json;
use crate::blocking::blocking;
use crate::http::response_body::ResponseBody;
use crate::telemetry::activity::{Activity, PressureEntry};
use crate::tenant::Tenant;

/// The default of `minutes`: conversations are active for this long after their last message.
const USUAL_MINUTES: i64 = 30;
const MOST_MINUTES: i64 = 7 * 24 * 60;
/// The most conversations in a response.
const MOST_ACTIVE: usize = 50;
/// The period over which rates per minute are averaged.
const RATE_MS: Millis = 5 * 60 * 1_000;

#[derive(Serialize)]
struct NowPage {
    now_ms: Millis,
    rate_ms: Millis,
    conversations: Vec<ActiveConversation>,
    /// The first words of conversations without a title, by root session.
    first_words: BTreeMap<SessionId, String>,
}

#[derive(Serialize)]
struct ActiveConversation {
    conversation: Conversation,
    /// The fill of the window before the last call; `None` if this gateway has made no call of the conversation.
    pressure: Option<PressureEntry>,
    /// The tokens of its view.
    view: SentTokens,
    /// The calls of the last minutes.
    recent: UsageTotal,
    /// All calls.
    total: UsageTotal,
    /// The cache misses of the last calls, by reason.
    misses: Vec<UsageTotal>,
}

/// `GET /api/now`.
pub(super) async fn now(gateway: &Tenant, query: &Query) -> Result<Response<ResponseBody>, ApiError> {
    let minutes = query.number("minutes", 1, MOST_MINUTES)?.unwrap_or(USUAL_MINUTES);
    let now_ms = gateway.setup.host.now_ms();
    let since_ms = now_ms.saturating_sub(minutes * 60_000).max(0);
    let (store, owner) = (std::sync::Arc::clone(&gateway.setup.store), gateway.setup.owner.clone());
    let feed = std::sync::Arc::clone(&gateway.feed);
    let found = blocking(move || {
        let filter =
            SessionFilter { since_ms: Some(since_ms), limit: Some(MOST_ACTIVE), ..SessionFilter::default() };
        let active = store.conversations(&owner, &filter)?;
        let of =
            |conversation| active_conversation(store.as_ref(), &owner, &feed.activity, conversation, now_ms);
        let first_words = first_words_of(store.as_ref(), &owner, &active);
        Ok((active.into_iter().map(of).collect::<Result<Vec<_>, _>>()?, first_words))
    });
    let (conversations, first_words) = found.await.map_err(|error| ApiError::of_store(gateway, &error))?;
    as_json(&NowPage { now_ms, rate_ms: RATE_MS, conversations, first_words })
}

fn active_conversation(
    store: &dyn Store,
    owner: &Owner,
    activity: &Activity,
    conversation: Conversation,
    now_ms: Millis,
) -> Result<ActiveConversation, StoreError> {
    let tip = &conversation.tip;
    let base = || Ok(SentTokens::of_view(&store.view(owner, &tip.id, Some(tip.first_seq))?));
    let view = activity.base(&tip.id, base)?.with_messages(&store.message_heads(owner, &tip.id)?);
    let chain_of = Some(tip.id.clone());
    let usage = |since_ms, by| {
        store.usage(owner, &CallFilter { chain_of: chain_of.clone(), since_ms, until_ms: None }, by)
    };
    let recent_ms = Some(now_ms.saturating_sub(RATE_MS).max(0));
    let only = |totals: Vec<UsageTotal>| totals.into_iter().next().unwrap_or_default();
    let recent = only(usage(recent_ms, UsageBy::Everything)?);
    let total = only(usage(None, UsageBy::Everything)?);
    let misses = UsageTotal::largest_misses(usage(recent_ms, UsageBy::CacheMiss)?);
    let pressure = activity.pressure(&conversation.root);
    Ok(ActiveConversation { pressure, view, recent, total, misses, conversation })
}
