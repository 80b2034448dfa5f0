//! An upstream whose calls are counted and timed.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use throughline_engine::{PieceSender, Upstream, UpstreamFailureCause, UpstreamFuture};
use throughline_provider::{OutgoingCall, Trouble};
use tokio_util::sync::CancellationToken;

use crate::course::Course;
use crate::metrics::{CallEnd, Metrics};
use crate::traces::{Ended, Span, SpanKind};

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
        pieces: Option<&'a PieceSender>,
        cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        Box::pin(async move {
            let course = Course::current();
            if let Some(added) = course.as_ref().and_then(|course| course.until_first_call()) {
                self.metrics.added(added);
            }
            let (wire, began) = (call.wire_format.name(), Instant::now());
            let result = self.inner.send(call, pieces, cancel).await;
            let end = match &result {
                Ok(_) => CallEnd::Answered,
                Err(unanswered) => match unanswered.cause {
                    UpstreamFailureCause::Cancelled => CallEnd::Cancelled,
                    UpstreamFailureCause::Trouble(_) => CallEnd::Failed,
                },
            };
            self.metrics.call(wire, &self.name, end, began.elapsed());
            if let Some(course) = course {
                let attributes = vec![
                    ("throughline.upstream", json!(self.name)),
                    ("throughline.wire", json!(wire)),
                    ("throughline.outcome", json!(end.name())),
                ];
                let ended = if end == CallEnd::Failed { Ended::Badly } else { Ended::Well };
                course.add_span(Span {
                    name: "upstream call",
                    kind: SpanKind::Client,
                    began,
                    ended,
                    attributes,
                });
            }
            result
        })
    }

    fn cancels_background(&self) -> bool {
        self.inner.cancels_background()
    }

    fn advice(&self, trouble: &Trouble, model: &str) -> Option<String> {
        self.inner.advice(trouble, model)
    }
}
