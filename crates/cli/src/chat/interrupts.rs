//! Ctrl-C while something runs, as a key or as a signal. The listener runs from the start, so that no Ctrl-C is lost between two
//! operations.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The receiver of Ctrl-C.
pub(super) struct Interrupts {
    receiver: UnboundedReceiver<usize>,
    sender: UnboundedSender<usize>,
}

impl Interrupts {
    /// Starts to listen. Must be called inside a Tokio runtime.
    pub(super) fn listen() -> Self {
        let (sender, receiver) = unbounded_channel();
        begin(sender.clone());
        Self { receiver, sender }
    }

    /// A sender for Ctrl-C that was read as a key.
    pub(super) fn sender(&self) -> UnboundedSender<usize> {
        self.sender.clone()
    }

    /// Discards earlier interrupts. Returns whether there were any.
    pub(super) fn forget(&mut self) -> bool {
        let mut any = false;
        while self.receiver.try_recv().is_ok() {
            any = true;
        }
        any
    }

    /// Waits for the next Ctrl-C; returns how many arrived together.
    pub(super) async fn next(&mut self) -> usize {
        match self.receiver.recv().await {
            Some(count) => count,
            // If signals cannot be received, none ever arrives.
            None => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
fn begin(sender: UnboundedSender<usize>) {
    use tokio::signal::unix::{SignalKind, signal};
    // Installed before anything else runs; from then on Ctrl-C does not end the program.
    let Ok(mut signals) = signal(SignalKind::interrupt()) else { return };
    tokio::spawn(async move { while signals.recv().await.is_some() && sender.send(1).is_ok() {} });
}

#[cfg(not(unix))]
fn begin(sender: UnboundedSender<usize>) {
    tokio::spawn(async move { while tokio::signal::ctrl_c().await.is_ok() && sender.send(1).is_ok() {} });
}
