//! One managed call: from a client's request to the answer on its way back.

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
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::auth::spend::{SpendPolicy, spend_refused};
use crate::compaction::compact;
use crate::compaction::compaction_item::refuse_foreign;
use crate::error::GatewayError;
use crate::http::inbound::InboundRequest;
use crate::http::request_body;
use crate::http::response_body::ResponseBody;
use crate::lookup::message_key::MessageKey;
use crate::lookup::open_session::history_keys;
use crate::lookup::session_lookup::ResolvedRequest;
use crate::lookup::session_pool::SessionSlot;
use crate::proxy::client_history::ClientHistory;
use crate::proxy::managed_request::ManagedRequest;
use crate::proxy::managed_request::read_managed_request;
use crate::proxy::passthrough::pass_body_on;
use crate::proxy::provider_paths::AnswerNames;
use crate::proxy::response_stream::CallResult;
use crate::proxy::response_stream::ResponseStream;
use crate::proxy::response_stream::ServedLog;
use crate::recall::{RecallConfig, RecallLoop, RecallOffer, RoundDelivery, ToolRounds, offered};
use crate::telemetry::event::GatewayEvent;
use crate::telemetry::request_context::in_request_context;
use crate::tenant::Tenant;

/// Pieces of an answer that may wait to be passed on.
const PIECES_WAITING: usize = 32;

/// Answers a request of a wire.
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
    /// Whether requests are answered when the record cannot be used.
    fn goes_on_unrecorded(&self) -> bool {
        self.config.now().policy.record == RecordPolicy::GoOn
    }

    async fn managed(
        self: &Arc<Self>,
        turn: ManagedRequest,
        wire: WireFormat,
        began: Instant,
    ) -> Result<Response<ResponseBody>, GatewayError> {
        let ResolvedRequest { slot, mut session, messages, repeated, mut known } =
            self.resolve(&turn).await?;
        refuse_foreign(messages.get(repeated..).unwrap_or_default())?;
        self.switch_model_if_named(&mut session, &turn).await?;
        session.use_economy(turn.economy);
        session.set_access_token(turn.token_name);
        let config = self.config.now();
        let said = ClientHistory { messages, repeated };
        let recall = config.recall.for_request(&turn.request).into_owned();
        let new = said.into_new(self, &recall, &turn.request, &mut session, &mut known).await;
        let cancel = CancellationToken::new();
        slot.set_answering(&known, cancel.clone());

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
        // What left the prompt comes back by a call that is answered as those of the recall tools are.
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
        // The other wires store nothing that later requests could name.
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
            // A client keeps what it says until it is answered, and says it again.
            recorded: if self.goes_on_unrecorded() { RecordTiming::Meanwhile } else { RecordTiming::First },
            cancel: cancel.clone(),
            // Where stored objects have to be noted too, the end of the answer waits for that.
            on_recorded: objects_at.is_none().then_some(on_recorded),
            ..CallInput::new(Envelope::of_request(request), new)
        };
        let id = session.id().clone();
        let (ended, end) = oneshot::channel();
        let (gateway, items_at) = (Arc::clone(self), objects_at.clone());
        self.tasks.spawn(in_request_context(async move {
            let rounds = is_offered.then_some((&recall, tools));
            let result = gateway.call(&slot, session, input, known, rounds).await;
            if let (Ok(outcome), Some(place)) = (&result, &items_at) {
                gateway.note_created(place, ids_of_answer(&outcome.answer)).await;
            }
            // Whoever asked may be gone.
            let _ = ended.send(result);
        }));
        let gateway = Arc::clone(self);
        let log = ServedLog { gateway, began, wire, model, session: id, objects_at };
        let stream = ResponseStream { log, streaming, waiting, recorded, end, guard: cancel.drop_guard() };
        Ok(stream.respond().await)
    }

    /// Makes the call and remembers what the conversation is recognised by from now on.
    async fn call(
        &self,
        slot: &SessionSlot,
        mut session: OwnedMutexGuard<ManagedSession>,
        input: CallInput,
        mut known: Vec<MessageKey>,
        recall: Option<(&RecallConfig, Option<ToolRounds>)>,
    ) -> CallResult {
        let result = match recall {
            Some((recall, tools)) => {
                let rounds = RecallLoop { recall, gateway: self, passing: RoundDelivery::Spliced, tools };
                Box::pin(rounds.call(&mut session, input, &mut known)).await
            }
            None => {
                let result = session.call(input).await;
                let said = result.iter().flat_map(|outcome| &outcome.answer.messages);
                known.extend(said.map(MessageKey::of));
                result
            }
        };
        self.follow(slot, &session);
        match &result {
            Ok(_) => slot.set_history_keys(history_keys(&session, known)),
            // What became of it is for the record to say.
            Err(_) => {
                if let Ok(history_keys) = self.read_history_keys(&session).await {
                    slot.set_history_keys(history_keys);
                }
            }
        }
        result
    }
}

/// Who is offered recall tools. Where results are shortened their text has to be readable, whatever else is configured; the
/// tools come with the first request, or once the provider's cache has expired: new tools cost the whole cached prompt.
fn offer_for(economy: Economy, recall: &RecallConfig, session: &ManagedSession) -> RecallOffer {
    if !economy.tool_results || recall.is_offered() {
        return recall.offer();
    }
    let had = recall.names().all().first().and_then(|name| session.had_tool(name));
    if had.unwrap_or(true) || session.is_cache_cold() { RecallOffer::Agents } else { RecallOffer::Nobody }
}

/// Ids under which a provider may have stored an answer and its items.
fn ids_of_answer(answer: &Answer) -> Vec<String> {
    let items = answer.messages.iter().filter_map(|message| RawJson(message.json()).get("id")?.as_text());
    answer.id.iter().cloned().chain(items.map(|id| id.into_owned())).collect()
}
