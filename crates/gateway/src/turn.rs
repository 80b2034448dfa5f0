//! One managed call: from a client's request to the answer on its way back.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::{Response, StatusCode};
use throughline_engine::{
    Along, CallError, CallInput, CallOutcome, Envelope, Incoming, ManagedSession, Piece, RecordPolicy,
    Rewording, Waiting, headers_on,
};
use throughline_provider::{Endpoint, HoldBack};
use throughline_store::SessionId;
use throughline_transcript::Dialect;
use throughline_wire::{Request, Streaming, write_error_event};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::body_in;
use crate::body_out::OutBody;
use crate::clues::Clues;
use crate::compact;
use crate::course::carried;
use crate::event::{GatewayEvent, Served};
use crate::find::{Place, recognised};
use crate::gateway::Inner;
use crate::handler::{Asked, put_headers};
use crate::identity::Known;
use crate::let_go::refuse_foreign;
use crate::matching::align;
use crate::pass::{client_headers, is_key, pass_body_on};
use crate::refused::{Refused, passed_on};
use crate::seats::{Recognised, Seat};
use crate::upstreams::UpstreamSpec;

/// Pieces of an answer that may wait to be passed on.
const PIECES_WAITING: usize = 32;

/// A request with everything that is known about it.
pub(crate) struct Turn {
    pub(crate) request: Request,
    pub(crate) model: String,
    pub(crate) clues: Clues,
    /// Who is asked, on which wire that may be.
    pub(crate) endpoint: Endpoint,
    headers: Vec<(String, String)>,
    query: Option<String>,
}

/// How a call ended.
type Ended = Result<CallOutcome, CallError>;

/// Answers a request of a wire.
pub(crate) async fn answer(
    gateway: Arc<Inner>,
    asked: Asked,
    wire: Dialect,
) -> Result<Response<OutBody>, Refused> {
    let began = Instant::now();
    let (turn, upstream) = turn_of(&gateway, &asked, wire)?;
    if turn.request.leans_on_provider_state() {
        asked.spend.refuse_uncounted()?;
        if turn.endpoint.wire != wire {
            return Err(Refused::bad_request(format!(
                "the request leans on what its provider keeps, and `{}` does not speak its wire",
                upstream.name
            )));
        }
        gateway.tell(GatewayEvent::Warning(format!(
            "a request for {} leans on what the provider keeps: it is passed on unmanaged",
            turn.model
        )));
        let body = Bytes::from(turn.request.encode());
        return pass_body_on(&gateway, &asked, body, &upstream, wire).await;
    }
    if let Some(request) = compact::without_trigger(&turn.request) {
        return compact::answer_trigger(&gateway, Turn { request, ..turn }).await;
    }
    let is_same_wire = turn.endpoint.wire == wire;
    let (response, session) = match gateway.managed(turn, wire).await {
        Err(refused) if refused.is_unrecorded() && is_same_wire && gateway.goes_on_unrecorded() => {
            asked.spend.refuse_uncounted()?;
            gateway.tell(GatewayEvent::Warning(
                "NOT RECORDED: a request is passed on unmanaged, because the record cannot be used"
                    .to_owned(),
            ));
            let body = body_in::unpack(&asked.headers, asked.packed.clone(), asked.body_bytes)?;
            return pass_body_on(&gateway, &asked, Bytes::from(body), &upstream, wire).await;
        }
        answered => answered?,
    };
    gateway.tell(GatewayEvent::Served(Served {
        wire,
        model: session.1,
        session: Some(session.0),
        status: response.status().as_u16(),
        head_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    }));
    Ok(response)
}

/// A request that was read, and who it is for.
pub(crate) fn turn_of(
    gateway: &Inner,
    asked: &Asked,
    wire: Dialect,
) -> Result<(Turn, UpstreamSpec), Refused> {
    body_in::check_type(&asked.headers)?;
    let body = body_in::unpack(&asked.headers, asked.packed.clone(), asked.body_bytes)?;
    let request = Request::decode(wire, body).map_err(|error| Refused::bad_request(error.to_string()))?;
    let model = request.model().map(|model| model.trim().to_owned()).filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| Refused::bad_request("`model` is missing"))?;
    let clues = Clues::of(&asked.headers, &request);
    let (upstream, spoken) = gateway.setup.upstreams.choose(clues.upstream.as_deref(), wire, &model)?;
    let upstream = upstream.clone();
    let headers = client_headers(asked, &upstream);
    // Calls beside the conversation, such as for a summary, are made with the client's key too.
    let keys: Vec<_> = headers.iter().filter(|(name, _)| is_key(name)).cloned().collect();
    let keys = if spoken == wire { keys } else { headers_on(spoken, keys) };
    let endpoint = Endpoint { headers: keys, ..upstream.endpoint(spoken) };
    Ok((Turn { request, model, clues, endpoint, headers, query: asked.query.clone() }, upstream))
}

impl Inner {
    /// Whether requests are answered when the record cannot be used.
    fn goes_on_unrecorded(&self) -> bool {
        self.setup.policy.record == RecordPolicy::GoOn
    }

    async fn managed(
        self: &Arc<Self>,
        turn: Turn,
        wire: Dialect,
    ) -> Result<(Response<OutBody>, (SessionId, String)), Refused> {
        let Place { seat, mut session, messages, repeated, known } = self.place(&turn).await?;
        refuse_foreign(messages.get(repeated..).unwrap_or_default())?;
        self.follow_model(&mut session, &turn).await?;
        let (said, _) = messages.split_at(repeated.min(messages.len()));
        let (from, worded) = align(session.messages(), session.first_own_item(), said);
        session.reword(Rewording { from, worded });
        // Who asks meanwhile sees that this much is being answered already.
        seat.set_recognised(Recognised { known: known.clone(), ..seat.recognised() });

        let cancel = CancellationToken::new();
        let (pieces, waiting) = mpsc::channel(PIECES_WAITING);
        let streaming = turn.request.streaming();
        let model = turn.model.clone();
        let new: Vec<Incoming> = messages.into_iter().skip(repeated).map(Incoming::from).collect();
        let input = CallInput {
            pieces: Some(pieces),
            along: Along { headers: turn.headers, query: turn.query, hold_back: HoldBack::UntilContent },
            waiting: Waiting::ByCaller,
            cancel: cancel.clone(),
            ..CallInput::new(Envelope::of_request(turn.request), new)
        };
        let id = session.id().clone();
        let (ended, end) = oneshot::channel();
        let gateway = Arc::clone(self);
        self.tasks.spawn(carried(async move {
            let result = gateway.call(&seat, session, input, known).await;
            // Whoever asked may be gone.
            let _ = ended.send(result);
        }));
        let way_back = WayBack { wire, streaming, waiting, end, guard: cancel.drop_guard() };
        Ok((way_back.respond().await, (id, model)))
    }

    /// Makes the call and remembers what the conversation is recognised by from now on.
    async fn call(
        &self,
        seat: &Seat,
        mut session: OwnedMutexGuard<ManagedSession>,
        input: CallInput,
        mut known: Vec<Known>,
    ) -> Ended {
        let result = session.call(input).await;
        match &result {
            Ok(outcome) => {
                known.extend(outcome.answer.messages.iter().map(Known::of));
                seat.set_recognised(recognised(&session, known));
            }
            // What became of it is for the record to say.
            Err(_) => {
                if let Ok(recognised) = self.read_recognised(&session).await {
                    seat.set_recognised(recognised);
                }
            }
        }
        result
    }

    /// The model the request names, if the conversation was held with another.
    pub(crate) async fn follow_model(
        &self,
        session: &mut OwnedMutexGuard<ManagedSession>,
        turn: &Turn,
    ) -> Result<(), Refused> {
        if session.model().model == turn.model {
            return Ok(());
        }
        let target = self.target_of(turn).await?;
        session.switch_model(target).await.map_err(|error| Refused::of_call(&error))
    }
}

/// What an answer takes back to whoever asked.
struct WayBack {
    wire: Dialect,
    streaming: Streaming,
    waiting: mpsc::Receiver<Piece>,
    end: oneshot::Receiver<Ended>,
    /// Calls the call off when the client hangs up.
    guard: DropGuard,
}

impl WayBack {
    /// The head of the answer, with a body that follows as it comes.
    async fn respond(mut self) -> Response<OutBody> {
        let Some(Piece::Begun { status, headers }) = self.waiting.recv().await else {
            return self.refuse().await;
        };
        let (sender, body) = OutBody::pieces();
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        put_headers(&mut response, &headers);
        tokio::spawn(self.forward(sender));
        response
    }

    /// There is no answer.
    async fn refuse(self) -> Response<OutBody> {
        let error = match self.end.await {
            Ok(Err(error)) => error,
            Ok(Ok(_)) | Err(_) => return Refused::internal().respond(self.wire),
        };
        match &error {
            // Nothing was done about it: the client gets what it would have got without us.
            CallError::GaveUp(gave_up) if gave_up.tried.is_empty() && gave_up.refusal.is_some() => {
                let refusal = gave_up.refusal.as_deref();
                refusal.map_or_else(|| Refused::of_call(&error).respond(self.wire), passed_on)
            }
            _ => Refused::of_call(&error).respond(self.wire),
        }
    }

    /// Passes pieces on as they come. What breaks off in the middle of a stream ends with an error in its form.
    async fn forward(mut self, sender: mpsc::Sender<Bytes>) {
        loop {
            let piece = tokio::select! {
                biased;
                () = sender.closed() => return,
                piece = self.waiting.recv() => piece,
            };
            match piece {
                None => break,
                Some(Piece::Begun { .. }) => {}
                Some(Piece::Chunk(chunk)) => {
                    if sender.send(chunk.raw).await.is_err() {
                        return;
                    }
                }
            }
        }
        let ended = self.end.await;
        let _ = self.guard.disarm();
        if let (Ok(Err(error)), Streaming::Streamed) = (ended, self.streaming) {
            let event = write_error_event(self.wire, &Refused::of_call(&error).error_body());
            let _ = sender.send(Bytes::from(event.to_bytes())).await;
        }
    }
}
