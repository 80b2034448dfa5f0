//! The signals of a gateway: stop after the current answers, stop at once, or reload the configuration.

use std::sync::Arc;
use std::time::Duration;

use throughline_gateway::Gateway;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::error::Exit;
use crate::serve::configuration::ConfigSource;

/// The action that a signal requests.
enum SignalAction {
    Stop,
    Reload,
}

/// Handles signals. The first stop signal takes effect after load balancers had time to notice (`gateway.drain_seconds`) and requests in
/// progress have ended; the second ends this wait, and the third ends the process.
///
/// Also reloads the configuration after the page changed it.
pub(super) async fn follow(
    source: ConfigSource,
    gateway: Gateway,
    bound: String,
    changed: Arc<Notify>,
    (stop, drain): (CancellationToken, Duration),
) {
    let log = Arc::clone(&source.log);
    let mut signals = SignalStream::new();
    loop {
        tokio::select! {
            action = signals.next() => match action {
                SignalAction::Reload => source.reload(&gateway, &bound).await,
                SignalAction::Stop => break,
            },
            () = changed.notified() => source.reload(&gateway, &bound).await,
        }
    }
    gateway.drain();
    if !drain.is_zero() {
        log.note(&format!(
            "stopping in {} seconds; until then /readyz reports that this gateway is not ready",
            drain.as_secs()
        ));
        tokio::select! {
            () = tokio::time::sleep(drain) => {}
            () = stop_asked(&mut signals) => log.note("not waiting any longer"),
        }
    }
    log.note("finishing open requests; press Ctrl-C again to stop at once");
    stop.cancel();
    loop {
        if let SignalAction::Stop = signals.next().await {
            std::process::exit(i32::from(Exit::Internal.code()));
        }
    }
}

/// Waits for a stop signal.
async fn stop_asked(signals: &mut SignalStream) {
    while !matches!(signals.next().await, SignalAction::Stop) {}
}

/// Reloads the configuration when the page changed it.
pub(super) async fn follow_changes(
    source: ConfigSource,
    gateway: Gateway,
    bound: String,
    changed: Arc<Notify>,
) {
    loop {
        changed.notified().await;
        source.reload(&gateway, &bound).await;
    }
}

/// Stops at the first signal, including a closed terminal.
pub(super) async fn stop_on_any(stop: CancellationToken) {
    SignalStream::new().next().await;
    stop.cancel();
}

/// The signals a gateway reacts to; on other systems than Unix only Ctrl-C.
struct SignalStream {
    #[cfg(unix)]
    terminate: Option<tokio::signal::unix::Signal>,
    #[cfg(unix)]
    hang_up: Option<tokio::signal::unix::Signal>,
    /// Whether it was started at a terminal.
    #[cfg(unix)]
    had_terminal: bool,
}

#[cfg(unix)]
impl SignalStream {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self {
            terminate: signal(SignalKind::terminate()).ok(),
            hang_up: signal(SignalKind::hangup()).ok(),
            had_terminal: has_terminal(),
        }
    }

    async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => SignalAction::Stop,
            () = received(&mut self.terminate) => SignalAction::Stop,
            // A closed terminal sends the same signal as a request to reload.
            () = received(&mut self.hang_up) => {
                if self.had_terminal && !has_terminal() { SignalAction::Stop } else { SignalAction::Reload }
            }
        }
    }
}

#[cfg(unix)]
async fn received(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether this process still has a terminal.
#[cfg(unix)]
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

#[cfg(not(unix))]
impl SignalStream {
    fn new() -> Self {
        Self {}
    }

    async fn next(&mut self) -> SignalAction {
        let _ = tokio::signal::ctrl_c().await;
        SignalAction::Stop
    }
}
