//! One managed call: from a client's request to the response stream.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::Response;
use throughline_engine::{
    CacheMarking, CallInput, Envelope, ManagedSession, RecallAccess, RecordPolicy, RecordTiming,
    RequestExtras, WaitPolicy,
};
use throughline_provider::HoldBack;
use throughline_tokens::{Economy, ToolDeferral};
use throughline_transcript::{RawJson, WireFormat};
use throughline_wire::Answer;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::auth::spend::{SpendPolicy, spend_refused};
use crate::compaction::compact;
use crate::error::GatewayError;
use crate::http::inbound::InboundRequest;
use crate::http::request_body;
use crate::http::response_body::ResponseBody;
use crate::proxy::client_history::ContinuedSession;
use crate::proxy::managed_request::ManagedRequest;
use crate::proxy::managed_request::read_managed_request;
use crate::proxy::passthrough::pass_body_on;
use crate::proxy::provider_paths::AnswerNames;
use crate::proxy::response_stream::ResponseStream;
use crate::proxy::response_stream::ServedLog;
use crate::recall::{RecallConfig, RecallOffer, ToolRounds, offered};
use crate::telemetry::event::GatewayEvent;
use crate::telemetry::request_context::in_request_context;
use crate::tenant::Tenant;

/// The capacity of the channel between the call and the response, in pieces of the answer.
const PIECES_WAITING: usize = 32;

/// Answers a request in a wire format.
pub(crate) async fn answer(
    gateway: Arc<Tenant>,
    inbound: InboundRequest,
    wire: WireFormat,
) -> Result<Response<ResponseBody>, GatewayError> {
    let began = Instant::now();
    let (turn, upstream) = read_managed_request(&gateway, &inbound, wire).await?;
    let turn = gateway.with_previous_response(turn).await;
    if turn.request.leans_on_provider_state() {
        inbound.spend.refuse_uncounted()?;
        if turn.endpoint.wire != wire {
            return Err(GatewayError::bad_request(format!(
                "the request refers to state stored at its provider, and `{}` does not speak its wire format",
                upstream.name
            )));
        }
        gateway.tell(GatewayEvent::Warning(format!(
            "a request for {} refers to state stored at the provider: it passes through unmanaged",
            turn.model
        )));
        let body = Bytes::from(turn.request.encode());
        let names = (wire, AnswerNames::NewObjects);
        return Box::pin(pass_body_on(&gateway, &inbound, body, &upstream, names)).await;
    }
    if inbound.spend == SpendPolicy::Limited && !gateway.knows_price(&turn.endpoint, &turn.model) {
        return Err(spend_refused(format!(
            "the token has a spend limit, and the price of {} at `{}` is not known",
            turn.model, upstream.name
        )));
    }
    if let Some(request) = compact::without_trigger(&turn.request) {
        return Box::pin(compact::answer_trigger(&gateway, ManagedRequest { request, ..turn })).await;
    }
    let is_same_wire = turn.endpoint.wire == wire;
    let response = match gateway.managed(turn, wire, began).await {
        Err(refused) if refused.is_unrecorded() && is_same_wire && gateway.goes_on_unrecorded() => {
            inbound.spend.refuse_uncounted()?;
            gateway.tell(GatewayEvent::Warning(
                "NOT RECORDED: a request is passed on unmanaged, because the record cannot be used"
                    .to_owned(),
            ));
            let body = request_body::unpack(&inbound.headers, inbound.packed.clone(), inbound.body_bytes)?;
            let names = (wire, AnswerNames::NewObjects);
            return Box::pin(pass_body_on(&gateway, &inbound, body, &upstream, names)).await;
        }
        answered => answered?,
    };
    Ok(response)
}

impl Tenant {
    /// Whether requests are answered even if the record cannot be used.
    fn goes_on_unrecorded(&self) -> bool {
        self.config.now().policy.record == RecordPolicy::GoOn
    }

    async fn managed(
        self: &Arc<Self>,
        turn: ManagedRequest,
        wire: WireFormat,
        began: Instant,
    ) -> Result<Response<ResponseBody>, GatewayError> {
        let config = self.config.now();
        let recall = config.recall.for_request(&turn.request).into_owned();
        let prepare = |session: &mut ManagedSession| {
            session.use_economy(turn.economy);
            session.set_access_token(turn.token_name.clone());
        };
        let continued = self.continue_session(&turn, &recall, prepare).await?;
        let ContinuedSession { slot, mut session, new_messages, keys } = continued;
        let cancel = CancellationToken::new();
        slot.set_answering(&keys, cancel.clone());

        let (pieces, waiting) = mpsc::channel(PIECES_WAITING);
        let (on_recorded, recorded) = oneshot::channel();
        let streaming = turn.request.streaming();
        let model = turn.model.clone();
        let mut request = turn.request;
        let offer = offer_for(turn.economy, &recall, &session);
        let is_offered = offered(&recall, offer, &mut request, session.messages())
            .map_err(|error| GatewayError::bad_request(error.to_string()))?;
        if turn.economy.tool_results {
            session.exempt_tools(recall.names().all().iter().cloned());
            session.set_recall_access(match is_offered {
                true => RecallAccess::Offered(recall.reading().to_owned()),
                false => RecallAccess::NotOffered,
            });
        }
        // The model loads a deferred tool with a call that the gateway answers, as it answers calls of recall tools.
        let tools = match is_offered && turn.economy.tools != ToolDeferral::Off {
            true => {
                let whole = request.clone();
                session
                    .defer_tools(&mut request, recall.names().all())
                    .map_err(|error| GatewayError::bad_request(error.to_string()))?
                    .map(|deferred| ToolRounds { request: whole, deferred })
            }
            false => None,
        };
        // Only the Responses wire format stores objects that later requests can name.
        let stores = turn.endpoint.wire == WireFormat::Responses
            && request.member("store").is_none_or(|store| store.0.trim() != "false");
        let objects_at = turn.objects_at.filter(|_| stores);
        let input = CallInput {
            pieces: Some(pieces),
            extras: RequestExtras {
                headers: turn.headers,
                query: turn.query,
                hold_back: HoldBack::UntilContent,
            },
            waiting: WaitPolicy::ByCaller,
            marking: CacheMarking::FromSecondCall,
            // A client repeats its messages until they are answered, so the upstream call need not wait for the record.
            recorded: if self.goes_on_unrecorded() { RecordTiming::Meanwhile } else { RecordTiming::First },
            cancel: cancel.clone(),
            // If the owners of stored objects must be recorded as well, the end of the answer waits for the end of the call, which includes that.
            on_recorded: objects_at.is_none().then_some(on_recorded),
            ..CallInput::new(Envelope::of_request(request), new_messages)
        };
        let id = session.id().clone();
        let (ended, end) = oneshot::channel();
        let (gateway, items_at) = (Arc::clone(self), objects_at.clone());
        self.tasks.spawn(in_request_context(async move {
            let rounds = is_offered.then_some((&recall, tools));
            let result = gateway.call(&slot, session, input, keys, rounds).await;
            if let (Ok(outcome), Some(place)) = (&result, &items_at) {
                gateway.note_created(place, ids_of_answer(&outcome.answer)).await;
            }
            // Fails if the client has closed the connection.
            let _ = ended.send(result);
        }));
        let gateway = Arc::clone(self);
        let log = ServedLog { gateway, began, wire, model, session: id, objects_at };
        let stream = ResponseStream { log, streaming, waiting, recorded, end, guard: cancel.drop_guard() };
        Ok(stream.respond().await)
    }
}

/// Decides to which clients recall tools are offered. If tool results are shortened, the model must be able to read their full text,
/// whatever else is configured. The tools are added with the first request, or once the provider's cache has expired, because new tools
/// invalidate the whole cached prompt.
fn offer_for(economy: Economy, recall: &RecallConfig, session: &ManagedSession) -> RecallOffer {
    if !economy.tool_results || recall.is_offered() {
        return recall.offer();
    }
    let had = recall.names().all().first().and_then(|name| session.had_tool(name));
    if had.unwrap_or(true) || session.is_cache_cold() { RecallOffer::Agents } else { RecallOffer::Nobody }
}

/// The ids under which a provider may have stored an answer and its items.
fn ids_of_answer(answer: &Answer) -> Vec<String> {
    let items = answer.messages.iter().filter_map(|message| RawJson(message.json()).get("id")?.as_text());
    answer.id.iter().cloned().chain(items.map(|id| id.into_owned())).collect()
}
