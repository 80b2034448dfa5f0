//! Which conversation a request belongs to: one at hand, one of the record, a branch, or a new one.

use std::sync::Arc;

use hyper::StatusCode;
use throughline_engine::{CallError, Freshness, History, ManagedSession, SessionSetup, Target};
use throughline_store::{
    Link, LinkKind, MAX_NUMBERED, NewSession, Origin, Owner, Session, SessionId, StoreError, StoredMessage,
    Version, numbered_key,
};
use throughline_transcript::{Dialect, Message, Role, asks_for_summary};
use tokio::sync::OwnedMutexGuard;

use crate::event::GatewayEvent;
use crate::gateway::Inner;
use crate::identity::Known;
use crate::let_go::{LetGo, Listed, let_go, unknown_of};
use crate::matching::{Match, Theirs, compare, has_new_summary, is_compacted, refreshed};
use crate::recall::seen::Eyes;
use crate::refused::Refused;
use crate::relations::note_request;
use crate::seats::{Recognised, Seat, SeatKey};
use crate::turn::Turn;

/// How often a conversation is looked for that others keep moving on.
const MOST_LOOKS: usize = 8;

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
            note_request(&found.seat, turn);
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
        let mut looks = 0;
        while looks < MOST_LOOKS {
            let seat = look().await?;
            // Each request alike that was first has a conversation of its own by now, so they are as many as ask at once.
            let Some(mut session) = seat.take(theirs, let_go).await else { continue };
            looks += 1;
            if !self.refresh(&seat, &mut session).await {
                continue;
            }
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

    /// Compares a conversation at hand with the record, and loads it again where somebody else wrote to it. Whether it is
    /// still there. Where the record cannot be read, what is at hand is all there is.
    async fn refresh(&self, seat: &Seat, session: &mut ManagedSession) -> bool {
        session.set_history(History::Client { branch_key: Some(seat.key.text.clone()) });
        let refreshed = session.refresh().await;
        self.follow(seat, session);
        let is_there = match refreshed {
            Ok(Freshness::Current) => true,
            Ok(Freshness::Reloaded) => match self.read_recognised(session).await {
                Ok(recognised) => {
                    seat.set_recognised(recognised);
                    true
                }
                Err(_) => false,
            },
            // Deleted, or replaced by a backup that knows nothing of it.
            Err(StoreError::UnknownSession { .. } | StoreError::VersionConflict { .. }) => false,
            Err(_) => true,
        };
        if !is_there {
            self.seats.remove(seat);
        }
        is_there
    }

    /// Has a seat follow its session to a branch, and tells of it.
    pub(crate) fn follow(&self, seat: &Seat, session: &ManagedSession) {
        if let Some(left) = seat.follow(session) {
            let link = Some((left, LinkKind::Branch.name()));
            self.tell(GatewayEvent::Opened { session: session.conversation().clone(), link });
        }
    }

    /// The same for all conversations under a key that nobody works on at the moment.
    async fn refresh_under(&self, key: &SeatKey) {
        let idle = self.seats.under(key).into_iter().filter_map(|seat| {
            let session = Arc::clone(&seat.session).try_lock_owned().ok()?;
            Some((seat, session))
        });
        let mut idle: Vec<(Arc<Seat>, OwnedMutexGuard<ManagedSession>)> = idle.collect();
        let versions: Vec<Version> = idle.iter().map(|(_, session)| session.version().clone()).collect();
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        // All of them at once: a conversation that is asked again and again has many branches.
        let current = blocking(move || {
            let is_current =
                |version: &Version| store.version(&owner, &version.tip).is_ok_and(|now| now == *version);
            Ok(versions.iter().map(is_current).collect::<Vec<bool>>())
        });
        let current = current.await.unwrap_or_default();
        for ((seat, session), is_current) in idle.iter_mut().zip(current) {
            if !is_current || !session.is_written() {
                self.refresh(seat, session).await;
            }
        }
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
        let setup = self.session_setup_with(target, &seat.conversation());
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
    pub(crate) fn known_of(&self, transcript: &[StoredMessage], wire: Dialect) -> Vec<Known> {
        let config = self.config.now();
        let messages: Vec<Message> = transcript.iter().filter_map(StoredMessage::decode).collect();
        Eyes::new(config.recall.names(), wire).known(&messages)
    }

    pub(crate) async fn transcript(&self, id: SessionId) -> Result<Vec<StoredMessage>, StoreError> {
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        blocking(move || store.transcript(&owner, &id)).await
    }

    /// The conversation a request belongs to: one at hand, one of the record, or a new one.
    async fn seat_for(&self, turn: &Turn, theirs: &[Theirs<'_>]) -> Result<Arc<Seat>, Refused> {
        let wire = turn.request.dialect();
        if let Some(reference) = &turn.clues.session {
            return self.named_seat(turn, reference, theirs).await;
        }
        let own_id = own_id(turn);
        let scope = own_id.clone().unwrap_or_else(|| wire.name().to_owned());
        let key = SeatKey::of(&self.setup.owner, Some(&scope), turn.request.messages());
        if let Some((seat, _)) = best(self.seats.under(&key), theirs, 0).filter(|(_, found)| found.1) {
            self.seats.touch(&seat);
            return Ok(seat);
        }
        // One at a time from here on, so that two first requests of a conversation open it once.
        let _opening = self.opening.lock().await;
        self.refresh_under(&key).await;
        self.bring_back(turn, &key).await?;
        match best(self.seats.under(&key), theirs, 0) {
            Some((seat, (_, true))) => {
                self.seats.touch(&seat);
                Ok(seat)
            }
            Some((seat, (found, false))) if found.known > 0 => {
                self.branch(turn, &key, &seat, theirs, 0).await
            }
            _ => self.open_new(turn, &key, theirs).await,
        }
    }

    /// Names the client's session for a request that does not, by the conversation at hand that it repeats as a whole. Older
    /// versions of Codex say nothing of themselves when they ask for a compaction.
    pub(crate) fn name_session(&self, turn: &mut Turn) {
        if turn.clues.own_id.is_some() || turn.clues.session.is_some() {
            return;
        }
        let theirs = Theirs::all(turn.request.messages());
        let repeated = self.seats.of_owner(&self.setup.owner).into_iter().filter_map(|seat| {
            let (found, goes_on) = seat.compare(&theirs, 0);
            (goes_on && found.known > 0).then_some((found.known, seat))
        });
        let Some((_, seat)) = repeated.max_by_key(|(known, _)| *known) else { return };
        let wire = format!("{}:", turn.request.dialect());
        let own_id = seat.key.own_id().and_then(|id| id.strip_prefix(&wire)).map(ToOwned::to_owned);
        drop(theirs);
        turn.clues.own_id = own_id;
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
        self.refresh_under(&key).await;
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
        self.refresh_under(&key).await;
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
        let at_hand: Vec<SessionId> = self.seats.under(key).iter().map(|seat| seat.conversation()).collect();
        for number in 1..=MAX_NUMBERED {
            let Some(session) = self.by_origin(turn, &numbered_key(&key.text, number)).await? else {
                return Ok(());
            };
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
        if is_compacted(after, theirs, found) || has_new_summary(after, theirs) {
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
            let is_answered = transcript.iter().any(|message| message.role == Role::Assistant);
            return self.open_alike(turn, key, seat, is_answered).await;
        };
        let leaves_at = last.seq.saturating_add(1);
        // What a client asks on its own account is no other way that the conversation went.
        let is_aside = theirs.last().is_some_and(|theirs| asks_for_summary(theirs.message));
        let kind = if is_aside { LinkKind::SideBranch } else { LinkKind::Branch };
        self.open(turn, key, Some(Link { parent: last.session.clone(), kind, leaves_at })).await
    }

    pub(crate) async fn open(
        &self,
        turn: &Turn,
        key: &SeatKey,
        link: Option<Link>,
    ) -> Result<Arc<Seat>, Refused> {
        let host = &self.setup.host;
        let now_ms = host.now_ms();
        let id = SessionId::new(now_ms, host.random(), self.config.now().policy.ids);
        let mut number = 1;
        while number < MAX_NUMBERED && self.by_origin(turn, &numbered_key(&key.text, number)).await?.is_some()
        {
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
                key: (number < MAX_NUMBERED).then(|| numbered_key(&key.text, number)),
                project: None,
            },
            dialect: turn.request.dialect(),
        };
        let edition = self.config.edition();
        let setup = self.session_setup(turn, &id).await?;
        let session = match ManagedSession::create(setup, new).await {
            // Another gateway on the same home opened it first. Whether the request belongs there is found out by comparing.
            Err(CallError::Record(StoreError::SessionExists { id: other })) if other != id => {
                return self.take_up(turn, key, &other).await;
            }
            created => created.map_err(|error| self.refused_by(&error))?,
        };
        let link = link.map(|link| (link.parent, link.kind.name()));
        self.tell(GatewayEvent::Opened { session: id, link });
        let seat = self.seat(key, session, edition).await?;
        note_request(&seat, turn);
        Ok(seat)
    }

    /// A session at hand, opened with an edition of the configuration.
    pub(crate) async fn seat(
        &self,
        key: &SeatKey,
        session: ManagedSession,
        edition: u64,
    ) -> Result<Arc<Seat>, Refused> {
        let recognised = self.read_recognised(&session).await.map_err(|error| self.record_failed(&error))?;
        let seat = Arc::new(Seat::new(key.clone(), session, recognised, edition));
        self.seats.add(Arc::clone(&seat));
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
    Recognised { tip: session.id().clone(), known, folded, is_being_answered: false }
}

/// What a client calls its session, with the wire: sessions of one client on two wires are two.
pub(crate) fn own_id(turn: &Turn) -> Option<String> {
    turn.clues.own_id.as_deref().map(|id| format!("{}:{id}", turn.request.dialect()))
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

/// Reads or writes the record on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::ViewRefused { problem: "the record was not reached" }),
    }
}
