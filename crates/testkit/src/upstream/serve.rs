//! The server: connections, requests, and replies that may break.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::body::{CutHere, PieceSender, PlayedBody};
use super::play::{Act, Played};
use super::recorded::RecordedRequest;
use super::reply::Fault;
use super::{Shared, locked};

/// The future of a response.
type Answering = Pin<Box<dyn Future<Output = Result<Response<PlayedBody>, Infallible>> + Send>>;

/// Accepts connections until it is stopped.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            taken = listener.accept() => {
                let Ok((stream, _)) = taken else { return };
                tokio::spawn(connection(stream, Arc::clone(&shared), stop.clone()));
            }
        }
    }
}

/// How a reply ends its connection.
#[derive(Clone, Debug, Default)]
struct Breaks {
    reset: Arc<Notify>,
    cut: Arc<Notify>,
}

/// Serves one connection.
async fn connection(stream: TcpStream, shared: Arc<Shared>, stop: CancellationToken) {
    // Small pieces are sent at once, as by any streaming server; otherwise each reply would wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let breaks = Breaks::default();
    let of_requests = breaks.clone();
    let service = service_fn(move |request: Request<Incoming>| -> Answering {
        Box::pin(answer(request, Arc::clone(&shared), of_requests.clone()))
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let is_reset = tokio::select! {
        // The client disconnected.
        _ = &mut connection => return,
        () = stop.cancelled() => return,
        () = breaks.cut.notified() => false,
        () = breaks.reset.notified() => true,
    };
    let stream = connection.into_parts().io.into_inner();
    if is_reset {
        // Closing without lingering sends a reset.
        let _ = stream.set_zero_linger();
    }
}

/// Counts a client that disconnects before the end; disarmed at the end.
struct HangUp(Option<Arc<Shared>>);

impl Drop for HangUp {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.hung_up.add_permits(1);
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    breaks: Breaks,
) -> Result<Response<PlayedBody>, Infallible> {
    let request = record(request, &shared).await;
    let slot = match shared.slots.clone().filter(|_| request.wire_format().is_some()) {
        // The semaphore is never closed.
        Some(slots) => slots.acquire_owned().await.ok(),
        None => None,
    };
    let Played { status, headers, before, acts, length, prompt } = shared.play(&request);
    let mut hang_up = HangUp(Some(Arc::clone(&shared)));
    for fault in before {
        happen(fault, &breaks).await;
    }
    if let Some(prompt) = &prompt
        && let Some(cache) = locked(&shared.cache).as_mut()
    {
        cache.answer_began(prompt, shared.clock.now_ms());
    }
    hang_up.0 = None;
    let (sender, body) = PlayedBody::new(length);
    tokio::spawn(async move {
        send(acts, sender, shared, breaks).await;
        drop(slot);
    });
    let mut response = Response::new(body);
    if let Ok(status) = hyper::StatusCode::from_u16(status) {
        *response.status_mut() = status;
    }
    for (name, value) in headers {
        let name = hyper::header::HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, hyper::header::HeaderValue::from_str(&value)) {
            response.headers_mut().append(name, value);
        }
    }
    Ok(response)
}

/// Reads a request to its end and records it.
async fn record(request: Request<Incoming>, shared: &Shared) -> RecordedRequest {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let headers = head.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let mut recorded = RecordedRequest {
        order: 0,
        at: Instant::now(),
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().map(str::to_owned),
        headers: headers.collect(),
        body,
    };
    let mut all = locked(&shared.recorded);
    recorded.order = all.len();
    all.push(recorded.clone());
    shared.asked.send_replace(all.len());
    recorded
}

/// Sends the pieces of a body until its end, or until the client disconnects.
async fn send(acts: Vec<Act>, sender: PieceSender, shared: Arc<Shared>, breaks: Breaks) {
    let mut hang_up = HangUp(Some(shared));
    for act in acts {
        match act {
            Act::Send(bytes) if bytes.is_empty() => {}
            Act::Send(bytes) => {
                if sender.send(Ok(bytes)).await.is_err() {
                    return;
                }
            }
            Act::Pause(pause) => tokio::time::sleep(pause).await,
            Act::Fault(Fault::Stall) => {
                sender.closed().await;
                return;
            }
            Act::Fault(Fault::Cut) => {
                hang_up.0 = None;
                // The earlier pieces are sent first.
                let _ = sender.send(Err(CutHere)).await;
                return;
            }
            Act::Fault(Fault::Wait(gate)) => tokio::select! {
                () = gate.pass() => {}
                () = sender.closed() => return,
            },
            Act::Fault(Fault::Reset) => {
                // Capacity in the channel means that the previous piece was taken.
                let _ = sender.reserve().await;
                hang_up.0 = None;
                breaks.reset.notify_one();
                return;
            }
            // These were rendered as bytes.
            Act::Fault(Fault::Garbage(_) | Fault::ErrorEvent(_)) => {}
        }
    }
    hang_up.0 = None;
}

/// Applies a fault before the status.
async fn happen(fault: Fault, breaks: &Breaks) {
    match fault {
        Fault::Stall => std::future::pending().await,
        Fault::Wait(gate) => gate.pass().await,
        Fault::Reset => {
            breaks.reset.notify_one();
            std::future::pending().await
        }
        Fault::Cut => {
            breaks.cut.notify_one();
            std::future::pending().await
        }
        Fault::Garbage(_) | Fault::ErrorEvent(_) => {}
    }
}
