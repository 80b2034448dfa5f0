//! Connections: taken until the gateway is told to stop, and then finished.

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

use crate::event::GatewayEvent;
use crate::gateway::{Gateway, House};
use crate::handler::handle;
use crate::peer::Peer;

/// How long is waited when the machine has no room for another connection.
const BREATH: Duration = Duration::from_millis(50);

/// Serves until `stop`, then takes no further connection, lets every answer that has begun come to its end, and returns.
pub async fn serve(gateway: Gateway, listener: TcpListener, stop: CancellationToken) {
    let open = TaskTracker::new();
    let places = Arc::new(Semaphore::new(gateway.house.setup.limits.connections.max(1)));
    loop {
        let taken = async {
            // Whoever finds no place waits outside, where it takes no memory of ours.
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            (place, taken) = taken => match taken {
                Ok((stream, _)) => {
                    let connection = connection(stream, Arc::clone(&gateway.house), stop.clone());
                    open.spawn(async move {
                        let _place = place;
                        connection.await;
                    });
                }
                Err(error) => {
                    gateway.house.tell(GatewayEvent::Warning(format!("a connection was not taken: {error}")));
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    }
    drop(listener);
    gateway.house.closing.cancel();
    open.close();
    open.wait().await;
    gateway.house.tasks.close();
    gateway.house.tasks.wait().await;
    gateway.house.finish_traces().await;
}

async fn connection(stream: TcpStream, house: Arc<House>, stop: CancellationToken) {
    // Pieces of a stream are small and each is wanted at once.
    let _ = stream.set_nodelay(true);
    let peer = Peer::of(&stream);
    match house.tls() {
        None => served(stream, peer, house, stop).await,
        Some(tls) => {
            // Who only opens connections does not keep them open.
            if let Ok(Ok(stream)) =
                tokio::time::timeout(house.setup.limits.head_time, tls.acceptor().accept(stream)).await
            {
                served(stream, peer, house, stop).await;
            }
        }
    }
}

async fn served<S>(stream: S, peer: Peer, house: Arc<House>, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let head_time = house.setup.limits.head_time;
    let service = service_fn(move |request: Request<Incoming>| {
        let house = Arc::clone(&house);
        // The connection keeps the place of this future as long as the answer takes.
        let answer = Box::pin(handle(house, request, Some(peer.clone())));
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head_time);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // A client may hang up in the middle, which is its right.
        _ = &mut connection => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
