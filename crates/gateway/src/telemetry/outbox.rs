//! Events of this gateway that wait to be told to the others on the record.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use throughline_store::{FleetEvent, Millis, Owner};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::telemetry::event::GatewayEvent;

/// Events that may wait; those beyond are not told to others.
const WAITING: usize = 2_048;

/// Where events wait. As long as nobody opened it, they are dropped.
#[derive(Default)]
pub(crate) struct Outbox {
    sender: OnceLock<Sender<FleetEvent>>,
    lost: AtomicU64,
}

impl Outbox {
    /// Has events wait from now on, for one receiver; `None` if there is one already.
    pub(crate) fn open(&self) -> Option<Receiver<FleetEvent>> {
        let (sender, receiver) = channel(WAITING);
        self.sender.set(sender).ok().map(|()| receiver)
    }

    /// Has an event wait.
    pub(crate) fn put(&self, owner: &Owner, at_ms: Millis, event: &GatewayEvent) {
        let Some(sender) = self.sender.get() else { return };
        let event = FleetEvent { owner: owner.clone(), at_ms, body: event.to_json().to_string() };
        if sender.try_send(event).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Events that were too many since this was asked last.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}
