//! The interface between a conversation and its summariser: the conversation's model in one direction, the calls made for
//! summaries in the other.
//!
//! Only an engine in this process has one. Not for: decisions.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_store::{NewCall, SessionId};

use crate::limits::target::ModelTarget;

/// Books a call; the caller waits until that is done.
pub(crate) type BookingFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Told of every call that was made for a summary, failed ones too.
pub trait SummaryCalls: Send + Sync {
    /// A call for the summary of a session is over.
    fn finished<'a>(&'a self, session: &'a SessionId, call: NewCall) -> BookingFuture<'a>;
}

/// What a conversation and the writer of its summaries exchange.
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
    // Each value is replaced whole, so a panic elsewhere leaves them usable.
    fn told(&self) -> MutexGuard<'_, HostState> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model that holds the conversation.
    pub fn set_target(&self, target: ModelTarget) {
        self.told().target = Some(target);
    }

    /// Who books calls for summaries.
    pub fn set_calls(&self, calls: Arc<dyn SummaryCalls>) {
        self.told().calls = Some(calls);
    }

    /// The model that holds the conversation, as far as anyone said.
    #[must_use]
    pub fn target(&self) -> Option<ModelTarget> {
        self.told().target.clone()
    }

    /// Books a call for a summary.
    pub async fn book(&self, session: &SessionId, call: NewCall) {
        let calls = self.told().calls.clone();
        if let Some(calls) = calls {
            calls.finished(session, call).await;
        }
    }
}
