//! A small store in memory: sessions, messages, views, calls, artifacts, guards and locks in plain collections behind a
//! lock. It needs no file and no SQLite, so that a program can embed sessions without them. Its data is lost with the
//! process.
//!
//! It follows the same rules for chains and views as [`SqliteStore`](crate::SqliteStore), but it cannot search. For
//! search without a file, use [`SqliteStore::in_memory`](crate::SqliteStore::in_memory).

mod artifacts;
mod calls;
mod commit;
mod locks;
mod nodes;
mod sessions;
mod state;
#[cfg(test)]
mod test_scan;
mod views;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::artifacts::artifact::{Artifact, ArtifactId, ArtifactRange, NewArtifact};
use crate::call::{
    CallFilter, NewCall, PreambleId, StoredCall, StoredPreamble, ToolCount, UsageBy, UsageTotal,
};
use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};
use crate::message::{AppendRange, MessageHead, NewMessage, StoredMessage};
use crate::search::request::{SearchAnswer, SearchQuery};
use crate::sessions::guard::{Guard, GuardScope};
use crate::sessions::lock::{Holder, LockOutcome, LockRecord, LockRequest};
use crate::sessions::session::{Conversation, EndReason, Link, NewSession, Session, SessionFilter};
use crate::sessions::version::Version;
use crate::store::{Dependants, Store};
use crate::views::item::{ViewItem, ViewMessage};
use crate::views::node::{NewNode, NodeHead};
use crate::views::summary::{Continuation, MessageRun, Summary, SummaryId, ViewSelection};

use state::MemoryState;

/// A record in memory, which is lost when dropped.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: RwLock<MemoryState>,
}

impl MemoryStore {
    /// Creates an empty record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Searches by reading every text, as the reference for the indexed search of the other stores.
    #[cfg(test)]
    pub(crate) fn scan(&self, owner: &Owner, query: &SearchQuery) -> Result<SearchAnswer> {
        self.read().search(owner, query)
    }

    // Every change is checked before anything is modified, so the data is usable after a panic elsewhere.
    fn read(&self) -> RwLockReadGuard<'_, MemoryState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, MemoryState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn open_session(&self, new: NewSession, view: Option<Vec<ViewItem>>) -> Result<Session> {
        self.write().open_session(new, view)
    }

    fn session(&self, owner: &Owner, id: &SessionId) -> Result<Session> {
        self.read().find(owner, id).cloned()
    }

    fn resolve(&self, owner: &Owner, reference: &str) -> Result<Session> {
        self.read().resolve(owner, reference)
    }

    fn session_by_origin(&self, owner: &Owner, program: &str, key: &str) -> Result<Option<Session>> {
        Ok(self.read().session_by_origin(owner, program, key))
    }

    fn sessions_by_origin(&self, owner: &Owner, program: &str, key_start: &str) -> Result<Vec<Session>> {
        Ok(self.read().sessions_by_origin(owner, program, key_start))
    }

    fn conversations(&self, owner: &Owner, filter: &SessionFilter) -> Result<Vec<Conversation>> {
        Ok(self.read().conversations(owner, filter))
    }

    fn chain(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>> {
        self.read().chain(owner, id)
    }

    fn family(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>> {
        self.read().family(owner, id)
    }

    fn rename(&self, owner: &Owner, id: &SessionId, title: Option<&str>) -> Result<()> {
        self.write().rename(owner, id, title)
    }

    fn end_session(&self, owner: &Owner, id: &SessionId, reason: &EndReason, at_ms: Millis) -> Result<()> {
        self.write().end_session(owner, id, reason, at_ms)
    }

    fn attach(&self, owner: &Owner, id: &SessionId, link: &Link) -> Result<Session> {
        self.write().attach(owner, id, link)
    }

    fn delete(&self, owner: &Owner, id: &SessionId, dependants: Dependants) -> Result<Vec<SessionId>> {
        self.write().delete(owner, id, dependants)
    }

    fn append(&self, owner: &Owner, id: &SessionId, messages: Vec<NewMessage>) -> Result<AppendRange> {
        self.write().append(owner, id, messages)
    }

    fn version(&self, owner: &Owner, id: &SessionId) -> Result<Version> {
        self.read().version(owner, id)
    }

    fn append_at(&self, owner: &Owner, version: &Version, messages: Vec<NewMessage>) -> Result<Version> {
        self.write().append_at(owner, version, messages)
    }

    fn message_heads(&self, owner: &Owner, id: &SessionId) -> Result<Vec<MessageHead>> {
        self.read().message_heads(owner, id)
    }

    fn messages(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>> {
        self.read().messages(owner, id)
    }

    fn transcript(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>> {
        self.read().transcript(owner, id)
    }

    fn view_items(&self, owner: &Owner, id: &SessionId) -> Result<Vec<ViewItem>> {
        self.read().view_items(owner, id)
    }

    fn view(&self, owner: &Owner, id: &SessionId, to_seq: Option<u64>) -> Result<Vec<ViewMessage>> {
        self.read().view(owner, id, to_seq)
    }

    fn continue_session(&self, owner: &Owner, continuation: Continuation) -> Result<Session> {
        self.write().continue_session(owner, continuation)
    }

    fn select_view(&self, owner: &Owner, wanted: ViewSelection) -> Result<Session> {
        self.write().select_view(owner, wanted)
    }

    fn summary(&self, owner: &Owner, id: SummaryId) -> Result<Summary> {
        self.read().summary(owner, id)
    }

    fn summaries(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Summary>> {
        self.read().summaries_of_chain(owner, id)
    }

    fn put_node(&self, owner: &Owner, id: &SessionId, node: NewNode, at_ms: Millis) -> Result<SummaryId> {
        self.write().put_node(owner, id, node, at_ms)
    }

    fn node_heads(&self, owner: &Owner, ids: &[SummaryId]) -> Result<Vec<NodeHead>> {
        self.read().node_heads(owner, ids)
    }

    fn nodes_since(&self, owner: &Owner, id: &SessionId, after: SummaryId) -> Result<Vec<NodeHead>> {
        self.read().nodes_since(owner, id, after)
    }

    fn messages_of_run(&self, owner: &Owner, run: &MessageRun) -> Result<Vec<StoredMessage>> {
        let state = self.read();
        let session = state.find(owner, &run.session)?;
        Ok(state.run(session.ordinal, run.first_seq, run.end_seq).cloned().collect())
    }

    fn put_preamble(&self, preamble: &StoredPreamble) -> Result<PreambleId> {
        Ok(self.write().put_preamble(preamble))
    }

    fn preamble(&self, id: &PreambleId) -> Result<Option<StoredPreamble>> {
        Ok(self.read().preambles.get(id).cloned())
    }

    fn record_calls(&self, owner: &Owner, id: &SessionId, calls: Vec<NewCall>) -> Result<u64> {
        self.write().record_calls(owner, id, calls)
    }

    fn calls(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredCall>> {
        self.read().calls_of_chain(owner, id)
    }

    fn call_by_key(&self, owner: &Owner, key: &str) -> Result<Option<StoredCall>> {
        Ok(self.read().call_by_key(owner, key))
    }

    fn usage(&self, owner: &Owner, filter: &CallFilter, by: UsageBy) -> Result<Vec<UsageTotal>> {
        self.read().usage(owner, filter, by)
    }

    fn tool_counts(&self, owner: &Owner, since_ms: Option<Millis>) -> Result<Vec<ToolCount>> {
        Ok(self.read().tool_counts(owner, since_ms))
    }

    fn put_artifact(&self, owner: &Owner, artifact: NewArtifact<'_>) -> Result<Artifact> {
        self.write().put_artifact(owner, artifact)
    }

    fn artifact(&self, owner: &Owner, id: &ArtifactId) -> Result<Artifact> {
        self.read().artifact(owner, id)
    }

    fn read_artifact(&self, owner: &Owner, id: &ArtifactId, range: ArtifactRange) -> Result<String> {
        self.read().read_artifact(owner, id, range)
    }

    fn artifacts(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Artifact>> {
        self.read().artifacts_of_chain(owner, id)
    }

    fn search(&self, owner: &Owner, query: &SearchQuery) -> Result<SearchAnswer> {
        let _ = (owner, query);
        Err(StoreError::Unsupported { what: "search" })
    }

    fn set_guard(&self, scope: &GuardScope, name: &str, guard: Option<&Guard>) -> Result<()> {
        self.write().set_guard(scope, name, guard)
    }

    fn guard(&self, scope: &GuardScope, name: &str, now_ms: Millis) -> Result<Option<Guard>> {
        self.read().guard(scope, name, now_ms)
    }

    fn lock(&self, request: &LockRequest, is_alive: &dyn Fn(&Holder) -> bool) -> Result<LockOutcome> {
        Ok(self.write().lock(request, is_alive))
    }

    fn unlock(&self, name: &str, holder: &Holder) -> Result<()> {
        self.write().unlock(name, holder);
        Ok(())
    }

    fn locks(&self) -> Result<Vec<LockRecord>> {
        Ok(self.read().locks.values().cloned().collect())
    }
}
