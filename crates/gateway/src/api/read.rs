//! Reads the record: conversations, transcripts, views, search hits, usage.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::Response;
use serde::Serialize;
use serde_json::json;
use throughline_store::{
    CallFilter, Conversation, ItemEntry, ListCursor, MessageEntry, Millis, Owner, Savings, SearchAnswer,
    SearchMode, SearchQuery, Session, SessionFilter, SessionId, Store, StoreError, UsageBy, UsageOverview,
    UsageTotal, ViewChange, ViewMessage,
};
use throughline_transcript::Role;

use super::body::is_blank;
use super::error::ApiError;
use super::names::{first_words, first_words_of, first_words_of_hits};
use super::query::Query;
use super::response::json as as_json;
use crate::blocking::blocking;
use crate::http::response_body::ResponseBody;
use crate::tenant::Tenant;

/// The default number of conversations or hits.
const USUAL_LISTED: usize = 20;
const MOST_LISTED: usize = 200;
/// The default number of messages of a transcript.
const USUAL_MESSAGES: usize = 200;
const MOST_MESSAGES: usize = 1_000;
const MOST_HITS: usize = 1_000;
const MOST_NEIGHBOURS: usize = 20;
/// The largest offset from UTC, in minutes; time zones reach from -12 to +14 hours.
const MOST_OFFSET: i32 = 15 * 60;
/// The latest accepted time: the largest integer that every JSON reader represents exactly (2^53 - 1).
const LATEST_MS: Millis = (1 << 53) - 1;
/// The roles by which a search can be filtered.
const ROLES: [Role; 5] = [Role::User, Role::Assistant, Role::Tool, Role::System, Role::Developer];

/// Runs a query of the tenant's record on a thread for blocking work.
pub(super) async fn ask<T: Send + 'static>(
    gateway: &Tenant,
    question: impl FnOnce(&dyn Store, &Owner) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, ApiError> {
    let (store, owner) = (Arc::clone(&gateway.setup.store), gateway.setup.owner.clone());
    blocking(move || question(store.as_ref(), &owner))
        .await
        .map_err(|error| ApiError::of_store(gateway, &error))
}

fn moment(query: &Query, name: &str) -> Result<Option<Millis>, ApiError> {
    query.number(name, 0, LATEST_MS)
}

#[derive(Serialize)]
struct SessionList {
    sessions: Vec<Conversation>,
    /// The first words of conversations without a title, by root session.
    first_words: BTreeMap<SessionId, String>,
    next: Option<String>,
}

/// `GET /api/sessions`.
pub(super) async fn sessions(gateway: &Tenant, query: &Query) -> Result<Response<ResponseBody>, ApiError> {
    let limit = query.number("limit", 1, MOST_LISTED)?.unwrap_or(USUAL_LISTED);
    let filter = SessionFilter {
        since_ms: moment(query, "since_ms")?,
        until_ms: moment(query, "until_ms")?,
        program: query.text("program").map(str::to_owned),
        model: query.text("model").map(str::to_owned),
        project: query.text("project").map(str::to_owned),
        include_attached: query.switch("attached")?,
        after: query.text("after").map(list_position).transpose()?,
        // One more than the page shows, to find out whether there are more.
        limit: Some(limit.saturating_add(1)),
    };
    let found = ask(gateway, move |store, owner| {
        let mut sessions = store.conversations(owner, &filter)?;
        let more = sessions.len() > limit;
        sessions.truncate(limit);
        let first_words = first_words_of(store, owner, &sessions);
        Ok((sessions, more, first_words))
    });
    let (sessions, more, first_words) = found.await?;
    let next = sessions.last().filter(|_| more).map(ListCursor::of);
    let next = next.map(|place| format!("{}.{}", place.active_ms, place.ordinal));
    as_json(&SessionList { sessions, first_words, next })
}

/// Parses the cursor that an earlier page returned.
fn list_position(text: &str) -> Result<ListCursor, ApiError> {
    let parts = text.split_once('.').and_then(|(active_ms, ordinal)| {
        Some(ListCursor { active_ms: active_ms.parse().ok()?, ordinal: ordinal.parse().ok()? })
    });
    parts.ok_or_else(|| ApiError::invalid("`after` must be the value of `next` on the page before"))
}

/// `GET /api/sessions/{id}`.
pub(super) async fn session(gateway: &Tenant, reference: &str) -> Result<Response<ResponseBody>, ApiError> {
    let reference = reference.to_owned();
    let found = ask(gateway, move |store, owner| {
        let session = Session::find(store, owner, &reference)?;
        let chain = store.chain(owner, &session.id)?;
        let root = chain.first().map_or(&session.id, |root| &root.id);
        let first_words = first_words(store, owner, root);
        Ok((session, chain, first_words))
    });
    let (session, chain, first_words) = found.await?;
    as_json(&json!({ "session": session, "chain": chain, "first_words": first_words }))
}

#[derive(Serialize)]
struct TranscriptResponse<'a> {
    session: &'a Session,
    turnings: Vec<ViewChange>,
    messages: Vec<MessageEntry<'a>>,
    next_seq: Option<u64>,
}

/// `GET /api/sessions/{id}/transcript`.
pub(super) async fn transcript(
    gateway: &Tenant,
    reference: &str,
    query: &Query,
) -> Result<Response<ResponseBody>, ApiError> {
    let limit = query.number("limit", 1, MOST_MESSAGES)?.unwrap_or(USUAL_MESSAGES);
    let from = query.number("from_seq", 0, u64::from(u32::MAX))?.unwrap_or(0);
    let messages_only = query.switch("messages_only")?;
    let reference = reference.to_owned();
    let found = ask(gateway, move |store, owner| {
        let session = Session::find(store, owner, &reference)?;
        let turnings = if messages_only { Vec::new() } else { ViewChange::all(store, owner, &session)? };
        // Reads the page and one more message, to find out whether there are more.
        let end = from.saturating_add(limit as u64).saturating_add(1);
        Ok((session.transcript_part(store, owner, from..end)?, turnings, session))
    });
    let (mut said, turnings, session) = found.await?;
    let next_seq = said.get(limit).map(|message| message.seq);
    said.truncate(limit);
    let messages = said.iter().map(MessageEntry::of).collect::<Result<Vec<_>, _>>();
    let messages = messages.map_err(|error| ApiError::of_store(gateway, &error))?;
    as_json(&TranscriptResponse { session: &session, turnings, messages, next_seq })
}

#[derive(Serialize)]
struct ViewPage<'a> {
    session: &'a Session,
    tokens: u64,
    items: Vec<ItemEntry<'a>>,
}

/// `GET /api/sessions/{id}/view`.
pub(super) async fn view(gateway: &Tenant, reference: &str) -> Result<Response<ResponseBody>, ApiError> {
    let reference = reference.to_owned();
    let found = ask(gateway, move |store, owner| {
        let session = Session::find(store, owner, &reference)?;
        Ok((store.view(owner, &session.id, None)?, session))
    });
    let (shown, session) = found.await?;
    let tokens = shown.iter().map(ViewMessage::tokens).sum();
    let items = shown.iter().map(ItemEntry::of).collect::<Result<Vec<_>, _>>();
    let items = items.map_err(|error| ApiError::of_store(gateway, &error))?;
    as_json(&ViewPage { session: &session, tokens, items })
}

#[derive(Serialize)]
struct SearchPage {
    #[serde(flatten)]
    answer: SearchAnswer,
    /// The first words of the conversations without a title, by the session of the hit.
    first_words: BTreeMap<SessionId, String>,
}

/// `GET /api/search`.
pub(super) async fn search(gateway: &Tenant, query: &Query) -> Result<Response<ResponseBody>, ApiError> {
    let text = query.text("q").filter(|text| !is_blank(text));
    let text = text.ok_or_else(|| ApiError::invalid("`q` must not be blank"))?.to_owned();
    let role = match query.text("role") {
        None => None,
        Some(name) => Some(ROLES.into_iter().find(|role| role.name() == name).ok_or_else(|| {
            ApiError::invalid("`role` must be one of user, assistant, tool, system and developer")
        })?),
    };
    let mode = match (query.switch("substring")?, query.switch("all_words")?) {
        (true, _) => SearchMode::Substring,
        (false, true) => SearchMode::AllWords,
        (false, false) => SearchMode::Words,
    };
    let session = query.text("session").map(str::to_owned);
    let question = SearchQuery {
        text,
        mode,
        session: None,
        role,
        tool: query.text("tool").map(str::to_owned),
        project: query.text("project").map(str::to_owned),
        file: query.text("file").map(str::to_owned),
        since_ms: moment(query, "since_ms")?,
        until_ms: moment(query, "until_ms")?,
        words_only: false,
        limit: query.number("limit", 1, MOST_HITS)?.unwrap_or(USUAL_LISTED),
        neighbours: query.number("context", 0, MOST_NEIGHBOURS)?.unwrap_or(0),
    };
    let page = ask(gateway, move |store, owner| {
        let session = named(store, owner, session.as_deref())?;
        let answer = store.search(owner, &SearchQuery { session, ..question })?;
        Ok(SearchPage { first_words: first_words_of_hits(store, owner, &answer.hits), answer })
    });
    as_json(&page.await?)
}

#[derive(Serialize)]
struct UsagePage {
    #[serde(flatten)]
    overview: UsageOverview,
    by_project: Vec<UsageTotal>,
    by_access_token: Vec<UsageTotal>,
    by_day: Vec<UsageTotal>,
}

/// The client's offset from UTC in minutes, negative in the west. Days begin at the client's midnight.
fn offset(query: &Query) -> Result<i32, ApiError> {
    let Some(text) = query.text("offset_minutes") else { return Ok(0) };
    let offset = text.parse().ok().filter(|minutes| (-MOST_OFFSET..=MOST_OFFSET).contains(minutes));
    offset.ok_or_else(|| ApiError::invalid("`offset_minutes` must be a whole number from -900 to 900"))
}

/// `GET /api/usage`.
pub(super) async fn usage(gateway: &Tenant, query: &Query) -> Result<Response<ResponseBody>, ApiError> {
    let (since_ms, until_ms) = (moment(query, "since_ms")?, moment(query, "until_ms")?);
    let session = query.text("session").map(str::to_owned);
    let offset_minutes = offset(query)?;
    let overview = ask(gateway, move |store, owner| {
        let chain_of = named(store, owner, session.as_deref())?;
        let filter = CallFilter { chain_of, since_ms, until_ms };
        Ok(UsagePage {
            overview: UsageOverview::of(store, owner, &filter)?,
            by_project: store.usage(owner, &filter, UsageBy::Project)?,
            by_access_token: store.usage(owner, &filter, UsageBy::AccessToken)?,
            by_day: store.usage(owner, &filter, UsageBy::Day { offset_minutes })?,
        })
    });
    as_json(&overview.await?)
}

/// `GET /api/savings`.
pub(super) async fn savings(gateway: &Tenant, query: &Query) -> Result<Response<ResponseBody>, ApiError> {
    let (since_ms, until_ms) = (moment(query, "since_ms")?, moment(query, "until_ms")?);
    let session = query.text("session").map(str::to_owned);
    let catalogue = gateway.config.now().catalogue.clone();
    let savings = ask(gateway, move |store, owner| {
        let chain_of = named(store, owner, session.as_deref())?;
        Savings::of(store, owner, &CallFilter { chain_of, since_ms, until_ms }, &catalogue)
    });
    as_json(&savings.await?)
}

/// `GET /api/runs/{name}`.
pub(super) fn run(gateway: &Tenant, name: &str) -> Result<Response<ResponseBody>, ApiError> {
    as_json(&gateway.feed.run_totals(name))
}

/// Returns the tip of the conversation that a parameter names, if the parameter is present.
fn named(store: &dyn Store, owner: &Owner, reference: Option<&str>) -> Result<Option<SessionId>, StoreError> {
    reference.map(|reference| Ok(Session::find_tip(store, owner, reference)?.id)).transpose()
}
