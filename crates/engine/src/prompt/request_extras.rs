//! Headers and query of a request.

use throughline_provider::HoldBack;

/// Parts of an HTTP request besides its body.
#[derive(Clone, Debug)]
pub struct RequestExtras {
    /// Headers, sent after the endpoint's and in this order.
    pub headers: Vec<(String, String)>,
    /// The query string of the address.
    pub query: Option<String>,
    /// How long the beginning of a stream is withheld.
    pub hold_back: HoldBack,
}

impl Default for RequestExtras {
    fn default() -> Self {
        Self { headers: Vec::new(), query: None, hold_back: HoldBack::UntilContent }
    }
}
