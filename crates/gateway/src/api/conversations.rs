//! Conversations for clients that keep no history, such as chat platforms: one message in, one answer out.
//!
//! The client chooses the key of a conversation. The history is in the record; each message is a managed call.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use throughline_engine::{
    AnswerPiece, CallInput, CallOutcome, Envelope, History, IncomingMessage, ManagedSession, SessionError,
};
use throughline_provider::Endpoint;
use throughline_store::{NewSession, Origin, Session, SessionId, StoredPreamble};
use throughline_transcript::{RawJson, Role, SharedText, WireFormat, decode_message, text_message};
use throughline_wire::{CapMember, Delta, RequestParts, Streaming, System, WireEvent};
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio_util::sync::CancellationToken;

use super::body;
use super::error::ApiError;
use super::response;
use super::session_handle::endpoint;
use crate::blocking::blocking;
use crate::http::inbound::InboundRequest;
use crate::http::response_body::ResponseBody;
use crate::lookup::session_pool::{SessionSlot, SlotKey};
use crate::recall::{RecallLoop, RoundDelivery};
use crate::telemetry::event::GatewayEvent;
use crate::telemetry::request_context::in_request_context;
use crate::tenant::Tenant;

/// The program name under which these conversations are recorded.
const PROGRAM: &str = "api";
/// The largest accepted `max_output_tokens`, far above the limit of any model (2^32 - 1).
const MOST_OUTPUT_TOKENS: u64 = 4_294_967_295;
/// The capacity of the channel between the call and the streamed response.
const PIECES_WAITING: usize = 32;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageBody {
    text: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    system: Option<String>,
    #[serde(default, deserialize_with = "body::whole_number")]
    max_output_tokens: Option<u64>,
    #[serde(default)]
    stream: bool,
}

/// The inputs of a call.
struct PreparedCall {
    slot: Arc<SessionSlot>,
    session: OwnedMutexGuard<ManagedSession>,
    input: CallInput,
    key: String,
}

/// `POST /api/conversations/{key}/messages`.
pub(super) async fn say(
    gateway: &Arc<Tenant>,
    inbound: &InboundRequest,
    key: &str,
) -> Result<Response<ResponseBody>, ApiError> {
    let message: MessageBody = body::required(inbound)?;
    if body::is_blank(&message.text) {
        return Err(ApiError::invalid("`text` must not be blank"));
    }
    if message.max_output_tokens.is_some_and(|tokens| !(1..=MOST_OUTPUT_TOKENS).contains(&tokens)) {
        return Err(ApiError::invalid(format!("`max_output_tokens` must be from 1 to {MOST_OUTPUT_TOKENS}")));
    }
    let ready = ready(gateway, inbound, key, &message).await?;
    if message.stream { Ok(streamed(gateway, ready)) } else { whole(gateway, ready).await }
}

async fn ready(
    gateway: &Arc<Tenant>,
    inbound: &InboundRequest,
    key: &str,
    message: &MessageBody,
) -> Result<PreparedCall, ApiError> {
    let known = known(gateway, key).await?;
    let configured = gateway.config.now().settings.model.default.clone();
    let model =
        [message.model.clone(), known.as_ref().and_then(|known| known.tip.model.clone()), Some(configured)];
    let model =
        model.into_iter().flatten().map(|model| model.trim().to_owned()).find(|model| !model.is_empty());
    let model =
        model.ok_or_else(|| ApiError::invalid("`model` is missing, and `model.default` is not set"))?;
    let endpoint = match &known {
        Some(known) => endpoint(gateway, inbound, known.tip.wire_format, &model)?,
        None => best_endpoint(gateway, inbound, &model)?,
    };
    let wire = known.as_ref().map_or(endpoint.wire, |known| known.tip.wire_format);
    let at = gateway.model_at(endpoint.clone(), &model).await;
    let slot = slot(gateway, key, known.as_ref(), &endpoint, &model).await?;
    let mut session = Arc::clone(&slot.session).lock_owned().await;
    session.set_history(History::Record);
    let _ = session.refresh().await;
    if let Some(edition) = gateway.outdated(&slot, &session) {
        let target = gateway.target_for(endpoint.clone(), &model, wire).await;
        let target = target.map_err(|refused| ApiError::of(&refused))?;
        let reopened = gateway.reopen(&slot, &mut session, target, edition).await;
        reopened.map_err(|refused| ApiError::of(&refused))?;
    } else if session.model().model != model {
        let target = gateway.target_for(endpoint.clone(), &model, wire).await;
        let target = target.map_err(|refused| ApiError::of(&refused))?;
        session.switch_model(target).await.map_err(|error| ApiError::of_call(gateway, &error))?;
    }
    session.set_access_token(inbound.token_name.clone());
    // Instructions stay in force until a message replaces them.
    let system = message.system.clone().or_else(|| known.and_then(|known| known.system));
    let cap =
        at.output_cap_tokens(message.max_output_tokens.or(gateway.config.now().settings.model.max_tokens));
    let recall = &gateway.config.now().recall;
    let tools = recall.is_offered().then(|| recall.tools_json(wire));
    let parts = RequestParts {
        tools: tools.as_deref().map(RawJson),
        system: system.as_deref().filter(|system| !system.is_empty()).map(System::Text),
        streaming: if message.stream { Streaming::Streamed } else { Streaming::Whole },
        output_cap: cap.map(|tokens| (CapMember::usual(wire), tokens)),
        ..RequestParts::new(&model)
    };
    let envelope = Envelope::build(wire, &parts).map_err(|error| ApiError::invalid(error.to_string()))?;
    let said = decode_message(SharedText::new(text_message(wire, Role::User, &message.text)));
    // If the call of an earlier attempt failed, the message is already recorded and the client may send it again.
    let is_there = session.messages().last().map(throughline_transcript::Message::json)
        == said.as_ref().map(throughline_transcript::Message::json);
    let new: Vec<IncomingMessage> =
        said.into_iter().filter(|_| !is_there).map(IncomingMessage::from).collect();
    Ok(PreparedCall { slot, session, input: CallInput::new(envelope, new), key: key.to_owned() })
}

/// A conversation that the record already contains.
struct ExistingConversation {
    tip: Session,
    system: Option<String>,
}

async fn known(gateway: &Tenant, key: &str) -> Result<Option<ExistingConversation>, ApiError> {
    let (store, owner, key) = (Arc::clone(&gateway.setup.store), gateway.setup.owner.clone(), key.to_owned());
    let known = blocking(move || {
        let Some(session) = store.session_by_origin(&owner, PROGRAM, &key)? else { return Ok(None) };
        let tip = store.chain(&owner, &session.id)?.pop().unwrap_or(session);
        let preamble = StoredPreamble::last(store.as_ref(), &owner, &tip)?;
        let system = preamble.and_then(|preamble| {
            RawJson(preamble.system.as_deref()?).as_text().map(|text| text.into_owned())
        });
        Ok(Some(ExistingConversation { tip, system }))
    });
    known.await.map_err(|error| ApiError::of_store(gateway, &error))
}

/// Returns the endpoint for the first call of a conversation. Prefers the wire format of the model's maker.
fn best_endpoint(gateway: &Tenant, inbound: &InboundRequest, model: &str) -> Result<Endpoint, ApiError> {
    let wires = if model.to_ascii_lowercase().contains("claude") {
        [WireFormat::Anthropic, WireFormat::Chat, WireFormat::Responses]
    } else {
        [WireFormat::Chat, WireFormat::Responses, WireFormat::Anthropic]
    };
    let mut refused = None;
    for wire in wires {
        match endpoint(gateway, inbound, wire, model) {
            Ok(endpoint) => return Ok(endpoint),
            Err(error) => {
                refused.get_or_insert(error);
            }
        }
    }
    Err(refused.unwrap_or_else(ApiError::internal))
}

/// Returns the pooled session of the conversation; opens or creates it if the pool has none.
async fn slot(
    gateway: &Tenant,
    key: &str,
    known: Option<&ExistingConversation>,
    endpoint: &Endpoint,
    model: &str,
) -> Result<Arc<SessionSlot>, ApiError> {
    let slot_key = SlotKey { owner: gateway.setup.owner.clone(), text: format!("{PROGRAM}/{key}") };
    // Sessions are opened one at a time, so that two concurrent first messages do not open a conversation twice.
    let _opening = gateway.opening.lock().await;
    if let Some(slot) = gateway.pool.under(&slot_key).pop() {
        gateway.pool.touch(&slot);
        return Ok(slot);
    }
    let failed = |error: &SessionError| ApiError::of_call(gateway, error);
    let edition = gateway.config.edition();
    let wire = known.map_or(endpoint.wire, |known| known.tip.wire_format);
    let target = gateway.target_for(endpoint.clone(), model, wire).await;
    let target = target.map_err(|refused| ApiError::of(&refused))?;
    let session = match known {
        Some(known) => {
            let setup = gateway.session_setup_with(target, &known.tip.id);
            ManagedSession::open(setup, &known.tip.id).await.map_err(|error| failed(&error))?
        }
        None => {
            let host = &gateway.setup.host;
            let id = SessionId::new(host.now_ms(), host.random(), gateway.config.now().policy.ids);
            let new = NewSession {
                id: id.clone(),
                owner: gateway.setup.owner.clone(),
                link: None,
                started_ms: host.now_ms(),
                model: Some(model.to_owned()),
                title: None,
                origin: Origin { program: PROGRAM.to_owned(), key: Some(key.to_owned()), project: None },
                wire_format: endpoint.wire,
            };
            let setup = gateway.session_setup_with(target, &id);
            let created = ManagedSession::create(setup, new).await;
            let session = created.map_err(|error| failed(&error))?;
            gateway.tell(GatewayEvent::Opened { session: id, link: None });
            session
        }
    };
    let opened = gateway.slot(&slot_key, session, edition).await.map_err(|refused| ApiError::of(&refused))?;
    Ok(Arc::clone(opened.slot()))
}

/// Makes the call and stores the keys by which the conversation is recognised, even if the client has disconnected.
async fn call(gateway: &Tenant, ready: PreparedCall) -> Result<Value, ApiError> {
    let PreparedCall { slot, mut session, input, key } = ready;
    let config = gateway.config.now();
    let rounds =
        RecallLoop { recall: &config.recall, gateway, passing: RoundDelivery::AsTheyCome, tools: None };
    let result = rounds.call(&mut session, input, &mut Vec::new()).await;
    if let Ok(history_keys) = gateway.read_history_keys(&session).await {
        slot.set_history_keys(history_keys);
    }
    match result {
        Ok(outcome) => Ok(answer_json(&key, &session, &outcome)),
        Err(error) => Err(ApiError::of_call(gateway, &error)),
    }
}

fn answer_json(key: &str, session: &ManagedSession, outcome: &CallOutcome) -> Value {
    let answer = &outcome.answer;
    json!({
        "key": key,
        "conversation": session.conversation(),
        "session": outcome.session,
        "model": outcome.model,
        "text": answer.text(),
        "refusal": answer.refusal(),
        "stop": answer.stop.raw,
        "usage": outcome.usage,
        "usage_kind": outcome.usage_kind,
        "cost_micro_usd": outcome.cost.micro_usd,
        "pressure": outcome.pressure,
        "compactions": session.compactions(),
        "latency_ms": outcome.latency_ms,
    })
}

async fn whole(gateway: &Arc<Tenant>, ready: PreparedCall) -> Result<Response<ResponseBody>, ApiError> {
    let own = Arc::clone(gateway);
    let mut ready = ready;
    let cancel = CancellationToken::new();
    ready.input.cancel = cancel.clone();
    // The call is cancelled if the client disconnects, as on every wire format.
    let _guard = cancel.drop_guard();
    let work = gateway.tasks.spawn(in_request_context(async move { call(&own, ready).await }));
    response::json(&work.await.map_err(|_| ApiError::internal())??)
}

fn streamed(gateway: &Arc<Tenant>, mut ready: PreparedCall) -> Response<ResponseBody> {
    let (sender, body) = ResponseBody::pieces();
    let (pieces, mut waiting) = mpsc::channel(PIECES_WAITING);
    let cancel = CancellationToken::new();
    ready.input.pieces = Some(pieces);
    ready.input.cancel = cancel.clone();
    let own = Arc::clone(gateway);
    let work = gateway.tasks.spawn(in_request_context(async move { call(&own, ready).await }));
    tokio::spawn(async move {
        let _guard = cancel.drop_guard();
        loop {
            let piece = tokio::select! {
                biased;
                () = sender.closed() => return,
                piece = waiting.recv() => piece,
            };
            match piece {
                None => break,
                Some(AnswerPiece::Begun { .. }) => {}
                Some(AnswerPiece::Chunk(chunk)) => {
                    let bytes: Vec<u8> =
                        chunk.deltas.iter().filter_map(event_of).flat_map(|event| event.to_bytes()).collect();
                    if !bytes.is_empty() && sender.send(Bytes::from(bytes)).await.is_err() {
                        return;
                    }
                }
            }
        }
        let last = match work.await.unwrap_or_else(|_| Err(ApiError::internal())) {
            Ok(value) => WireEvent::named("done", value.to_string()),
            Err(error) => WireEvent::named("error", error.json()),
        };
        let _ = sender.send(Bytes::from(last.to_bytes())).await;
    });
    response::event_stream(body)
}

fn event_of(delta: &Delta) -> Option<WireEvent> {
    match delta {
        Delta::Text(text) | Delta::Refusal(text) => {
            Some(WireEvent::named("text", json!({ "text": text }).to_string()))
        }
        Delta::Reasoning(text) => Some(WireEvent::named("reasoning", json!({ "text": text }).to_string())),
        Delta::Started { .. }
        | Delta::ToolCallStart { .. }
        | Delta::ToolCallArguments { .. }
        | Delta::ToolCallEnd { .. } => None,
    }
}
