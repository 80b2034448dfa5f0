//! A gate at which a reply waits until the test lets it through.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Clones are the same gate.
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
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until a reply stands before it.
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
    // It is never closed.
    if let Ok(permit) = semaphore.acquire().await {
        permit.forget();
    }
}
