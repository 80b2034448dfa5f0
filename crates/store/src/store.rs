//! The interface of the record, in plain types. One contract test suite runs on every implementation.
//!
//! Calls block, because SQLite does, and are short. Callers that must not block run them on a separate thread.

use crate::artifacts::artifact::{Artifact, ArtifactId, ArtifactRange, NewArtifact};
use crate::call::{
    CallFilter, NewCall, PreambleId, StoredCall, StoredPreamble, ToolCount, UsageBy, UsageTotal,
};
use crate::error::Result;
use crate::ids::{Millis, Owner, SessionId};
use crate::message::{AppendRange, MessageHead, NewMessage, StoredMessage};
use crate::search::request::{SearchAnswer, SearchQuery};
use crate::sessions::guard::{Guard, GuardScope};
use crate::sessions::lock::{Holder, LockOutcome, LockRecord, LockRequest};
use crate::sessions::session::{Conversation, EndReason, Link, NewSession, Session, SessionFilter};
use crate::sessions::version::Version;
use crate::views::item::{ViewItem, ViewMessage};
use crate::views::node::{NewNode, NodeHead};
use crate::views::summary::{Continuation, MessageRun, Summary, SummaryId, ViewSelection};

/// The record.
///
/// Every write is one transaction: when it returns, it is kept; when it fails or the process dies, nothing of it is.
/// Every question is asked by an owner and answered from what is theirs; what belongs to another is unknown.
pub trait Store: Send + Sync {
    // Sessions.

    /// Opens a session. Without `view` it starts empty, or, when it hangs on another session as a continuation or a
    /// branch, with that session's view up to where it leaves it. A `view` is what importers know better.
    fn open_session(&self, new: NewSession, view: Option<Vec<ViewItem>>) -> Result<Session>;
    /// A session by its whole id.
    fn session(&self, owner: &Owner, id: &SessionId) -> Result<Session>;
    /// A session by its id, any unique prefix of one, `last` (the most recently active) or a title (newest first when
    /// one conversation has it several times). A title that fits several conversations is ambiguous.
    fn resolve(&self, owner: &Owner, reference: &str) -> Result<Session>;
    /// The session another program calls by this key.
    fn session_by_origin(&self, owner: &Owner, program: &str, key: &str) -> Result<Option<Session>>;
    /// Sessions another program calls by keys that begin like this, in order of opening.
    fn sessions_by_origin(&self, owner: &Owner, program: &str, key_start: &str) -> Result<Vec<Session>>;
    /// Conversations, the most recently active first.
    fn conversations(&self, owner: &Owner, filter: &SessionFilter) -> Result<Vec<Conversation>>;
    /// The chain a session belongs to, oldest first; the last is its tip.
    fn chain(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>>;
    /// Every session of the tree a session belongs to: its chain, what that hangs on, and what hangs on it. In order
    /// of opening.
    fn family(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>>;
    /// Gives the chain of a session a title, or takes it away.
    fn rename(&self, owner: &Owner, id: &SessionId, title: Option<&str>) -> Result<()>;
    /// Ends a session. The first reason counts; ending twice changes nothing.
    fn end_session(&self, owner: &Owner, id: &SessionId, reason: &EndReason, at_ms: Millis) -> Result<()>;
    /// Has the conversation of a session, which hangs on nothing so far, hang on another as a sub-agent or a side call
    /// (the kinds that share no messages). For a program whose side call arrives before the conversation it belongs to.
    /// Refused where it hangs on something already, or the parent hangs on it.
    fn attach(&self, owner: &Owner, id: &SessionId, link: &Link) -> Result<Session>;
    /// Deletes the chain of a session with everything only it has: messages, views, summaries, calls, guards, and
    /// artifacts nobody else refers to. With `dependants`, also what hangs on it; otherwise it is refused if anything
    /// does. Returns the ids that are gone.
    fn delete(&self, owner: &Owner, id: &SessionId, dependants: Dependants) -> Result<Vec<SessionId>>;

    // Messages and views.

    /// Appends messages to a session that has not ended; they are searchable when this returns.
    fn append(&self, owner: &Owner, id: &SessionId, messages: Vec<NewMessage>) -> Result<AppendRange>;
    /// The version of the conversation a session belongs to. Equal versions mean that nothing was written to the conversation in
    /// between, in this process or another: nothing was said, compacted, undone, or replaced by a backup. SessionCounters, titles,
    /// links and calls are not part of it.
    fn version(&self, owner: &Owner, id: &SessionId) -> Result<Version>;
    /// Appends messages to the newest session of a conversation if it is still at this version; in one transaction, so
    /// that of two writers who know the same version one appends and the other writes nothing and learns
    /// ([`StoreError::VersionConflict`](crate::StoreError::VersionConflict)). Returns the version after it.
    fn append_at(&self, owner: &Owner, version: &Version, messages: Vec<NewMessage>) -> Result<Version>;
    /// Messages appended to this very session, in order.
    fn messages(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>>;
    /// The same messages without their bytes.
    fn message_heads(&self, owner: &Owner, id: &SessionId) -> Result<Vec<MessageHead>>;
    /// Everything that was said in a conversation up to and including this session: the whole transcript, each message
    /// once, in order. A branch begins with what it shares.
    fn transcript(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>>;
    /// The view of a session as it is stored.
    fn view_items(&self, owner: &Owner, id: &SessionId) -> Result<Vec<ViewItem>>;
    /// What would be sent: the view of a session with its bytes, up to a place in the session (all of it if `None`).
    fn view(&self, owner: &Owner, id: &SessionId, to_seq: Option<u64>) -> Result<Vec<ViewMessage>>;
    /// Commits a compaction: one transaction ends a session and opens its successor. No message is copied or touched.
    fn continue_session(&self, owner: &Owner, continuation: Continuation) -> Result<Session>;
    /// Goes back to the view before the last compaction, or forward again: a new continuation with that view and
    /// everything said since. Refused if that needs more tokens than it may.
    fn select_view(&self, owner: &Owner, wanted: ViewSelection) -> Result<Session>;
    /// A summary.
    fn summary(&self, owner: &Owner, id: SummaryId) -> Result<Summary>;
    /// Summaries made for the chain of a session, oldest first. Nodes, of which a summary may be made, are not among them.
    fn summaries(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Summary>>;

    // Nodes.

    /// Keeps a node that was made in a session. It belongs to no view until a summary names it.
    fn put_node(&self, owner: &Owner, id: &SessionId, node: NewNode, at_ms: Millis) -> Result<SummaryId>;
    /// Nodes without their words, in the order they were asked for; a plain summary is returned as a leaf. The words are
    /// told by [`summary`](Self::summary).
    fn node_heads(&self, owner: &Owner, ids: &[SummaryId]) -> Result<Vec<NodeHead>>;
    /// Nodes made for the chain of a session after a summary, oldest first.
    fn nodes_since(&self, owner: &Owner, id: &SessionId, after: SummaryId) -> Result<Vec<NodeHead>>;
    /// The messages of a run, in order.
    fn messages_of_run(&self, owner: &Owner, run: &MessageRun) -> Result<Vec<StoredMessage>>;

    // Calls.

    /// Keeps a preamble; the same one is kept once.
    fn put_preamble(&self, preamble: &StoredPreamble) -> Result<PreambleId>;
    /// A preamble.
    fn preamble(&self, id: &PreambleId) -> Result<Option<StoredPreamble>>;
    /// Books calls to a session; those whose key is known already are left out. Returns how many were new.
    fn record_calls(&self, owner: &Owner, id: &SessionId, calls: Vec<NewCall>) -> Result<u64>;
    /// Calls of the chain of a session, in order.
    fn calls(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredCall>>;
    /// The newest call of an owner that was answered under this key, in whichever session.
    fn call_by_key(&self, owner: &Owner, key: &str) -> Result<Option<StoredCall>>;
    /// Calls added up, the groups in order of their names.
    fn usage(&self, owner: &Owner, filter: &CallFilter, by: UsageBy) -> Result<Vec<UsageTotal>>;
    /// How often tools were used since a time, most often first.
    fn tool_counts(&self, owner: &Owner, since_ms: Option<Millis>) -> Result<Vec<ToolCount>>;

    // Artifacts.

    /// Keeps a text and ties it to a session; the same text is kept once.
    fn put_artifact(&self, owner: &Owner, artifact: NewArtifact<'_>) -> Result<Artifact>;
    /// What is known of an artifact, by its name or a unique prefix of it.
    fn artifact(&self, owner: &Owner, id: &ArtifactId) -> Result<Artifact>;
    /// A piece of an artifact.
    fn read_artifact(&self, owner: &Owner, id: &ArtifactId, range: ArtifactRange) -> Result<String>;
    /// Artifacts tied to the chain of a session.
    fn artifacts(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Artifact>>;

    // Search.

    /// Searches everything that is the owner's.
    fn search(&self, owner: &Owner, query: &SearchQuery) -> Result<SearchAnswer>;

    // Guards and locks.

    /// Sets a guard, or takes it away.
    fn set_guard(&self, scope: &GuardScope, name: &str, guard: Option<&Guard>) -> Result<()>;
    /// A guard, unless it has expired.
    fn guard(&self, scope: &GuardScope, name: &str, now_ms: Millis) -> Result<Option<Guard>>;
    /// Asks for a lock. `is_alive` tells whether a holder on this machine still runs; one that does not, or whose time
    /// is up, loses the lock.
    fn lock(&self, request: &LockRequest, is_alive: &dyn Fn(&Holder) -> bool) -> Result<LockOutcome>;
    /// Lets a lock go, if this holder has it.
    fn unlock(&self, name: &str, holder: &Holder) -> Result<()>;
    /// Locks that are held.
    fn locks(&self) -> Result<Vec<LockRecord>>;

    // Readiness.

    /// Writes something as large as a short message, to find out whether that can be done. What is written is in nobody's
    /// way and is replaced by the next check.
    fn check_writable(&self) -> Result<()> {
        self.set_guard(&GuardScope::Global, CHECK_GUARD, Some(&check_guard()))
    }
}

/// The name of what is written to see whether the record can be written.
pub(crate) const CHECK_GUARD: &str = "writable";
/// How much is written then. A request of a few thousand words takes as much with its index; a disk without that much room
/// cannot take the next one either.
pub(crate) const CHECK_BYTES: usize = 32 * 1024;

/// Something to write.
fn check_guard() -> Guard {
    let value = serde_json::Value::String("x".repeat(CHECK_BYTES));
    Guard { name: CHECK_GUARD.to_owned(), value, set_ms: 0, expires_ms: Some(0) }
}

/// What to do with sessions that hang on one that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependants {
    /// Refuse.
    Refuse,
    /// Delete them too.
    Delete,
}
