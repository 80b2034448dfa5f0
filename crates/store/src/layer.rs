//! Stores that forward every call to another store: they count, time, refuse or delay calls without repeating the whole [`Store`] trait.
//!
//! Implement [`StoreLayer`] and the type is a [`Store`]. Not for: changing arguments or results; such a store implements [`Store`] itself.

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
use crate::store::{Dependants, Store};
use crate::views::item::{ViewItem, ViewMessage};
use crate::views::node::{NewNode, NodeHead};
use crate::views::summary::{Continuation, MessageRun, Summary, SummaryId, ViewSelection};

/// A method of [`Store`], as a [`StoreLayer`] sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreMethod {
    /// Its name in the trait.
    pub name: &'static str,
    /// Whether it may change the store.
    pub writes: bool,
}

/// A store in front of another one.
pub trait StoreLayer: Send + Sync {
    /// The inner store.
    type Inner: Store + ?Sized;

    /// Runs one call. Most layers call `run` with the inner store once, before or after their own work; one that returns an error without
    /// calling it refuses the call.
    fn around<T>(&self, method: StoreMethod, run: impl FnOnce(&Self::Inner) -> Result<T>) -> Result<T>;

    /// Called after calls were recorded, with all that were passed in. The default does nothing.
    fn calls_recorded(&self, calls: &[NewCall]) {
        let _ = calls;
    }
}

/// Methods that are forwarded unchanged, each marked as reading or writing.
macro_rules! pass_on {
    ($($access:ident fn $name:ident(&self $(, $argument:ident: $kind:ty)*) -> $result:ty;)*) => {
        $(fn $name(&self $(, $argument: $kind)*) -> $result {
            let method = StoreMethod { name: stringify!($name), writes: pass_on!(@ $access) };
            self.around(method, |inner| inner.$name($($argument),*))
        })*
    };
    (@ read) => { false };
    (@ write) => { true };
}

#[rustfmt::skip]
impl<L: StoreLayer> Store for L {
    pass_on! {
        write fn open_session(&self, new: NewSession, view: Option<Vec<ViewItem>>) -> Result<Session>;
        read fn session(&self, owner: &Owner, id: &SessionId) -> Result<Session>;
        read fn resolve(&self, owner: &Owner, reference: &str) -> Result<Session>;
        read fn session_by_origin(&self, owner: &Owner, program: &str, key: &str) -> Result<Option<Session>>;
        read fn sessions_by_origin(&self, owner: &Owner, program: &str, key_start: &str) -> Result<Vec<Session>>;
        read fn conversations(&self, owner: &Owner, filter: &SessionFilter) -> Result<Vec<Conversation>>;
        read fn chain(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>>;
        read fn family(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>>;
        write fn rename(&self, owner: &Owner, id: &SessionId, title: Option<&str>) -> Result<()>;
        write fn end_session(&self, owner: &Owner, id: &SessionId, reason: &EndReason, at_ms: Millis) -> Result<()>;
        write fn attach(&self, owner: &Owner, id: &SessionId, link: &Link) -> Result<Session>;
        write fn delete(&self, owner: &Owner, id: &SessionId, dependants: Dependants) -> Result<Vec<SessionId>>;
        write fn append(&self, owner: &Owner, id: &SessionId, messages: Vec<NewMessage>) -> Result<AppendRange>;
        read fn version(&self, owner: &Owner, id: &SessionId) -> Result<Version>;
        write fn append_at(&self, owner: &Owner, version: &Version, messages: Vec<NewMessage>) -> Result<Version>;
        read fn messages(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>>;
        read fn message_heads(&self, owner: &Owner, id: &SessionId) -> Result<Vec<MessageHead>>;
        read fn transcript(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>>;
        read fn view_items(&self, owner: &Owner, id: &SessionId) -> Result<Vec<ViewItem>>;
        read fn view(&self, owner: &Owner, id: &SessionId, to_seq: Option<u64>) -> Result<Vec<ViewMessage>>;
        write fn continue_session(&self, owner: &Owner, continuation: Continuation) -> Result<Session>;
        write fn select_view(&self, owner: &Owner, wanted: ViewSelection) -> Result<Session>;
        read fn summary(&self, owner: &Owner, id: SummaryId) -> Result<Summary>;
        read fn summaries(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Summary>>;
        write fn put_node(&self, owner: &Owner, id: &SessionId, node: NewNode, at_ms: Millis) -> Result<SummaryId>;
        read fn node_heads(&self, owner: &Owner, ids: &[SummaryId]) -> Result<Vec<NodeHead>>;
        read fn nodes_since(&self, owner: &Owner, id: &SessionId, after: SummaryId) -> Result<Vec<NodeHead>>;
        read fn messages_of_run(&self, owner: &Owner, run: &MessageRun) -> Result<Vec<StoredMessage>>;
        write fn put_preamble(&self, preamble: &StoredPreamble) -> Result<PreambleId>;
        read fn preamble(&self, id: &PreambleId) -> Result<Option<StoredPreamble>>;
        read fn calls(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredCall>>;
        read fn call_by_key(&self, owner: &Owner, key: &str) -> Result<Option<StoredCall>>;
        read fn usage(&self, owner: &Owner, filter: &CallFilter, by: UsageBy) -> Result<Vec<UsageTotal>>;
        read fn tool_counts(&self, owner: &Owner, since_ms: Option<Millis>) -> Result<Vec<ToolCount>>;
        write fn put_artifact(&self, owner: &Owner, artifact: NewArtifact<'_>) -> Result<Artifact>;
        read fn artifact(&self, owner: &Owner, id: &ArtifactId) -> Result<Artifact>;
        read fn read_artifact(&self, owner: &Owner, id: &ArtifactId, range: ArtifactRange) -> Result<String>;
        read fn artifacts(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Artifact>>;
        read fn search(&self, owner: &Owner, query: &SearchQuery) -> Result<SearchAnswer>;
        write fn set_guard(&self, scope: &GuardScope, name: &str, guard: Option<&Guard>) -> Result<()>;
        read fn guard(&self, scope: &GuardScope, name: &str, now_ms: Millis) -> Result<Option<Guard>>;
        write fn lock(&self, request: &LockRequest, is_alive: &dyn Fn(&Holder) -> bool) -> Result<LockOutcome>;
        write fn unlock(&self, name: &str, holder: &Holder) -> Result<()>;
        read fn locks(&self) -> Result<Vec<LockRecord>>;
        write fn check_writable(&self) -> Result<()>;
    }

    fn record_calls(&self, owner: &Owner, id: &SessionId, calls: Vec<NewCall>) -> Result<u64> {
        let recorded = calls.clone();
        let method = StoreMethod { name: "record_calls", writes: true };
        let added = self.around(method, |inner| inner.record_calls(owner, id, calls))?;
        self.calls_recorded(&recorded);
        Ok(added)
    }
}
