//! A gate at which a reply waits until the test opens it.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// A gate; clones share it.
#[derive(Clone, Debug)]
pub struct Gate {
    reached: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { reached: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }
}

impl Gate {
    /// Creates a closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until a reply has reached the gate.
    pub async fn until_reached(&self) {
        take(&self.reached).await;
    }

    /// Lets one reply through.
    pub fn open(&self) {
        self.open.add_permits(1);
    }

    pub(super) async fn pass(&self) {
        self.reached.add_permits(1);
        take(&self.open).await;
    }
}

async fn take(semaphore: &Semaphore) {
    // The semaphore is never closed.
    if let Ok(permit) = semaphore.acquire().await {
        permit.forget();
    }
}
