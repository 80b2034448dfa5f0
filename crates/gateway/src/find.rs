//! Which conversation a request belongs to: one at hand, one of the record, a branch, or a new one.

use std::sync::Arc;

use hyper::StatusCode;
use throughline_engine::{ManagedSession, SessionSetup, Target};
use throughline_store::{
    Link, LinkKind, NewSession, Origin, Owner, Session, SessionId, StoreError, StoredMessage,
};
use throughline_transcript::{Dialect, Message, Role, is_client_summary};
use tokio::sync::OwnedMutexGuard;

use crate::event::GatewayEvent;
use crate::gateway::Inner;
use crate::identity::Known;
use crate::let_go::{LetGo, Listed, let_go, unknown_of};
use crate::matching::{Match, Theirs, compare, is_compacted, refreshed};
use crate::recall::seen::Eyes;
use crate::refused::Refused;
use crate::seats::{Recognised, Seat, SeatKey, key_start};
use crate::turn::Turn;

/// How often a conversation is looked for that others keep moving on.
const MOST_LOOKS: usize = 8;
/// Conversations that may begin alike and still be told apart after a restart.
const MAX_ALIKE: usize = 64;

/// Where a request stands.
pub(crate) struct Place {
    pub(crate) seat: Arc<Seat>,
    pub(crate) session: OwnedMutexGuard<ManagedSession>,
    /// The conversation as the client tells it, without what it has let go.
    pub(crate) messages: Vec<Message>,
    /// How many of those are not new.
    pub(crate) repeated: usize,
    /// What the conversation is recognised by once the request is part of it.
    pub(crate) known: Vec<Known>,
}

/// A conversation, before the messages of the request are at hand again.
struct Found {
    seat: Arc<Seat>,
    session: OwnedMutexGuard<ManagedSession>,
    known: Vec<Known>,
    repeated: usize,
}

impl Found {
    fn with(self, messages: Vec<Message>) -> Place {
        let Self { seat, session, known, repeated } = self;
        Place { seat, session, messages, repeated, known }
    }
}

impl Inner {
    /// Where a request stands, for as long as its call takes.
    pub(crate) async fn place(&self, turn: &Turn) -> Result<Place, Refused> {
        let Listed { messages, after } = match let_go(turn.request.messages()) {
            None => Listed { messages: turn.request.messages().to_vec(), after: None },
            Some(item) => self.unsealed(turn, item).await?,
        };
        let Some(after) = after else {
            let theirs = Theirs::all(&messages);
            let mut found = self.take_seat(0, &theirs, || self.seat_for(turn, &theirs)).await?;
            self.renew(turn, &mut found).await?;
            drop(theirs);
            return Ok(found.with(messages));
        };
        let first = self.seat_of_conversation(turn, &after.conversation).await?;
        let kept = unknown_of(&after.kept, first.recognised().before(after.messages));
        let messages: Vec<Message> = kept.into_iter().chain(messages).collect();
        let theirs = Theirs::all(&messages);
        let found =
            self.take_seat(after.messages, &theirs, || self.seat_after(turn, &first, &theirs, &after));
        let mut found = found.await?;
        self.renew(turn, &mut found).await?;
        drop(theirs);
        Ok(found.with(messages))
    }

    /// Waits for a conversation, and looks for it again if somebody else has spoken meanwhile.
    async fn take_seat<F: Future<Output = Result<Arc<Seat>, Refused>>>(
        &self,
        let_go: usize,
        theirs: &[Theirs<'_>],
        look: impl Fn() -> F,
    ) -> Result<Found, Refused> {
        for _ in 0..MOST_LOOKS {
            let seat = look().await?;
            let session = Arc::clone(&seat.session).lock_owned().await;
            let recognised = seat.recognised();
            let (after, folded) = recognised.after(let_go);
            let found = compare(after, theirs, folded);
            if !found.goes_on(after) {
                continue;
            }
            let mut known = recognised.before(let_go).to_vec();
            known.extend(refreshed(after, theirs, folded));
            known.extend(theirs.iter().skip(found.repeated).map(Theirs::known));
            return Ok(Found { seat, session, known, repeated: found.repeated });
        }
        Err(Refused {
            status: StatusCode::CONFLICT,
            kind: "api_error",
            message: "the conversation goes on elsewhere at the same time; ask again".to_owned(),
        })
    }

    /// Has a conversation follow a configuration that was replaced since it was opened.
    async fn renew(&self, turn: &Turn, found: &mut Found) -> Result<(), Refused> {
        let Some(edition) = self.outdated(&found.seat, &found.session) else { return Ok(()) };
        let target = self.target_of(turn).await?;
        self.reopen(&found.seat, &mut found.session, target, edition).await
    }

    /// The edition in force, if a conversation was opened with another. One that has something to write first stays as it
    /// is until that is written.
    pub(crate) fn outdated(&self, seat: &Seat, session: &ManagedSession) -> Option<u64> {
        let edition = self.config.edition();
        (seat.edition() != edition && session.is_written()).then_some(edition)
    }

    /// Opens a conversation at hand again.
    pub(crate) async fn reopen(
        &self,
        seat: &Seat,
        session: &mut ManagedSession,
        target: Target,
        edition: u64,
    ) -> Result<(), Refused> {
        let id = session.id().clone();
        let setup = self.session_setup_with(target, &seat.conversation);
        *session = ManagedSession::open(setup, &id).await.map_err(|error| self.refused_by(&error))?;
        seat.set_edition(edition);
        Ok(())
    }

    /// What a conversation is recognised by, as the record has it.
    pub(crate) async fn read_recognised(&self, session: &ManagedSession) -> Result<Recognised, StoreError> {
        let id = session.id().clone();
        let transcript = self.transcript(id).await?;
        Ok(recognised(session, self.known_of(&transcript, session.dialect())))
    }

    /// What messages of the record are recognised by.
    fn known_of(&self, transcript: &[StoredMessage], wire: Dialect) -> Vec<Known> {
        let config = self.config.now();
        let messages: Vec<Message> = transcript.iter().filter_map(StoredMessage::decode).collect();
        Eyes::new(config.recall.names(), wire).known(&messages)
    }

    async fn transcript(&self, id: SessionId) -> Result<Vec<StoredMessage>, StoreError> {
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        blocking(move || store.transcript(&owner, &id)).await
    }

    /// The conversation a request belongs to: one at hand, one of the record, or a new one.
    async fn seat_for(&self, turn: &Turn, theirs: &[Theirs<'_>]) -> Result<Arc<Seat>, Refused> {
        let wire = turn.request.dialect();
        if let Some(reference) = &turn.clues.session {
            return self.named_seat(turn, reference, theirs).await;
        }
        let own_id = turn.clues.own_id.as_deref().map(|id| format!("{wire}:{id}"));
        let scope = own_id.clone().unwrap_or_else(|| wire.name().to_owned());
        let key = SeatKey::of(&self.setup.owner, Some(&scope), turn.request.messages());
        if let Some((seat, _)) = best(self.seats.under(&key), theirs, 0).filter(|(_, found)| found.1) {
            self.seats.touch(&seat);
            return Ok(seat);
        }
        // One at a time from here on, so that two first requests of a conversation open it once.
        let _opening = self.opening.lock().await;
        self.bring_back(turn, &key).await?;
        match best(self.seats.under(&key), theirs, 0) {
            Some((seat, (_, true))) => {
                self.seats.touch(&seat);
                Ok(seat)
            }
            Some((seat, (found, false))) if found.known > 0 => {
                self.branch(turn, &key, &seat, theirs, 0).await
            }
            _ => self.open_new(turn, &key, own_id.as_deref()).await,
        }
    }

    /// A conversation by its id.
    async fn seat_of_conversation(&self, turn: &Turn, id: &SessionId) -> Result<Arc<Seat>, Refused> {
        let at_hand = || self.seats.of_conversation(&self.setup.owner, id);
        if let Some(seat) = at_hand() {
            return Ok(seat);
        }
        let _opening = self.opening.lock().await;
        match at_hand() {
            Some(seat) => Ok(seat),
            None => self.take_up(turn, &key_of_conversation(&self.setup.owner, id), id).await,
        }
    }

    /// The conversation, or one that left it after what its client has let go.
    async fn seat_after(
        &self,
        turn: &Turn,
        seat: &Arc<Seat>,
        theirs: &[Theirs<'_>],
        sealed: &LetGo,
    ) -> Result<Arc<Seat>, Refused> {
        if seat.compare(theirs, sealed.messages).1 {
            self.seats.touch(seat);
            return Ok(Arc::clone(seat));
        }
        let _opening = self.opening.lock().await;
        let key = key_of_conversation(&self.setup.owner, &sealed.conversation);
        self.bring_back(turn, &key).await?;
        let mut ways = self.seats.under(&key);
        ways.push(Arc::clone(seat));
        match best(ways, theirs, sealed.messages) {
            Some((way, (_, true))) => {
                self.seats.touch(&way);
                Ok(way)
            }
            Some((way, _)) => self.branch(turn, &key, &way, theirs, sealed.messages).await,
            None => Ok(Arc::clone(seat)),
        }
    }

    /// A conversation that the client names by its id in the record.
    async fn named_seat(
        &self,
        turn: &Turn,
        reference: &str,
        theirs: &[Theirs<'_>],
    ) -> Result<Arc<Seat>, Refused> {
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
        if self.seats.under(&key).is_empty() {
            self.take_up(turn, &key, &session.id).await?;
        }
        // What does not go on from its end leaves it somewhere, as without a name.
        match best(self.seats.under(&key), theirs, 0) {
            Some((seat, (_, true))) => Ok(seat),
            Some((seat, _)) => self.branch(turn, &key, &seat, theirs, 0).await,
            None => Err(Refused::internal()),
        }
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
        let edition = self.config.edition();
        let setup = self.session_setup(turn, id).await?;
        let session = ManagedSession::open(setup, id).await.map_err(|error| self.refused_by(&error))?;
        self.seat(key, session, edition).await
    }

    /// A conversation that leaves another one where the request says something else.
    async fn branch(
        &self,
        turn: &Turn,
        key: &SeatKey,
        seat: &Seat,
        theirs: &[Theirs<'_>],
        let_go: usize,
    ) -> Result<Arc<Seat>, Refused> {
        let tip = seat.recognised().tip;
        let transcript = self.transcript(tip).await.map_err(|error| self.record_failed(&error))?;
        let known = self.known_of(&transcript, turn.request.dialect());
        let after = known.get(let_go..).unwrap_or_default();
        let found = compare(after, theirs, 0);
        if is_compacted(after, theirs, found) {
            let tip = seat.recognised().tip;
            return self.open_linked(turn, key, tip, LinkKind::ClientCompaction).await;
        }
        // What the client knows nothing of goes with the answer it led to.
        let led = after
            .iter()
            .take(found.known)
            .rev()
            .take_while(|known| known.seen.is_some_and(|seen| seen.may_lack));
        let shared = let_go + found.known - led.count();
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
        let Some(id) = own_id else { return self.open(turn, key, None).await };
        let owner = &self.setup.owner;
        // The gateway may have been started since the others began.
        let recorded = self.recorded_of_client(turn, id).await?;
        if turn.request.messages().iter().any(is_client_summary) {
            let parent = match self.seats.last_of(owner, id) {
                Some(at_hand) => Some(at_hand),
                None => self.last_spoken_in(&recorded).await?,
            };
            if let Some(parent) = parent {
                return self.open_linked(turn, key, parent, LinkKind::ClientCompaction).await;
            }
        }
        let first = recorded.into_iter().next().map(|session| session.id);
        match first.or_else(|| self.seats.first_of(owner, id)) {
            None => self.open(turn, key, None).await,
            Some(parent) => {
                let has_tools = turn.request.tools().is_some();
                let kind = if has_tools { LinkKind::SubAgent } else { LinkKind::SideCall };
                self.open_linked(turn, key, parent, kind).await
            }
        }
    }

    /// Conversations of a client's session, by their first sessions, as the record has them.
    async fn recorded_of_client(&self, turn: &Turn, own_id: &str) -> Result<Vec<Session>, Refused> {
        let (store, owner, program) =
            (Arc::clone(&self.setup.store), self.setup.owner.clone(), turn.clues.program);
        let start = key_start(own_id);
        let found = blocking(move || store.sessions_by_origin(&owner, program, &start)).await;
        found.map_err(|error| self.record_failed(&error))
    }

    /// The end of the conversation that was last spoken in, sub-agents and side calls apart: they come and go.
    async fn last_spoken_in(&self, recorded: &[Session]) -> Result<Option<SessionId>, Refused> {
        let is_beside = |session: &Session| {
            let kind = session.link.as_ref().map(|link| link.kind);
            matches!(kind, Some(LinkKind::SubAgent | LinkKind::SideCall))
        };
        let ids: Vec<SessionId> =
            recorded.iter().filter(|session| !is_beside(session)).map(|session| session.id.clone()).collect();
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let last = blocking(move || {
            let mut tips = Vec::new();
            for id in &ids {
                tips.extend(store.chain(&owner, id)?.pop());
            }
            Ok(tips.into_iter().max_by_key(|tip| (tip.active_ms, tip.ordinal)).map(|tip| tip.id))
        });
        last.await.map_err(|error| self.record_failed(&error))
    }

    /// A conversation that hangs on the end of another.
    async fn open_linked(
        &self,
        turn: &Turn,
        key: &SeatKey,
        parent: SessionId,
        kind: LinkKind,
    ) -> Result<Arc<Seat>, Refused> {
        let (store, owner, id) = (Arc::clone(&self.setup.store), self.setup.owner.clone(), parent.clone());
        let session = blocking(move || store.session(&owner, &id)).await;
        let session = session.map_err(|error| self.record_failed(&error))?;
        self.open(turn, key, Some(Link { parent, kind, leaves_at: session.next_seq })).await
    }

    async fn open(&self, turn: &Turn, key: &SeatKey, link: Option<Link>) -> Result<Arc<Seat>, Refused> {
        let host = &self.setup.host;
        let now_ms = host.now_ms();
        let id = SessionId::new(now_ms, host.random(), self.config.now().policy.ids);
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
            dialect: turn.request.dialect(),
        };
        let edition = self.config.edition();
        let setup = self.session_setup(turn, &id).await?;
        let session = ManagedSession::create(setup, new).await.map_err(|error| self.refused_by(&error))?;
        let link = link.map(|link| (link.parent, link.kind.name()));
        self.tell(GatewayEvent::Opened { session: id, link });
        self.seat(key, session, edition).await
    }

    /// A session at hand, opened with an edition of the configuration.
    pub(crate) async fn seat(
        &self,
        key: &SeatKey,
        session: ManagedSession,
        edition: u64,
    ) -> Result<Arc<Seat>, Refused> {
        let recognised = self.read_recognised(&session).await.map_err(|error| self.record_failed(&error))?;
        let seat = Arc::new(Seat::new(session, recognised, edition));
        self.seats.add(key.clone(), Arc::clone(&seat));
        Ok(seat)
    }

    async fn session_setup(&self, turn: &Turn, conversation: &SessionId) -> Result<SessionSetup, Refused> {
        let target = self.target_of(turn).await?;
        Ok(self.session_setup_with(target, conversation))
    }

    pub(crate) fn record_failed(&self, error: &StoreError) -> Refused {
        self.tell(GatewayEvent::Warning(format!("the record cannot be used: {error}")));
        Refused::unrecorded()
    }
}

/// What a conversation is recognised by, given its messages.
pub(crate) fn recognised(session: &ManagedSession, known: Vec<Known>) -> Recognised {
    let own = session.messages().len().saturating_sub(session.first_own_item());
    let folded = if session.is_folded() { known.len().saturating_sub(own) } else { 0 };
    Recognised { tip: session.id().clone(), known, folded }
}

/// The one of several conversations that a request repeats most of.
fn best(seats: Vec<Arc<Seat>>, theirs: &[Theirs<'_>], let_go: usize) -> Option<(Arc<Seat>, (Match, bool))> {
    let compared = seats.into_iter().map(|seat| {
        let found = seat.compare(theirs, let_go);
        (seat, found)
    });
    compared.max_by_key(|(_, (found, goes_on))| (*goes_on, found.known))
}

/// Under what a conversation is looked for by those who know its id.
fn key_of_conversation(owner: &Owner, id: &SessionId) -> SeatKey {
    SeatKey { owner: owner.clone(), text: format!("conversation/{id}") }
}

/// The name under which one of several conversations that begin alike is found again.
fn numbered(key: &SeatKey, number: usize) -> String {
    if number == 1 { key.text.clone() } else { format!("{}#{number}", key.text) }
}

/// Reads or writes the record on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::ViewRefused { problem: "the record was not reached" }),
    }
}
