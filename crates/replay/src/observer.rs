//! The requests of a replay as they were sent, for measuring what the model was shown.

use std::fmt;
use std::sync::Arc;

use throughline_wire::Request;

/// A request of the conversation. Requests for notes, repeated reads and tools are not observed.
#[derive(Clone, Copy, Debug)]
pub struct SentRequest<'a> {
    /// The index of the call in [`Recording::calls`](crate::Recording::calls).
    pub call: usize,
    /// The request.
    pub request: &'a Request,
}

/// Receives every request of the conversation, in order.
#[derive(Clone)]
pub struct RequestObserver(Arc<dyn Fn(&SentRequest<'_>) + Send + Sync>);

impl RequestObserver {
    /// Creates an observer that calls this function with every request.
    #[must_use]
    pub fn new(see: impl Fn(&SentRequest<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(see))
    }

    pub(crate) fn see(&self, sent: &SentRequest<'_>) {
        (self.0)(sent);
    }
}

impl fmt::Debug for RequestObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestObserver")
    }
}
