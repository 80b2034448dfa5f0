//! A record that fails at any call, and a process that is killed before any write: what is there is whole, and folding
//! goes on.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use throughline_engine::{CompactionResult, ManagedSession, ManualCompaction};
use throughline_lcm::LcmLimits;
use throughline_store::{
    AppendRange, Artifact, ArtifactId, ArtifactRange, CallFilter, Continuation, Conversation, Dependants,
    Depth, EndReason, Examination, Guard, GuardScope, Holder, Link, LockOutcome, LockRecord, LockRequest,
    MemoryStore, MessageRun, Millis, NewArtifact, NewCall, NewMessage, NewNode, NewSession, NodeHead, Owner,
    PreambleId, Result, SearchAnswer, SearchQuery, Selection, Session, SessionFilter, SessionId, SqliteStore,
    Store, StoreError, StoredCall, StoredMessage, StoredPreamble, Summary, SummaryId, ToolCount, UsageBy,
    UsageTotal, Version, ViewItem, ViewMessage, diagnose,
};
use throughline_testkit::big_transcript;
use throughline_transcript::{DecodeOptions, Message, WireFormat, decode};

use crate::support::{Stage, owner};

/// A record that fails once, at one call.
#[derive(Default)]
struct Faulty {
    inner: MemoryStore,
    calls: AtomicUsize,
    /// The number of the call that fails, from one; zero for none.
    failing: AtomicUsize,
    /// Whether that call did its work before it failed.
    late: AtomicBool,
}

impl Faulty {
    fn call<T>(&self, _name: &str, act: impl FnOnce(&MemoryStore) -> Result<T>) -> Result<T> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if number != self.failing.load(Ordering::SeqCst) {
            return act(&self.inner);
        }
        if self.late.load(Ordering::SeqCst) {
            act(&self.inner)?;
        }
        Err(StoreError::Database { what: "this call", source: "it was made to fail".into() })
    }
}

/// A record that notes the names of its writes, and stops for good before one of them.
struct Stopping {
    inner: SqliteStore,
    /// Where notes for the parent process are.
    home: PathBuf,
    /// Names of the writes so far.
    writes: Mutex<Vec<&'static str>>,
    /// Writes count from here on; before, they are only made.
    armed: AtomicBool,
    /// The number of the write before which it stops, from one; zero for none.
    stop_before: usize,
}

/// Calls that change the record. A kill before a call that only reads leaves what a kill after the last write leaves.
const WRITES: &[&str] = &[
    "open_session",
    "rename",
    "end_session",
    "delete",
    "append",
    "continue_session",
    "select_view",
    "put_node",
    "put_preamble",
    "record_calls",
    "put_artifact",
    "set_guard",
    "lock",
    "unlock",
];

impl Stopping {
    fn call<T>(&self, name: &'static str, act: impl FnOnce(&SqliteStore) -> Result<T>) -> Result<T> {
        if self.armed.load(Ordering::SeqCst) && WRITES.contains(&name) {
            let mut writes = self.writes.lock().unwrap();
            writes.push(name);
            if writes.len() == self.stop_before {
                std::fs::write(self.home.join("stopped"), name).unwrap();
                // Nothing more happens until this process is killed.
                loop {
                    std::thread::park();
                }
            }
        }
        act(&self.inner)
    }
}

macro_rules! calls {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)* $(,)?) -> $result:ty;)*) => {
        $(fn $name(&self $(, $argument: $kind)*) -> $result {
            self.call(stringify!($name), |inner| inner.$name($($argument),*))
        })*
    };
}

macro_rules! store_of_calls {
    ($store:ty) => {
impl Store for $store {
    calls! {
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
        fn select_view(
            &self, owner: &Owner, id: &SessionId, selection: Selection, successor: SessionId, at_ms: Millis,
            limit_tokens: u64,
        ) -> Result<Session>;
        fn summary(&self, owner: &Owner, id: SummaryId) -> Result<Summary>;
        fn summaries(&self, owner: &Owner, id: &SessionId) -> Result<Vec<Summary>>;
        fn put_node(&self, owner: &Owner, id: &SessionId, node: NewNode, at_ms: Millis) -> Result<SummaryId>;
        fn node_heads(&self, owner: &Owner, ids: &[SummaryId]) -> Result<Vec<NodeHead>>;
        fn nodes_since(&self, owner: &Owner, id: &SessionId, after: SummaryId) -> Result<Vec<NodeHead>>;
        fn messages_of_run(&self, owner: &Owner, run: &MessageRun) -> Result<Vec<StoredMessage>>;
        fn put_preamble(&self, preamble: &StoredPreamble) -> Result<PreambleId>;
        fn preamble(&self, id: &PreambleId) -> Result<Option<StoredPreamble>>;
        fn record_calls(&self, owner: &Owner, id: &SessionId, calls: Vec<NewCall>) -> Result<u64>;
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
    }
}
    };
}

store_of_calls!(Faulty);
store_of_calls!(Stopping);

fn coding(messages: usize, seed: u64) -> Vec<Message> {
    let json = big_transcript(WireFormat::Chat, messages * 600, messages, seed);
    decode(json.into_bytes(), &DecodeOptions::default()).unwrap().messages
}

fn limits() -> LcmLimits {
    LcmLimits { chunk_tokens: 1_500, ..LcmLimits::default() }
}

/// The newest session of the conversation, whoever opened it.
fn tip(store: &dyn Store) -> SessionId {
    store.chain(&owner(), &SessionId::from_text("first")).unwrap().pop().unwrap().id
}

/// Folds twice, so that leaves are condensed, with one call of the record failing; gives how many there were.
async fn fold_with_fault(failing: usize, late: bool) -> usize {
    let store = Arc::new(Faulty::default());
    let mut stage = Stage::over(Arc::<Faulty>::clone(&store), WireFormat::Chat, 12_000, limits());
    stage.append(&coding(40, 1));
    assert!(matches!(stage.fold().await, CompactionResult::Completed(_)));
    stage.append(&coding(40, 2));
    let before = store.calls.load(Ordering::SeqCst);
    store.late.store(late, Ordering::SeqCst);
    store.failing.store(if failing == 0 { 0 } else { before + failing }, Ordering::SeqCst);
    // Whatever comes of this, even of opening it.
    if let Ok(mut session) = ManagedSession::open(stage.setup(), &stage.tip).await {
        let _ = session.compact(ManualCompaction::default()).await;
    }
    let made = store.calls.load(Ordering::SeqCst) - before;
    store.failing.store(0, Ordering::SeqCst);
    stage.tip = tip(store.as_ref());
    stage.check();
    stage.append(&coding(40, 3));
    let result = stage.fold().await;
    assert!(matches!(result, CompactionResult::Completed(_)), "after fault {failing}: {result:?}");
    stage.check();
    made
}

#[tokio::test]
async fn whichever_call_of_the_record_fails_the_nodes_are_whole_and_folding_goes_on() {
    let calls = fold_with_fault(0, false).await;
    assert!(calls > 20, "{calls}");
    for failing in 1..=calls {
        fold_with_fault(failing, false).await;
        fold_with_fault(failing, true).await;
    }
}

/// Says something, folds it, says more, and folds again, with writes counted in that second fold and what follows. It gets
/// the place of its record and the write to stop before on its input.
#[test]
#[ignore = "the process that another test kills"]
fn folds_until_it_is_stopped() {
    let mut lines = std::io::stdin().lines().map(|line| line.unwrap());
    let home = PathBuf::from(lines.next().unwrap());
    let stop_before: usize = lines.next().unwrap().parse().unwrap();
    let store = Arc::new(Stopping {
        inner: SqliteStore::open(&home.join("record.db"), 1).unwrap(),
        home: home.clone(),
        writes: Mutex::default(),
        armed: AtomicBool::new(false),
        stop_before,
    });
    let work = async {
        let mut stage = Stage::over(Arc::<Stopping>::clone(&store), WireFormat::Chat, 12_000, limits());
        stage.append(&coding(40, 1));
        assert!(matches!(stage.fold().await, CompactionResult::Completed(_)));
        stage.append(&coding(40, 2));
        store.armed.store(true, Ordering::SeqCst);
        assert!(matches!(stage.fold().await, CompactionResult::Completed(_)));
        stage.append(&coding(20, 3));
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
    let names = store.writes.lock().unwrap().join("\n");
    std::fs::write(home.join("writes"), names).unwrap();
}

/// The process above, in a home of its own.
fn folding(home: &Path, stop_before: usize) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "faults::folds_until_it_is_stopped"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let input = format!("{}\n{stop_before}\n", home.display());
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child
}

/// Waits until the process stands before its write, and gives the name of that; fails when it ends instead.
fn until_stopped(child: &mut Child, home: &Path) -> String {
    // Far longer than any machine takes; the event is the file.
    for _ in 0..60_000 {
        if let Some(name) = std::fs::read_to_string(home.join("stopped")).ok().filter(|name| !name.is_empty())
        {
            return name;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended before it came to its write");
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("it never came to its write");
}

#[test]
fn whoever_is_killed_before_any_write_leaves_nodes_that_hold_together() {
    let home = tempfile::tempdir().unwrap();
    assert!(folding(home.path(), 0).wait().unwrap().success());
    let writes = std::fs::read_to_string(home.path().join("writes")).unwrap();
    let writes: Vec<&str> = writes.lines().collect();
    for needed in ["put_node", "continue_session", "append"] {
        assert!(writes.contains(&needed), "a fold makes this write: {writes:?}");
    }
    for (index, name) in writes.iter().enumerate() {
        let home = tempfile::tempdir().unwrap();
        let mut child = folding(home.path(), index + 1);
        let stopped = until_stopped(&mut child, home.path());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(stopped, *name, "the writes come in the same order every time");
        goes_on(home.path(), &format!("killed before write {} of {} ({name})", index + 1, writes.len()));
    }
    println!("killed before each of these writes: {}", writes.join(", "));
}

/// What a killed process left is whole, and folding goes on with it.
fn goes_on(home: &Path, point: &str) {
    let path = home.join("record.db");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, 1).unwrap());
    let newest = tip(store.as_ref());
    let work = async {
        let mut stage = Stage::again(Arc::clone(&store), WireFormat::Chat, 12_000, limits(), newest);
        stage.check();
        stage.append(&coding(60, 99));
        let result = stage.fold().await;
        assert!(matches!(result, CompactionResult::Completed(_)), "{point}: {result:?}");
        stage.check();
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
    drop(store);
    let examination = Examination { depth: Depth::Thorough, now_ms: i64::MAX, is_alive: &|_| false };
    let found = diagnose(&path, &examination, &mut |_| {}).unwrap();
    let broken: Vec<String> = found.findings.iter().map(ToString::to_string).collect();
    let matters = |words: &&String| !words.contains("locks have") && !words.contains("open to others");
    assert_eq!(broken.iter().filter(matters).collect::<Vec<_>>(), [] as [&String; 0], "{point}");
}
