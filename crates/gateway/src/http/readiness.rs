//! Checks whether the gateway can write to the record, by writing to it.
//!
//! The result is cached for a moment, so that frequent probes do not cause frequent writes.

use std::sync::Arc;
use std::time::Duration;

use throughline_store::Store;
use tokio::time::Instant;

use crate::blocking::blocking;

/// The time within which a write to the record must succeed.
const WITHIN: Duration = Duration::from_secs(2);
/// How long a positive result is cached. Monitors ask about every ten seconds, and a check writes about 32 KiB.
const READY_HOLDS: Duration = Duration::from_secs(5);
/// How long a negative result is cached; shorter, so that the gateway returns to service soon after the record is writable.
const NOT_READY_HOLDS: Duration = Duration::from_secs(1);

/// The cached result.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    found: tokio::sync::Mutex<Option<(Instant, bool)>>,
}

impl Readiness {
    /// Whether the record can be written.
    pub(crate) async fn is_ready(&self, store: &Arc<dyn Store>, warn: impl Fn(String)) -> bool {
        // Requests that arrive during a check wait here and get its result.
        let mut found = self.found.lock().await;
        if let Some((at, is_ready)) = *found
            && at.elapsed() < if is_ready { READY_HOLDS } else { NOT_READY_HOLDS }
        {
            return is_ready;
        }
        let is_ready = can_record(store, warn).await;
        *found = Some((Instant::now(), is_ready));
        is_ready
    }
}

async fn can_record(store: &Arc<dyn Store>, warn: impl Fn(String)) -> bool {
    let store = Arc::clone(store);
    match tokio::time::timeout(WITHIN, blocking(move || store.check_writable())).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            warn(format!("not ready: {error}"));
            false
        }
        Err(_) => {
            warn("not ready: the record does not answer".to_owned());
            false
        }
    }
}
