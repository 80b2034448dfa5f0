//! A record that cannot be written: nothing is half done, nothing is lost, people are told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use throughline_engine::{
    CompactionResult, EngineEvent, ManagedSession, ManualCompaction, RecordPolicy, SessionError,
};
use throughline_store::{
    AppendRange, Artifact, ArtifactId, ArtifactRange, CallFilter, Continuation, Conversation, Dependants,
    EndReason, Guard, GuardScope, Holder, Link, LockOutcome, LockRecord, LockRequest, MemoryStore,
    MessageRun, Millis, NewArtifact, NewCall, NewMessage, NewNode, NewSession, NodeHead, Owner, PreambleId,
    Result, SearchAnswer, SearchQuery, Selection, Session, SessionFilter, SessionId, Store, StoreError,
    StoredCall, StoredMessage, StoredPreamble, Summary, SummaryId, ToolCount, UsageBy, UsageTotal, Version,
    ViewItem, ViewMessage,
};
use throughline_transcript::WireFormat;

use crate::support::{Stage, saying, talk};

/// A record whose disk may be full, or is for one moment.
#[derive(Default)]
pub(crate) struct FullDisk {
    inner: MemoryStore,
    full: AtomicBool,
    pub(crate) writes: AtomicUsize,
    /// The number of the write that fails, from one; zero for none.
    failing: AtomicUsize,
    gate: Gate,
}

/// Holds up whoever asks the record while it is closed.
#[derive(Default)]
pub(crate) struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn close(&self) {
        *self.is_closed.lock().unwrap() = true;
    }

    pub(crate) fn open(&self) {
        *self.is_closed.lock().unwrap() = false;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let closed = self.is_closed.lock().unwrap();
        drop(self.opened.wait_while(closed, |closed| *closed).unwrap());
    }
}

impl FullDisk {
    /// Lets the write after so many others fail.
    pub(crate) fn fail_at(&self, after: usize) {
        self.failing.store(self.writes.load(Ordering::Relaxed) + after + 1, Ordering::Relaxed);
    }

    /// Lets no further write fail. Returns whether the one that was to fail has come.
    pub(crate) fn stop_failing(&self) -> bool {
        self.writes.load(Ordering::Relaxed) >= self.failing.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    fn write<T>(&self, act: impl FnOnce(&MemoryStore) -> Result<T>) -> Result<T> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        if self.full.load(Ordering::Relaxed) || number == self.failing.load(Ordering::Relaxed) {
            return Err(StoreError::DiskFull { path: "record.db".into() });
        }
        act(&self.inner)
    }
}

macro_rules! passed_on {
    ($($how:ident fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        $(passed_on!(@ $how $name ($($argument: $type),*) -> $answer);)*
    };
    (@ read $name:ident ($($argument:ident: $type:ty),*) -> $answer:ty) => {
        fn $name(&self $(, $argument: $type)*) -> $answer {
            self.gate.pass();
            self.inner.$name($($argument),*)
        }
    };
    (@ write $name:ident ($($argument:ident: $type:ty),*) -> $answer:ty) => {
        fn $name(&self $(, $argument: $type)*) -> $answer {
            self.gate.pass();
            self.write(|inner| inner.$name($($argument),*))
        }
    };
    (@ ungated $name:ident ($($argument:ident: $type:ty),*) -> $answer:ty) => {
        fn $name(&self $(, $argument: $type)*) -> $answer { self.write(|inner| inner.$name($($argument),*)) }
    };
}

impl Store for FullDisk {
    passed_on! {
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
        write fn delete(&self, owner: &Owner, id: &SessionId, dependants: Dependants) -> Result<Vec<SessionId>>;
        write fn attach(&self, owner: &Owner, id: &SessionId, link: &Link) -> Result<Session>;
        read fn version(&self, owner: &Owner, id: &SessionId) -> Result<Version>;
        write fn append_at(&self, owner: &Owner, version: &Version, messages: Vec<NewMessage>) -> Result<Version>;
        read fn call_by_key(&self, owner: &Owner, key: &str) -> Result<Option<StoredCall>>;
        write fn append(&self, owner: &Owner, id: &SessionId, messages: Vec<NewMessage>) -> Result<AppendRange>;
        read fn messages(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>>;
        read fn transcript(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>>;
        read fn view_items(&self, owner: &Owner, id: &SessionId) -> Result<Vec<ViewItem>>;
        read fn view(&self, owner: &Owner, id: &SessionId, to_seq: Option<u64>) -> Result<Vec<ViewMessage>>;
        write fn continue_session(&self, owner: &Owner, continuation: Continuation) -> Result<Session>;
        write fn select_view(
            &self, owner: &Owner, id: &SessionId, selection: Selection, successor: SessionId, at_ms: Millis,
            limit_tokens: u64
        ) -> Result<Session>;
        read fn summary(&self, owner: &Owner, id: SummaryId) -> Result<Summary>;
        read fn summaries(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Summary>>;
        write fn put_node(&self, owner: &Owner, id: &SessionId, node: NewNode, at_ms: Millis) -> Result<SummaryId>;
        read fn node_heads(&self, owner: &Owner, ids: &[SummaryId]) -> Result<Vec<NodeHead>>;
        read fn nodes_since(&self, owner: &Owner, id: &SessionId, after: SummaryId) -> Result<Vec<NodeHead>>;
        read fn messages_of_run(&self, owner: &Owner, run: &MessageRun) -> Result<Vec<StoredMessage>>;
        write fn put_preamble(&self, preamble: &StoredPreamble) -> Result<PreambleId>;
        read fn preamble(&self, id: &PreambleId) -> Result<Option<StoredPreamble>>;
        write fn record_calls(&self, owner: &Owner, id: &SessionId, calls: Vec<NewCall>) -> Result<u64>;
        read fn calls(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredCall>>;
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
        ungated fn unlock(&self, name: &str, holder: &Holder) -> Result<()>;
        read fn locks(&self) -> Result<Vec<LockRecord>>;
    }
}

async fn begun(policy: RecordPolicy) -> (Stage, Arc<FullDisk>, ManagedSession) {
    let mut stage = Stage::new(WireFormat::Anthropic, 200_000);
    let store = Arc::new(FullDisk::default());
    stage.setup.store = Arc::<FullDisk>::clone(&store);
    stage.setup.policy.record = policy;
    let mut session = stage.open().await;
    for turn in 0..12 {
        talk(&stage, &mut session, turn).await;
    }
    (stage, store, session)
}

fn recorded(store: &FullDisk, session: &ManagedSession) -> Vec<String> {
    let all = store.transcript(&Owner::default(), session.id()).unwrap();
    all.iter().map(|message| message.json.as_str().to_owned()).collect()
}

#[tokio::test]
async fn a_call_that_cannot_be_recorded_is_not_made_where_that_is_required() {
    let (stage, store, mut session) = begun(RecordPolicy::Require).await;
    let (sent, held) = (stage.script.bodies().len(), session.messages().len());
    store.full.store(true, Ordering::Relaxed);
    let error = session.call(saying(WireFormat::Anthropic, "Lost?")).await.unwrap_err();
    assert!(matches!(&error, SessionError::Record(StoreError::DiskFull { .. })), "{error}");
    assert_eq!((stage.script.bodies().len(), session.messages().len()), (sent, held));
    // Space was made: the same words go through, once.
    store.full.store(false, Ordering::Relaxed);
    session.call(saying(WireFormat::Anthropic, "Lost?")).await.unwrap();
    let said = recorded(&store, &session).iter().filter(|json| json.contains("Lost?")).count();
    assert_eq!(said, 1);
}

#[tokio::test]
async fn otherwise_it_is_made_and_written_down_later() {
    let (stage, store, mut session) = begun(RecordPolicy::GoOn).await;
    let before = recorded(&store, &session).len();
    store.full.store(true, Ordering::Relaxed);
    session.call(saying(WireFormat::Anthropic, "First while full.")).await.unwrap();
    session.call(saying(WireFormat::Anthropic, "Second while full.")).await.unwrap();
    assert!(stage.script.last_body().contains("First while full."));
    assert_eq!(recorded(&store, &session).len(), before);
    let told = stage.told();
    let warned = told.iter().any(|event| {
        matches!(event, EngineEvent::Notice { text } if text.contains("could not be recorded") && text.contains("no space left"))
    });
    assert!(warned, "{told:?}");
    // Nothing is folded that the record does not have.
    let result = session.compact(ManualCompaction::default()).await;
    assert!(
        matches!(&result, CompactionResult::Aborted { detail, .. } if detail.contains("record")),
        "{result:?}"
    );
    store.full.store(false, Ordering::Relaxed);
    session.call(saying(WireFormat::Anthropic, "Third, with space.")).await.unwrap();
    let all = recorded(&store, &session);
    assert_eq!(all.len(), before + 6);
    let at = |text: &str| all.iter().position(|json| json.contains(text)).unwrap();
    assert!(
        at("First while full.") < at("Second while full.") && at("Second while full.") < at("Third, with")
    );
    // The view in memory is that of the record again.
    let shown = store.view(&Owner::default(), session.id(), None).unwrap();
    let shown: Vec<&str> = shown.iter().map(ViewMessage::json).collect();
    assert_eq!(shown, session.messages().iter().map(|message| message.json()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_compaction_that_cannot_be_committed_changes_nothing() {
    let (stage, store, mut session) = begun(RecordPolicy::Require).await;
    let (id, held) = (session.id().clone(), session.messages().len());
    store.full.store(true, Ordering::Relaxed);
    let result = session.compact(ManualCompaction::default()).await;
    assert!(matches!(&result, CompactionResult::Aborted { reason: None, .. }), "{result:?}");
    assert_eq!((session.id(), session.messages().len()), (&id, held));
    store.full.store(false, Ordering::Relaxed);
    let result = session.compact(ManualCompaction::default()).await;
    assert!(matches!(result, CompactionResult::Completed(_)), "{result:?}");
    talk(&stage, &mut session, 77).await;
}
