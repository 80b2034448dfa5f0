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
    Depth, Diagnosis, Examination, MemoryStore, Result, SessionId, SqliteStore, Store, StoreError,
    StoreLayer, StoreMethod,
};
use throughline_testkit::big_transcript;
use throughline_transcript::{DecodeOptions, Message, Transcript, WireFormat};

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

impl StoreLayer for Faulty {
    type Inner = MemoryStore;

    fn around<T>(&self, _: StoreMethod, run: impl FnOnce(&MemoryStore) -> Result<T>) -> Result<T> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if number != self.failing.load(Ordering::SeqCst) {
            return run(&self.inner);
        }
        if self.late.load(Ordering::SeqCst) {
            run(&self.inner)?;
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

impl StoreLayer for Stopping {
    type Inner = SqliteStore;

    fn around<T>(&self, method: StoreMethod, run: impl FnOnce(&SqliteStore) -> Result<T>) -> Result<T> {
        if self.armed.load(Ordering::SeqCst) && method.writes {
            let mut writes = self.writes.lock().unwrap();
            writes.push(method.name);
            if writes.len() == self.stop_before {
                std::fs::write(self.home.join("stopped"), method.name).unwrap();
                // Nothing more happens until this process is killed.
                loop {
                    std::thread::park();
                }
            }
        }
        run(&self.inner)
    }
}

fn coding(messages: usize, seed: u64) -> Vec<Message> {
    let json = big_transcript(WireFormat::Chat, messages * 600, messages, seed);
    Transcript::decode(json.into_bytes(), &DecodeOptions::default()).unwrap().messages
}

fn limits() -> LcmLimits {
    LcmLimits { chunk_tokens: 1_500, ..LcmLimits::default() }
}

/// The newest session of the conversation, whoever opened it.
fn tip(store: &dyn Store) -> SessionId {
    store.chain(&owner(), &SessionId::from_text("first")).unwrap().pop().unwrap().id
}

/// Compacts twice, so that leaves are condensed, with one call of the record failing; gives how many there were.
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
fn process_killed_before_any_write_leaves_nodes_that_hold_together() {
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
    let examination =
        Examination { depth: Depth::Thorough, now_ms: i64::MAX, is_alive: &|_| false, artifacts: None };
    let found = Diagnosis::of_file(&path, &examination, &mut |_| {}).unwrap();
    let broken: Vec<String> = found.findings.iter().map(ToString::to_string).collect();
    let matters =
        |words: &&String| !words.contains("locks belong") && !words.contains("readable by other users");
    assert_eq!(broken.iter().filter(matters).collect::<Vec<_>>(), [] as [&String; 0], "{point}");
}
