//! Compactions that a client requests over the Responses wire format: it sends its whole conversation, receives an item in
//! place of it, and drops the rest.
//!
//! A client can use a separate path, which answers with the messages to keep and the item, or put a trigger at the end of an
//! ordinary request, which is answered with the item alone. Either way the conversation is compacted as any other, and the
//! item says which one it is (`seal`). The record keeps whatever the client drops.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use throughline_engine::{CompactionResult, Envelope, ManualCompaction};
use throughline_tokens::Usage;
use throughline_transcript::{Message, RawJson, Role, WireFormat};
use throughline_wire::{
    AnswerDraft, AnswerPart, ReportedUsage, Request, StopReason, StreamShape, Streaming, WireEvent,
};

use crate::compaction::compaction_item::COMPACTION;
use crate::compaction::seal::Sealed;
use crate::error::GatewayError;
use crate::http::inbound::InboundRequest;
use crate::http::response_body::ResponseBody;
use crate::lookup::message_key::{MessageIdentity, identity_of};
use crate::proxy::client_history::ContinuedSession;
use crate::proxy::managed_request::{ManagedRequest, read_managed_request};
use crate::telemetry::event::GatewayEvent;
use crate::tenant::Tenant;

/// The path of compaction requests.
pub(crate) const PATH: &str = "/v1/responses/compact";
/// The type of the input item that requests a compaction.
const TRIGGER: &str = "compaction_trigger";
/// The most bytes of user messages that are returned to the client; the newest are chosen.
const MOST_KEPT_BYTES: usize = 80_000;

/// The answer to a request for compaction.
struct CompactedAnswer {
    /// The compaction item, as JSON.
    item: String,
    /// The messages that the client should keep, as JSON.
    kept: Vec<String>,
    id: String,
    model: String,
    created_secs: u64,
    usage: Usage,
}

/// Returns the request without the compaction trigger at its end; `None` if there is none.
pub(crate) fn without_trigger(request: &Request) -> Option<Request> {
    let (last, before) = request.messages().split_last()?;
    let kind = RawJson(last.json()).get("type").and_then(RawJson::as_text);
    if request.wire_format() != WireFormat::Responses || kind.is_none_or(|kind| kind != TRIGGER) {
        return None;
    }
    Request::decode(WireFormat::Responses, request.with_messages(before.iter().map(Message::json))).ok()
}

/// Answers a request that ends with a compaction trigger.
pub(crate) async fn answer_trigger(
    gateway: &Arc<Tenant>,
    turn: ManagedRequest,
) -> Result<Response<ResponseBody>, GatewayError> {
    let streaming = turn.request.streaming();
    let answer = gateway.compact(turn).await?;
    let draft = AnswerDraft {
        id: answer.id,
        model: answer.model,
        created_secs: answer.created_secs,
        parts: vec![AnswerPart::Other { kind: COMPACTION.to_owned(), json: answer.item }],
        stop: StopReason::EndOfTurn,
        usage: Some(ReportedUsage { usage: answer.usage, cache_write_1h: 0 }),
    };
    Ok(match streaming {
        Streaming::Whole => json(draft.to_response(WireFormat::Responses)),
        Streaming::Streamed => {
            let events = draft.to_stream(WireFormat::Responses, &StreamShape::default());
            let bytes: Vec<u8> = events.iter().flat_map(WireEvent::to_bytes).collect();
            with_type(Bytes::from(bytes), "text/event-stream; charset=utf-8")
        }
    })
}

/// Answers a request to [`PATH`].
pub(crate) async fn answer(
    gateway: &Arc<Tenant>,
    inbound: &InboundRequest,
) -> Result<Response<ResponseBody>, GatewayError> {
    let (turn, _) = read_managed_request(gateway, inbound, WireFormat::Responses).await?;
    let answer = gateway.compact(turn).await?;
    let output: Vec<String> = answer.kept.into_iter().chain([answer.item]).collect();
    let usage = (ReportedUsage { usage: answer.usage, cache_write_1h: 0 }).to_json(WireFormat::Responses);
    Ok(json(format!(
        r#"{{"id":"{}","object":"response.compaction","created_at":{},"output":[{}],"usage":{usage}}}"#,
        answer.id,
        answer.created_secs,
        output.join(","),
    )))
}

impl Tenant {
    /// Compacts the conversation of a request.
    async fn compact(self: &Arc<Self>, mut turn: ManagedRequest) -> Result<CompactedAnswer, GatewayError> {
        self.name_session(&mut turn);
        let config = self.config.now();
        let continued = self.continue_session(&turn, &config.recall, |_| ()).await?;
        let ContinuedSession { slot, mut session, new_messages, keys } = continued;
        let kept = kept(turn.request.messages());
        let failed = |error: &_| self.call_failed(error);
        session
            .append(&Envelope::of_request(turn.request), new_messages)
            .await
            .map_err(|error| failed(&error))?;
        let result = session.compact(ManualCompaction::default()).await;
        if let Some(why) = failure_detail(&result) {
            // The view stays larger, and the next call compacts it if it must. No message is lost.
            self.tell(GatewayEvent::Warning(format!("a compaction requested by a client failed: {why}")));
        }
        let history_keys =
            self.read_history_keys(&session).await.map_err(|error| self.record_failed(&error))?;
        let said: Vec<MessageIdentity> = keys.iter().filter_map(|key| key.identity).collect();
        let compacted = session.messages().get(..session.first_verbatim_item()).unwrap_or_default();
        let stands_for = |message: &&Message| {
            !message.role().is_instructions()
                && identity_of(message).is_some_and(|identity| !said.contains(&identity))
        };
        let sealed = Sealed {
            conversation: session.conversation().clone(),
            messages: history_keys.keys.len(),
            summary: compacted.iter().filter(stands_for).map(|message| message.json().to_owned()).collect(),
        };
        let encrypted =
            self.setup.seal_key.seal(&self.setup.owner, &sealed).ok_or_else(GatewayError::internal)?;
        slot.set_history_keys(history_keys);
        let number = format!("{}{:08x}", session.id().as_str().replace('_', ""), self.setup.host.random());
        Ok(CompactedAnswer {
            item: format!(
                r#"{{"id":"cmp_{number}","type":"{COMPACTION}","encrypted_content":"{encrypted}"}}"#
            ),
            kept,
            id: format!("resp_{number}"),
            model: turn.model,
            created_secs: u64::try_from(self.setup.host.now_ms() / 1_000).unwrap_or_default(),
            usage: usage_of(&result),
        })
    }
}

/// The tokens that a model used for the summary.
fn usage_of(result: &CompactionResult) -> Usage {
    match result {
        CompactionResult::Completed(done) => {
            done.report.written_by.as_ref().map(|by| by.usage).unwrap_or_default()
        }
        _ => Usage::default(),
    }
}

/// Explains why a conversation was not compacted. `None` if it was, or if it contains nothing to compact.
fn failure_detail(result: &CompactionResult) -> Option<String> {
    match result {
        CompactionResult::Completed(_) => None,
        CompactionResult::NoOp { reason, .. } if reason.is_structural() => None,
        CompactionResult::NoOp { detail, .. } | CompactionResult::Aborted { detail, .. } => {
            Some(detail.clone())
        }
        CompactionResult::Blocked(block) => Some(block.detail.clone()),
        CompactionResult::Locked { holder, .. } => {
            Some(format!("the conversation is open elsewhere: {holder}"))
        }
    }
}

/// Selects the messages a client keeps beside the item: all instructions, and the newest user messages.
fn kept(messages: &[Message]) -> Vec<String> {
    let mut bytes = 0;
    let mut kept: Vec<String> = Vec::new();
    for message in messages.iter().rev() {
        let is_kept = match message.role() {
            role if role.is_instructions() => true,
            Role::User => {
                bytes += message.json().len();
                bytes <= MOST_KEPT_BYTES
            }
            _ => false,
        };
        if is_kept {
            kept.push(message.json().to_owned());
        }
    }
    kept.reverse();
    kept
}

fn json(text: String) -> Response<ResponseBody> {
    with_type(Bytes::from(text), "application/json")
}

fn with_type(body: Bytes, kind: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
