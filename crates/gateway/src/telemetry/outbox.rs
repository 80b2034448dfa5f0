//! The queue of this gateway's events for the other gateways on the record.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use throughline_store::{FleetEvent, Millis, Owner};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::telemetry::event::GatewayEvent;

/// The capacity of the queue; further events are not sent to other gateways.
const WAITING: usize = 2_048;

/// The queue. Events are dropped until it is opened.
#[derive(Default)]
pub(crate) struct Outbox {
    sender: OnceLock<Sender<FleetEvent>>,
    lost: AtomicU64,
}

impl Outbox {
    /// Opens the queue; `None` if it is open already.
    pub(crate) fn open(&self) -> Option<Receiver<FleetEvent>> {
        let (sender, receiver) = channel(WAITING);
        self.sender.set(sender).ok().map(|()| receiver)
    }

    /// Adds an event to the queue.
    pub(crate) fn put(&self, owner: &Owner, at_ms: Millis, event: &GatewayEvent) {
        let Some(sender) = self.sender.get() else { return };
        let event = FleetEvent { owner: owner.clone(), at_ms, body: event.to_json().to_string() };
        if sender.try_send(event).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of events dropped since the last call, because the queue was full.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}
