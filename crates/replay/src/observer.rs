//! Requests of a replay as they were sent, for measurements of what the model was shown.

use std::fmt;
use std::sync::Arc;

use throughline_wire::Request;

/// A request of the conversation. Those for notes, for reading again and for tools are not seen.
#[derive(Clone, Copy, Debug)]
pub struct SentRequest<'a> {
    /// The place of the call in [`Recording::calls`](crate::Recording::calls).
    pub call: usize,
    /// What was sent.
    pub request: &'a Request,
}

/// Is given every request of the conversation, in order.
#[derive(Clone)]
pub struct RequestObserver(Arc<dyn Fn(&SentRequest<'_>) + Send + Sync>);

impl RequestObserver {
    /// Calls this with every request.
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
