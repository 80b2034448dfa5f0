//! A recorded request.

use bytes::Bytes;
use throughline_transcript::WireFormat;
use throughline_wire::{Request, RequestError};
use tokio::time::Instant;

/// A recorded request.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// The index among all requests.
    pub order: usize,
    /// The time at which it was complete.
    pub at: Instant,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The query string.
    pub query: Option<String>,
    /// The headers in order, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl RecordedRequest {
    /// The value of a header; `name` is in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; `null` if it is invalid.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The wire format; `None` for anything but a call to a model.
    #[must_use]
    pub fn wire_format(&self) -> Option<WireFormat> {
        let known = [
            ("/chat/completions", WireFormat::Chat),
            ("/responses", WireFormat::Responses),
            ("/messages", WireFormat::Anthropic),
        ];
        let of_path =
            known.iter().find(|(end, _)| self.path.ends_with(end)).map(|(_, wire_format)| *wire_format);
        of_path.filter(|_| self.method == "POST")
    }

    /// The decoded request; `None` for anything but a call to a model.
    #[must_use]
    pub fn envelope(&self) -> Option<Result<Request, RequestError>> {
        Some(Request::decode(self.wire_format()?, &self.body))
    }

    /// The requested model.
    #[must_use]
    pub fn model(&self) -> Option<String> {
        self.json().get("model")?.as_str().map(str::to_owned)
    }
}
