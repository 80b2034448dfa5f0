//! Decides which conversation a request continues: an open one, one loaded from the record, a new branch, or a new
//! conversation.
//!
//! `resolve` is the entry point and `slot_for` makes the choice. `prefix_match.rs` compares messages, `message_key.rs` defines when two
//! messages are the same, `session_pool.rs` holds the open conversations, and `open_session.rs` opens others.

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

/// How often a lookup is repeated because other requests changed the conversation in the meantime.
const MOST_LOOKS: usize = 8;

/// The session that a request continues, locked for this request.
pub(crate) struct ResolvedRequest {
    pub(crate) slot: Arc<SessionSlot>,
    pub(crate) session: OwnedMutexGuard<ManagedSession>,
    /// The conversation as the client sends it, without the messages that the client has dropped.
    pub(crate) messages: Vec<Message>,
    /// The number of these messages that the session already has.
    pub(crate) repeated: usize,
    /// The keys of the conversation, including the new messages of the request.
    pub(crate) keys: Vec<MessageKey>,
}

/// A locked session whose request messages are still borrowed for the comparison.
struct LockedSlot {
    slot: Arc<SessionSlot>,
    session: OwnedMutexGuard<ManagedSession>,
    keys: Vec<MessageKey>,
    repeated: usize,
}

impl LockedSlot {
    fn with(self, messages: Vec<Message>) -> ResolvedRequest {
        let Self { slot, session, keys, repeated } = self;
        ResolvedRequest { slot, session, messages, repeated, keys }
    }
}

impl Tenant {
    /// Finds or opens the session that a request continues, and locks it until the call has ended.
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

    /// Does the same for a request whose client has replaced the beginning of the conversation by a compaction item.
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

    /// Waits for the lock of a session. Repeats the lookup if another request changed the conversation in the meantime. A session that
    /// was last compared with the record before `since` is compared again.
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
            let mut keys = history_keys.before(compacted).to_vec();
            keys.extend(refreshed(after, client_messages, compacted_messages));
            keys.extend(client_messages.iter().skip(found.repeated).map(ClientMessage::key));
            return Ok(LockedSlot { slot, session, keys, repeated: found.repeated });
        }
        Err(GatewayError {
            status: StatusCode::CONFLICT,
            kind: "api_error",
            message: "the conversation is being continued by other requests at the same time; retry"
                .to_owned(),
        })
    }

    /// Compares an open session with the record and reloads it if another process wrote to it. Returns whether the record
    /// still has the session. If the record cannot be read, the open session is used as it is.
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
            // The session was deleted, or the record was replaced by a backup that does not contain it.
            Err(StoreError::UnknownSession { .. } | StoreError::VersionConflict { .. }) => false,
            Err(_) => true,
        };
        match is_there {
            true => slot.set_checked(tick),
            false => self.pool.remove(slot),
        }
        is_there
    }

    /// Renames the slot if its session continued as a branch, and reports the branch as an event.
    pub(crate) fn follow(&self, slot: &SessionSlot, session: &ManagedSession) {
        if let Some(left) = slot.follow(session) {
            let link = Some((left, LinkKind::Branch.name()));
            self.tell(GatewayEvent::Opened { session: session.conversation().clone(), link });
        }
    }

    /// Refreshes all sessions under a key that no request is using.
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
        // One blocking task for all of them: a conversation whose last message is often resent has many branches.
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

    /// Reopens a session if the configuration was replaced since it was opened.
    async fn renew(&self, turn: &ManagedRequest, found: &mut LockedSlot) -> Result<(), GatewayError> {
        let Some(edition) = self.outdated(&found.slot, &found.session) else { return Ok(()) };
        let reopened = async {
            let target = self.target_of(turn).await?;
            self.reopen(&found.slot, &mut found.session, target, edition).await
        };
        Box::pin(reopened).await
    }

    /// The current edition of the configuration, if the session was opened with another one. A session with unwritten
    /// messages keeps its edition until they are written.
    pub(crate) fn outdated(&self, slot: &SessionSlot, session: &ManagedSession) -> Option<u64> {
        let edition = self.config.edition();
        (slot.edition() != edition && session.is_written()).then_some(edition)
    }

    /// Opens a session again, with the current configuration.
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

    /// The conversation a request continues, in this order: the session that the client names, an open conversation that
    /// the request repeats as a whole, one loaded from the record, a branch of the conversation that it repeats most of, or a
    /// new conversation.
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
        // One request at a time continues here, so that a conversation is loaded from the record only once.
        let _opening = self.opening.lock().await;
        self.refresh_under(&key).await;
        let key = self.load_matching(turn, key).await?;
        match best(self.pool.under(&key.key), client_messages, 0) {
            Some((slot, (_, true))) => {
                self.pool.touch(&slot);
                Ok(SlotCandidate::at_hand(slot))
            }
            Some((slot, (found, false))) if found.matched > 0 => {
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

    /// Returns the open conversation that a request repeats as a whole although its first messages differ: its client moved the messages
    /// before the first question to a later position.
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

    /// Sets the client's session id of a request without one, from the open conversation that the request repeats as a whole.
    /// Older versions of Codex send no id with a request for a compaction.
    pub(crate) fn name_session(&self, turn: &mut ManagedRequest) {
        if turn.client.own_id.is_some() || turn.client.session.is_some() {
            return;
        }
        let client_messages = ClientMessage::all(turn.request.messages());
        let repeated = self.pool.of_owner(&self.setup.owner).into_iter().filter_map(|slot| {
            let (found, goes_on) = slot.compare(&client_messages, 0);
            (goes_on && found.matched > 0).then_some((found.matched, slot))
        });
        let Some((_, slot)) = repeated.max_by_key(|(matched, _)| *matched) else { return };
        let wire = format!("{}:", turn.request.wire_format());
        let own_id = slot.key.own_id().and_then(|id| id.strip_prefix(&wire)).map(ToOwned::to_owned);
        drop(client_messages);
        turn.client.own_id = own_id;
    }

    /// The slot of a conversation, by the id of the conversation.
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

    /// The conversation, or a branch that left it after the part that the client has compacted.
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

    /// The session that the client names by its id in the record, or a branch of it.
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
        // A request that does not continue at the end of the session becomes a branch, as it would without a name.
        match best(self.pool.under(&key), client_messages, 0) {
            Some((slot, (_, true))) => Ok(SlotCandidate::at_hand(slot)),
            Some((slot, _)) => {
                let number = self.matching_sessions(turn, &key).await?.len() + 1;
                self.branch(turn, &NewSlotKey { key, number }, &slot, client_messages, 0).await
            }
            None => Err(GatewayError::internal()),
        }
    }

    /// Loads the conversations that the record has under this key.
    async fn load_matching(&self, turn: &ManagedRequest, key: SlotKey) -> Result<NewSlotKey, GatewayError> {
        let alike = self.matching_sessions(turn, &key).await?;
        let at_hand = self.pool.under(&key);
        for id in alike.iter().filter(|id| !at_hand.iter().any(|slot| slot.is_of(id))) {
            self.load_session(turn, &key, id).await?;
        }
        Ok(NewSlotKey { key, number: alike.len() + 1 })
    }

    /// The conversations that the record has under a key, in the order of their numbers.
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

    /// Opens a branch at the first message in which the request differs from the conversation.
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
        let keys = self.keys_of(&transcript, turn.request.wire_format());
        let after = keys.get(compacted..).unwrap_or_default();
        let found = compare(after, client_messages, 0);
        if is_compacted(after, client_messages, found) || has_new_summary(after, client_messages) {
            let tip = slot.history_keys().tip;
            return self.open_linked(turn, key, tip, LinkKind::ClientCompaction).await;
        }
        // Messages hidden from the client belong to the answer that follows them, which the request does not share.
        let led = after
            .iter()
            .take(found.matched)
            .rev()
            .take_while(|key| key.client_form().is_some_and(|form| form.may_lack));
        let shared = compacted + found.matched - led.count();
        let said = transcript.get(..shared).unwrap_or_default();
        // Without a shared answer, the equal beginning is a coincidence: this is another conversation.
        let has_answer = said.iter().any(|message| message.role == Role::Assistant);
        let Some(last) = said.last().filter(|_| has_answer) else {
            let is_answered = transcript.iter().any(|message| message.role == Role::Assistant);
            return self.open_sibling(turn, key, slot, is_answered).await;
        };
        let leaves_at = last.seq.saturating_add(1);
        // A client's own request for a summary is a side branch: the conversation itself does not continue there.
        let is_aside =
            client_messages.last().is_some_and(|client_messages| client_messages.message.asks_for_summary());
        let kind = if is_aside { LinkKind::SideBranch } else { LinkKind::Branch };
        self.open(turn, key, Some(Link { parent: last.session.clone(), kind, leaves_at })).await
    }
}

/// The client's id for its session, prefixed with the wire format: the same id in two wire formats means two sessions.
pub(crate) fn own_id(turn: &ManagedRequest) -> Option<String> {
    turn.client.own_id.as_deref().map(|id| format!("{}:{id}", turn.request.wire_format()))
}

/// Returns the conversation that the request continues or, if there is none, the one of which it repeats the most messages. The flag
/// tells whether the request continues it.
fn best(
    slots: Vec<Arc<SessionSlot>>,
    client_messages: &[ClientMessage<'_>],
    compacted: usize,
) -> Option<(Arc<SessionSlot>, (PrefixMatch, bool))> {
    let compared = slots.into_iter().map(|slot| {
        let found = slot.compare(client_messages, compacted);
        (slot, found)
    });
    compared.max_by_key(|(_, (found, goes_on))| (*goes_on, found.matched, Reverse(found.reworded)))
}

/// The key of a conversation that is looked up by its id.
fn key_of_conversation(owner: &Owner, id: &SessionId) -> SlotKey {
    SlotKey { owner: owner.clone(), text: format!("conversation/{id}") }
}
