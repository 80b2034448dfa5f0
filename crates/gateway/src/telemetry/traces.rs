//! Traces for OpenTelemetry collectors: OTLP over HTTP, as JSON.
//!
//! A request is a trace, or continues the trace that its client names (`traceparent`). Its upstream calls and compactions are spans.
//! Spans are collected and sent a few seconds later. If the collector is too slow, spans are dropped: requests never wait for it. Spans
//! contain no text of a conversation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::header::HeaderMap;
use serde_json::{Value, json};
use throughline_engine::Host;
use throughline_provider::{BaseUrl, Client, Endpoint, EndpointKind, KeySource, PassedRequest};
use throughline_transcript::WireFormat;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::telemetry::event::{GatewayEvent, GatewayEvents};

/// The path of traces at a collector.
const PATH: &str = "/v1/traces";
/// The most spans that wait to be sent; further ones are dropped.
const WAITING: usize = 8_192;
/// The most spans in a request to the collector.
const AT_ONCE: usize = 512;
/// How long spans are collected before they are sent.
const GATHER: Duration = Duration::from_secs(2);
/// The timeout of a request to the collector.
const PATIENCE: Duration = Duration::from_secs(5);
const NANOS_IN_A_MILLISECOND: u64 = 1_000_000;

/// The kind of a span, with the numbers of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// The outcome of a span, with the numbers of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanStatus {
    Well = 1,
    Badly = 2,
}

/// A finished piece of work.
#[derive(Debug)]
pub(crate) struct TraceSpan {
    pub(crate) name: &'static str,
    pub(crate) kind: SpanKind,
    pub(crate) began: Instant,
    pub(crate) ended: SpanStatus,
    pub(crate) attributes: Vec<(&'static str, Value)>,
}

/// The trace of one request.
pub(crate) struct Trace {
    sender: mpsc::Sender<Value>,
    host: Arc<dyn Host>,
    trace: u128,
    span: u64,
    parent: Option<u64>,
    began: Instant,
    began_ns: u64,
}

/// Returns a new span id. Zero would mean that there is none.
fn new_id(host: &dyn Host) -> u64 {
    ((u64::from(host.random()) << 32) | u64::from(host.random())).max(1)
}

impl Trace {
    /// Adds a span within the request, which ends now.
    pub(crate) fn add(&self, span: TraceSpan) {
        let id = new_id(self.host.as_ref());
        self.send(id, Some(self.span), span);
    }

    /// Adds the span of the request itself, which ends now.
    pub(crate) fn end(&self, span: TraceSpan) {
        self.send(self.span, self.parent, TraceSpan { began: self.began, ..span });
    }

    fn send(&self, id: u64, parent: Option<u64>, span: TraceSpan) {
        let at = |moment: Instant| {
            let since = moment.saturating_duration_since(self.began).as_nanos();
            self.began_ns.saturating_add(u64::try_from(since).unwrap_or(u64::MAX)).to_string()
        };
        let attributes: Vec<Value> =
            span.attributes.iter().map(|(key, value)| attribute(key, value)).collect();
        let value = json!({
            "traceId": format!("{:032x}", self.trace),
            "spanId": format!("{id:016x}"),
            "parentSpanId": parent.map(|parent| format!("{parent:016x}")).unwrap_or_default(),
            "name": span.name,
            "kind": span.kind as u8,
            "startTimeUnixNano": at(span.began),
            "endTimeUnixNano": at(Instant::now()),
            "attributes": attributes,
            "status": { "code": span.ended as u8 },
        });
        // A span that does not fit into the queue is dropped: no request waits for the collector.
        let _ = self.sender.try_send(value);
    }
}

fn attribute(key: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({ "stringValue": other.to_string() }),
    };
    json!({ "key": key, "value": value })
}

/// Collects spans and sends them.
pub(crate) struct Tracer {
    sender: mpsc::Sender<Value>,
    host: Arc<dyn Host>,
    sending: JoinHandle<()>,
}

impl Tracer {
    /// Starts the task that sends spans to a collector.
    pub(crate) fn start(
        base: BaseUrl,
        client: Client,
        host: Arc<dyn Host>,
        events: Arc<dyn GatewayEvents>,
    ) -> Self {
        let (sender, waiting) = mpsc::channel(WAITING);
        let collector = Endpoint {
            kind: EndpointKind::Custom,
            base,
            wire: WireFormat::Chat,
            key: None,
            key_source: KeySource::NotNeeded,
            headers: Vec::new(),
            settings_prefix: "gateway.traces_url".to_owned(),
        };
        let sending = tokio::spawn(send_all(waiting, collector, client, events));
        Self { sender, host, sending }
    }

    /// Starts the trace of a request; `None` if its client does not want one.
    pub(crate) fn trace(&self, headers: &HeaderMap) -> Option<Trace> {
        let host = self.host.as_ref();
        let named = headers.get("traceparent").and_then(|value| parent_of(value.to_str().ok()?));
        let (trace, parent) = match named {
            Some(TraceParent { is_sampled: false, .. }) => return None,
            Some(TraceParent { trace, span, .. }) => (trace, Some(span)),
            None => ((u128::from(new_id(host)) << 64) | u128::from(new_id(host)), None),
        };
        let began_ms = u64::try_from(host.now_ms()).unwrap_or_default();
        Some(Trace {
            sender: self.sender.clone(),
            trace,
            span: new_id(host),
            parent,
            began: Instant::now(),
            began_ns: began_ms.saturating_mul(NANOS_IN_A_MILLISECOND),
            host: Arc::clone(&self.host),
        })
    }

    /// Sends the remaining spans.
    pub(crate) async fn finish(self) {
        let Self { sender, sending, .. } = self;
        drop(sender);
        let _ = tokio::time::timeout(PATIENCE, sending).await;
    }
}

/// The trace that a client names.
#[derive(Debug, PartialEq, Eq)]
struct TraceParent {
    trace: u128,
    span: u64,
    is_sampled: bool,
}

fn parent_of(text: &str) -> Option<TraceParent> {
    let mut parts = text.trim().split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex =
        |part: &str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_hex(version, 2) || version == "ff" || !is_hex(trace, 32) || !is_hex(span, 16) || !is_hex(flags, 2)
    {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
    Some(TraceParent { trace, span, is_sampled: u8::from_str_radix(flags, 16).ok()? & 1 == 1 })
}

async fn send_all(
    mut waiting: mpsc::Receiver<Value>,
    collector: Endpoint,
    client: Client,
    events: Arc<dyn GatewayEvents>,
) {
    let mut was_told = false;
    while let Some(first) = waiting.recv().await {
        let mut spans = vec![first];
        let until = tokio::time::Instant::now() + GATHER;
        while spans.len() < AT_ONCE
            && let Ok(Some(span)) = tokio::time::timeout_at(until, waiting.recv()).await
        {
            spans.push(span);
        }
        let sent = tokio::time::timeout(PATIENCE, client.pass_on(&collector, request(&spans))).await;
        let trouble = match sent {
            Ok(Ok(reply)) if (200..300).contains(&reply.status) => None,
            Ok(Ok(reply)) => Some(format!("it answered with {}", reply.status)),
            Ok(Err(trouble)) => Some(trouble.to_string()),
            Err(_) => Some("it does not answer".to_owned()),
        };
        // A repeated failure is reported once.
        match trouble {
            Some(trouble) if !was_told => {
                was_told = true;
                events.tell(GatewayEvent::Warning(format!("the trace collector accepts nothing: {trouble}")));
            }
            Some(_) => {}
            None => was_told = false,
        }
    }
}

fn request(spans: &[Value]) -> PassedRequest {
    let body = json!({ "resourceSpans": [{
        "resource": { "attributes": [attribute("service.name", &json!("throughline"))] },
        "scopeSpans": [{
            "scope": { "name": "throughline-gateway", "version": env!("CARGO_PKG_VERSION") },
            "spans": spans,
        }],
    }] });
    PassedRequest {
        method: "POST".to_owned(),
        path: PATH.to_owned(),
        query: None,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: Bytes::from(body.to_string()),
    }
}

#[cfg(test)]
#[path = "traces_tests.rs"]
mod tests;
