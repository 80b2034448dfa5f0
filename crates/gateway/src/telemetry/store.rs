//! A record whose failures are counted, and the calls that are booked in it. It changes nothing about either.

use std::sync::Arc;

use throughline_store::{
    AppendRange, Artifact, ArtifactId, ArtifactRange, CallFilter, Continuation, Conversation, Dependants,
    EndReason, Guard, GuardScope, Holder, Link, LockOutcome, LockRecord, LockRequest, MessageRun, Millis,
    NewArtifact, NewCall, NewMessage, NewNode, NewSession, NodeHead, Owner, PreambleId, Result, SearchAnswer,
    SearchQuery, Selection, Session, SessionFilter, SessionId, Store, StoredCall, StoredMessage,
    StoredPreamble, Summary, SummaryId, ToolCount, UsageBy, UsageTotal, Version, ViewItem, ViewMessage,
};

use crate::telemetry::metrics::Metrics;

/// Passes everything on.
pub(crate) struct InstrumentedStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) metrics: Arc<Metrics>,
}

impl InstrumentedStore {
    fn noted<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.metrics.record_error(error);
        }
        result
    }
}

/// Methods that are passed on as they are.
macro_rules! passed_on {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) -> $result:ty;)*) => {
        $(fn $name(&self $(, $argument: $kind)*) -> $result {
            self.noted(self.inner.$name($($argument),*))
        })*
    };
}

impl Store for InstrumentedStore {
    passed_on! {
        fn open_session(&self, new: NewSession, view: Option<Vec<ViewItem>>) -> Result<Session>;
        fn session(&self, owner: &Owner, id: &SessionId) -> Result<Session>;
        fn resolve(&self, owner: &Owner, reference: &str) -> Result<Session>;
        fn session_by_origin(&self, owner: &Owner, program: &str, key: &str) -> Result<Option<Session>>;
        fn sessions_by_origin(&self, owner: &Owner, program: &str, key_start: &str) -> Result<Vec<Session>>;
        fn conversations(&self, owner: &Owner, filter: &SessionFilter) -> Result<Vec<Conversation>>;
        fn chain(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>>;
        fn family(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Session>>;
        fn rename(&self, owner: &Owner, id: &SessionId, title: Option<&str>) -> Result<()>;
        fn end_session(&self, owner: &Owner, id: &SessionId, reason: &EndReason, at_ms: Millis) -> Result<()>;
        fn delete(&self, owner: &Owner, id: &SessionId, dependants: Dependants) -> Result<Vec<SessionId>>;
        fn attach(&self, owner: &Owner, id: &SessionId, link: &Link) -> Result<Session>;
        fn version(&self, owner: &Owner, id: &SessionId) -> Result<Version>;
        fn append_at(&self, owner: &Owner, version: &Version, messages: Vec<NewMessage>) -> Result<Version>;
        fn call_by_key(&self, owner: &Owner, key: &str) -> Result<Option<StoredCall>>;
        fn append(&self, owner: &Owner, id: &SessionId, messages: Vec<NewMessage>) -> Result<AppendRange>;
        fn messages(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>>;
        fn transcript(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>>;
        fn view_items(&self, owner: &Owner, id: &SessionId) -> Result<Vec<ViewItem>>;
        fn view(&self, owner: &Owner, id: &SessionId, to_seq: Option<u64>) -> Result<Vec<ViewMessage>>;
        fn continue_session(&self, owner: &Owner, continuation: Continuation) -> Result<Session>;
        fn select_view(&self, owner: &Owner, id: &SessionId, selection: Selection, successor: SessionId, at_ms: Millis, limit_tokens: u64) -> Result<Session>;
        fn summary(&self, owner: &Owner, id: SummaryId) -> Result<Summary>;
        fn summaries(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Summary>>;
        fn put_node(&self, owner: &Owner, id: &SessionId, node: NewNode, at_ms: Millis) -> Result<SummaryId>;
        fn node_heads(&self, owner: &Owner, ids: &[SummaryId]) -> Result<Vec<NodeHead>>;
        fn nodes_since(&self, owner: &Owner, id: &SessionId, after: SummaryId) -> Result<Vec<NodeHead>>;
        fn messages_of_run(&self, owner: &Owner, run: &MessageRun) -> Result<Vec<StoredMessage>>;
        fn put_preamble(&self, preamble: &StoredPreamble) -> Result<PreambleId>;
        fn preamble(&self, id: &PreambleId) -> Result<Option<StoredPreamble>>;
        fn calls(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredCall>>;
        fn usage(&self, owner: &Owner, filter: &CallFilter, by: UsageBy) -> Result<Vec<UsageTotal>>;
        fn tool_counts(&self, owner: &Owner, since_ms: Option<Millis>) -> Result<Vec<ToolCount>>;
        fn put_artifact(&self, owner: &Owner, artifact: NewArtifact<'_>) -> Result<Artifact>;
        fn artifact(&self, owner: &Owner, id: &ArtifactId) -> Result<Artifact>;
        fn read_artifact(&self, owner: &Owner, id: &ArtifactId, range: ArtifactRange) -> Result<String>;
        fn artifacts(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Artifact>>;
        fn search(&self, owner: &Owner, query: &SearchQuery) -> Result<SearchAnswer>;
        fn set_guard(&self, scope: &GuardScope, name: &str, guard: Option<&Guard>) -> Result<()>;
        fn guard(&self, scope: &GuardScope, name: &str, now_ms: Millis) -> Result<Option<Guard>>;
        fn lock(&self, request: &LockRequest, is_alive: &dyn Fn(&Holder) -> bool) -> Result<LockOutcome>;
        fn unlock(&self, name: &str, holder: &Holder) -> Result<()>;
        fn locks(&self) -> Result<Vec<LockRecord>>;
        fn check_writable(&self) -> Result<()>;
    }

    fn record_calls(&self, owner: &Owner, id: &SessionId, calls: Vec<NewCall>) -> Result<u64> {
        let booked = calls.clone();
        let result = self.noted(self.inner.record_calls(owner, id, calls));
        if result.is_ok() {
            self.metrics.booked(&booked);
        }
        result
    }
}
