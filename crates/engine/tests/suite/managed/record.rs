//! A record that cannot be written: nothing is half done, nothing is lost, it is reported.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use throughline_engine::{
    CompactionResult, EngineEvent, ManagedSession, ManualCompaction, RecordPolicy, SessionError,
};
use throughline_store::{
    MemoryStore, Owner, Result, Store as _, StoreError, StoreLayer, StoreMethod, ViewMessage,
};
use throughline_transcript::WireFormat;

use crate::managed::support::{Stage, saying, talk};

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
}

impl StoreLayer for FullDisk {
    type Inner = MemoryStore;

    fn around<T>(&self, method: StoreMethod, run: impl FnOnce(&MemoryStore) -> Result<T>) -> Result<T> {
        if method.name != "unlock" {
            self.gate.pass();
        }
        if method.writes {
            let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
            if self.full.load(Ordering::Relaxed) || number == self.failing.load(Ordering::Relaxed) {
                return Err(StoreError::DiskFull { path: "record.db".into() });
            }
        }
        run(&self.inner)
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
    // Nothing is compacted that the record does not have.
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
