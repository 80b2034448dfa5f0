//! A request as it came.

use bytes::Bytes;
use throughline_transcript::WireFormat;
use throughline_wire::{Request, RequestError};
use tokio::time::Instant;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// Its place among all requests, from zero.
    pub order: usize,
    /// When it was there in whole.
    pub at: Instant,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// What stands behind the question mark.
    pub query: Option<String>,
    /// The headers in their order, names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl RecordedRequest {
    /// A header by its name in small letters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; nothing when it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The wire it speaks; `None` for anything but a call to a model.
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

    /// The request as an envelope; `None` for anything but a call to a model.
    #[must_use]
    pub fn envelope(&self) -> Option<Result<Request, RequestError>> {
        Some(Request::decode(self.wire_format()?, &self.body))
    }

    /// The model it names.
    #[must_use]
    pub fn model(&self) -> Option<String> {
        self.json().get("model")?.as_str().map(str::to_owned)
    }
}
