//! The priority of a request, and whether it has been sent.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// Whether a caller waits for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// A person or a client waits.
    #[default]
    Foreground,
    /// No caller waits: it may be cancelled as soon as its slot is needed.
    Background,
}

/// Whether a request has been sent. Clones share the value: the time limit of the answer starts when the request leaves the queue.
#[derive(Clone, Debug, Default)]
pub struct SendState(Arc<Mutex<Option<Sending>>>);

#[derive(Clone, Copy, Debug)]
enum Sending {
    Queued,
    Sent(Instant),
}

impl SendState {
    fn set(&self, sending: Sending) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sending);
    }

    fn get(&self) -> Option<Sending> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the request as waiting for a slot.
    pub fn queued(&self) {
        self.set(Sending::Queued);
    }

    /// Marks the request as sent.
    pub fn sent(&self) {
        self.set(Sending::Sent(Instant::now()));
    }

    /// Whether it waits for a slot.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        matches!(self.get(), Some(Sending::Queued))
    }

    /// Returns the time when it left the queue; `None` if it was never queued.
    #[must_use]
    pub fn sent_at(&self) -> Option<Instant> {
        match self.get() {
            Some(Sending::Sent(at)) => Some(at),
            Some(Sending::Queued) | None => None,
        }
    }
}
