//! The pool of open conversations.
//!
//! A slot holds one open conversation: the keys of its messages, and the managed session behind a lock of its own. Slots are
//! found by a key made of the client's session id and the first message of the conversation. A conversation that is not in
//! the pool is loaded from the record. When the pool is full, the slot that was unused for longest is removed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_engine::{History, ManagedSession};
use throughline_store::{Owner, SessionId};
use throughline_transcript::Message;
use tokio::sync::{Notify, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

use crate::lookup::message_key::{MessageKey, identity_of};
use crate::lookup::prefix_match::{ClientMessage, PrefixMatch, compare};

/// The key under which conversations are looked up. Several conversations may share a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotKey {
    pub(crate) owner: Owner,
    pub(crate) text: String,
}

impl SlotKey {
    /// The key of conversations with this owner, client session id and first message.
    pub(crate) fn of(owner: &Owner, own_id: Option<&str>, messages: &[Message]) -> Self {
        let spoken = messages.iter().filter(|message| !message.role().is_instructions());
        let opening = spoken.filter_map(identity_of).next();
        let opening = opening.map_or_else(|| "empty".to_owned(), |identity| identity.hex());
        let text = match own_id {
            Some(id) => format!("{}{opening}", key_start(id)),
            None => opening,
        };
        Self { owner: owner.clone(), text }
    }
}

impl SlotKey {
    /// The client's session id, if the key contains one.
    pub(crate) fn own_id(&self) -> Option<&str> {
        self.text.rsplit_once('/').map(|(own_id, _)| own_id)
    }
}

/// The prefix of the keys of all conversations in a client's session.
pub(crate) fn key_start(own_id: &str) -> String {
    format!("{own_id}/")
}

/// The keys by which the messages of a conversation are recognised in a request.
#[derive(Clone, Debug)]
pub(crate) struct HistoryKeys {
    /// The newest session of the conversation's chain.
    pub(crate) tip: SessionId,
    /// One key for each message, as the client sends it.
    pub(crate) keys: Vec<MessageKey>,
    /// The number of messages from the start that are compacted.
    pub(crate) compacted_messages: usize,
}

impl HistoryKeys {
    /// The keys after the first `compacted` messages, and the number of compacted messages among them.
    pub(crate) fn after(&self, compacted: usize) -> (&[MessageKey], usize) {
        (self.keys.get(compacted..).unwrap_or_default(), self.compacted_messages.saturating_sub(compacted))
    }

    /// The keys of the first `compacted` messages.
    pub(crate) fn before(&self, compacted: usize) -> &[MessageKey] {
        self.keys.get(..compacted).unwrap_or(&self.keys)
    }
}

/// An open conversation.
pub(crate) struct SessionSlot {
    /// The key it is looked up by.
    pub(crate) key: SlotKey,
    /// Changes when a call continued as a branch because another process wrote to the conversation.
    conversation: Mutex<SessionId>,
    history_keys: Mutex<HistoryKeys>,
    /// Cancels the running call, if there is one.
    answering: Mutex<Option<CancellationToken>>,
    /// Wakes requests that wait for the session when the keys change.
    changed: Notify,
    pub(crate) session: Arc<tokio::sync::Mutex<ManagedSession>>,
    /// The edition of the configuration that the session was opened with.
    edition: AtomicU64,
    last_used: AtomicU64,
    /// When the session was last loaded or compared with the record, in the unit of [`SessionPool::tick`].
    checked: AtomicU64,
    /// Whether a request of this conversation had tools. `None` before the first request.
    has_tools: Mutex<Option<bool>>,
    /// The last human message, for clients whose side calls are recognised by it.
    question: Mutex<Option<String>>,
    /// The text of a side call that arrived before the conversation it belongs to.
    side_call: Mutex<Option<String>>,
}

impl SessionSlot {
    pub(crate) fn new(
        key: SlotKey,
        session: ManagedSession,
        history_keys: HistoryKeys,
        edition: u64,
    ) -> Self {
        Self {
            key,
            conversation: Mutex::new(session.conversation().clone()),
            history_keys: Mutex::new(history_keys),
            answering: Mutex::new(None),
            session: Arc::new(tokio::sync::Mutex::new(session)),
            edition: AtomicU64::new(edition),
            last_used: AtomicU64::new(0),
            checked: AtomicU64::new(0),
            has_tools: Mutex::new(None),
            question: Mutex::new(None),
            side_call: Mutex::new(None),
            changed: Notify::new(),
        }
    }

    pub(crate) fn question(&self) -> Option<String> {
        lock(&self.question).clone()
    }

    pub(crate) fn note_question(&self, words: Option<String>) {
        *lock(&self.question) = words;
    }

    /// The text of this side call, if it still waits for the conversation it belongs to.
    pub(crate) fn waiting_side_call(&self) -> Option<String> {
        lock(&self.side_call).clone()
    }

    pub(crate) fn set_waiting_side_call(&self, words: Option<String>) {
        *lock(&self.side_call) = words;
    }

    pub(crate) fn has_tools(&self) -> Option<bool> {
        *lock(&self.has_tools)
    }

    /// Stores whether a request has tools. One request with tools is enough for the conversation to have them.
    pub(crate) fn note_tools(&self, has_tools: bool) {
        let mut known = lock(&self.has_tools);
        *known = Some(has_tools || *known == Some(true));
    }

    /// The id of the conversation, which is that of its first session.
    pub(crate) fn conversation(&self) -> SessionId {
        lock(&self.conversation).clone()
    }

    /// Whether the conversation has this id.
    pub(crate) fn is_of(&self, conversation: &SessionId) -> bool {
        *lock(&self.conversation) == *conversation
    }

    /// Takes over the conversation id of the session. Returns the previous id if it differs.
    pub(crate) fn follow(&self, session: &ManagedSession) -> Option<SessionId> {
        let mut conversation = lock(&self.conversation);
        if *conversation == *session.conversation() {
            return None;
        }
        Some(std::mem::replace(&mut *conversation, session.conversation().clone()))
    }

    pub(crate) fn edition(&self) -> u64 {
        self.edition.load(Ordering::Relaxed)
    }

    pub(crate) fn set_edition(&self, edition: u64) {
        self.edition.store(edition, Ordering::Relaxed);
    }

    /// Compares a request with the conversation after its first `compacted` messages. The flag tells whether the request continues the
    /// conversation. A request equal to the one in progress does not: it comes from another caller, and neither waits for the other.
    pub(crate) fn compare(&self, request: &[ClientMessage<'_>], compacted: usize) -> (PrefixMatch, bool) {
        let history_keys = lock(&self.history_keys);
        let (keys, compacted_messages) = history_keys.after(compacted);
        let found = compare(keys, request, compacted_messages);
        let goes_on =
            found.goes_on(keys) && !self.answers_another(&history_keys, found.repeated == request.len());
        (found, goes_on)
    }

    /// Whether an equal request is in progress, judged by the keys.
    fn answers_another(&self, history_keys: &HistoryKeys, says_nothing_new: bool) -> bool {
        let is_new = history_keys.keys.is_empty();
        if !is_new && !says_nothing_new || self.session.try_lock().is_ok() {
            return false;
        }
        // A new conversation has no keys yet, but has the same first message. A cancelled call ends soon, so the request can continue
        // after it.
        is_new || lock(&self.answering).as_ref().is_some_and(|cancel| !cancel.is_cancelled())
    }

    /// Whether the conversation has no messages yet.
    pub(crate) fn is_new(&self) -> bool {
        lock(&self.history_keys).keys.is_empty()
    }

    /// Waits for the lock of the session. Returns `None` as soon as the request no longer continues the conversation.
    pub(crate) async fn wait_for_session(
        &self,
        request: &[ClientMessage<'_>],
        compacted: usize,
    ) -> Option<OwnedMutexGuard<ManagedSession>> {
        let locking = Arc::clone(&self.session).lock_owned();
        tokio::pin!(locking);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self.compare(request, compacted).1 {
                return None;
            }
            tokio::select! {
                biased;
                session = &mut locking => return Some(session),
                () = changed => {}
            }
        }
    }

    /// Declares that the client owns the history: it sends the whole conversation with each request.
    pub(crate) fn follow_client(&self, session: &mut ManagedSession) {
        if !session.client_owns_history() {
            session.set_history(History::Client { branch_key: Some(self.key.text.clone()) });
        }
    }

    pub(crate) fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    pub(crate) fn set_checked(&self, tick: u64) {
        self.checked.store(tick, Ordering::Relaxed);
    }

    /// The tick of the last use; see [`SessionPool::tick`].
    pub(crate) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    pub(crate) fn history_keys(&self) -> HistoryKeys {
        lock(&self.history_keys).clone()
    }

    /// Sets the keys after a call has ended.
    pub(crate) fn set_history_keys(&self, history_keys: HistoryKeys) {
        *lock(&self.history_keys) = history_keys;
        *lock(&self.answering) = None;
        self.changed.notify_waiters();
    }

    /// Sets the keys for the duration of a call, so that other requests see the call in progress. `cancel` cancels it.
    pub(crate) fn set_answering(&self, keys: &[MessageKey], cancel: CancellationToken) {
        let mut history_keys = lock(&self.history_keys);
        history_keys.keys.clear();
        history_keys.keys.extend_from_slice(keys);
        *lock(&self.answering) = Some(cancel);
        drop(history_keys);
        self.changed.notify_waiters();
    }
}

/// The open conversations of all owners.
pub(crate) struct SessionPool {
    most: usize,
    clock: AtomicU64,
    all: Mutex<HashMap<SlotKey, Vec<Arc<SessionSlot>>>>,
}

impl SessionPool {
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), clock: AtomicU64::new(0), all: Mutex::default() }
    }

    /// The slots with this key, the newest last.
    pub(crate) fn under(&self, key: &SlotKey) -> Vec<Arc<SessionSlot>> {
        lock(&self.all).get(key).cloned().unwrap_or_default()
    }

    /// All conversations of an owner.
    pub(crate) fn of_owner(&self, owner: &Owner) -> Vec<Arc<SessionSlot>> {
        let all = lock(&self.all);
        all.iter().filter(|(key, _)| key.owner == *owner).flat_map(|(_, slots)| slots).cloned().collect()
    }

    /// The slot of a conversation, whatever its key.
    pub(crate) fn of_conversation(
        &self,
        owner: &Owner,
        conversation: &SessionId,
    ) -> Option<Arc<SessionSlot>> {
        let all = lock(&self.all);
        let own = all.iter().filter(|(key, _)| key.owner == *owner).flat_map(|(_, slots)| slots);
        own.filter(|slot| slot.is_of(conversation)).max_by_key(|slot| slot.last_used()).cloned()
    }

    /// The next value of a logical clock.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn touch(&self, slot: &SessionSlot) {
        slot.last_used.store(self.tick(), Ordering::Relaxed);
    }

    /// Removes a conversation that is no longer in the record.
    pub(crate) fn remove(&self, slot: &SessionSlot) {
        let mut all = lock(&self.all);
        if let Some(slots) = all.get_mut(&slot.key) {
            slots.retain(|other| !std::ptr::eq(other.as_ref(), slot));
            if slots.is_empty() {
                all.remove(&slot.key);
            }
        }
    }

    /// Adds a conversation. If the pool is full, the conversation that was unused for longest is removed.
    pub(crate) fn add(&self, slot: Arc<SessionSlot>) {
        self.touch(&slot);
        let mut all = lock(&self.all);
        all.entry(slot.key.clone()).or_default().push(slot);
        let count: usize = all.values().map(Vec::len).sum();
        if count <= self.most {
            return;
        }
        // Slots in use stay: otherwise a request that arrives now would not find them.
        let idle = all.iter().flat_map(|(key, slots)| slots.iter().map(move |slot| (key, slot)));
        let idle = idle.filter(|(_, slot)| Arc::strong_count(slot) == 1);
        let oldest = idle.min_by_key(|(_, slot)| slot.last_used());
        let Some((key, slot)) = oldest.map(|(key, slot)| (key.clone(), Arc::clone(slot))) else { return };
        if let Some(slots) = all.get_mut(&key) {
            slots.retain(|other| !Arc::ptr_eq(other, &slot));
            if slots.is_empty() {
                all.remove(&key);
            }
        }
    }
}

// The lists are replaced as a whole, so a panic elsewhere leaves them usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
