//! Creates sessions, opens recorded ones, and adds them to the pool.

use std::sync::Arc;

use throughline_engine::{ManagedSession, SessionError, SessionSetup};
use throughline_store::{Link, NewSession, Origin, Session, SessionId, StoreError, StoredMessage};
use throughline_transcript::{Message, WireFormat};
use throughline_wire::Request;
use tokio::sync::OwnedMutexGuard;

use crate::blocking::blocking;
use crate::error::GatewayError;
use crate::lookup::client_info::CODEX;
use crate::lookup::message_key::MessageKey;
use crate::lookup::session_pool::{HistoryKeys, SessionSlot, SlotKey};
use crate::proxy::managed_request::ManagedRequest;
use crate::recall::client_view::Projection;
use crate::telemetry::event::GatewayEvent;
use crate::tenant::Tenant;

/// The result of a lookup.
pub(crate) struct SlotCandidate {
    pub(crate) slot: Arc<SessionSlot>,
    /// The lock of a session that was opened for this request, so that no other request gets it first.
    pub(crate) session: Option<OwnedMutexGuard<ManagedSession>>,
}

impl SlotCandidate {
    /// A slot of the pool that other requests may use too.
    pub(crate) fn at_hand(slot: Arc<SessionSlot>) -> Self {
        Self { slot, session: None }
    }

    pub(crate) fn slot(&self) -> &Arc<SessionSlot> {
        &self.slot
    }
}

/// The key of a new conversation, numbered because conversations may begin alike.
pub(crate) struct NewSlotKey {
    pub(crate) key: SlotKey,
    pub(crate) number: usize,
}

impl Tenant {
    pub(crate) async fn open(
        &self,
        turn: &ManagedRequest,
        free: &NewSlotKey,
        link: Option<Link>,
    ) -> Result<SlotCandidate, GatewayError> {
        let (edition, tick) = (self.config.edition(), self.pool.tick());
        let NewSlotKey { key, number } = free;
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
                program: turn.client.program.to_owned(),
                key: (*number < Session::MAX_NUMBERED).then(|| Session::numbered_key(&key.text, *number)),
                project: None,
            },
            wire_format: turn.request.wire_format(),
        };
        let setup = self.session_setup(turn, &id).await?;
        let session = match ManagedSession::create(setup, new).await {
            // Another gateway on the same record created it first. The caller compares it with the request.
            Err(SessionError::Record(StoreError::SessionExists { id: other })) if other != id => {
                return self.load_session(turn, key, &other).await;
            }
            created => created.map_err(|error| self.call_failed(&error))?,
        };
        let link = link.map(|link| (link.parent, link.kind.name()));
        self.tell(GatewayEvent::Opened { session: id, link });
        let opened = self.slot(key, session, edition).await?;
        opened.slot.set_checked(tick);
        note_request(&opened.slot, turn);
        Ok(opened)
    }

    /// Adds an open session to the pool. `edition` is the configuration that it was opened with.
    pub(crate) async fn slot(
        &self,
        key: &SlotKey,
        session: ManagedSession,
        edition: u64,
    ) -> Result<SlotCandidate, GatewayError> {
        let history_keys =
            self.read_history_keys(&session).await.map_err(|error| self.record_failed(&error))?;
        let slot = Arc::new(SessionSlot::new(key.clone(), session, history_keys, edition));
        // The session is locked before it is in the pool, where other requests find it.
        let session = Arc::clone(&slot.session).try_lock_owned().ok();
        self.pool.add(Arc::clone(&slot));
        Ok(SlotCandidate { slot, session })
    }

    async fn session_setup(
        &self,
        turn: &ManagedRequest,
        conversation: &SessionId,
    ) -> Result<SessionSetup, GatewayError> {
        let target = self.target_of(turn).await?;
        Ok(self.session_setup_with(target, conversation))
    }

    /// Loads a conversation from the record.
    pub(crate) async fn load_session(
        &self,
        turn: &ManagedRequest,
        key: &SlotKey,
        id: &SessionId,
    ) -> Result<SlotCandidate, GatewayError> {
        let (edition, tick) = (self.config.edition(), self.pool.tick());
        let setup = self.session_setup(turn, id).await?;
        let session = ManagedSession::open(setup, id).await.map_err(|error| self.call_failed(&error))?;
        let slot = self.slot(key, session, edition).await?.slot;
        slot.set_checked(tick);
        Ok(SlotCandidate::at_hand(slot))
    }

    /// Reads the keys of a conversation from the record, up to the version that the session has loaded. Messages that other processes
    /// wrote since are left out: the session's view does not contain them.
    pub(crate) async fn read_history_keys(
        &self,
        session: &ManagedSession,
    ) -> Result<HistoryKeys, StoreError> {
        let id = session.id().clone();
        let mut transcript = self.transcript(id).await?;
        let version = session.version();
        transcript.retain(|message| message.session != version.tip || message.seq < version.next_seq);
        Ok(history_keys(session, self.keys_of(&transcript, session.wire_format())))
    }

    /// The keys of stored messages.
    pub(crate) fn keys_of(&self, transcript: &[StoredMessage], wire: WireFormat) -> Vec<MessageKey> {
        let config = self.config.now();
        let messages: Vec<Message> = transcript.iter().filter_map(StoredMessage::decode).collect();
        Projection::new(config.recall.names(), wire).keys(&messages)
    }

    pub(crate) async fn transcript(&self, id: SessionId) -> Result<Vec<StoredMessage>, StoreError> {
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        blocking(move || store.transcript(&owner, &id)).await
    }
}

/// The keys of a conversation, with the number of compacted messages.
pub(crate) fn history_keys(session: &ManagedSession, keys: Vec<MessageKey>) -> HistoryKeys {
    let own = session.messages().len().saturating_sub(session.first_verbatim_item());
    let compacted_messages = if session.is_compacted() { keys.len().saturating_sub(own) } else { 0 };
    HistoryKeys { tip: session.id().clone(), keys, compacted_messages }
}

/// Whether a request has tools. Some clients send an empty list with side calls, which counts as none.
pub(crate) fn has_tools(request: &Request) -> bool {
    request.tools().is_some_and(|tools| !is_empty_list(tools.0))
}

pub(crate) fn is_empty_list(json: &str) -> bool {
    let inner = json.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| inner.trim().is_empty())
}

/// Stores the facts with which later side calls are matched: whether the conversation has tools, and its last question.
pub(crate) fn note_request(slot: &SessionSlot, turn: &ManagedRequest) {
    slot.note_tools(has_tools(&turn.request) && !turn.client.is_side_call);
    // Of the clients whose side calls name no conversation, only Codex makes them during a call of the conversation.
    if turn.client.program == CODEX {
        let mut said = turn.request.messages().iter().rev();
        slot.note_question(said.find_map(Message::human_words));
    }
}
