//! Headers and query of a request.

use throughline_provider::HoldBack;

/// What goes along with a request without being part of it.
#[derive(Clone, Debug)]
pub struct RequestExtras {
    /// Headers, sent after the endpoint's and in this order.
    pub headers: Vec<(String, String)>,
    /// What stands behind the question mark of the address.
    pub query: Option<String>,
    /// How long the beginning of a stream is held back.
    pub hold_back: HoldBack,
}

impl Default for RequestExtras {
    fn default() -> Self {
        Self { headers: Vec::new(), query: None, hold_back: HoldBack::UntilContent }
    }
}
