//! The interface between a conversation and its summariser: the conversation's model in one direction, the calls made for
//! summaries in the other.
//!
//! Only an engine in this process has one. Not for: decisions.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_store::{NewCall, SessionId};

use crate::limits::target::ModelTarget;

/// The future of recording a call; the caller waits for it.
pub(crate) type BookingFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Receives every call made for a summary, including failed ones.
pub trait SummaryCalls: Send + Sync {
    /// Records a finished call for the summary of a session.
    fn finished<'a>(&'a self, session: &'a SessionId, call: NewCall) -> BookingFuture<'a>;
}

/// The link between a conversation and its summariser.
#[derive(Default)]
pub struct SummaryHost {
    told: Mutex<HostState>,
}

#[derive(Default)]
struct HostState {
    target: Option<ModelTarget>,
    calls: Option<Arc<dyn SummaryCalls>>,
}

impl SummaryHost {
    // Each value is replaced as a whole, so it is usable after a panic elsewhere.
    fn told(&self) -> MutexGuard<'_, HostState> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the conversation's model.
    pub fn set_target(&self, target: ModelTarget) {
        self.told().target = Some(target);
    }

    /// Sets the receiver of calls for summaries.
    pub fn set_calls(&self, calls: Arc<dyn SummaryCalls>) {
        self.told().calls = Some(calls);
    }

    /// Returns the conversation's model, if it was set.
    #[must_use]
    pub fn target(&self) -> Option<ModelTarget> {
        self.told().target.clone()
    }

    /// Records a call for a summary.
    pub async fn book(&self, session: &SessionId, call: NewCall) {
        let calls = self.told().calls.clone();
        if let Some(calls) = calls {
            calls.finished(session, call).await;
        }
    }
}
