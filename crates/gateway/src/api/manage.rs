//! Compacting a conversation on request, previewing a compaction, and undoing one.

use std::sync::Arc;

use hyper::{Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use throughline_engine::{
    CompactionResult, CompressOutcome, Compressor, ContextEngine, EngineError, ManualCompaction,
};

use super::body;
use super::error::ApiError;
use super::response;
use super::session_handle::SessionHandle;
use crate::http::inbound::InboundRequest;
use crate::http::response_body::ResponseBody;
use crate::telemetry::event::GatewayEvent;
use crate::telemetry::request_context::in_request_context;
use crate::tenant::Tenant;

/// The longest focus topic, in characters.
const MAX_FOCUS_CHARS: usize = 2_000;
/// The largest number of exchanges to keep that a request may name (2^16 - 1).
const MOST_EXCHANGES: u64 = 65_535;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CompactBody {
    focus: Option<String>,
    #[serde(deserialize_with = "body::whole_number")]
    keep_exchanges: Option<u64>,
    preview: bool,
    /// The name of the engine; only for a preview.
    engine: Option<String>,
    /// The threshold of the compaction; only for a preview.
    #[serde(deserialize_with = "body::whole_number")]
    threshold_tokens: Option<u64>,
}

/// `POST /api/sessions/{id}/compact`.
pub(super) async fn compact(
    gateway: &Arc<Tenant>,
    inbound: &InboundRequest,
    reference: &str,
) -> Result<Response<ResponseBody>, ApiError> {
    let wish: CompactBody = body::optional(inbound)?;
    if wish.focus.as_ref().is_some_and(|focus| focus.chars().count() > MAX_FOCUS_CHARS) {
        return Err(ApiError::invalid(format!("`focus` must have at most {MAX_FOCUS_CHARS} characters")));
    }
    if wish.keep_exchanges.is_some_and(|count| !(1..=MOST_EXCHANGES).contains(&count)) {
        return Err(ApiError::invalid(format!("`keep_exchanges` must be from 1 to {MOST_EXCHANGES}")));
    }
    let manual = ManualCompaction {
        focus: wish.focus.filter(|focus| !focus.trim().is_empty()),
        keep_exchanges: wish.keep_exchanges.and_then(|count| usize::try_from(count).ok()),
        memory_context: None,
    };
    if !wish.preview && (wish.engine.is_some() || wish.threshold_tokens.is_some()) {
        return Err(conflict(
            "`engine` and `threshold_tokens` are for a preview; the settings `context.engine` and \
             `compression.threshold_tokens` change them for good",
        ));
    }
    if wish.threshold_tokens == Some(0) {
        return Err(ApiError::invalid("`threshold_tokens` must not be 0"));
    }
    let engine = wish.engine.as_deref().map(|name| preview_engine(gateway, name)).transpose()?;
    let mut in_hand = SessionHandle::find(gateway, inbound, reference).await?;
    in_hand.session.set_access_token(inbound.token_name.clone());
    if wish.preview {
        let session = in_hand.session.id().clone();
        let previewed = match (&engine, wish.threshold_tokens) {
            (None, None) => in_hand.session.preview(&manual).await,
            (engine, threshold) => {
                let built_in = || preview_engine(gateway, Compressor::NAME);
                let engine = engine.clone().map_or_else(built_in, Ok)?;
                in_hand.session.preview_with(&manual, engine.as_ref(), threshold).await
            }
        };
        let outcome = previewed.map_err(|error| match error {
            // This threshold leaves no valid limits; the client can choose another.
            EngineError::BadAnswer { detail, .. } => conflict(detail),
            error => {
                gateway.tell(GatewayEvent::Warning(error.to_string()));
                ApiError::internal()
            }
        })?;
        return response::json(&previewed_json(&outcome, json!(session)));
    }
    let own = Arc::clone(gateway);
    // A compaction that has started is finished and recorded, even if the client disconnects.
    let work = gateway.tasks.spawn(in_request_context(async move {
        let result = in_hand.session.compact(manual).await;
        in_hand.settle(&own).await;
        (result, json!(in_hand.session.id()))
    }));
    let (result, session) = work.await.map_err(|_| ApiError::internal())?;
    response::json(&compacted_json(&result, session))
}

/// An error for a valid request that cannot be carried out.
fn conflict(message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "conflict", message)
}

/// Returns an engine for previews: it calls no model and stores nothing.
fn preview_engine(gateway: &Tenant, name: &str) -> Result<Arc<dyn ContextEngine>, ApiError> {
    let config = gateway.config.now();
    let found = config.preview_engines.iter().find(|(known, _)| *known == name);
    let (_, make) = found.ok_or_else(|| {
        let known: Vec<&str> = config.preview_engines.iter().map(|(name, _)| *name).collect();
        ApiError::invalid(format!("no preview by the engine `{name}`; there are {}", known.join(", ")))
    })?;
    Ok(make(&gateway.setup.owner))
}

fn compacted_json(result: &CompactionResult, session: Value) -> Value {
    let mut value = match result {
        CompactionResult::Completed(done) => json!({
            "outcome": "completed",
            "quality": done.quality,
            "report": done.report,
            "from": done.old,
        }),
        CompactionResult::NoOp { reason, detail } => no_op(json!(reason), detail),
        CompactionResult::Aborted { reason, detail } => aborted(json!(reason), detail),
        CompactionResult::Blocked(block) => json!({
            "outcome": "blocked",
            "reason": block.cause,
            "detail": block.detail,
            "until_ms": block.until_ms,
        }),
        CompactionResult::Locked { holder, until_ms } => json!({
            "outcome": "locked",
            "detail": format!("the conversation is open elsewhere: {}", holder.what),
            "until_ms": until_ms,
        }),
    };
    put(&mut value, "session", session);
    put(&mut value, "preview", json!(false));
    value
}

fn previewed_json(outcome: &CompressOutcome, session: Value) -> Value {
    let mut value = match outcome {
        CompressOutcome::Completed(made) => json!({
            "outcome": "completed",
            "quality": made.quality,
            "report": made.report,
            "summary": made.summary.as_ref().map(|summary| &summary.document),
        }),
        CompressOutcome::NoOp { reason, detail } => no_op(json!(reason), detail),
        CompressOutcome::Aborted { reason, detail } => aborted(json!(reason), detail),
    };
    put(&mut value, "session", session);
    put(&mut value, "preview", json!(true));
    value
}

fn no_op(reason: Value, detail: &str) -> Value {
    json!({ "outcome": "no_op", "reason": reason, "detail": detail })
}

fn aborted(reason: Value, detail: &str) -> Value {
    json!({ "outcome": "aborted", "reason": reason, "detail": detail })
}

fn put(value: &mut Value, name: &str, member: Value) {
    if let Value::Object(members) = value {
        members.insert(name.to_owned(), member);
    }
}

/// The direction in which the view of a session is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewStep {
    /// To the view before the last compaction.
    Back,
    /// To the view of the compaction that was undone last.
    Forward,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptyBody {}

/// `POST /api/sessions/{id}/undo` and `/redo`.
pub(super) async fn select(
    gateway: &Arc<Tenant>,
    inbound: &InboundRequest,
    reference: &str,
    way: ViewStep,
) -> Result<Response<ResponseBody>, ApiError> {
    let _: EmptyBody = body::optional(inbound)?;
    let mut in_hand = SessionHandle::find(gateway, inbound, reference).await?;
    let own = Arc::clone(gateway);
    let work = gateway.tasks.spawn(in_request_context(async move {
        let from = in_hand.session.id().clone();
        let done = match way {
            ViewStep::Back => in_hand.session.undo().await,
            ViewStep::Forward => in_hand.session.redo().await,
        };
        in_hand.settle(&own).await;
        let pressure = in_hand.session.pressure();
        done.map(|()| {
            json!({
                "from": from,
                "session": in_hand.session.id(),
                "messages": in_hand.session.messages().len(),
                "pressure": pressure,
            })
        })
    }));
    let done = work.await.map_err(|_| ApiError::internal())?;
    response::json(&done.map_err(|error| ApiError::of_call(gateway, &error))?)
}
