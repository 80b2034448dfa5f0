//! The context of one request: its id, its start, and the calls and compactions made for it. It is passed to every task
//! that works for the request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use throughline_engine::EngineEvent;
use tracing::Instrument as _;

use crate::telemetry::event::ServedRequest;
use crate::telemetry::traces::{SpanKind, SpanStatus, Trace, TraceSpan};

tokio::task_local! {
    static CURRENT: Arc<RequestContext>;
}

/// The context of one request.
pub(crate) struct RequestContext {
    /// Its id in the log.
    id: String,
    /// When its body had been read.
    read: OnceLock<Instant>,
    /// The number of upstream calls made for it.
    calls: AtomicU64,
    /// The run of a client that it belongs to, if its path names one.
    run: Option<String>,
    /// Its trace, if traces are collected.
    trace: Option<Trace>,
    /// When its compaction began, while one is running.
    compaction: Mutex<Option<Instant>>,
}

impl RequestContext {
    /// Creates the context of a request that begins now.
    pub(crate) fn begin(id: String, run: Option<String>, trace: Option<Trace>) -> Arc<Self> {
        let (read, calls) = (OnceLock::new(), AtomicU64::new(0));
        Arc::new(Self { id, read, calls, run, trace, compaction: Mutex::default() })
    }

    /// The run of a client that it belongs to.
    pub(crate) fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The request that the current task works for.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Runs a future in the context of this request.
    pub(crate) async fn follow<F: Future>(self: Arc<Self>, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }

    /// Adds a span to the trace of the request, if there is one.
    pub(crate) fn add_span(&self, span: TraceSpan) {
        if let Some(trace) = &self.trace {
            trace.add(span);
        }
    }

    /// Adds an event of the engine to the request that the current task works for.
    pub(crate) fn note_engine_event(event: &EngineEvent) {
        let Some(context) = Self::current() else { return };
        let mut compaction = context.compaction.lock().unwrap_or_else(PoisonError::into_inner);
        let (outcome, ended, more) = match event {
            EngineEvent::CompactionStarted { .. } => {
                *compaction = Some(Instant::now());
                return;
            }
            EngineEvent::CompactionCompleted { report, .. } => {
                let tokens = report.tokens;
                let more = vec![
                    ("throughline.tokens.before", json!(tokens.before)),
                    ("throughline.tokens.after", json!(tokens.after)),
                ];
                ("completed", SpanStatus::Well, more)
            }
            EngineEvent::CompactionNoOp { .. } => ("no_op", SpanStatus::Well, Vec::new()),
            EngineEvent::CompactionAborted { .. } => ("aborted", SpanStatus::Badly, Vec::new()),
            _ => return,
        };
        let Some(began) = compaction.take() else { return };
        let mut attributes = vec![("throughline.outcome", json!(outcome))];
        attributes.extend(more);
        context.add_span(TraceSpan {
            name: "compaction",
            kind: SpanKind::Internal,
            began,
            ended,
            attributes,
        });
    }

    /// Returns a value that ends the trace of the request when it is dropped, with the response.
    pub(crate) fn until_answered(self: Arc<Self>, about: RequestInfo) -> ResponseSpan {
        ResponseSpan { context: self, about }
    }

    /// Marks the request as read; the time the gateway adds starts here.
    pub(crate) fn is_read() {
        let _ = CURRENT.try_with(|context| context.read.set(Instant::now()));
    }

    /// The time from then to the first upstream call; `None` for every further call.
    pub(crate) fn until_first_call(&self) -> Option<Duration> {
        let is_first = self.calls.fetch_add(1, Ordering::Relaxed) == 0;
        self.read.get().filter(|_| is_first).map(Instant::elapsed)
    }
}

/// A short description of a request.
pub(crate) struct RequestInfo {
    pub(crate) method: String,
    /// The kind of request, without anything that names a session.
    pub(crate) form: &'static str,
    pub(crate) status: u16,
}

/// Ends the trace of a request when the response has been sent.
pub(crate) struct ResponseSpan {
    context: Arc<RequestContext>,
    about: RequestInfo,
}

impl Drop for ResponseSpan {
    fn drop(&mut self) {
        let Some(trace) = &self.context.trace else { return };
        let RequestInfo { method, form, status } = &self.about;
        trace.end(TraceSpan {
            name: "request",
            kind: SpanKind::Server,
            began: Instant::now(),
            ended: if *status < 500 { SpanStatus::Well } else { SpanStatus::Badly },
            attributes: vec![
                ("http.request.method", json!(method)),
                ("http.response.status_code", json!(status)),
                ("throughline.wire", json!(form)),
            ],
        });
    }
}

impl ServedRequest {
    /// The id of the request that the current task works for, for logs.
    #[must_use]
    pub fn current_id() -> Option<String> {
        RequestContext::current().map(|context| context.id().to_owned())
    }
}

/// Runs a future of another task in the context of the current request.
pub(crate) fn in_request_context<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let context = RequestContext::current();
    // Boxed, because each wrapper would contain the future twice, and there is one for every open stream.
    let work = Box::pin(work.in_current_span());
    async move {
        match context {
            Some(context) => context.follow(work).await,
            None => work.await,
        }
    }
}
