//! One managed call: from a client's request to the answer on its way back.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::header::CONTENT_LENGTH;
use hyper::{Response, StatusCode};
use throughline_engine::{
    AnswerPiece, CacheMarking, CallInput, CallOutcome, ClientBytes, Envelope, IncomingMessage,
    ManagedSession, RecordPolicy, RecordTiming, RequestExtras, SessionError, WaitPolicy, headers_on,
};
use throughline_provider::{ANSWER_NOT_HELD, Chunk, Endpoint, HoldBack};
use throughline_store::SessionId;
use throughline_transcript::{Message, RawJson, WireFormat};
use throughline_wire::{Answer, Delta, Request, Streaming, write_error_event};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::auth::admission::{SpendPolicy, no_money};
use crate::compaction::compact;
use crate::compaction::compaction_item::refuse_foreign;
use crate::error::{GatewayError, passed_on};
use crate::gateway::Tenant;
use crate::http::request_body;
use crate::http::response_body::ResponseBody;
use crate::http::router::{InboundRequest, put_headers};
use crate::lookup::client_info::ClientInfo;
use crate::lookup::message_key::MessageKey;
use crate::lookup::prefix_match::align;
use crate::lookup::session_lookup::{ResolvedRequest, history_keys};
use crate::lookup::session_pool::Slot;
use crate::proxy::end_buffer::EndBuffer;
use crate::proxy::passthrough::{client_headers, is_key, pass_body_on};
use crate::proxy::provider_objects::is_guarded;
use crate::proxy::provider_paths::AnswerNames;
use crate::proxy::upstreams::UpstreamSpec;
use crate::proxy::whole_events::WholeEvents;
use crate::recall::client_view::Projection;
use crate::recall::{PendingResults, RecallConfig, RecallLoop, RecallNames, RoundDelivery, offered};
use crate::telemetry::event::{AnswerEnd, GatewayEvent, ServedRequest};
use crate::telemetry::request_context::in_request_context;

/// Pieces of an answer that may wait to be passed on.
const PIECES_WAITING: usize = 32;

/// A request with everything that is known about it.
pub(crate) struct ManagedRequest {
    pub(crate) request: Request,
    pub(crate) model: String,
    pub(crate) client: ClientInfo,
    /// Who is asked, on which wire that may be.
    pub(crate) endpoint: Endpoint,
    headers: Vec<(String, String)>,
    query: Option<String>,
    /// The upstream that stores objects for this tenant under the operator's key, where it does.
    objects_at: Option<String>,
}

/// How a call ended.
type CallResult = Result<CallOutcome, SessionError>;

/// Answers a request of a wire.
pub(crate) async fn answer(
    gateway: Arc<Tenant>,
    inbound: InboundRequest,
    wire: WireFormat,
) -> Result<Response<ResponseBody>, GatewayError> {
    let began = Instant::now();
    let (turn, upstream) = checked_turn(&gateway, &inbound, wire).await?;
    let turn = gateway.with_previous(turn).await;
    if turn.request.leans_on_provider_state() {
        inbound.spend.refuse_uncounted()?;
        if turn.endpoint.wire != wire {
            return Err(GatewayError::bad_request(format!(
                "the request leans on what its provider keeps, and `{}` does not speak its wire",
                upstream.name
            )));
        }
        gateway.tell(GatewayEvent::Warning(format!(
            "a request for {} leans on what the provider keeps: it is passed on unmanaged",
            turn.model
        )));
        let body = Bytes::from(turn.request.encode());
        let names = (wire, AnswerNames::NewObjects);
        return Box::pin(pass_body_on(&gateway, &inbound, body, &upstream, names)).await;
    }
    if inbound.spend == SpendPolicy::Limited && !gateway.knows_price(&turn.endpoint, &turn.model) {
        return Err(no_money(format!(
            "the token has a limit on what calls cost, and nobody knows what {} costs at `{}`",
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

/// A request that was read and refers to no stored objects of others, and who it is for.
pub(crate) async fn checked_turn(
    gateway: &Tenant,
    inbound: &InboundRequest,
    wire: WireFormat,
) -> Result<(ManagedRequest, UpstreamSpec), GatewayError> {
    let (mut turn, upstream) = turn_of(gateway, inbound, wire)?;
    if is_guarded(inbound, &upstream) {
        let body = request_body::unpack(&inbound.headers, inbound.packed.clone(), inbound.body_bytes)?;
        Box::pin(gateway.check_references(inbound, &upstream, &body)).await?;
        turn.objects_at = Some(upstream.base.root().to_owned());
    }
    Ok((turn, upstream))
}

/// A request that was read, and who it is for.
fn turn_of(
    gateway: &Tenant,
    inbound: &InboundRequest,
    wire: WireFormat,
) -> Result<(ManagedRequest, UpstreamSpec), GatewayError> {
    request_body::check_type(&inbound.headers)?;
    let body = request_body::unpack(&inbound.headers, inbound.packed.clone(), inbound.body_bytes)?;
    let request =
        Request::decode(wire, body).map_err(|error| GatewayError::bad_request(error.to_string()))?;
    let model = request.model().map(|model| model.trim().to_owned()).filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| GatewayError::bad_request("`model` is missing"))?;
    let client = ClientInfo::of(&inbound.headers, &request);
    let config = gateway.config.now();
    let (upstream, spoken) = config.upstreams.choose(client.upstream.as_deref(), wire, &model)?;
    let upstream = upstream.clone();
    let headers = client_headers(inbound, &upstream);
    // Calls beside the conversation, such as for a summary, are made with the client's key too.
    let keys: Vec<_> = headers.iter().filter(|(name, _)| is_key(name)).cloned().collect();
    let keys = if spoken == wire { keys } else { headers_on(spoken, keys) };
    let endpoint = Endpoint { headers: keys, ..upstream.endpoint(spoken) };
    Ok((
        ManagedRequest {
            request,
            model,
            client,
            endpoint,
            headers,
            query: inbound.query.clone(),
            objects_at: None,
        },
        upstream,
    ))
}

/// A conversation as its client tells it.
pub(crate) struct ClientHistory {
    pub(crate) messages: Vec<Message>,
    /// How many of those are not new.
    pub(crate) repeated: usize,
}

impl ClientHistory {
    /// Takes over how the client words what it said before. What is new comes back, behind what the gateway owes an answer
    /// to.
    pub(crate) async fn into_new(
        self,
        gateway: &Tenant,
        recall: &RecallConfig,
        request: &Request,
        session: &mut ManagedSession,
        known: &mut Vec<MessageKey>,
    ) -> Vec<IncomingMessage> {
        let Self { mut messages, repeated } = self;
        let mut new = messages.split_off(repeated.min(messages.len()));
        // Who has such tools itself repeats their calls.
        let none = RecallNames::none();
        let names = if recall.names().is_taken(request) { &none } else { recall.names() };
        let projection = Projection::new(names, session.wire_format());
        let (from, worded) = align(session.messages(), session.first_verbatim_item(), &messages, projection);
        session.use_client_bytes(ClientBytes { from, worded });
        let owed = PendingResults::of(recall, request, session, &new);
        owed.settle(recall, &gateway.setup.owner, session, &mut new, known).await;
        new.into_iter().map(IncomingMessage::from).collect()
    }
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
        let ResolvedRequest { slot, mut session, messages, repeated, mut known } = self.place(&turn).await?;
        refuse_foreign(messages.get(repeated..).unwrap_or_default())?;
        self.follow_model(&mut session, &turn).await?;
        let config = self.config.now();
        let said = ClientHistory { messages, repeated };
        let new = said.into_new(self, &config.recall, &turn.request, &mut session, &mut known).await;
        let cancel = CancellationToken::new();
        slot.set_answering(&known, cancel.clone());

        let (pieces, waiting) = mpsc::channel(PIECES_WAITING);
        let (on_recorded, recorded) = oneshot::channel();
        let streaming = turn.request.streaming();
        let model = turn.model.clone();
        let mut request = turn.request;
        let is_offered = offered(&config.recall, &mut request, session.messages())
            .map_err(|error| GatewayError::bad_request(error.to_string()))?;
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
            let rounds = is_offered.then_some(&config.recall);
            let result = gateway.call(&slot, session, input, known, rounds).await;
            if let (Ok(outcome), Some(place)) = (&result, &items_at) {
                gateway.note_created(place, ids_of_answer(&outcome.answer)).await;
            }
            // Whoever asked may be gone.
            let _ = ended.send(result);
        }));
        let gateway = Arc::clone(self);
        let told = ServedLog { gateway, began, wire, model, session: id, objects_at };
        let way_back = ResponseStream { told, streaming, waiting, recorded, end, guard: cancel.drop_guard() };
        Ok(way_back.respond().await)
    }

    /// Makes the call and remembers what the conversation is recognised by from now on.
    async fn call(
        &self,
        slot: &Slot,
        mut session: OwnedMutexGuard<ManagedSession>,
        input: CallInput,
        mut known: Vec<MessageKey>,
        recall: Option<&RecallConfig>,
    ) -> CallResult {
        let result = match recall {
            Some(recall) => {
                let rounds = RecallLoop { recall, gateway: self, passing: RoundDelivery::Spliced };
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

    /// The model the request names, if the conversation was held with another.
    pub(crate) async fn follow_model(
        &self,
        session: &mut OwnedMutexGuard<ManagedSession>,
        turn: &ManagedRequest,
    ) -> Result<(), GatewayError> {
        if session.model().model == turn.model {
            return Ok(());
        }
        let target = self.target_of(turn).await?;
        session.switch_model(target).await.map_err(|error| self.call_failed(&error))
    }
}

/// What is told of an answer when it is over.
struct ServedLog {
    gateway: Arc<Tenant>,
    began: Instant,
    wire: WireFormat,
    model: String,
    session: SessionId,
    /// Where the answer is stored for this tenant, if it is.
    objects_at: Option<String>,
}

impl ServedLog {
    /// Records whose an answer is that the provider stores, before the client learns its id.
    async fn note_begun(&self, chunk: &Chunk) {
        let Some(place) = &self.objects_at else { return };
        let started = chunk.deltas.iter().filter_map(|delta| match delta {
            Delta::Started { id, .. } => id.clone(),
            _ => None,
        });
        let mut ids: Vec<String> = started.collect();
        if chunk.raw.starts_with(b"{") {
            let id = std::str::from_utf8(&chunk.raw).ok().and_then(|json| RawJson(json).get("id")?.as_text());
            ids.extend(id.map(|id| id.into_owned()));
        }
        self.gateway.note_created(place, ids).await;
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn tell(self, status: StatusCode, head_ms: u64, end: AnswerEnd) {
        let whole_ms = self.elapsed_ms();
        let Self { gateway, wire, model, session, .. } = self;
        let (status, session) = (status.as_u16(), Some(session));
        gateway.tell(GatewayEvent::Served(ServedRequest {
            wire,
            model,
            session,
            status,
            head_ms,
            whole_ms,
            end,
        }));
    }
}

/// What an answer takes back to whoever asked.
struct ResponseStream {
    told: ServedLog,
    streaming: Streaming,
    waiting: mpsc::Receiver<AnswerPiece>,
    /// Comes when the answer is in the record.
    recorded: oneshot::Receiver<()>,
    end: oneshot::Receiver<CallResult>,
    /// Calls the call off when the client hangs up.
    guard: DropGuard,
}

impl ResponseStream {
    /// The head of the answer, with a body that follows as it comes.
    async fn respond(mut self) -> Response<ResponseBody> {
        let Some(AnswerPiece::Begun { status, headers }) = self.waiting.recv().await else {
            return self.refuse().await;
        };
        let (sender, body) = ResponseBody::pieces();
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        put_headers(&mut response, &headers);
        if self.streaming == Streaming::Streamed {
            // It may end otherwise than the upstream thought.
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        let (status, head_ms) = (response.status(), self.told.elapsed_ms());
        let length =
            response.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        tokio::spawn(in_request_context(async move {
            let (told, end) = self.forward(sender, length).await;
            told.tell(status, head_ms, end);
        }));
        response
    }

    /// There is no answer.
    async fn refuse(self) -> Response<ResponseBody> {
        let response = refused(&self.told.gateway, self.told.wire, self.end.await);
        let head_ms = self.told.elapsed_ms();
        self.told.tell(response.status(), head_ms, AnswerEnd::Whole);
        response
    }

    /// Passes pieces on as they come, all but the end: whoever has the whole answer can rely on the record having it too.
    /// What breaks off in the middle of a stream ends with an error in its form.
    async fn forward(self, sender: mpsc::Sender<Bytes>, length: Option<usize>) -> (ServedLog, AnswerEnd) {
        let Self { told, streaming, mut waiting, mut recorded, end, guard } = self;
        let (mut next_number, mut sent) = (0, 0);
        let mut whole = WholeEvents::default();
        // Whether the end of the stream has come.
        let mut has_ended = false;
        let mut held = EndBuffer::new(told.wire, streaming);
        // Whether the client still waits for the end of the answer, and whether we wait for the record.
        let (mut waits_for_end, mut waits_for_record) = (true, true);
        loop {
            let piece = tokio::select! {
                biased;
                // Whoever has all of it has not hung up.
                () = sender.closed(), if waits_for_end && length != Some(sent) => return (told, AnswerEnd::Abandoned),
                piece = waiting.recv() => piece,
                is_recorded = &mut recorded, if waits_for_record => {
                    waits_for_record = false;
                    if is_recorded.is_ok() {
                        // Every piece was taken before: they come before the answer is whole.
                        told.gateway.note_commit_wait(held.since());
                        let rest = held.release(whole.take_rest());
                        sent += rest.len();
                        waits_for_end = false;
                        let _ = sender.send(rest).await;
                    }
                    continue;
                }
            };
            match piece {
                None => break,
                Some(AnswerPiece::Begun { .. }) => {}
                Some(AnswerPiece::Chunk(chunk)) => {
                    told.note_begun(&chunk).await;
                    let raw = match streaming {
                        Streaming::Streamed => whole.take(chunk.raw),
                        Streaming::Whole => chunk.raw,
                    };
                    if told.wire == WireFormat::Responses {
                        next_number = number_after(&raw).unwrap_or(next_number);
                    }
                    has_ended |= streaming == Streaming::Streamed && ends_stream(told.wire, &raw);
                    let raw = held.take(raw);
                    sent += raw.len();
                    if !raw.is_empty() && sender.send(raw).await.is_err() {
                        return (told, AnswerEnd::Abandoned);
                    }
                }
            }
        }
        let ended = end.await;
        let _ = guard.disarm();
        let Ok(Err(error)) = ended else {
            let rest = held.release(whole.take_rest());
            if !rest.is_empty() {
                let _ = sender.send(rest).await;
            }
            return (told, AnswerEnd::Whole);
        };
        if has_ended || was_passed_on(&error) {
            // The answer is whole; only whoever runs the gateway has to know.
            let _ = told.gateway.call_failed(&error);
            let rest = held.release(whole.take_rest());
            if !rest.is_empty() {
                let _ = sender.send(rest).await;
            }
            return (told, AnswerEnd::Whole);
        }
        if streaming == Streaming::Streamed {
            // The provider's own error may be behind an event that looked final. With it the client cannot take the answer
            // for whole, so nothing has to be held back any more.
            let held_back = held.release(Bytes::new());
            if !held_back.is_empty() {
                let _ = sender.send(held_back).await;
            }
            let refused = told.gateway.call_failed(&error);
            let event = write_error_event(told.wire, &refused.error_body(), next_number);
            let _ = sender.send(Bytes::from(event.to_bytes())).await;
        }
        (told, AnswerEnd::BrokenOff)
    }
}

/// Whether an answer was passed on whole though nothing of it is known.
fn was_passed_on(error: &SessionError) -> bool {
    matches!(error, SessionError::Exhausted(gave_up) if gave_up.trouble.code.as_deref() == Some(ANSWER_NOT_HELD))
}

/// Whether whole events of a stream hold the one behind which nothing follows. Words of a model cannot look like one: there is
/// no line break in JSON.
fn ends_stream(wire: WireFormat, events: &[u8]) -> bool {
    let ends: &[&[u8]] = match wire {
        WireFormat::Chat => &[b"data: [DONE]", b"data:[DONE]"],
        WireFormat::Responses => {
            &[b"event: response.completed", b"event: response.incomplete", b"event: response.failed"]
        }
        WireFormat::Anthropic => &[b"event: message_stop"],
    };
    let mut lines = events.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.any(|line| ends.contains(&line.trim_ascii_end()))
}

/// The number of the event after the last one that a piece of a stream tells the number of.
fn number_after(piece: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"\"sequence_number\":";
    let after = memchr::memmem::rfind(piece, NAME)? + NAME.len();
    let digits = piece.get(after..)?.trim_ascii_start();
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let number: u64 = std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()?;
    number.checked_add(1)
}

/// Ids under which a provider may have stored an answer and its items.
fn ids_of_answer(answer: &Answer) -> Vec<String> {
    let items = answer.messages.iter().filter_map(|message| RawJson(message.json()).get("id")?.as_text());
    answer.id.iter().cloned().chain(items.map(|id| id.into_owned())).collect()
}

/// The answer to a request for which there is none.
fn refused(
    gateway: &Tenant,
    wire: WireFormat,
    ended: Result<CallResult, oneshot::error::RecvError>,
) -> Response<ResponseBody> {
    let error = match ended {
        Ok(Err(error)) => error,
        Ok(Ok(_)) | Err(_) => return GatewayError::internal().respond(wire),
    };
    match &error {
        // Nothing was done about it: the client gets what it would have got without us.
        SessionError::Exhausted(gave_up) if gave_up.tried.is_empty() && gave_up.refusal.is_some() => {
            let refusal = gave_up.refusal.as_deref();
            refusal.map_or_else(|| gateway.call_failed(&error).respond(wire), passed_on)
        }
        _ => gateway.call_failed(&error).respond(wire),
    }
}
