//! The priority of a request, and whether it was sent yet.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// Whether anyone waits for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// A person or a client.
    #[default]
    Foreground,
    /// No caller waits: it may be cancelled as soon as its slot is needed.
    Background,
}

/// Whether a request was sent yet. Clones share the value: a time limit on the answer starts when the request leaves
/// the queue.
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

    /// It waits for a slot from now on.
    pub fn queued(&self) {
        self.set(Sending::Queued);
    }

    /// It leaves now.
    pub fn sent(&self) {
        self.set(Sending::Sent(Instant::now()));
    }

    /// Whether it waits for a slot.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        matches!(self.get(), Some(Sending::Queued))
    }

    /// When it left the queue; `None` where it never was in one.
    #[must_use]
    pub fn sent_at(&self) -> Option<Instant> {
        match self.get() {
            Some(Sending::Sent(at)) => Some(at),
            Some(Sending::Queued) | None => None,
        }
    }
}
