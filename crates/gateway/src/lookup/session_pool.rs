//! The conversations that are being held, and which of them a request belongs to.
//!
//! A seat is a conversation at hand: what it is recognised by, and the managed session behind a lock of its own. Seats
//! are found under a key made of what the client calls its session and how the conversation begins; one that is not at
//! hand is read from the record again. Seats nobody has used for longest make room for others.

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

/// Under what conversations are looked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotKey {
    pub(crate) owner: Owner,
    pub(crate) text: String,
}

impl SlotKey {
    /// The key of a conversation that begins like this one.
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
    /// What the client calls its session, as the key was made with it, where it was.
    pub(crate) fn own_id(&self) -> Option<&str> {
        self.text.rsplit_once('/').map(|(own_id, _)| own_id)
    }
}

/// How the keys of all conversations of a client's session begin.
pub(crate) fn key_start(own_id: &str) -> String {
    format!("{own_id}/")
}

/// What a conversation is recognised by.
#[derive(Clone, Debug)]
pub(crate) struct HistoryKeys {
    /// The newest session of its chain.
    pub(crate) tip: SessionId,
    /// Its messages as the client has them.
    pub(crate) known: Vec<MessageKey>,
    /// How many of the first are compacted.
    pub(crate) compacted_messages: usize,
}

impl HistoryKeys {
    /// What follows the first messages, and how many of those are compacted.
    pub(crate) fn after(&self, compacted: usize) -> (&[MessageKey], usize) {
        (self.known.get(compacted..).unwrap_or_default(), self.compacted_messages.saturating_sub(compacted))
    }

    /// What comes before.
    pub(crate) fn before(&self, compacted: usize) -> &[MessageKey] {
        self.known.get(..compacted).unwrap_or(&self.known)
    }
}

/// A conversation at hand.
pub(crate) struct SessionSlot {
    /// Under what it is looked for.
    pub(crate) key: SlotKey,
    /// Another one once a call went on as a branch, because somebody else wrote to the conversation.
    conversation: Mutex<SessionId>,
    history_keys: Mutex<HistoryKeys>,
    /// Cancels the call that answers what the conversation is recognised by, while there is one.
    answering: Mutex<Option<CancellationToken>>,
    /// Tells those who wait for the session that it is recognised by something else.
    changed: Notify,
    pub(crate) session: Arc<tokio::sync::Mutex<ManagedSession>>,
    /// The edition of the configuration that the session was opened with.
    edition: AtomicU64,
    last_used: AtomicU64,
    /// When the session was last compared with the record, or loaded; see [`Seats::tick`].
    checked: AtomicU64,
    /// Whether a request of this conversation brought tools; not known before one came.
    has_tools: Mutex<Option<bool>>,
    /// What a person said last, for clients whose side calls are recognised by it.
    question: Mutex<Option<String>>,
    /// What a side call says whose conversation has not begun yet.
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

    /// What it says, where it is a side call whose conversation has not begun yet.
    pub(crate) fn waiting_side_call(&self) -> Option<String> {
        lock(&self.side_call).clone()
    }

    pub(crate) fn set_waiting_side_call(&self, words: Option<String>) {
        *lock(&self.side_call) = words;
    }

    pub(crate) fn has_tools(&self) -> Option<bool> {
        *lock(&self.has_tools)
    }

    /// Notes whether a request brings tools; one that does counts for the conversation.
    pub(crate) fn note_tools(&self, has_tools: bool) {
        let mut known = lock(&self.has_tools);
        *known = Some(has_tools || *known == Some(true));
    }

    /// The first session of the conversation, which names it.
    pub(crate) fn conversation(&self) -> SessionId {
        lock(&self.conversation).clone()
    }

    /// Whether this is the conversation of that name.
    pub(crate) fn is_of(&self, conversation: &SessionId) -> bool {
        *lock(&self.conversation) == *conversation
    }

    /// Names the conversation that the session is of now; the one it was of, if that is another.
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

    /// How a request stands to the conversation after the first messages that its client has let go, and whether it goes
    /// on. One that says just what is being answered at the moment does not: somebody else asked the same, and neither has
    /// to wait for the other.
    pub(crate) fn compare(&self, request: &[ClientMessage<'_>], compacted: usize) -> (PrefixMatch, bool) {
        let history_keys = lock(&self.history_keys);
        let (known, compacted_messages) = history_keys.after(compacted);
        let found = compare(known, request, compacted_messages);
        let goes_on =
            found.goes_on(known) && !self.answers_another(&history_keys, found.repeated == request.len());
        (found, goes_on)
    }

    /// Whether another request is being answered that says the same, as far as is known of it.
    fn answers_another(&self, history_keys: &HistoryKeys, says_nothing_new: bool) -> bool {
        let is_new = history_keys.known.is_empty();
        if !is_new && !says_nothing_new || self.session.try_lock().is_ok() {
            return false;
        }
        // What a new conversation is opened for begins alike: that is what it was found by. A call that was cancelled is
        // over in a moment, and whoever asks again goes on from there.
        is_new || lock(&self.answering).as_ref().is_some_and(|cancel| !cancel.is_cancelled())
    }

    /// Whether nothing was said in it yet.
    pub(crate) fn is_new(&self) -> bool {
        lock(&self.history_keys).known.is_empty()
    }

    /// Waits for the session. `None` as soon as the request does not go on from there any more.
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

    /// Has the client know what the conversation consists of: it sends all of it with each request.
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

    /// Grows with each use of any conversation.
    pub(crate) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    pub(crate) fn history_keys(&self) -> HistoryKeys {
        lock(&self.history_keys).clone()
    }

    /// What the conversation is recognised by, now that nothing of it is being answered.
    pub(crate) fn set_history_keys(&self, history_keys: HistoryKeys) {
        *lock(&self.history_keys) = history_keys;
        *lock(&self.answering) = None;
        self.changed.notify_waiters();
    }

    /// Who asks meanwhile sees that this much is being answered already, until `cancel` cancels it.
    pub(crate) fn set_answering(&self, known: &[MessageKey], cancel: CancellationToken) {
        let mut history_keys = lock(&self.history_keys);
        history_keys.known.clear();
        history_keys.known.extend_from_slice(known);
        *lock(&self.answering) = Some(cancel);
        drop(history_keys);
        self.changed.notify_waiters();
    }
}

/// All slots.
pub(crate) struct SessionPool {
    most: usize,
    clock: AtomicU64,
    all: Mutex<HashMap<SlotKey, Vec<Arc<SessionSlot>>>>,
}

impl SessionPool {
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), clock: AtomicU64::new(0), all: Mutex::default() }
    }

    /// The slots under a key, the newest last.
    pub(crate) fn under(&self, key: &SlotKey) -> Vec<Arc<SessionSlot>> {
        lock(&self.all).get(key).cloned().unwrap_or_default()
    }

    /// All conversations of an owner.
    pub(crate) fn of_owner(&self, owner: &Owner) -> Vec<Arc<SessionSlot>> {
        let all = lock(&self.all);
        all.iter().filter(|(key, _)| key.owner == *owner).flat_map(|(_, slots)| slots).cloned().collect()
    }

    /// A conversation, whatever it is looked for under.
    pub(crate) fn of_conversation(
        &self,
        owner: &Owner,
        conversation: &SessionId,
    ) -> Option<Arc<SessionSlot>> {
        let all = lock(&self.all);
        let own = all.iter().filter(|(key, _)| key.owner == *owner).flat_map(|(_, slots)| slots);
        own.filter(|slot| slot.is_of(conversation)).max_by_key(|slot| slot.last_used()).cloned()
    }

    /// A moment, later than all before.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn touch(&self, slot: &SessionSlot) {
        slot.last_used.store(self.tick(), Ordering::Relaxed);
    }

    /// Lets a conversation go that the record no longer has.
    pub(crate) fn remove(&self, slot: &SessionSlot) {
        let mut all = lock(&self.all);
        if let Some(slots) = all.get_mut(&slot.key) {
            slots.retain(|other| !std::ptr::eq(other.as_ref(), slot));
            if slots.is_empty() {
                all.remove(&slot.key);
            }
        }
    }

    /// Takes a conversation in. The one nobody has used for longest leaves when there are too many.
    pub(crate) fn add(&self, slot: Arc<SessionSlot>) {
        self.touch(&slot);
        let mut all = lock(&self.all);
        all.entry(slot.key.clone()).or_default().push(slot);
        let count: usize = all.values().map(Vec::len).sum();
        if count <= self.most {
            return;
        }
        // One that is in use stays: whoever holds it would lose sight of the next request.
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

// Plain lists, replaced whole: a panic elsewhere leaves them usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
