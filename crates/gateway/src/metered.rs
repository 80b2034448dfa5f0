//! An upstream whose calls are counted and timed.

use std::sync::Arc;
use std::time::Instant;

use throughline_engine::{Pieces, UnansweredCause, Upstream, UpstreamFuture};
use throughline_provider::{OutgoingCall, Trouble};
use tokio_util::sync::CancellationToken;

use crate::course::Course;
use crate::metrics::{CallEnd, Metrics};

/// Passes calls on and counts them.
pub(crate) struct Metered {
    pub(crate) inner: Arc<dyn Upstream>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) name: String,
}

impl Upstream for Metered {
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        pieces: Option<&'a Pieces>,
        cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        Box::pin(async move {
            if let Some(added) = Course::current().and_then(|course| course.until_first_call()) {
                self.metrics.added(added);
            }
            let (wire, began) = (call.dialect.name(), Instant::now());
            let result = self.inner.send(call, pieces, cancel).await;
            let end = match &result {
                Ok(_) => CallEnd::Answered,
                Err(unanswered) => match unanswered.cause {
                    UnansweredCause::Cancelled => CallEnd::Cancelled,
                    UnansweredCause::Trouble(_) => CallEnd::Failed,
                },
            };
            self.metrics.call(wire, &self.name, end, began.elapsed());
            result
        })
    }

    fn advice(&self, trouble: &Trouble, model: &str) -> Option<String> {
        self.inner.advice(trouble, model)
    }
}
