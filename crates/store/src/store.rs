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
/// Every write is one transaction: it is committed when it returns, and has no effect if it fails or the process dies. Every query is made
/// for an owner and returns only that owner's data; data of others is treated as unknown.
pub trait Store: Send + Sync {
    // Sessions.

    /// Opens a session. Without `view` it starts empty, or, as a continuation or branch of another session, with that session's view up to
    /// where it branches off. Importers pass a `view`.
    fn open_session(&self, new: NewSession, view: Option<Vec<ViewItem>>) -> Result<Session>;
    /// Returns a session by its whole id.
    fn session(&self, owner: &Owner, id: &SessionId) -> Result<Session>;
    /// Returns a session by its id, any unique prefix of one, `last` (the most recently active) or a title (the newest if a conversation
    /// has it several times). A title that matches several conversations is ambiguous.
    fn resolve(&self, owner: &Owner, reference: &str) -> Result<Session>;
    /// Returns the session with this key of another program.
    fn session_by_origin(&self, owner: &Owner, program: &str, key: &str) -> Result<Option<Session>>;
    /// Returns the sessions whose keys of another program have this prefix, in order of opening.
    fn sessions_by_origin(&self, owner: &Owner, program: &str, key_start: &str) -> Result<Vec<Session>>;
    /// Returns conversations, the most recently active first.
    fn conversations(&self, owner: &Owner, filter: &SessionFilter) -> Result<Vec<Conversation>>;
    /// Returns the chain of a session, oldest first; the last is its tip.
    fn chain(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>>;
    /// Returns every session of a session's tree: its chain, its ancestors, and everything that depends on them. In order of opening.
    fn family(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>>;
    /// Sets or removes the title of a session's chain.
    fn rename(&self, owner: &Owner, id: &SessionId, title: Option<&str>) -> Result<()>;
    /// Ends a session. The first reason counts; ending it again changes nothing.
    fn end_session(&self, owner: &Owner, id: &SessionId, reason: &EndReason, at_ms: Millis) -> Result<()>;
    /// Attaches a session's conversation, which has no parent so far, to another as a sub-agent or a side call (the kinds that share no
    /// messages). For a program whose side call arrives before the conversation it belongs to. Fails if it has a parent, or the parent
    /// depends on it.
    fn attach(&self, owner: &Owner, id: &SessionId, link: &Link) -> Result<Session>;
    /// Deletes the chain of a session with everything only it has: messages, views, summaries, calls, guards, and artifacts without other
    /// references. With `dependants`, also everything that depends on it; otherwise fails if anything does. Returns the deleted ids.
    fn delete(&self, owner: &Owner, id: &SessionId, dependants: Dependants) -> Result<Vec<SessionId>>;

    // Messages and views.

    /// Appends messages to an open session; they are searchable when this returns.
    fn append(&self, owner: &Owner, id: &SessionId, messages: Vec<NewMessage>) -> Result<AppendRange>;
    /// Returns the version of a session's conversation. Equal versions mean that nothing was written to the conversation in between, in
    /// this process or another: no message, compaction, undo, or restored backup. Counters, titles, links and calls are not part of it.
    fn version(&self, owner: &Owner, id: &SessionId) -> Result<Version>;
    /// Appends messages to the newest session of a conversation if it is still at this version, in one transaction: of two writers with the
    /// same version, one appends and the other fails without writing ([`StoreError::VersionConflict`](crate::StoreError::VersionConflict)).
    /// Returns the version after it.
    fn append_at(&self, owner: &Owner, version: &Version, messages: Vec<NewMessage>) -> Result<Version>;
    /// Returns messages appended to this session, in order.
    fn messages(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>>;
    /// Returns the same messages without their bytes.
    fn message_heads(&self, owner: &Owner, id: &SessionId) -> Result<Vec<MessageHead>>;
    /// Returns all messages of a conversation up to and including this session: the whole transcript, each message once, in order. A branch
    /// starts with the messages it shares.
    fn transcript(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>>;
    /// Returns the stored view of a session.
    fn view_items(&self, owner: &Owner, id: &SessionId) -> Result<Vec<ViewItem>>;
    /// Returns what would be sent: the view of a session with its bytes, up to a position in the session (`None` for all of it).
    fn view(&self, owner: &Owner, id: &SessionId, to_seq: Option<u64>) -> Result<Vec<ViewMessage>>;
    /// Commits a compaction: one transaction ends a session and opens its successor. No message is copied or changed.
    fn continue_session(&self, owner: &Owner, continuation: Continuation) -> Result<Session>;
    /// Restores the view before the last compaction, or redoes it: a new continuation with that view and all messages since. Fails if that
    /// exceeds the limit.
    fn select_view(&self, owner: &Owner, wanted: ViewSelection) -> Result<Session>;
    /// Returns a summary.
    fn summary(&self, owner: &Owner, id: SummaryId) -> Result<Summary>;
    /// Returns summaries made for the chain of a session, oldest first, without the nodes from which a summary may be made.
    fn summaries(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Summary>>;

    // Nodes.

    /// Stores a node made in a session. It belongs to no view until a summary names it.
    fn put_node(&self, owner: &Owner, id: &SessionId, node: NewNode, at_ms: Millis) -> Result<SummaryId>;
    /// Returns nodes without their text, in the requested order; a plain summary is returned as a leaf. [`summary`](Self::summary) returns
    /// the text.
    fn node_heads(&self, owner: &Owner, ids: &[SummaryId]) -> Result<Vec<NodeHead>>;
    /// Returns nodes made for the chain of a session after a summary, oldest first.
    fn nodes_since(&self, owner: &Owner, id: &SessionId, after: SummaryId) -> Result<Vec<NodeHead>>;
    /// Returns the messages of a run, in order.
    fn messages_of_run(&self, owner: &Owner, run: &MessageRun) -> Result<Vec<StoredMessage>>;

    // Calls.

    /// Stores a preamble; equal ones are stored once.
    fn put_preamble(&self, preamble: &StoredPreamble) -> Result<PreambleId>;
    /// Returns a preamble.
    fn preamble(&self, id: &PreambleId) -> Result<Option<StoredPreamble>>;
    /// Records calls for a session, except those whose key exists. Returns how many were new.
    fn record_calls(&self, owner: &Owner, id: &SessionId, calls: Vec<NewCall>) -> Result<u64>;
    /// Returns the calls of a session's chain, in order.
    fn calls(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredCall>>;
    /// Returns the newest answered call of an owner with this key, in any session.
    fn call_by_key(&self, owner: &Owner, key: &str) -> Result<Option<StoredCall>>;
    /// Returns totals of calls, with the groups in order of their names.
    fn usage(&self, owner: &Owner, filter: &CallFilter, by: UsageBy) -> Result<Vec<UsageTotal>>;
    /// Returns how often tools were used since a time, the most frequent first.
    fn tool_counts(&self, owner: &Owner, since_ms: Option<Millis>) -> Result<Vec<ToolCount>>;

    // Artifacts.

    /// Stores a text and adds a reference from a session; equal texts are stored once.
    fn put_artifact(&self, owner: &Owner, artifact: NewArtifact<'_>) -> Result<Artifact>;
    /// Returns an artifact's metadata, by its name or a unique prefix of it.
    fn artifact(&self, owner: &Owner, id: &ArtifactId) -> Result<Artifact>;
    /// Returns a piece of an artifact.
    fn read_artifact(&self, owner: &Owner, id: &ArtifactId, range: ArtifactRange) -> Result<String>;
    /// Returns the artifacts referenced by a session's chain.
    fn artifacts(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Artifact>>;

    // Search.

    /// Searches all data of the owner.
    fn search(&self, owner: &Owner, query: &SearchQuery) -> Result<SearchAnswer>;

    // Guards and locks.

    /// Sets or removes a guard.
    fn set_guard(&self, scope: &GuardScope, name: &str, guard: Option<&Guard>) -> Result<()>;
    /// Returns a guard, unless it has expired.
    fn guard(&self, scope: &GuardScope, name: &str, now_ms: Millis) -> Result<Option<Guard>>;
    /// Requests a lock. `is_alive` returns whether a holder on this machine is still running; a holder that is not, or whose lease has
    /// expired, loses the lock.
    fn lock(&self, request: &LockRequest, is_alive: &dyn Fn(&Holder) -> bool) -> Result<LockOutcome>;
    /// Releases a lock, if this holder has it.
    fn unlock(&self, name: &str, holder: &Holder) -> Result<()>;
    /// Returns the held locks.
    fn locks(&self) -> Result<Vec<LockRecord>>;

    // Readiness.

    /// Writes data of the size of a short message, to check whether that is possible. It does no harm and is replaced by the next check.
    fn check_writable(&self) -> Result<()> {
        self.set_guard(&GuardScope::Global, CHECK_GUARD, Some(&check_guard()))
    }
}

/// The name of the guard written to check whether the record can be written.
pub(crate) const CHECK_GUARD: &str = "writable";
/// The size of that guard. A request of a few thousand words takes as much with its index; a disk without that much space cannot store the
/// next one either.
pub(crate) const CHECK_BYTES: usize = 32 * 1024;

/// Returns the guard to write.
fn check_guard() -> Guard {
    let value = serde_json::Value::String("x".repeat(CHECK_BYTES));
    Guard { name: CHECK_GUARD.to_owned(), value, set_ms: 0, expires_ms: Some(0) }
}

/// What to do with sessions that depend on a deleted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependants {
    /// Refuse.
    Refuse,
    /// Delete them too.
    Delete,
}
