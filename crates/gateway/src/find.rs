//! Which conversation a request belongs to: one at hand, one of the record, a branch, or a new one.

use std::sync::Arc;

use hyper::StatusCode;
use throughline_engine::{Freshness, ManagedSession, ModelTarget, SessionError, SessionSetup};
use throughline_store::{
    Link, LinkKind, MAX_NUMBERED, NewSession, Origin, Owner, SessionId, StoreError, StoredMessage,
    numbered_key,
};
use throughline_transcript::{Message, Role, WireFormat, asks_for_summary};
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

/// A conversation that was looked for.
pub(crate) struct Candidate {
    seat: Arc<Seat>,
    /// There for one that was opened for this very request: nobody else gets it first.
    session: Option<OwnedMutexGuard<ManagedSession>>,
}

impl Candidate {
    /// One that others may use too.
    fn at_hand(seat: Arc<Seat>) -> Self {
        Self { seat, session: None }
    }

    pub(crate) fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }
}

/// Under what a new conversation is filed: the first number that no other conversation that begins alike has.
pub(crate) struct FreeKey {
    key: SeatKey,
    number: usize,
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
        let since = self.seats.tick();
        let Listed { messages, after } = match let_go(turn.request.messages()) {
            None => Listed { messages: turn.request.messages().to_vec(), after: None },
            Some(item) => Box::pin(self.unsealed(turn, item)).await?,
        };
        if let Some(after) = after {
            return Box::pin(self.place_after(turn, messages, &after, since)).await;
        }
        let theirs = Theirs::all(&messages);
        let mut found = self.take_seat(since, 0, &theirs, || self.seat_for(turn, &theirs)).await?;
        self.renew(turn, &mut found).await?;
        note_request(&found.seat, turn);
        drop(theirs);
        Ok(found.with(messages))
    }

    /// Where a request stands whose client has let the beginning of the conversation go.
    async fn place_after(
        &self,
        turn: &Turn,
        messages: Vec<Message>,
        after: &LetGo,
        since: u64,
    ) -> Result<Place, Refused> {
        let first = self.seat_of_conversation(turn, &after.conversation).await?;
        let kept = unknown_of(&after.kept, first.recognised().before(after.messages));
        let messages: Vec<Message> = kept.into_iter().chain(messages).collect();
        let theirs = Theirs::all(&messages);
        let found =
            self.take_seat(since, after.messages, &theirs, || self.seat_after(turn, &first, &theirs, after));
        let mut found = found.await?;
        self.renew(turn, &mut found).await?;
        drop(theirs);
        Ok(found.with(messages))
    }

    /// Waits for a conversation, and looks for it again if somebody else has spoken meanwhile. One that was last compared with
    /// the record before `since` is compared again.
    async fn take_seat<F: Future<Output = Result<Candidate, Refused>>>(
        &self,
        since: u64,
        let_go: usize,
        theirs: &[Theirs<'_>],
        look: impl Fn() -> F,
    ) -> Result<Found, Refused> {
        for _ in 0..MOST_LOOKS {
            let Candidate { seat, session } = look().await?;
            let session = match session {
                Some(session) => Some(session),
                None => seat.wait_for_session(theirs, let_go).await,
            };
            let Some(mut session) = session else { continue };
            seat.follow_client(&mut session);
            if seat.checked() < since && !self.refresh(&seat, &mut session).await {
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
        seat.follow_client(session);
        let tick = self.seats.tick();
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
        match is_there {
            true => seat.set_checked(tick),
            false => self.seats.remove(seat),
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
        let idle: Vec<(Arc<Seat>, OwnedMutexGuard<ManagedSession>)> = idle.collect();
        if idle.is_empty() {
            return;
        }
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let tick = self.seats.tick();
        // All of them at once: a conversation that is asked again and again has many branches.
        let outdated = blocking(move || {
            let is_outdated = |(seat, session): &mut (Arc<Seat>, OwnedMutexGuard<ManagedSession>)| {
                let version = session.version();
                let is_current = session.is_written()
                    && store.version(&owner, &version.tip).is_ok_and(|now| now == *version);
                if is_current {
                    seat.set_checked(tick);
                }
                !is_current
            };
            let mut idle = idle;
            idle.retain_mut(is_outdated);
            Ok(idle)
        });
        for (seat, mut session) in outdated.await.unwrap_or_default() {
            self.refresh(&seat, &mut session).await;
        }
    }

    /// Has a conversation follow a configuration that was replaced since it was opened.
    async fn renew(&self, turn: &Turn, found: &mut Found) -> Result<(), Refused> {
        let Some(edition) = self.outdated(&found.seat, &found.session) else { return Ok(()) };
        let reopened = async {
            let target = self.target_of(turn).await?;
            self.reopen(&found.seat, &mut found.session, target, edition).await
        };
        Box::pin(reopened).await
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
        target: ModelTarget,
        edition: u64,
    ) -> Result<(), Refused> {
        let id = session.id().clone();
        let setup = self.session_setup_with(target, &seat.conversation());
        *session = ManagedSession::open(setup, &id).await.map_err(|error| self.refused_by(&error))?;
        seat.set_edition(edition);
        Ok(())
    }

    /// What a conversation is recognised by, as the record has it at the version that the session is a copy of. What others
    /// wrote since is not part of its view, so a request that says it does not repeat it.
    pub(crate) async fn read_recognised(&self, session: &ManagedSession) -> Result<Recognised, StoreError> {
        let id = session.id().clone();
        let mut transcript = self.transcript(id).await?;
        let version = session.version();
        transcript.retain(|message| message.session != version.tip || message.seq < version.next_seq);
        Ok(recognised(session, self.known_of(&transcript, session.wire_format())))
    }

    /// What messages of the record are recognised by.
    pub(crate) fn known_of(&self, transcript: &[StoredMessage], wire: WireFormat) -> Vec<Known> {
        let config = self.config.now();
        let messages: Vec<Message> = transcript.iter().filter_map(StoredMessage::decode).collect();
        Eyes::new(config.recall.names(), wire).known(&messages)
    }

    pub(crate) async fn transcript(&self, id: SessionId) -> Result<Vec<StoredMessage>, StoreError> {
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        blocking(move || store.transcript(&owner, &id)).await
    }

    /// The conversation a request belongs to: one at hand, one of the record, or a new one.
    async fn seat_for(&self, turn: &Turn, theirs: &[Theirs<'_>]) -> Result<Candidate, Refused> {
        let wire = turn.request.wire_format();
        if let Some(reference) = &turn.clues.session {
            return Box::pin(self.named_seat(turn, reference, theirs)).await;
        }
        let own_id = own_id(turn);
        let scope = own_id.clone().unwrap_or_else(|| wire.name().to_owned());
        let key = SeatKey::of(&self.setup.owner, Some(&scope), turn.request.messages());
        if let Some((seat, _)) = best(self.seats.under(&key), theirs, 0).filter(|(_, found)| found.1) {
            self.seats.touch(&seat);
            return Ok(Candidate::at_hand(seat));
        }
        // One at a time from here on, so that a conversation of the record is brought back once.
        let _opening = self.opening.lock().await;
        self.refresh_under(&key).await;
        let key = self.bring_back(turn, key).await?;
        match best(self.seats.under(&key.key), theirs, 0) {
            Some((seat, (_, true))) => {
                self.seats.touch(&seat);
                Ok(Candidate::at_hand(seat))
            }
            Some((seat, (found, false))) if found.known > 0 => {
                self.branch(turn, &key, &seat, theirs, 0).await
            }
            Some((seat, _)) if seat.is_new() => {
                let is_answered = false;
                self.open_alike(turn, &key, &seat, is_answered).await
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
        let wire = format!("{}:", turn.request.wire_format());
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
            None => {
                let key = key_of_conversation(&self.setup.owner, id);
                Ok(self.take_up(turn, &key, id).await?.seat)
            }
        }
    }

    /// The conversation, or one that left it after what its client has let go.
    async fn seat_after(
        &self,
        turn: &Turn,
        seat: &Arc<Seat>,
        theirs: &[Theirs<'_>],
        sealed: &LetGo,
    ) -> Result<Candidate, Refused> {
        if seat.compare(theirs, sealed.messages).1 {
            self.seats.touch(seat);
            return Ok(Candidate::at_hand(Arc::clone(seat)));
        }
        let _opening = self.opening.lock().await;
        let key = key_of_conversation(&self.setup.owner, &sealed.conversation);
        self.refresh_under(&key).await;
        let key = self.bring_back(turn, key).await?;
        let mut ways = self.seats.under(&key.key);
        ways.push(Arc::clone(seat));
        match best(ways, theirs, sealed.messages) {
            Some((way, (_, true))) => {
                self.seats.touch(&way);
                Ok(Candidate::at_hand(way))
            }
            Some((way, _)) => self.branch(turn, &key, &way, theirs, sealed.messages).await,
            None => Ok(Candidate::at_hand(Arc::clone(seat))),
        }
    }

    /// A conversation that the client names by its id in the record.
    async fn named_seat(
        &self,
        turn: &Turn,
        reference: &str,
        theirs: &[Theirs<'_>],
    ) -> Result<Candidate, Refused> {
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
            Some((seat, (_, true))) => Ok(Candidate::at_hand(seat)),
            Some((seat, _)) => {
                let number = self.sessions_alike(turn, &key).await?.len() + 1;
                self.branch(turn, &FreeKey { key, number }, &seat, theirs, 0).await
            }
            None => Err(Refused::internal()),
        }
    }

    /// Brings conversations of the record that are looked for under this key back to hand.
    async fn bring_back(&self, turn: &Turn, key: SeatKey) -> Result<FreeKey, Refused> {
        let alike = self.sessions_alike(turn, &key).await?;
        let at_hand = self.seats.under(&key);
        for id in alike.iter().filter(|id| !at_hand.iter().any(|seat| seat.is_of(id))) {
            self.take_up(turn, &key, id).await?;
        }
        Ok(FreeKey { key, number: alike.len() + 1 })
    }

    /// The conversations of the record that are looked for under a key, in the order of their numbers.
    async fn sessions_alike(&self, turn: &Turn, key: &SeatKey) -> Result<Vec<SessionId>, Refused> {
        let (store, owner, program, key) =
            (Arc::clone(&self.setup.store), self.setup.owner.clone(), turn.clues.program, key.text.clone());
        let found = blocking(move || {
            let mut found = Vec::new();
            for number in 1..=MAX_NUMBERED {
                match store.session_by_origin(&owner, program, &numbered_key(&key, number))? {
                    Some(session) => found.push(session.id),
                    None => break,
                }
            }
            Ok(found)
        });
        found.await.map_err(|error| self.record_failed(&error))
    }

    /// Takes a conversation of the record up again.
    async fn take_up(&self, turn: &Turn, key: &SeatKey, id: &SessionId) -> Result<Candidate, Refused> {
        let (edition, tick) = (self.config.edition(), self.seats.tick());
        let setup = self.session_setup(turn, id).await?;
        let session = ManagedSession::open(setup, id).await.map_err(|error| self.refused_by(&error))?;
        let seat = self.seat(key, session, edition).await?.seat;
        seat.set_checked(tick);
        Ok(Candidate::at_hand(seat))
    }

    /// A conversation that leaves another one where the request says something else.
    async fn branch(
        &self,
        turn: &Turn,
        key: &FreeKey,
        seat: &Seat,
        theirs: &[Theirs<'_>],
        let_go: usize,
    ) -> Result<Candidate, Refused> {
        let tip = seat.recognised().tip;
        let transcript = self.transcript(tip).await.map_err(|error| self.record_failed(&error))?;
        let known = self.known_of(&transcript, turn.request.wire_format());
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
        free: &FreeKey,
        link: Option<Link>,
    ) -> Result<Candidate, Refused> {
        let (edition, tick) = (self.config.edition(), self.seats.tick());
        let FreeKey { key, number } = free;
        let host = &self.setup.host;
        let now_ms = host.now_ms();
        let id = SessionId::new(now_ms, host.random(), self.config.now().policy.ids);
        let new = NewSession {
            id: id.clone(),
            owner: self.setup.owner.clone(),
            link: link.clone(),
            started_ms: now_ms,
            model: Some(turn.model.clone()),
            title: None,
            origin: Origin {
                program: turn.clues.program.to_owned(),
                key: (*number < MAX_NUMBERED).then(|| numbered_key(&key.text, *number)),
                project: None,
            },
            wire_format: turn.request.wire_format(),
        };
        let setup = self.session_setup(turn, &id).await?;
        let session = match ManagedSession::create(setup, new).await {
            // Another gateway on the same home opened it first. Whether the request belongs there is found out by comparing.
            Err(SessionError::Record(StoreError::SessionExists { id: other })) if other != id => {
                return self.take_up(turn, key, &other).await;
            }
            created => created.map_err(|error| self.refused_by(&error))?,
        };
        let link = link.map(|link| (link.parent, link.kind.name()));
        self.tell(GatewayEvent::Opened { session: id, link });
        let opened = self.seat(key, session, edition).await?;
        opened.seat.set_checked(tick);
        note_request(&opened.seat, turn);
        Ok(opened)
    }

    /// A session at hand, opened with an edition of the configuration.
    pub(crate) async fn seat(
        &self,
        key: &SeatKey,
        session: ManagedSession,
        edition: u64,
    ) -> Result<Candidate, Refused> {
        let recognised = self.read_recognised(&session).await.map_err(|error| self.record_failed(&error))?;
        let seat = Arc::new(Seat::new(key.clone(), session, recognised, edition));
        // Before anybody else finds it.
        let session = Arc::clone(&seat.session).try_lock_owned().ok();
        self.seats.add(Arc::clone(&seat));
        Ok(Candidate { seat, session })
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

/// What a client calls its session, with the wire: sessions of one client on two wires are two.
pub(crate) fn own_id(turn: &Turn) -> Option<String> {
    turn.clues.own_id.as_deref().map(|id| format!("{}:{id}", turn.request.wire_format()))
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
