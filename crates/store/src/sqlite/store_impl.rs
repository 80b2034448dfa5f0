//! The implementation of `Store`, method by method: whether it reads or writes, and the function it calls.

use crate::artifacts::artifact::{Artifact, ArtifactId, ArtifactRange, NewArtifact};
use crate::call::{
    CallFilter, NewCall, PreambleId, StoredCall, StoredPreamble, ToolCount, UsageBy, UsageTotal,
};
use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};
use crate::message::{AppendRange, MessageHead, NewMessage, StoredMessage};
use crate::record_search::search;
use crate::search::request::{SearchAnswer, SearchQuery};
use crate::sessions::guard::{Guard, GuardScope};
use crate::sessions::lock::{Holder, LockOutcome, LockRecord, LockRequest};
use crate::sessions::session::{Conversation, EndReason, Link, NewSession, Session, SessionFilter};
use crate::sessions::version::Version;
use crate::store::{Dependants, Store};
use crate::views::item::{ViewItem, ViewMessage};
use crate::views::node::{NewNode, NodeHead};
use crate::views::summary::{Continuation, MessageRun, Summary, SummaryId, ViewSelection};

use super::artifacts::{self, Reference};
use super::indexing::Indexing;
use super::rows::{int, members_of, require_session};
use super::search_source::SqliteSource;
use super::{SqliteStore, Write};
use super::{calls, commit, connection, deletion, guards, messages, nodes, sessions, views};

impl Store for SqliteStore {
    fn open_session(&self, new: NewSession, view: Option<Vec<ViewItem>>) -> Result<Session> {
        self.write("opening a session", Write::Light, |conn| sessions::open(conn, new, view))
    }

    fn session(&self, owner: &Owner, id: &SessionId) -> Result<Session> {
        self.read("reading a session", |conn| require_session(conn, owner, id))
    }

    fn resolve(&self, owner: &Owner, reference: &str) -> Result<Session> {
        self.read("finding a session", |conn| sessions::resolve(conn, owner, reference))
    }

    fn session_by_origin(&self, owner: &Owner, program: &str, key: &str) -> Result<Option<Session>> {
        self.read("finding a session", |conn| Ok(sessions::by_origin(conn, owner, program, key)?))
    }

    fn sessions_by_origin(&self, owner: &Owner, program: &str, key_start: &str) -> Result<Vec<Session>> {
        self.read("finding sessions", |conn| Ok(sessions::all_by_origin(conn, owner, program, key_start)?))
    }

    fn conversations(&self, owner: &Owner, filter: &SessionFilter) -> Result<Vec<Conversation>> {
        self.read("listing conversations", |conn| Ok(sessions::conversations(conn, owner, filter)?))
    }

    fn chain(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>> {
        self.read("reading a chain", |conn| Ok(members_of(conn, require_session(conn, owner, id)?.chain)?))
    }

    fn family(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>> {
        self.read("reading a family", |conn| sessions::family(conn, owner, id))
    }

    fn rename(&self, owner: &Owner, id: &SessionId, title: Option<&str>) -> Result<()> {
        self.write("renaming", Write::Light, |conn| sessions::rename(conn, owner, id, title))
    }

    fn end_session(&self, owner: &Owner, id: &SessionId, reason: &EndReason, at_ms: Millis) -> Result<()> {
        self.write("ending a session", Write::Light, |conn| {
            let session = require_session(conn, owner, id)?;
            Ok(sessions::end(conn, &session, reason, at_ms)?)
        })
    }

    fn attach(&self, owner: &Owner, id: &SessionId, link: &Link) -> Result<Session> {
        self.write("attaching a session", Write::Light, |conn| sessions::attach(conn, owner, id, link))
    }

    fn delete(&self, owner: &Owner, id: &SessionId, dependants: Dependants) -> Result<Vec<SessionId>> {
        let deleted = self.write("deleting", Write::Heavy, |conn| {
            deletion::delete(conn, &self.artifacts, owner, id, dependants)
        })?;
        self.sweep(&deleted.artifacts);
        Ok(deleted.sessions)
    }

    fn append(&self, owner: &Owner, id: &SessionId, messages: Vec<NewMessage>) -> Result<AppendRange> {
        self.send_ahead(&messages)?;
        let appended = self.write("appending", Write::Heavy, |conn| {
            messages::append(conn, &self.artifacts, owner, id, messages)
        });
        self.note_texts();
        appended
    }

    fn version(&self, owner: &Owner, id: &SessionId) -> Result<Version> {
        self.read("reading a version", |conn| messages::version(conn, owner, id))
    }

    fn append_at(&self, owner: &Owner, version: &Version, messages: Vec<NewMessage>) -> Result<Version> {
        self.send_ahead(&messages)?;
        let appended = self.write("appending", Write::Heavy, |conn| {
            messages::append_at(conn, &self.artifacts, owner, version, messages)
        });
        self.note_texts();
        appended
    }

    fn messages(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>> {
        self.read("reading messages", |conn| messages::of_session(conn, &self.artifacts, owner, id))
    }

    fn message_heads(&self, owner: &Owner, id: &SessionId) -> Result<Vec<MessageHead>> {
        self.read("reading messages", |conn| messages::heads(conn, owner, id))
    }

    fn transcript(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>> {
        self.read("reading a transcript", |conn| messages::transcript(conn, &self.artifacts, owner, id))
    }

    fn view_items(&self, owner: &Owner, id: &SessionId) -> Result<Vec<ViewItem>> {
        self.read("reading a view", |conn| views::items_of_session(conn, owner, id))
    }

    fn view(&self, owner: &Owner, id: &SessionId, to_seq: Option<u64>) -> Result<Vec<ViewMessage>> {
        self.read("reading a view", |conn| views::shown(conn, &self.artifacts, owner, id, to_seq))
    }

    fn continue_session(&self, owner: &Owner, continuation: Continuation) -> Result<Session> {
        self.write("continuing a session", Write::Light, |conn| {
            commit::continue_session(conn, owner, continuation)
        })
    }

    fn select_view(&self, owner: &Owner, wanted: ViewSelection) -> Result<Session> {
        self.write("selecting a view", Write::Light, |conn| commit::select_view(conn, owner, wanted))
    }

    fn summary(&self, owner: &Owner, id: SummaryId) -> Result<Summary> {
        self.read("reading a summary", |conn| commit::summary_of(conn, owner, id))
    }

    fn summaries(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Summary>> {
        self.read("reading summaries", |conn| commit::summaries_of(conn, owner, id))
    }

    fn put_node(&self, owner: &Owner, id: &SessionId, node: NewNode, at_ms: Millis) -> Result<SummaryId> {
        self.write("keeping a node", Write::Light, |conn| nodes::put(conn, owner, id, node, at_ms))
    }

    fn node_heads(&self, owner: &Owner, ids: &[SummaryId]) -> Result<Vec<NodeHead>> {
        self.read("reading nodes", |conn| nodes::heads(conn, owner, ids))
    }

    fn nodes_since(&self, owner: &Owner, id: &SessionId, after: SummaryId) -> Result<Vec<NodeHead>> {
        self.read("reading nodes", |conn| nodes::since(conn, owner, id, after))
    }

    fn messages_of_run(&self, owner: &Owner, run: &MessageRun) -> Result<Vec<StoredMessage>> {
        self.read("reading messages", |conn| messages::of_run(conn, &self.artifacts, owner, run))
    }

    fn put_preamble(&self, preamble: &StoredPreamble) -> Result<PreambleId> {
        self.write("keeping a preamble", Write::Light, |conn| calls::put_preamble(conn, preamble))
    }

    fn preamble(&self, id: &PreambleId) -> Result<Option<StoredPreamble>> {
        self.read("reading a preamble", |conn| calls::preamble(conn, id))
    }

    fn record_calls(&self, owner: &Owner, id: &SessionId, calls: Vec<NewCall>) -> Result<u64> {
        self.write("recording calls", Write::Light, |conn| calls::record(conn, owner, id, calls))
    }

    fn calls(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredCall>> {
        self.read("reading calls", |conn| calls::of_chain(conn, owner, id))
    }

    fn call_by_key(&self, owner: &Owner, key: &str) -> Result<Option<StoredCall>> {
        self.read("finding a call", |conn| calls::by_key(conn, owner, key))
    }

    fn usage(&self, owner: &Owner, filter: &CallFilter, by: UsageBy) -> Result<Vec<UsageTotal>> {
        self.read("adding calls up", |conn| calls::usage(conn, owner, filter, by))
    }

    fn tool_counts(&self, owner: &Owner, since_ms: Option<Millis>) -> Result<Vec<ToolCount>> {
        self.read("counting tools", |conn| calls::tool_counts(conn, owner, since_ms))
    }

    fn put_artifact(&self, owner: &Owner, artifact: NewArtifact<'_>) -> Result<Artifact> {
        if self.artifacts.is_elsewhere() {
            self.session(owner, artifact.session)?;
            self.artifacts.put(artifact.text)?;
        }
        self.write("keeping an artifact", Write::Heavy, |conn| {
            let session = require_session(conn, owner, artifact.session)?;
            // In the transaction, so that no clean-up removes the file before the row refers to it.
            let (id, file) = self.artifacts.put(artifact.text)?;
            let reference = Reference {
                session: int(session.ordinal),
                message: None,
                label: artifact.label,
                at_ms: artifact.at_ms,
            };
            let mut indexing = Indexing::new(conn);
            artifacts::keep(conn, &id, &file, artifact.text, &reference, &mut indexing)?;
            indexing.finish()?;
            artifacts::require(conn, owner, &id)
        })
    }

    fn artifact(&self, owner: &Owner, id: &ArtifactId) -> Result<Artifact> {
        self.read("finding an artifact", |conn| artifacts::require(conn, owner, id))
    }

    fn read_artifact(&self, owner: &Owner, id: &ArtifactId, range: ArtifactRange) -> Result<String> {
        self.artifacts.read(&self.artifact(owner, id)?.id, range)
    }

    fn artifacts(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Artifact>> {
        self.read("listing artifacts", |conn| {
            let chain = require_session(conn, owner, id)?.chain;
            Ok(artifacts::of_chain(conn, owner, int(chain))?)
        })
    }

    fn search(&self, owner: &Owner, query: &SearchQuery) -> Result<SearchAnswer> {
        let meaning = self.meaning_of(query);
        self.read("searching", |conn| {
            let source = SqliteSource { conn, artifacts: &self.artifacts, owner };
            search(&source, query, meaning.as_ref())
        })
    }

    fn set_guard(&self, scope: &GuardScope, name: &str, guard: Option<&Guard>) -> Result<()> {
        self.write("setting a guard", Write::Light, |conn| guards::set(conn, scope, name, guard))
    }

    fn guard(&self, scope: &GuardScope, name: &str, now_ms: Millis) -> Result<Option<Guard>> {
        self.read("reading a guard", |conn| guards::get(conn, scope, name, now_ms))
    }

    fn lock(&self, request: &LockRequest, is_alive: &dyn Fn(&Holder) -> bool) -> Result<LockOutcome> {
        self.write("taking a lock", Write::Light, |conn| guards::lock(conn, request, is_alive))
    }

    fn unlock(&self, name: &str, holder: &Holder) -> Result<()> {
        self.write("letting a lock go", Write::Light, |conn| Ok(guards::unlock(conn, name, holder)?))
    }

    fn locks(&self) -> Result<Vec<LockRecord>> {
        self.read("listing locks", |conn| Ok(guards::locks(conn)?))
    }

    fn check_writable(&self) -> Result<()> {
        // A file that was removed or replaced can still be written, but the data would be lost.
        let is_gone = || connection::file_id(&self.path).is_none_or(|found| Some(found) != self.file);
        if self.temporary.is_none() && is_gone() {
            let source =
                std::io::Error::new(std::io::ErrorKind::NotFound, "the file that was opened is gone");
            return Err(StoreError::Io { what: "looking for the record", path: self.path.clone(), source });
        }
        self.write("checking that the record can be written", Write::Heavy, guards::write_check)
    }
}
