//! Accepts connections until the gateway is stopped, then waits for the open ones.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::gateway::Gateway;
use crate::http::peer::Peer;
use crate::http::router::handle;
use crate::shared::Shared;
use crate::telemetry::event::GatewayEvent;

/// The pause after the system refused to accept a connection, for example for lack of file descriptors.
const BREATH: Duration = Duration::from_millis(50);

/// How long calls may continue after their clients were cut off, so that their answers are recorded.
const LAST_WRITES: Duration = Duration::from_secs(5);

impl Gateway {
    /// Serves until `stop`; then accepts no further connection, finishes the responses in progress and returns. Responses that take
    /// longer than [`stop_time`](crate::GatewayLimits::stop_time) are cut.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let open = TaskTracker::new();
        let cut = CancellationToken::new();
        let places = Arc::new(Semaphore::new(self.shared.setup.limits.connections.max(1)));
        loop {
            let taken = async {
                // A connection over the limit stays in the system's backlog, where it takes no memory of this process.
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                (place, taken) = taken => match taken {
                    Ok((stream, _)) => {
                        let connection = connection(stream, Arc::clone(&self.shared), stop.clone());
                        let cut = cut.clone();
                        open.spawn(async move {
                            let _place = place;
                            // The connection is cut without waiting for its call, which continues until it is recorded.
                            cut.run_until_cancelled_owned(connection).await;
                        });
                    }
                    Err(error) => {
                        self.shared.tell(GatewayEvent::Warning(format!("a connection could not be accepted: {error}")));
                        tokio::time::sleep(BREATH).await;
                    }
                }
            }
        }
        drop(listener);
        self.shared.closing.cancel();
        open.close();
        self.shared.tasks.close();
        let ended = async {
            open.wait().await;
            self.shared.tasks.wait().await;
        };
        let stop_time = self.shared.setup.limits.stop_time;
        if tokio::time::timeout(stop_time, ended).await.is_err() {
            self.shared.tell(GatewayEvent::Warning(format!(
                "{} answers were not finished within {} seconds and are cut",
                open.len(),
                stop_time.as_secs()
            )));
            cut.cancel();
            open.wait().await;
            // Whatever has arrived of their answers is recorded, if the upstreams end within this time.
            let _ = tokio::time::timeout(LAST_WRITES, self.shared.tasks.wait()).await;
        }
        self.shared.finish_traces().await;
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, stop: CancellationToken) {
    // Chunks of a stream are small and must be sent immediately.
    let _ = stream.set_nodelay(true);
    let peer = Peer::of(&stream);
    match shared.tls() {
        None => served(stream, peer, shared, stop).await,
        Some(tls) => {
            // The handshake has a time limit, so that silent connections are closed.
            if let Ok(Ok(stream)) =
                tokio::time::timeout(shared.setup.limits.head_time, tls.acceptor().accept(stream)).await
            {
                served(stream, peer, shared, stop).await;
            }
        }
    }
}

async fn served<S>(stream: S, peer: Peer, shared: Arc<Shared>, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let head_time = shared.setup.limits.head_time;
    let service = service_fn(move |request: Request<Incoming>| {
        let shared = Arc::clone(&shared);
        // Boxed, because the future of the connection contains the future of the request.
        let answer = Box::pin(handle(shared, request, Some(peer.clone())));
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head_time);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // The client disconnected.
        _ = &mut connection => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
