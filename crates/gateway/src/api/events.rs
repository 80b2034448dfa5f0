//! Live events as a stream of server-sent events.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use serde_json::{Value, json};
use throughline_store::{Session, SessionId};
use throughline_wire::WireEvent;
use tokio::sync::broadcast::error::RecvError;

use super::error::ApiError;
use super::query::Query;
use super::response;
use crate::blocking::blocking;
use crate::http::inbound::InboundRequest;
use crate::http::response_body::ResponseBody;
use crate::telemetry::event::GatewayEvent;
use crate::telemetry::event_feed::{FeedEntry, FeedEvent};
use crate::tenant::Tenant;

/// The interval of the comment lines that keep an idle connection open.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// `GET /api/events`.
pub(super) async fn stream(
    gateway: &Arc<Tenant>,
    inbound: &InboundRequest,
    query: &Query,
) -> Result<Response<ResponseBody>, ApiError> {
    let only = match query.text("session") {
        None => None,
        Some(reference) => Some(chain_of(gateway, reference).await?),
    };
    // The subscription starts before the response head is sent, so that no event is missed.
    let mut feed = gateway.feed.listen();
    let (sender, body) = ResponseBody::pieces();
    let (closing, revoked) = (gateway.closing.clone(), inbound.revoked.clone());
    tokio::spawn(async move {
        let mut only = only;
        let mut first = Vec::new();
        WireEvent::append_comment("listening", &mut first);
        if sender.send(Bytes::from(first)).await.is_err() {
            return;
        }
        loop {
            let received = tokio::select! {
                () = sender.closed() => return,
                () = closing.cancelled() => return,
                () = revoked.cancelled() => return,
                received = feed.recv() => received,
                () = tokio::time::sleep(SIGN_OF_LIFE) => {
                    let mut comment = Vec::new();
                    WireEvent::append_comment("", &mut comment);
                    if sender.send(Bytes::from(comment)).await.is_err() {
                        return;
                    }
                    continue;
                }
            };
            let event = match received {
                Ok(entry) if concerns(&mut only, &entry.event) => event_of(&entry),
                Ok(_) => continue,
                Err(RecvError::Lagged(missed)) => {
                    WireEvent::named("missed", json!({ "event": "missed", "count": missed }).to_string())
                }
                Err(RecvError::Closed) => return,
            };
            if sender.send(Bytes::from(event.to_bytes())).await.is_err() {
                return;
            }
        }
    });
    Ok(response::event_stream(body))
}

/// Returns the sessions of the conversation that a client subscribes to.
async fn chain_of(gateway: &Tenant, reference: &str) -> Result<Vec<SessionId>, ApiError> {
    let (store, owner, reference) =
        (Arc::clone(&gateway.setup.store), gateway.setup.owner.clone(), reference.to_owned());
    let chain = blocking(move || {
        let session = Session::find(store.as_ref(), &owner, &reference)?;
        store.chain(&owner, &session.id)
    });
    let chain = chain.await.map_err(|error| ApiError::of_store(gateway, &error))?;
    Ok(chain.into_iter().map(|session| session.id).collect())
}

/// Whether an event belongs to one of these sessions. A session that continues one of them is added to the list.
fn concerns(only: &mut Option<Vec<SessionId>>, event: &FeedEvent) -> bool {
    let Some(only) = only else { return true };
    match event {
        FeedEvent::Here(event) => concerns_here(only, event),
        FeedEvent::Elsewhere(value) => concerns_elsewhere(only, value),
    }
}

/// Whether an event of another gateway belongs to one of these sessions, judged by the ids in it.
fn concerns_elsewhere(only: &mut Vec<SessionId>, value: &Value) -> bool {
    let named = |name: &str| value.get(name).and_then(Value::as_str);
    let is_meant = ["session", "parent", "conversation"]
        .into_iter()
        .filter_map(named)
        .any(|id| only.iter().any(|known| known.as_str() == id));
    if let (true, Some("compaction_completed"), Some(new)) = (is_meant, named("event"), named("new")) {
        only.push(SessionId::from_text(new));
    }
    is_meant
}

fn concerns_here(only: &mut Vec<SessionId>, event: &GatewayEvent) -> bool {
    match event {
        GatewayEvent::Served(served) => served.session.as_ref().is_some_and(|id| only.contains(id)),
        GatewayEvent::Recalled { session, .. } => only.contains(session),
        GatewayEvent::Opened { session, link } => {
            only.contains(session) || link.as_ref().is_some_and(|(parent, _)| only.contains(parent))
        }
        GatewayEvent::Attached { session, link: (parent, _) } => {
            only.contains(session) || only.contains(parent)
        }
        GatewayEvent::Engine { conversation, event } => {
            let is_meant = only.contains(conversation);
            if let (true, throughline_engine::EngineEvent::CompactionCompleted { new, .. }) =
                (is_meant, event)
            {
                only.push(new.clone());
            }
            is_meant
        }
        GatewayEvent::Refused { .. } | GatewayEvent::Warning(_) => false,
    }
}

fn event_of(entry: &FeedEntry) -> WireEvent {
    let mut value = match &entry.event {
        FeedEvent::Here(event) => event.to_json(),
        FeedEvent::Elsewhere(value) => value.clone(),
    };
    let name = value.get("event").and_then(Value::as_str).unwrap_or("event").to_owned();
    if let Value::Object(members) = &mut value {
        members.insert("at_ms".to_owned(), json!(entry.at_ms));
    }
    WireEvent::named(name, value.to_string())
}
