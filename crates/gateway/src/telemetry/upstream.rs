//! A layer over an upstream that counts and times its calls.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use throughline_engine::{PieceSender, Upstream, UpstreamFailureCause, UpstreamFuture};
use throughline_provider::{OutgoingCall, ProviderError};
use tokio_util::sync::CancellationToken;

use crate::telemetry::metrics::{Metrics, UpstreamOutcome};
use crate::telemetry::request_context::RequestContext;
use crate::telemetry::traces::{SpanKind, SpanStatus, TraceSpan};

/// Forwards calls, counts and times them.
pub(crate) struct InstrumentedUpstream {
    pub(crate) inner: Arc<dyn Upstream>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) name: String,
}

impl Upstream for InstrumentedUpstream {
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        pieces: Option<&'a PieceSender>,
        cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        Box::pin(async move {
            let context = RequestContext::current();
            if let Some(added) = context.as_ref().and_then(|context| context.until_first_call()) {
                self.metrics.added(added);
            }
            let (wire, began) = (call.wire_format.name(), Instant::now());
            let result = self.inner.send(call, pieces, cancel).await;
            let end = match &result {
                Ok(_) => UpstreamOutcome::Answered,
                Err(unanswered) => match &unanswered.cause {
                    UpstreamFailureCause::Cancelled => UpstreamOutcome::Cancelled,
                    UpstreamFailureCause::Trouble(trouble) => {
                        self.metrics.note_failure(&self.name, trouble.to_string());
                        UpstreamOutcome::Failed
                    }
                },
            };
            self.metrics.call(wire, &self.name, end, began.elapsed());
            if let Some(context) = context {
                let attributes = vec![
                    ("throughline.upstream", json!(self.name)),
                    ("throughline.wire", json!(wire)),
                    ("throughline.outcome", json!(end.name())),
                ];
                let ended = if end == UpstreamOutcome::Failed { SpanStatus::Badly } else { SpanStatus::Well };
                context.add_span(TraceSpan {
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

    fn advice(&self, trouble: &ProviderError, model: &str) -> Option<String> {
        self.inner.advice(trouble, model)
    }
}
