//! Runs calls of the store on threads for blocking work, off the threads that serve requests.

use throughline_store::StoreError;

/// Runs a call of the store on a thread for blocking work.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::ViewRefused { problem: "the record was not reached" }),
    }
}
