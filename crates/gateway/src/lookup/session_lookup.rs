//! Which conversation a request belongs to: one at hand, one of the record, a branch, or a new one.

use std::cmp::Reverse;
use std::sync::Arc;

use hyper::StatusCode;
use throughline_engine::{Freshness, ManagedSession, ModelTarget};
use throughline_store::{Link, LinkKind, Owner, Session, SessionId, StoreError};
use throughline_transcript::{Message, Role};
use tokio::sync::OwnedMutexGuard;

use crate::blocking::blocking;
use crate::compaction::compaction_item::{
    CompactedPrefix, ExpandedHistory, last_compaction_item, messages_not_in,
};
use crate::error::GatewayError;
use crate::lookup::message_key::MessageKey;
use crate::lookup::open_session::NewSlotKey;
use crate::lookup::open_session::SlotCandidate;
use crate::lookup::open_session::note_request;
use crate::lookup::prefix_match::{
    ClientMessage, PrefixMatch, compare, has_new_summary, is_compacted, refreshed,
};
use crate::lookup::session_pool::{SessionSlot, SlotKey};
use crate::proxy::managed_request::ManagedRequest;
use crate::telemetry::event::GatewayEvent;
use crate::tenant::Tenant;

/// How often a conversation is looked for that others keep moving on.
const MOST_LOOKS: usize = 8;

/// Where a request stands.
pub(crate) struct ResolvedRequest {
    pub(crate) slot: Arc<SessionSlot>,
    pub(crate) session: OwnedMutexGuard<ManagedSession>,
    /// The conversation as the client tells it, without what it has let go.
    pub(crate) messages: Vec<Message>,
    /// How many of those are not new.
    pub(crate) repeated: usize,
    /// What the conversation is recognised by once the request is part of it.
    pub(crate) known: Vec<MessageKey>,
}

/// A conversation, before the messages of the request are at hand again.
struct LockedSlot {
    slot: Arc<SessionSlot>,
    session: OwnedMutexGuard<ManagedSession>,
    known: Vec<MessageKey>,
    repeated: usize,
}

impl LockedSlot {
    fn with(self, messages: Vec<Message>) -> ResolvedRequest {
        let Self { slot, session, known, repeated } = self;
        ResolvedRequest { slot, session, messages, repeated, known }
    }
}

impl Tenant {
    /// Where a request stands, for as long as its call takes.
    pub(crate) async fn resolve(&self, turn: &ManagedRequest) -> Result<ResolvedRequest, GatewayError> {
        let since = self.pool.tick();
        let ExpandedHistory { messages, after } = match last_compaction_item(turn.request.messages()) {
            None => ExpandedHistory { messages: turn.request.messages().to_vec(), after: None },
            Some(item) => Box::pin(self.expand_item(turn, item)).await?,
        };
        if let Some(after) = after {
            return Box::pin(self.resolve_after_compaction(turn, messages, &after, since)).await;
        }
        let client_messages = ClientMessage::all(&messages);
        let mut found =
            self.lock_slot(since, 0, &client_messages, || self.slot_for(turn, &client_messages)).await?;
        self.renew(turn, &mut found).await?;
        note_request(&found.slot, turn);
        drop(client_messages);
        Ok(found.with(messages))
    }

    /// Where a request stands whose client has let the beginning of the conversation go.
    async fn resolve_after_compaction(
        &self,
        turn: &ManagedRequest,
        messages: Vec<Message>,
        after: &CompactedPrefix,
        since: u64,
    ) -> Result<ResolvedRequest, GatewayError> {
        let first = self.slot_of_conversation(turn, &after.conversation).await?;
        let kept = messages_not_in(&after.kept, first.history_keys().before(after.messages));
        let messages: Vec<Message> = kept.into_iter().chain(messages).collect();
        let client_messages = ClientMessage::all(&messages);
        let found = self.lock_slot(since, after.messages, &client_messages, || {
            self.slot_after(turn, &first, &client_messages, after)
        });
        let mut found = found.await?;
        self.renew(turn, &mut found).await?;
        drop(client_messages);
        Ok(found.with(messages))
    }

    /// Waits for a conversation, and looks for it again if somebody else has spoken meanwhile. One that was last compared with
    /// the record before `since` is compared again.
    async fn lock_slot<F: Future<Output = Result<SlotCandidate, GatewayError>>>(
        &self,
        since: u64,
        compacted: usize,
        client_messages: &[ClientMessage<'_>],
        look: impl Fn() -> F,
    ) -> Result<LockedSlot, GatewayError> {
        for _ in 0..MOST_LOOKS {
            let SlotCandidate { slot, session } = look().await?;
            let session = match session {
                Some(session) => Some(session),
                None => slot.wait_for_session(client_messages, compacted).await,
            };
            let Some(mut session) = session else { continue };
            slot.follow_client(&mut session);
            if slot.checked() < since && !self.refresh(&slot, &mut session).await {
                continue;
            }
            let history_keys = slot.history_keys();
            let (after, compacted_messages) = history_keys.after(compacted);
            let found = compare(after, client_messages, compacted_messages);
            if !found.goes_on(after) {
                continue;
            }
            let mut known = history_keys.before(compacted).to_vec();
            known.extend(refreshed(after, client_messages, compacted_messages));
            known.extend(client_messages.iter().skip(found.repeated).map(ClientMessage::known));
            return Ok(LockedSlot { slot, session, known, repeated: found.repeated });
        }
        Err(GatewayError {
            status: StatusCode::CONFLICT,
            kind: "api_error",
            message: "the conversation is being continued by other requests at the same time; retry"
                .to_owned(),
        })
    }

    /// Compares a conversation at hand with the record, and loads it again where somebody else wrote to it. Whether it is
    /// still there. Where the record cannot be read, what is at hand is all there is.
    async fn refresh(&self, slot: &SessionSlot, session: &mut ManagedSession) -> bool {
        slot.follow_client(session);
        let tick = self.pool.tick();
        let refreshed = session.refresh().await;
        self.follow(slot, session);
        let is_there = match refreshed {
            Ok(Freshness::Current) => true,
            Ok(Freshness::Reloaded) => match self.read_history_keys(session).await {
                Ok(history_keys) => {
                    slot.set_history_keys(history_keys);
                    true
                }
                Err(_) => false,
            },
            // Deleted, or replaced by a backup that knows nothing of it.
            Err(StoreError::UnknownSession { .. } | StoreError::VersionConflict { .. }) => false,
            Err(_) => true,
        };
        match is_there {
            true => slot.set_checked(tick),
            false => self.pool.remove(slot),
        }
        is_there
    }

    /// Has a seat follow its session to a branch, and tells of it.
    pub(crate) fn follow(&self, slot: &SessionSlot, session: &ManagedSession) {
        if let Some(left) = slot.follow(session) {
            let link = Some((left, LinkKind::Branch.name()));
            self.tell(GatewayEvent::Opened { session: session.conversation().clone(), link });
        }
    }

    /// The same for all conversations under a key that nobody works on at the moment.
    async fn refresh_under(&self, key: &SlotKey) {
        let idle = self.pool.under(key).into_iter().filter_map(|slot| {
            let session = Arc::clone(&slot.session).try_lock_owned().ok()?;
            Some((slot, session))
        });
        let idle: Vec<(Arc<SessionSlot>, OwnedMutexGuard<ManagedSession>)> = idle.collect();
        if idle.is_empty() {
            return;
        }
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let tick = self.pool.tick();
        // All of them at once: a conversation that is asked again and again has many branches.
        let outdated = blocking(move || {
            let is_outdated = |(slot, session): &mut (Arc<SessionSlot>, OwnedMutexGuard<ManagedSession>)| {
                let version = session.version();
                let is_current = session.is_written()
                    && store.version(&owner, &version.tip).is_ok_and(|now| now == *version);
                if is_current {
                    slot.set_checked(tick);
                }
                !is_current
            };
            let mut idle = idle;
            idle.retain_mut(is_outdated);
            Ok(idle)
        });
        for (slot, mut session) in outdated.await.unwrap_or_default() {
            self.refresh(&slot, &mut session).await;
        }
    }

    /// Has a conversation follow a configuration that was replaced since it was opened.
    async fn renew(&self, turn: &ManagedRequest, found: &mut LockedSlot) -> Result<(), GatewayError> {
        let Some(edition) = self.outdated(&found.slot, &found.session) else { return Ok(()) };
        let reopened = async {
            let target = self.target_of(turn).await?;
            self.reopen(&found.slot, &mut found.session, target, edition).await
        };
        Box::pin(reopened).await
    }

    /// The edition in force, if a conversation was opened with another. One that has something to write first stays as it
    /// is until that is written.
    pub(crate) fn outdated(&self, slot: &SessionSlot, session: &ManagedSession) -> Option<u64> {
        let edition = self.config.edition();
        (slot.edition() != edition && session.is_written()).then_some(edition)
    }

    /// Opens a conversation at hand again.
    pub(crate) async fn reopen(
        &self,
        slot: &SessionSlot,
        session: &mut ManagedSession,
        target: ModelTarget,
        edition: u64,
    ) -> Result<(), GatewayError> {
        let id = session.id().clone();
        let setup = self.session_setup_with(target, &slot.conversation());
        *session = ManagedSession::open(setup, &id).await.map_err(|error| self.call_failed(&error))?;
        slot.set_edition(edition);
        Ok(())
    }

    /// The conversation a request belongs to: one at hand, one of the record, or a new one.
    async fn slot_for(
        &self,
        turn: &ManagedRequest,
        client_messages: &[ClientMessage<'_>],
    ) -> Result<SlotCandidate, GatewayError> {
        let wire = turn.request.wire_format();
        if let Some(reference) = &turn.client.session {
            return Box::pin(self.named_slot(turn, reference, client_messages)).await;
        }
        let own_id = own_id(turn);
        let scope = own_id.clone().unwrap_or_else(|| wire.name().to_owned());
        let key = SlotKey::of(&self.setup.owner, Some(&scope), turn.request.messages());
        if let Some((slot, _)) = best(self.pool.under(&key), client_messages, 0).filter(|(_, found)| found.1)
        {
            self.pool.touch(&slot);
            return Ok(SlotCandidate::at_hand(slot));
        }
        // One at a time from here on, so that a conversation of the record is brought back once.
        let _opening = self.opening.lock().await;
        self.refresh_under(&key).await;
        let key = self.load_matching(turn, key).await?;
        match best(self.pool.under(&key.key), client_messages, 0) {
            Some((slot, (_, true))) => {
                self.pool.touch(&slot);
                Ok(SlotCandidate::at_hand(slot))
            }
            Some((slot, (found, false))) if found.known > 0 => {
                self.branch(turn, &key, &slot, client_messages, 0).await
            }
            Some((slot, _)) if slot.is_new() => {
                let is_answered = false;
                self.open_sibling(turn, &key, &slot, is_answered).await
            }
            _ => match self.slot_begun_otherwise(&scope, client_messages) {
                Some(slot) => {
                    self.pool.touch(&slot);
                    Ok(SlotCandidate::at_hand(slot))
                }
                None => self.open_new(turn, &key, client_messages).await,
            },
        }
    }

    /// The conversation at hand that a request repeats as a whole although it begins otherwise: what stood before its first question
    /// stands further on now.
    fn slot_begun_otherwise(
        &self,
        scope: &str,
        client_messages: &[ClientMessage<'_>],
    ) -> Option<Arc<SessionSlot>> {
        let all = self.pool.of_owner(&self.setup.owner).into_iter();
        let slots = all.filter(|slot| slot.key.own_id() == Some(scope) && !slot.is_new()).collect();
        best(slots, client_messages, 0)
            .filter(|(_, (found, goes_on))| *goes_on && found.reworded > 0)
            .map(|(slot, _)| slot)
    }

    /// Names the client's session for a request that does not, by the conversation at hand that it repeats as a whole. Older
    /// versions of Codex say nothing of themselves when they ask for a compaction.
    pub(crate) fn name_session(&self, turn: &mut ManagedRequest) {
        if turn.client.own_id.is_some() || turn.client.session.is_some() {
            return;
        }
        let client_messages = ClientMessage::all(turn.request.messages());
        let repeated = self.pool.of_owner(&self.setup.owner).into_iter().filter_map(|slot| {
            let (found, goes_on) = slot.compare(&client_messages, 0);
            (goes_on && found.known > 0).then_some((found.known, slot))
        });
        let Some((_, slot)) = repeated.max_by_key(|(known, _)| *known) else { return };
        let wire = format!("{}:", turn.request.wire_format());
        let own_id = slot.key.own_id().and_then(|id| id.strip_prefix(&wire)).map(ToOwned::to_owned);
        drop(client_messages);
        turn.client.own_id = own_id;
    }

    /// A conversation by its id.
    async fn slot_of_conversation(
        &self,
        turn: &ManagedRequest,
        id: &SessionId,
    ) -> Result<Arc<SessionSlot>, GatewayError> {
        let at_hand = || self.pool.of_conversation(&self.setup.owner, id);
        if let Some(slot) = at_hand() {
            return Ok(slot);
        }
        let _opening = self.opening.lock().await;
        match at_hand() {
            Some(slot) => Ok(slot),
            None => {
                let key = key_of_conversation(&self.setup.owner, id);
                Ok(self.load_session(turn, &key, id).await?.slot)
            }
        }
    }

    /// The conversation, or one that left it after what its client has let go.
    async fn slot_after(
        &self,
        turn: &ManagedRequest,
        slot: &Arc<SessionSlot>,
        client_messages: &[ClientMessage<'_>],
        sealed: &CompactedPrefix,
    ) -> Result<SlotCandidate, GatewayError> {
        if slot.compare(client_messages, sealed.messages).1 {
            self.pool.touch(slot);
            return Ok(SlotCandidate::at_hand(Arc::clone(slot)));
        }
        let _opening = self.opening.lock().await;
        let key = key_of_conversation(&self.setup.owner, &sealed.conversation);
        self.refresh_under(&key).await;
        let key = self.load_matching(turn, key).await?;
        let mut ways = self.pool.under(&key.key);
        ways.push(Arc::clone(slot));
        match best(ways, client_messages, sealed.messages) {
            Some((way, (_, true))) => {
                self.pool.touch(&way);
                Ok(SlotCandidate::at_hand(way))
            }
            Some((way, _)) => self.branch(turn, &key, &way, client_messages, sealed.messages).await,
            None => Ok(SlotCandidate::at_hand(Arc::clone(slot))),
        }
    }

    /// A conversation that the client names by its id in the record.
    async fn named_slot(
        &self,
        turn: &ManagedRequest,
        reference: &str,
        client_messages: &[ClientMessage<'_>],
    ) -> Result<SlotCandidate, GatewayError> {
        let (store, owner, inbound) =
            (Arc::clone(&self.setup.store), self.setup.owner.clone(), reference.to_owned());
        let found = blocking(move || {
            let session = store.resolve(&owner, &inbound)?;
            let chain = store.chain(&owner, &session.id)?;
            Ok((session, chain))
        });
        let (session, chain) = found.await.map_err(|error| GatewayError::not_found(error.to_string()))?;
        let root = chain.first().unwrap_or(&session).id.clone();
        let key = SlotKey { owner: self.setup.owner.clone(), text: format!("session/{root}") };
        let _opening = self.opening.lock().await;
        self.refresh_under(&key).await;
        if self.pool.under(&key).is_empty() {
            self.load_session(turn, &key, &session.id).await?;
        }
        // What does not go on from its end leaves it somewhere, as without a name.
        match best(self.pool.under(&key), client_messages, 0) {
            Some((slot, (_, true))) => Ok(SlotCandidate::at_hand(slot)),
            Some((slot, _)) => {
                let number = self.matching_sessions(turn, &key).await?.len() + 1;
                self.branch(turn, &NewSlotKey { key, number }, &slot, client_messages, 0).await
            }
            None => Err(GatewayError::internal()),
        }
    }

    /// Brings conversations of the record that are looked for under this key back to hand.
    async fn load_matching(&self, turn: &ManagedRequest, key: SlotKey) -> Result<NewSlotKey, GatewayError> {
        let alike = self.matching_sessions(turn, &key).await?;
        let at_hand = self.pool.under(&key);
        for id in alike.iter().filter(|id| !at_hand.iter().any(|slot| slot.is_of(id))) {
            self.load_session(turn, &key, id).await?;
        }
        Ok(NewSlotKey { key, number: alike.len() + 1 })
    }

    /// The conversations of the record that are looked for under a key, in the order of their numbers.
    async fn matching_sessions(
        &self,
        turn: &ManagedRequest,
        key: &SlotKey,
    ) -> Result<Vec<SessionId>, GatewayError> {
        let (store, owner, program, key) =
            (Arc::clone(&self.setup.store), self.setup.owner.clone(), turn.client.program, key.text.clone());
        let found = blocking(move || {
            let mut found = Vec::new();
            for number in 1..=Session::MAX_NUMBERED {
                match store.session_by_origin(&owner, program, &Session::numbered_key(&key, number))? {
                    Some(session) => found.push(session.id),
                    None => break,
                }
            }
            Ok(found)
        });
        found.await.map_err(|error| self.record_failed(&error))
    }

    /// A conversation that leaves another one where the request says something else.
    async fn branch(
        &self,
        turn: &ManagedRequest,
        key: &NewSlotKey,
        slot: &SessionSlot,
        client_messages: &[ClientMessage<'_>],
        compacted: usize,
    ) -> Result<SlotCandidate, GatewayError> {
        let tip = slot.history_keys().tip;
        let transcript = self.transcript(tip).await.map_err(|error| self.record_failed(&error))?;
        let known = self.keys_of(&transcript, turn.request.wire_format());
        let after = known.get(compacted..).unwrap_or_default();
        let found = compare(after, client_messages, 0);
        if is_compacted(after, client_messages, found) || has_new_summary(after, client_messages) {
            let tip = slot.history_keys().tip;
            return self.open_linked(turn, key, tip, LinkKind::ClientCompaction).await;
        }
        // What the client knows nothing of goes with the answer it led to.
        let led = after
            .iter()
            .take(found.known)
            .rev()
            .take_while(|known| known.client_form().is_some_and(|form| form.may_lack));
        let shared = compacted + found.known - led.count();
        let said = transcript.get(..shared).unwrap_or_default();
        // What begins alike and was never answered alike is another conversation.
        let has_answer = said.iter().any(|message| message.role == Role::Assistant);
        let Some(last) = said.last().filter(|_| has_answer) else {
            let is_answered = transcript.iter().any(|message| message.role == Role::Assistant);
            return self.open_sibling(turn, key, slot, is_answered).await;
        };
        let leaves_at = last.seq.saturating_add(1);
        // What a client asks on its own account is no other way that the conversation went.
        let is_aside =
            client_messages.last().is_some_and(|client_messages| client_messages.message.asks_for_summary());
        let kind = if is_aside { LinkKind::SideBranch } else { LinkKind::Branch };
        self.open(turn, key, Some(Link { parent: last.session.clone(), kind, leaves_at })).await
    }
}

/// What a client calls its session, with the wire: sessions of one client on two wires are two.
pub(crate) fn own_id(turn: &ManagedRequest) -> Option<String> {
    turn.client.own_id.as_deref().map(|id| format!("{}:{id}", turn.request.wire_format()))
}

/// The one of several conversations that a request repeats most of.
fn best(
    slots: Vec<Arc<SessionSlot>>,
    client_messages: &[ClientMessage<'_>],
    compacted: usize,
) -> Option<(Arc<SessionSlot>, (PrefixMatch, bool))> {
    let compared = slots.into_iter().map(|slot| {
        let found = slot.compare(client_messages, compacted);
        (slot, found)
    });
    compared.max_by_key(|(_, (found, goes_on))| (*goes_on, found.known, Reverse(found.reworded)))
}

/// Under what a conversation is looked for by those who know its id.
fn key_of_conversation(owner: &Owner, id: &SessionId) -> SlotKey {
    SlotKey { owner: owner.clone(), text: format!("conversation/{id}") }
}
