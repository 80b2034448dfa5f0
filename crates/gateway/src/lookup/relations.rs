//! How a new conversation is linked to others of its client: as a sub-agent, a side call, the continuation of a
//! conversation that the client compacted, or not at all.
//!
//! A client's session has one main conversation. A side call (for a title, say) has no tools and at most one exchange. If it
//! arrives first, it is linked once the main conversation begins. A conversation with tools is a sub-agent if another
//! conversation with tools could have started it: one that was answered, or is being answered.

use std::sync::Arc;
use std::time::Duration;

use throughline_store::{Link, LinkKind, Owner, Session, SessionFilter, SessionId, Store, StoreError};
use throughline_transcript::{Message, Role};

use crate::blocking::blocking;
use crate::error::GatewayError;
use crate::lookup::open_session::has_tools;
use crate::lookup::open_session::is_empty_list;
use crate::lookup::open_session::{NewSlotKey, SlotCandidate};
use crate::lookup::prefix_match::{ClientMessage, shared_answers};
use crate::lookup::quotes::{QuoteRequirement, QuoteSearch, words_of};
use crate::lookup::session_lookup::own_id;
use crate::lookup::session_pool::{SessionSlot, key_start};
use crate::proxy::managed_request::ManagedRequest;
use crate::telemetry::event::GatewayEvent;
use crate::tenant::Tenant;

/// The most messages of a side call: instructions, a question in a few pieces, an answer.
const MOST_SIDE_CALL_MESSAGES: usize = 8;
/// The number of recorded conversations that are searched for the one that a client compacted.
const MOST_LOOKED_THROUGH: usize = 16;

/// The role of a conversation in a client's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConversationRole {
    /// May have sub-agents and side calls.
    Main,
    /// Has tools but was never answered: it was cancelled, and started nothing.
    Unanswered,
    /// Has no tools and at most one exchange, and is not linked yet.
    SideCall,
    /// Is linked to another conversation.
    Attached,
}

/// How long a call that quotes a conversation waits for a running call of that conversation.
const WAIT_FOR_ANSWER: Duration = Duration::from_millis(500);

impl Tenant {
    /// Opens a new conversation, linked to the conversation that it belongs to.
    pub(crate) async fn open_new(
        &self,
        turn: &ManagedRequest,
        key: &NewSlotKey,
        client_messages: &[ClientMessage<'_>],
    ) -> Result<SlotCandidate, GatewayError> {
        let is_compacted = turn.request.messages().iter().any(Message::is_client_summary);
        if turn.client.is_side_call {
            return match self.quoted_by(turn).await {
                Some(parent) => self.open_linked(turn, key, parent, LinkKind::SideCall).await,
                None => {
                    let opened = self.open(turn, key, None).await?;
                    opened.slot().set_waiting_side_call(Some(words_of(turn.request.messages())));
                    Ok(opened)
                }
            };
        }
        let Some(id) = own_id(turn) else {
            if is_compacted
                && let Some(parent) = Box::pin(self.compacted_by_client(turn, client_messages)).await?
            {
                return self.open_linked(turn, key, parent, LinkKind::ClientCompaction).await;
            }
            return match self.quoted_by(turn).await {
                Some(parent) => self.open_linked(turn, key, parent, LinkKind::SideCall).await,
                None => self.open(turn, key, None).await,
            };
        };
        let parts = self.parts_of_client(turn, &id).await?;
        let first = |wanted: ConversationRole| {
            parts.iter().find(|(_, part)| *part == wanted).map(|(id, _)| id.clone())
        };
        if is_compacted && let Some(parent) = self.last_main(&parts).await? {
            return self.open_linked(turn, key, parent, LinkKind::ClientCompaction).await;
        }
        let asks_for_summary = turn.request.messages().last().is_some_and(Message::asks_for_summary);
        if asks_for_summary || !has_tools(&turn.request) {
            let parent = first(ConversationRole::Main)
                .or_else(|| first(ConversationRole::Unanswered))
                .or_else(|| first(ConversationRole::SideCall));
            return match parent {
                Some(parent) => self.open_linked(turn, key, parent, LinkKind::SideCall).await,
                None => self.open(turn, key, None).await,
            };
        }
        let opened = match first(ConversationRole::Main) {
            Some(parent) => self.open_linked(turn, key, parent, LinkKind::SubAgent).await?,
            None => self.open(turn, key, None).await?,
        };
        // Links side calls that arrived before the conversation they belong to.
        let main = first(ConversationRole::Main).unwrap_or_else(|| opened.slot().conversation());
        for (side, _) in parts.iter().filter(|(_, part)| *part == ConversationRole::SideCall) {
            self.file_side_call(side, &main).await;
        }
        self.file_waiting(opened.slot()).await;
        Ok(opened)
    }

    /// Opens a conversation with the same first message as an open one and no answer in common. If the other is a sub-agent
    /// or a side call, this one is linked to the same parent. If the other begins with a summary of its client, this one
    /// continues from the other if that was answered, and otherwise from the same conversation as the other.
    pub(crate) async fn open_sibling(
        &self,
        turn: &ManagedRequest,
        key: &NewSlotKey,
        slot: &SessionSlot,
        is_answered: bool,
    ) -> Result<SlotCandidate, GatewayError> {
        let (store, owner, id) =
            (Arc::clone(&self.setup.store), self.setup.owner.clone(), slot.conversation());
        let link = blocking(move || Ok(store.session(&owner, &id)?.link)).await;
        let Some(Link { parent, kind, .. }) = link.map_err(|error| self.record_failed(&error))? else {
            return self.open(turn, key, None).await;
        };
        match kind {
            LinkKind::SubAgent | LinkKind::SideCall => self.open_linked(turn, key, parent, kind).await,
            LinkKind::ClientCompaction => {
                let parent = if is_answered { slot.history_keys().tip } else { parent };
                self.open_linked(turn, key, parent, kind).await
            }
            LinkKind::Continuation | LinkKind::Branch | LinkKind::SideBranch => {
                self.open(turn, key, None).await
            }
        }
    }

    /// Opens a conversation that is linked to the end of another.
    pub(crate) async fn open_linked(
        &self,
        turn: &ManagedRequest,
        key: &NewSlotKey,
        parent: SessionId,
        kind: LinkKind,
    ) -> Result<SlotCandidate, GatewayError> {
        let (store, owner, id) = (Arc::clone(&self.setup.store), self.setup.owner.clone(), parent.clone());
        let session = blocking(move || store.session(&owner, &id)).await;
        let session = session.map_err(|error| self.record_failed(&error))?;
        self.open(turn, key, Some(Link { parent, kind, leaves_at: session.next_seq })).await
    }

    /// Links a conversation to another as its side call. If that fails, it stays in the list by itself; the request is not refused.
    async fn file_side_call(&self, side: &SessionId, main: &SessionId) {
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let (id, link) =
            (side.clone(), Link { parent: main.clone(), kind: LinkKind::SideCall, leaves_at: 0 });
        let event = match blocking(move || store.attach(&owner, &id, &link)).await {
            Ok(_) => {
                let link = (main.clone(), LinkKind::SideCall.name());
                GatewayEvent::Attached { session: side.clone(), link }
            }
            Err(error) => {
                GatewayEvent::Warning(format!("{side} could not be attached to its conversation: {error}"))
            }
        };
        self.tell(event);
    }

    /// The conversation that a side call quotes, for clients whose side calls do not name the session: Hermes requests titles
    /// and summaries with the conversation quoted in one message and without tools, Codex requests titles in separate threads.
    ///
    /// Only open conversations with tools are searched. While one is being answered, only its last human message is known,
    /// and that only for clients that make side calls at that time.
    async fn quoted_by(&self, turn: &ManagedRequest) -> Option<SessionId> {
        let messages = turn.request.messages();
        let is_question =
            |message: &Message| message.role() == Role::User || message.role().is_instructions();
        let is_told = turn.client.is_side_call || messages.last().is_some_and(Message::asks_for_summary);
        if messages.len() > MOST_SIDE_CALL_MESSAGES
            || !messages.iter().all(is_question)
            || (has_tools(&turn.request) && !turn.client.is_side_call)
        {
            return None;
        }
        let agents = self.pool.of_owner(&self.setup.owner).into_iter();
        let agents: Vec<_> = agents.filter(|slot| slot.has_tools() == Some(true)).collect();
        if agents.is_empty() {
            return None;
        }
        let words = words_of(messages);
        let needed = if is_told { QuoteRequirement::Question } else { QuoteRequirement::QuestionAndAnswer };
        let quoting = QuoteSearch::new(&words, needed);
        if !is_told {
            // Clients request titles right after an answer, while the call of the answer may still be recorded.
            let is_quoted =
                |slot: &&Arc<SessionSlot>| slot.question().is_some_and(|question| quoting.has(&question));
            for slot in agents.iter().filter(is_quoted) {
                let _ = tokio::time::timeout(WAIT_FOR_ANSWER, slot.session.lock()).await;
            }
        }
        let quoted = agents.into_iter().map(|slot| match slot.session.try_lock() {
            Ok(session) => (quoting.quoted(session.messages()), slot.last_used(), session.id().clone()),
            Err(_) => {
                let is_quoted = is_told && slot.question().is_some_and(|question| quoting.has(&question));
                (usize::from(is_quoted), slot.last_used(), slot.conversation())
            }
        });
        let quoted = quoted.filter(|(count, ..)| *count > 0);
        quoted.max_by_key(|(count, last_used, _)| (*count, *last_used)).map(|(_, _, id)| id)
    }

    /// Links earlier side calls that quote the question of this conversation.
    async fn file_waiting(&self, slot: &SessionSlot) {
        let Some(question) = slot.question() else { return };
        for other in self.pool.of_owner(&self.setup.owner) {
            let words = other.waiting_side_call();
            if words.is_some_and(|words| QuoteSearch::new(&words, QuoteRequirement::Question).has(&question))
            {
                other.set_waiting_side_call(None);
                self.file_side_call(&other.conversation(), &slot.conversation()).await;
            }
        }
    }

    /// Returns the conversations of a client's session in the order of their start, with their roles.
    async fn parts_of_client(
        &self,
        turn: &ManagedRequest,
        own_id: &str,
    ) -> Result<Vec<(SessionId, ConversationRole)>, GatewayError> {
        let (store, owner, program) =
            (Arc::clone(&self.setup.store), self.setup.owner.clone(), turn.client.program);
        let (start, pool) = (key_start(own_id), Arc::clone(&self.pool));
        let found = blocking(move || {
            let recorded = store.sessions_by_origin(&owner, program, &start)?;
            let part = |session: Session| {
                let at_hand = pool.of_conversation(&owner, &session.id);
                let part = part_of(store.as_ref(), &owner, &session, at_hand.as_deref())?;
                Ok((session.id, part))
            };
            recorded.into_iter().map(part).collect()
        });
        found.await.map_err(|error| self.record_failed(&error))
    }

    /// Returns the tip of the main conversation with the latest activity.
    async fn last_main(
        &self,
        parts: &[(SessionId, ConversationRole)],
    ) -> Result<Option<SessionId>, GatewayError> {
        let mains = parts
            .iter()
            .filter(|(_, part)| matches!(part, ConversationRole::Main | ConversationRole::Unanswered));
        let ids: Vec<SessionId> = mains.map(|(id, _)| id.clone()).collect();
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

    /// Returns the conversation whose answers a request repeats after a summary by its client; for clients that send no session id and
    /// keep no message of the beginning.
    async fn compacted_by_client(
        &self,
        turn: &ManagedRequest,
        client_messages: &[ClientMessage<'_>],
    ) -> Result<Option<SessionId>, GatewayError> {
        let at_hand = self.pool.of_owner(&self.setup.owner).into_iter().map(|slot| slot.history_keys());
        let shared = at_hand
            .map(|history_keys| (shared_answers(&history_keys.keys, client_messages), history_keys.tip));
        if let Some((_, tip)) = shared.filter(|(count, _)| *count > 0).max_by_key(|(count, _)| *count) {
            return Ok(Some(tip));
        }
        // If the pool does not have it: the gateway may have restarted since.
        let (store, owner, program) =
            (Arc::clone(&self.setup.store), self.setup.owner.clone(), turn.client.program.to_owned());
        let filter = SessionFilter {
            program: Some(program),
            limit: Some(MOST_LOOKED_THROUGH),
            ..SessionFilter::default()
        };
        let recent = blocking(move || {
            let found = store.conversations(&owner, &filter)?;
            let with_words = found.into_iter().map(|one| {
                let said = store.transcript(&owner, &one.tip.id)?;
                Ok((one.tip.id, said))
            });
            with_words.collect::<Result<Vec<_>, StoreError>>()
        });
        let recent = recent.await.map_err(|error| self.record_failed(&error))?;
        let shared = recent.into_iter().map(|(tip, said)| {
            (shared_answers(&self.keys_of(&said, turn.request.wire_format()), client_messages), tip)
        });
        Ok(shared.filter(|(count, _)| *count > 0).max_by_key(|(count, _)| *count).map(|(_, tip)| tip))
    }
}

/// The role of a conversation, judged by the record and, if it is open, by its slot.
fn part_of(
    store: &dyn Store,
    owner: &Owner,
    session: &Session,
    at_hand: Option<&SessionSlot>,
) -> Result<ConversationRole, StoreError> {
    if session.link.as_ref().is_some_and(|link| link.kind.is_attached()) {
        return Ok(ConversationRole::Attached);
    }
    let is_short = || -> Result<bool, StoreError> {
        let chain = store.chain(owner, &session.id)?;
        let messages = store.messages(owner, &session.id)?;
        let answers = messages.iter().filter(|message| message.role == Role::Assistant).count();
        Ok(chain.len() == 1 && messages.len() <= MOST_SIDE_CALL_MESSAGES && answers <= 1)
    };
    let is_busy = at_hand.is_some_and(|slot| slot.session.try_lock().is_err());
    match at_hand.and_then(SessionSlot::has_tools) {
        Some(true) if is_busy => return Ok(ConversationRole::Main),
        Some(false) if is_short()? => return Ok(ConversationRole::SideCall),
        _ => {}
    }
    let calls = store.calls(owner, &session.id)?;
    let mut has_tools = false;
    for preamble in calls.iter().filter_map(|call| call.call.preamble.as_ref()) {
        let tools = store.preamble(preamble)?.and_then(|preamble| preamble.tools);
        has_tools |= tools.is_some_and(|tools| !is_empty_list(&tools));
    }
    let is_answered = calls.iter().any(|call| call.call.error.is_none());
    Ok(match (calls.is_empty(), has_tools, is_answered) {
        // Its first call may still be running; until then it counts as a main conversation.
        (true, _, _) => ConversationRole::Main,
        (_, true, false) => ConversationRole::Unanswered,
        (_, false, _) if is_short()? => ConversationRole::SideCall,
        _ => ConversationRole::Main,
    })
}
