//! Makes the vectors of a record in the background: a thread with a connection of its own, woken when messages were appended.
//!
//! Every step is one transaction, so the process may end at any time and the next one continues. If the model fails, the worker waits, with
//! increasing intervals, and search uses words meanwhile.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use throughline_store::{Embedder, SqliteStore};

use super::ConfiguredEmbedder;

/// The first wait after a failure; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// The interval of checks for messages of other processes, which do not wake this worker.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Wakes the worker.
#[derive(Debug, Default)]
pub(super) struct WakeSignal {
    has_work: Mutex<bool>,
    changed: Condvar,
}

impl WakeSignal {
    pub(super) fn wake(&self) {
        *self.has_work.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn wait(&self, at_most: Duration) {
        let has_work = self.has_work.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(has_work, at_most, |has_work| !*has_work);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// The worker of a record. It ends when the last user of its embedding model is dropped.
#[derive(Debug)]
pub struct EmbeddingWorker;

impl EmbeddingWorker {
    /// Starts a worker for the record at `path`, which must exist and have the newest version. `report` is called when a problem starts.
    pub fn start(
        path: PathBuf,
        embedder: &Arc<ConfiguredEmbedder>,
        report: impl Fn(&str) + Send + 'static,
    ) -> std::io::Result<()> {
        let (weak, wake) = (Arc::downgrade(embedder), Arc::clone(&embedder.wake));
        let work = move || run(&path, &weak, &wake, &report);
        std::thread::Builder::new().name("embeddings".to_owned()).spawn(work).map(drop)
    }
}

fn run(
    path: &std::path::Path,
    embedder: &Weak<ConfiguredEmbedder>,
    wake: &WakeSignal,
    report: &dyn Fn(&str),
) {
    let mut store = None;
    let mut failures = 0_u32;
    loop {
        let Some(embedder) = embedder.upgrade() else { return };
        let step = match &store {
            Some(store) => SqliteStore::embed_next(store, embedder.as_ref()),
            None => SqliteStore::open(path, 0)
                .and_then(|opened| store.insert(opened).embed_next(embedder.as_ref())),
        };
        let wait = match step {
            Ok(step) if step.messages > 0 => None,
            Ok(_) => {
                failures = 0;
                Some(LOOK_AGAIN)
            }
            Err(error) => {
                if failures == 0 {
                    report(&format!(
                        "vectors for search are not made for now ({}): {error}",
                        embedder.model()
                    ));
                }
                failures += 1;
                Some(FIRST_WAIT.saturating_mul(1 << failures.min(8)).min(LONGEST_WAIT))
            }
        };
        drop(embedder);
        if let Some(wait) = wait {
            wake.wait(wait);
            // A failing model is not called again for every message.
            if failures > 0 {
                std::thread::sleep(FIRST_WAIT);
            }
        }
    }
}
