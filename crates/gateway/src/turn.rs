//! One managed call: from a client's request to the answer on its way back.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::{Response, StatusCode};
use throughline_engine::{
    Along, CallError, CallInput, CallOutcome, EngineEvent, Envelope, Incoming, ManagedSession, Piece,
    Rewording, SessionSetup,
};
use throughline_provider::{Endpoint, HoldBack};
use throughline_store::{Link, LinkKind, NewSession, Origin, Session, SessionId, StoreError, StoredMessage};
use throughline_transcript::{Dialect, Role};
use throughline_wire::{Request, Streaming, write_error_event};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::body_in;
use crate::body_out::OutBody;
use crate::clues::Clues;
use crate::event::{GatewayEvent, Served};
use crate::gateway::Inner;
use crate::handler::{Asked, put_headers};
use crate::identity::Known;
use crate::matching::{Match, Theirs, align, compare, refreshed};
use crate::pass::{client_headers, is_key, pass_body_on};
use crate::refused::{Refused, passed_on};
use crate::seats::{Recognised, Seat, SeatKey};

/// Pieces of an answer that may wait to be passed on.
const PIECES_WAITING: usize = 32;
/// How often a conversation is looked for that others keep moving on.
const MOST_LOOKS: usize = 8;
/// Conversations that may begin alike and still be told apart after a restart.
const MAX_ALIKE: usize = 64;

/// A request with everything that is known about it.
struct Turn {
    request: Request,
    model: String,
    clues: Clues,
    endpoint: Endpoint,
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
    let body = body_in::unpack(&asked.headers, asked.packed.clone(), gateway.setup.limits.body_bytes)?;
    let request = Request::decode(wire, body).map_err(|error| Refused::bad_request(error.to_string()))?;
    let model = request.model().map(|model| model.trim().to_owned()).filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| Refused::bad_request("`model` is missing"))?;
    let clues = Clues::of(&asked.headers, &request);
    let upstream = gateway.setup.upstreams.choose(clues.upstream.as_deref(), wire, &model)?.clone();
    if request.leans_on_provider_state() {
        gateway.tell(GatewayEvent::Warning(format!(
            "a request for {model} leans on what the provider keeps: it is passed on unmanaged"
        )));
        let body = Bytes::from(request.encode());
        return pass_body_on(&gateway, &asked, body, &upstream, wire).await;
    }
    let headers = client_headers(&asked, &upstream);
    // Calls beside the conversation, such as for a summary, are made with the client's key too.
    let keys = headers.iter().filter(|(name, _)| is_key(name)).cloned().collect();
    let endpoint = Endpoint { headers: keys, ..upstream.endpoint(wire) };
    let turn = Turn { request, model, clues, endpoint, headers, query: asked.query };
    let (response, session) = gateway.managed(turn, wire).await?;
    gateway.tell(GatewayEvent::Served(Served {
        wire,
        model: session.1,
        session: Some(session.0),
        status: response.status().as_u16(),
        head_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    }));
    Ok(response)
}

impl Inner {
    async fn managed(
        self: &Arc<Self>,
        turn: Turn,
        wire: Dialect,
    ) -> Result<(Response<OutBody>, (SessionId, String)), Refused> {
        let messages = turn.request.messages().to_vec();
        let theirs = Theirs::all(&messages);
        let (seat, mut session, found) = self.take_seat(&turn, &theirs).await?;
        self.follow_model(&mut session, &turn).await?;
        let repeated = messages.get(..found.repeated).unwrap_or_default();
        let (from, worded) = align(session.messages(), session.first_own_item(), repeated);
        session.reword(Rewording { from, worded });
        let before = seat.recognised();
        let mut known = refreshed(&before.known, &theirs, before.folded);
        known.extend(theirs.iter().skip(found.repeated).map(Theirs::known));
        drop(theirs);
        // Who asks meanwhile sees that this much is being answered already.
        seat.set_recognised(Recognised { known: known.clone(), ..before });

        let cancel = CancellationToken::new();
        let (pieces, waiting) = mpsc::channel(PIECES_WAITING);
        let streaming = turn.request.streaming();
        let model = turn.model.clone();
        let new: Vec<Incoming> = messages.into_iter().skip(found.repeated).map(Incoming::from).collect();
        let input = CallInput {
            pieces: Some(pieces),
            along: Along { headers: turn.headers, query: turn.query, hold_back: HoldBack::UntilContent },
            cancel: cancel.clone(),
            ..CallInput::new(Envelope::of_request(turn.request), new)
        };
        let id = session.id().clone();
        let (ended, end) = oneshot::channel();
        let gateway = Arc::clone(self);
        self.tasks.spawn(async move {
            let result = gateway.call(&seat, session, input, known).await;
            // Whoever asked may be gone.
            let _ = ended.send(result);
        });
        let way_back = WayBack { wire, streaming, waiting, end, guard: cancel.drop_guard() };
        Ok((way_back.respond().await, (id, model)))
    }

    /// The conversation a request belongs to, for as long as its call takes.
    async fn take_seat(
        &self,
        turn: &Turn,
        theirs: &[Theirs<'_>],
    ) -> Result<(Arc<Seat>, OwnedMutexGuard<ManagedSession>, Match), Refused> {
        for _ in 0..MOST_LOOKS {
            let seat = self.seat_for(turn, theirs).await?;
            let session = Arc::clone(&seat.session).lock_owned().await;
            // Somebody else may have spoken while this one waited.
            if let (found, true) = seat.compare(theirs) {
                return Ok((seat, session, found));
            }
        }
        Err(Refused {
            status: StatusCode::CONFLICT,
            kind: "api_error",
            message: "the conversation goes on elsewhere at the same time; ask again".to_owned(),
        })
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

    /// What a conversation is recognised by, as the record has it.
    async fn read_recognised(&self, session: &ManagedSession) -> Result<Recognised, StoreError> {
        let id = session.id().clone();
        let transcript = self.transcript(id).await?;
        Ok(recognised(session, known_of(&transcript)))
    }

    async fn transcript(&self, id: SessionId) -> Result<Vec<StoredMessage>, StoreError> {
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        blocking(move || store.transcript(&owner, &id)).await
    }

    /// The model the request names, if the conversation was held with another.
    async fn follow_model(
        &self,
        session: &mut OwnedMutexGuard<ManagedSession>,
        turn: &Turn,
    ) -> Result<(), Refused> {
        if session.model().model == turn.model {
            return Ok(());
        }
        let target = self.target(turn.endpoint.clone(), &turn.model).await?;
        session.switch_model(target).await.map_err(|error| Refused::of_call(&error))
    }

    /// The conversation a request belongs to: one at hand, one of the record, or a new one.
    async fn seat_for(&self, turn: &Turn, theirs: &[Theirs<'_>]) -> Result<Arc<Seat>, Refused> {
        let wire = turn.endpoint.wire;
        if let Some(reference) = &turn.clues.session {
            return self.named_seat(turn, reference).await;
        }
        let own_id = turn.clues.own_id.as_deref().map(|id| format!("{wire}:{id}"));
        let scope = own_id.clone().unwrap_or_else(|| wire.name().to_owned());
        let key = SeatKey::of(&self.setup.owner, Some(&scope), turn.request.messages());
        if let Some((seat, _)) = self.best(&key, theirs).filter(|(_, found)| found.1) {
            self.seats.touch(&seat);
            return Ok(seat);
        }
        // One at a time from here on, so that two first requests of a conversation open it once.
        let _opening = self.opening.lock().await;
        self.bring_back(turn, &key).await?;
        match self.best(&key, theirs) {
            Some((seat, (_, true))) => {
                self.seats.touch(&seat);
                Ok(seat)
            }
            Some((seat, (found, false))) if found.known > 0 => self.branch(turn, &key, &seat, theirs).await,
            _ => self.open_new(turn, &key, own_id.as_deref()).await,
        }
    }

    /// The seat under a key that a request repeats most of.
    fn best(&self, key: &SeatKey, theirs: &[Theirs<'_>]) -> Option<(Arc<Seat>, (Match, bool))> {
        let seats = self.seats.under(key).into_iter();
        let compared = seats.map(|seat| {
            let found = seat.compare(theirs);
            (seat, found)
        });
        compared.max_by_key(|(_, (found, goes_on))| (*goes_on, found.known))
    }

    /// A conversation that the client names by its id in the record.
    async fn named_seat(&self, turn: &Turn, reference: &str) -> Result<Arc<Seat>, Refused> {
        let (store, owner, asked) =
            (Arc::clone(&self.setup.store), self.setup.owner.clone(), reference.to_owned());
        let found = blocking(move || {
            let session = store.resolve(&owner, &asked)?;
            let chain = store.chain(&owner, &session.id)?;
            Ok((session, chain))
        });
        let (session, chain) = found.await.map_err(|error| Refused::not_found(error.to_string()))?;
        let root = chain.first().unwrap_or(&session).id.clone();
        let key = SeatKey { owner: self.setup.owner.clone(), text: format!("session/{root}") };
        let _opening = self.opening.lock().await;
        if let Some(seat) = self.seats.under(&key).pop() {
            return Ok(seat);
        }
        self.take_up(turn, &key, &session.id).await
    }

    /// Brings conversations of the record that are looked for under this key back to hand.
    async fn bring_back(&self, turn: &Turn, key: &SeatKey) -> Result<(), Refused> {
        let at_hand: Vec<SessionId> =
            self.seats.under(key).iter().map(|seat| seat.conversation.clone()).collect();
        for number in 1..=MAX_ALIKE {
            let Some(session) = self.by_origin(turn, &numbered(key, number)).await? else { return Ok(()) };
            if !at_hand.contains(&session.id) {
                self.take_up(turn, key, &session.id).await?;
            }
        }
        Ok(())
    }

    async fn by_origin(&self, turn: &Turn, origin: &str) -> Result<Option<Session>, Refused> {
        let (store, owner, program, origin) =
            (Arc::clone(&self.setup.store), self.setup.owner.clone(), turn.clues.program, origin.to_owned());
        let found = blocking(move || store.session_by_origin(&owner, program, &origin)).await;
        found.map_err(|error| self.record_failed(&error))
    }

    /// Takes a conversation of the record up again.
    async fn take_up(&self, turn: &Turn, key: &SeatKey, id: &SessionId) -> Result<Arc<Seat>, Refused> {
        let setup = self.session_setup(turn, id).await?;
        let session = ManagedSession::open(setup, id).await.map_err(|error| Refused::of_call(&error))?;
        self.seat(key, session).await
    }

    /// A conversation that leaves another one where the request says something else.
    async fn branch(
        &self,
        turn: &Turn,
        key: &SeatKey,
        seat: &Seat,
        theirs: &[Theirs<'_>],
    ) -> Result<Arc<Seat>, Refused> {
        let tip = seat.recognised().tip;
        let transcript = self.transcript(tip).await.map_err(|error| self.record_failed(&error))?;
        let shared = compare(&known_of(&transcript), theirs, 0).known;
        let said = transcript.get(..shared).unwrap_or_default();
        // What begins alike and was never answered alike is another conversation.
        let has_answer = said.iter().any(|message| message.role == Role::Assistant);
        let Some(last) = said.last().filter(|_| has_answer) else {
            return self.open_new(turn, key, None).await;
        };
        let leaves_at = last.seq.saturating_add(1);
        let link = Link { parent: last.session.clone(), kind: LinkKind::Branch, leaves_at };
        self.open(turn, key, Some(link)).await
    }

    /// A conversation nobody has held yet. One of several of a client's session hangs on the first.
    async fn open_new(&self, turn: &Turn, key: &SeatKey, own_id: Option<&str>) -> Result<Arc<Seat>, Refused> {
        let parent = own_id.and_then(|id| self.seats.first_of(&self.setup.owner, id));
        let link = match parent {
            None => None,
            Some(parent) => {
                let has_tools = turn.request.tools().is_some();
                let kind = if has_tools { LinkKind::SubAgent } else { LinkKind::SideCall };
                let (store, owner, id) =
                    (Arc::clone(&self.setup.store), self.setup.owner.clone(), parent.clone());
                let session = blocking(move || store.session(&owner, &id)).await;
                let session = session.map_err(|error| self.record_failed(&error))?;
                Some(Link { parent, kind, leaves_at: session.next_seq })
            }
        };
        self.open(turn, key, link).await
    }

    async fn open(&self, turn: &Turn, key: &SeatKey, link: Option<Link>) -> Result<Arc<Seat>, Refused> {
        let host = &self.setup.host;
        let now_ms = host.now_ms();
        let id = SessionId::new(now_ms, host.random(), self.setup.policy.ids);
        let mut number = 1;
        while number < MAX_ALIKE && self.by_origin(turn, &numbered(key, number)).await?.is_some() {
            number += 1;
        }
        let new = NewSession {
            id: id.clone(),
            owner: self.setup.owner.clone(),
            link: link.clone(),
            started_ms: now_ms,
            model: Some(turn.model.clone()),
            title: None,
            origin: Origin {
                program: turn.clues.program.to_owned(),
                key: (number < MAX_ALIKE).then(|| numbered(key, number)),
                project: None,
            },
            dialect: turn.endpoint.wire,
        };
        let setup = self.session_setup(turn, &id).await?;
        let session = ManagedSession::create(setup, new).await.map_err(|error| Refused::of_call(&error))?;
        let link = link.map(|link| (link.parent, link.kind.name()));
        self.tell(GatewayEvent::Opened { session: id, link });
        self.seat(key, session).await
    }

    async fn seat(&self, key: &SeatKey, session: ManagedSession) -> Result<Arc<Seat>, Refused> {
        let recognised = self.read_recognised(&session).await.map_err(|error| self.record_failed(&error))?;
        let seat = Arc::new(Seat::new(session, recognised));
        self.seats.add(key.clone(), Arc::clone(&seat));
        Ok(seat)
    }

    async fn session_setup(&self, turn: &Turn, conversation: &SessionId) -> Result<SessionSetup, Refused> {
        let target = self.target(turn.endpoint.clone(), &turn.model).await?;
        let (events, conversation) = (Arc::clone(&self.setup.events), conversation.clone());
        Ok(SessionSetup {
            store: Arc::clone(&self.setup.store),
            owner: self.setup.owner.clone(),
            engine: (self.setup.engine)(),
            host: Arc::clone(&self.setup.host),
            events: Arc::new(move |event: EngineEvent| {
                events.tell(GatewayEvent::Engine { conversation: conversation.clone(), event });
            }),
            target,
            alternatives: Vec::new(),
            policy: self.setup.policy,
            tool_output: self.setup.tool_output.clone(),
        })
    }

    fn record_failed(&self, error: &StoreError) -> Refused {
        self.tell(GatewayEvent::Warning(format!("the record cannot be used: {error}")));
        Refused::internal()
    }
}

/// What a conversation is recognised by, given its messages.
fn recognised(session: &ManagedSession, known: Vec<Known>) -> Recognised {
    let own = session.messages().len().saturating_sub(session.first_own_item());
    let folded = if session.is_folded() { known.len().saturating_sub(own) } else { 0 };
    Recognised { tip: session.id().clone(), known, folded }
}

fn known_of(transcript: &[StoredMessage]) -> Vec<Known> {
    transcript.iter().filter_map(StoredMessage::decode).map(|message| Known::of(&message)).collect()
}

/// The name under which one of several conversations that begin alike is found again.
fn numbered(key: &SeatKey, number: usize) -> String {
    if number == 1 { key.text.clone() } else { format!("{}#{number}", key.text) }
}

/// Reads or writes the record on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::ViewRefused { problem: "the record was not reached" }),
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
