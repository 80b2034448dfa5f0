//! The record's contract, method by method: which are reads, which are writes, and what does the work.

use crate::artifacts::artifact::{Artifact, ArtifactId, ArtifactRange, NewArtifact};
use crate::call::{
    CallFilter, NewCall, PreambleId, StoredCall, StoredPreamble, ToolCount, UsageBy, UsageTotal,
};
use crate::error::Result;
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

use super::PostgresStore;
use super::connection::Durability;
use super::rows::{members_of, require_for_writing, require_session};
use super::search_source::PostgresSource;
use super::{append_once, artifacts, calls, commit, deletion, guards, messages, nodes, sessions, views};

impl Store for PostgresStore {
    fn open_session(&self, new: NewSession, view: Option<Vec<ViewItem>>) -> Result<Session> {
        self.server
            .write("opening a session", Durability::Heavy, |tx| sessions::open(tx, &new, view.as_deref()))
    }

    fn session(&self, owner: &Owner, id: &SessionId) -> Result<Session> {
        self.server.ask("reading a session", |tx| require_session(tx, owner, id))
    }

    fn resolve(&self, owner: &Owner, reference: &str) -> Result<Session> {
        self.server.read("finding a session", |tx| sessions::resolve(tx, owner, reference))
    }

    fn session_by_origin(&self, owner: &Owner, program: &str, key: &str) -> Result<Option<Session>> {
        self.server.ask("finding a session", |tx| sessions::by_origin(tx, owner, program, key))
    }

    fn sessions_by_origin(&self, owner: &Owner, program: &str, key_start: &str) -> Result<Vec<Session>> {
        self.server.ask("finding sessions", |tx| sessions::all_by_origin(tx, owner, program, key_start))
    }

    fn conversations(&self, owner: &Owner, filter: &SessionFilter) -> Result<Vec<Conversation>> {
        self.server.read("listing conversations", |tx| sessions::conversations(tx, owner, filter))
    }

    fn chain(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>> {
        self.server.read("reading a chain", |tx| members_of(tx, owner, require_session(tx, owner, id)?.chain))
    }

    fn family(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>> {
        self.server.ask("reading a family", |tx| sessions::family(tx, owner, id))
    }

    fn rename(&self, owner: &Owner, id: &SessionId, title: Option<&str>) -> Result<()> {
        self.server.write("renaming", Durability::Heavy, |tx| sessions::rename(tx, owner, id, title))
    }

    fn end_session(&self, owner: &Owner, id: &SessionId, reason: &EndReason, at_ms: Millis) -> Result<()> {
        self.server.write("ending a session", Durability::Heavy, |tx| {
            let session = require_for_writing(tx, owner, id)?;
            sessions::end(tx, &session, reason, at_ms);
            Ok(())
        })
    }

    fn attach(&self, owner: &Owner, id: &SessionId, link: &Link) -> Result<Session> {
        self.server
            .write("attaching a session", Durability::Heavy, |tx| sessions::attach(tx, owner, id, link))
    }

    fn delete(&self, owner: &Owner, id: &SessionId, dependants: Dependants) -> Result<Vec<SessionId>> {
        self.server.write("deleting", Durability::Heavy, |tx| deletion::delete(tx, owner, id, dependants))
    }

    fn append(&self, owner: &Owner, id: &SessionId, messages: Vec<NewMessage>) -> Result<AppendRange> {
        artifacts::send_ahead(self.server.files.as_ref(), owner, &messages)?;
        let appended = self
            .server
            .write("appending", Durability::Heavy, |tx| messages::append(tx, owner, id, &messages))?;
        self.seal_in_time(owner, messages.len());
        Ok(appended)
    }

    fn version(&self, owner: &Owner, id: &SessionId) -> Result<Version> {
        let (version, session) =
            self.server.ask("reading a version", |tx| messages::version(tx, owner, id))?;
        self.known.remember(owner, &version.tip, session);
        Ok(version)
    }

    fn append_at(&self, owner: &Owner, version: &Version, messages: Vec<NewMessage>) -> Result<Version> {
        artifacts::send_ahead(self.server.files.as_ref(), owner, &messages)?;
        let at_once = match self.known.get(owner, &version.tip) {
            Some(session) => append_once::append(&self.server, owner, session, version, &messages)?,
            None => None,
        };
        let appended = match at_once {
            Some(appended) => appended,
            None => self.server.write("appending", Durability::Heavy, |tx| {
                messages::append_at(tx, owner, version, &messages)
            })?,
        };
        self.seal_in_time(owner, messages.len());
        Ok(appended)
    }

    fn messages(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>> {
        self.server.read("reading messages", |tx| messages::of_session(tx, owner, id))
    }

    fn message_heads(&self, owner: &Owner, id: &SessionId) -> Result<Vec<MessageHead>> {
        self.server.read("reading messages", |tx| messages::heads(tx, owner, id))
    }

    fn transcript(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>> {
        self.server.read("reading a transcript", |tx| messages::transcript(tx, owner, id))
    }

    fn view_items(&self, owner: &Owner, id: &SessionId) -> Result<Vec<ViewItem>> {
        self.server.read("reading a view", |tx| views::items_of_session(tx, owner, id))
    }

    fn view(&self, owner: &Owner, id: &SessionId, to_seq: Option<u64>) -> Result<Vec<ViewMessage>> {
        self.server.read("reading a view", |tx| views::shown(tx, owner, id, to_seq))
    }

    fn continue_session(&self, owner: &Owner, continuation: Continuation) -> Result<Session> {
        self.server.write("continuing a session", Durability::Heavy, |tx| {
            commit::continue_session(tx, owner, &continuation)
        })
    }

    fn select_view(&self, owner: &Owner, wanted: ViewSelection) -> Result<Session> {
        self.server.write("selecting a view", Durability::Heavy, |tx| commit::select_view(tx, owner, &wanted))
    }

    fn summary(&self, owner: &Owner, id: SummaryId) -> Result<Summary> {
        self.server.ask("reading a summary", |tx| commit::summary_of(tx, owner, id))
    }

    fn summaries(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Summary>> {
        self.server.read("reading summaries", |tx| commit::summaries_of(tx, owner, id))
    }

    fn put_node(&self, owner: &Owner, id: &SessionId, node: NewNode, at_ms: Millis) -> Result<SummaryId> {
        self.server.write("storing a node", Durability::Heavy, |tx| nodes::put(tx, owner, id, &node, at_ms))
    }

    fn node_heads(&self, owner: &Owner, ids: &[SummaryId]) -> Result<Vec<NodeHead>> {
        self.server.ask("reading nodes", |tx| nodes::heads(tx, owner, ids))
    }

    fn nodes_since(&self, owner: &Owner, id: &SessionId, after: SummaryId) -> Result<Vec<NodeHead>> {
        self.server.read("reading nodes", |tx| nodes::since(tx, owner, id, after))
    }

    fn messages_of_run(&self, owner: &Owner, run: &MessageRun) -> Result<Vec<StoredMessage>> {
        self.server.read("reading messages", |tx| messages::of_run(tx, owner, run))
    }

    fn put_preamble(&self, preamble: &StoredPreamble) -> Result<PreambleId> {
        let id = preamble.id();
        if !self.server.ask("finding a preamble", |tx| calls::has_preamble(tx, &id))? {
            self.server
                .write("storing a preamble", Durability::Heavy, |tx| calls::put_preamble(tx, preamble))?;
        }
        Ok(id)
    }

    fn preamble(&self, id: &PreambleId) -> Result<Option<StoredPreamble>> {
        self.server.ask("reading a preamble", |tx| calls::preamble(tx, id))
    }

    fn record_calls(&self, owner: &Owner, id: &SessionId, calls: Vec<NewCall>) -> Result<u64> {
        match calls.as_slice() {
            [call] => calls::record_one(&self.server, owner, id, call),
            _ => self
                .server
                .write("recording calls", Durability::Light, |tx| calls::record(tx, owner, id, &calls)),
        }
    }

    fn calls(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredCall>> {
        self.server.read("reading calls", |tx| calls::of_chain(tx, owner, id))
    }

    fn call_by_key(&self, owner: &Owner, key: &str) -> Result<Option<StoredCall>> {
        self.server.ask("finding a call", |tx| calls::by_key(tx, owner, key))
    }

    fn usage(&self, owner: &Owner, filter: &CallFilter, by: UsageBy) -> Result<Vec<UsageTotal>> {
        self.server.read("adding calls up", |tx| calls::usage(tx, owner, filter, by))
    }

    fn tool_counts(&self, owner: &Owner, since_ms: Option<Millis>) -> Result<Vec<ToolCount>> {
        self.server.ask("counting tools", |tx| calls::tool_counts(tx, owner, since_ms))
    }

    fn put_artifact(&self, owner: &Owner, artifact: NewArtifact<'_>) -> Result<Artifact> {
        if let Some(files) = &self.server.files {
            self.session(owner, artifact.session)?;
            files.of_owner(owner).put(artifact.text)?;
        }
        self.server.write("storing an artifact", Durability::Heavy, |tx| artifacts::put(tx, owner, &artifact))
    }

    fn artifact(&self, owner: &Owner, id: &ArtifactId) -> Result<Artifact> {
        self.server.ask("finding an artifact", |tx| artifacts::require(tx, owner, id))
    }

    fn read_artifact(&self, owner: &Owner, id: &ArtifactId, range: ArtifactRange) -> Result<String> {
        self.server.read("reading an artifact", |tx| artifacts::read(tx, owner, id, range))
    }

    fn artifacts(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Artifact>> {
        self.server.read("listing artifacts", |tx| {
            let chain = require_session(tx, owner, id)?.chain;
            artifacts::of_chain(tx, owner, crate::coding::int(chain))
        })
    }

    fn search(&self, owner: &Owner, query: &SearchQuery) -> Result<SearchAnswer> {
        self.server.read("searching", |tx| search(&PostgresSource::new(tx, owner), query, None))
    }

    fn set_guard(&self, scope: &GuardScope, name: &str, guard: Option<&Guard>) -> Result<()> {
        self.server.write("setting a guard", Durability::Light, |tx| guards::set(tx, scope, name, guard))
    }

    fn guard(&self, scope: &GuardScope, name: &str, now_ms: Millis) -> Result<Option<Guard>> {
        self.server.read("reading a guard", |tx| guards::get(tx, scope, name, now_ms))
    }

    fn lock(&self, request: &LockRequest, is_alive: &dyn Fn(&Holder) -> bool) -> Result<LockOutcome> {
        self.server.write("taking a lock", Durability::Heavy, |tx| guards::lock(tx, request, is_alive))
    }

    fn unlock(&self, name: &str, holder: &Holder) -> Result<()> {
        self.server.write("letting a lock go", Durability::Light, |tx| {
            guards::unlock(tx, name, holder);
            Ok(())
        })
    }

    fn locks(&self) -> Result<Vec<LockRecord>> {
        self.server.ask("listing locks", guards::locks)
    }
}
