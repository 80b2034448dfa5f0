//! The requests of a replay as they were sent, for measuring what the model was shown.

use std::fmt;
use std::sync::Arc;

use throughline_wire::Request;

/// Receives every request of the conversation, in order, with the index of its call in the recording.
#[derive(Clone)]
pub(crate) struct RequestObserver(Arc<SeeRequest>);

type SeeRequest = dyn Fn(usize, &Request) + Send + Sync;

impl RequestObserver {
    pub(crate) fn new(see: impl Fn(usize, &Request) + Send + Sync + 'static) -> Self {
        Self(Arc::new(see))
    }

    pub(crate) fn see(&self, call: usize, request: &Request) {
        (self.0)(call, request);
    }
}

impl fmt::Debug for RequestObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestObserver")
    }
}
