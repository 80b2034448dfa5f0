//! Writes an [`AnswerDraft`] as a provider of each wire format would send it, whole or as the events of a stream.
//!
//! Decoding either form gives the same answer. Parts that a format cannot express are left out: the chat format has one text and one
//! reasoning for all parts and none for [`AnswerPart::Other`](crate::AnswerPart); Anthropic has no refusals apart from text.
//!
//! Not for: answers that are still being written (`translate`).

mod anthropic;
mod chat;
mod responses;
mod shared;

use throughline_transcript::WireFormat;

use crate::draft::{AnswerDraft, StreamShape};
use crate::error_body::ErrorBody;
use crate::json_object::ObjectWriter;
use crate::sse_writer::WireEvent;

pub(crate) use shared::stop_word;

impl AnswerDraft {
    /// The body of a whole response that contains this answer.
    #[must_use]
    pub fn to_response(&self, wire_format: WireFormat) -> String {
        match wire_format {
            WireFormat::Chat => chat::response(self),
            WireFormat::Responses => responses::response(self),
            WireFormat::Anthropic => anthropic::response(self),
        }
    }

    /// The events of a stream that contains this answer.
    #[must_use]
    pub fn to_stream(&self, wire_format: WireFormat, shape: &StreamShape) -> Vec<WireEvent> {
        match wire_format {
            WireFormat::Chat => chat::stream(self, shape),
            WireFormat::Responses => responses::stream(self, shape),
            WireFormat::Anthropic => anthropic::stream(self, shape),
        }
    }
}

impl ErrorBody {
    /// Returns the body of this error in a wire format.
    #[must_use]
    pub fn to_json(&self, wire_format: WireFormat) -> String {
        let kind = self.kind.as_deref();
        match wire_format {
            WireFormat::Chat | WireFormat::Responses => {
                let inner = ObjectWriter::new()
                    .text("message", &self.message)
                    .text_or_null("type", kind)
                    .text_or_null("param", self.param.as_deref())
                    .text_or_null("code", self.code.as_deref());
                ObjectWriter::new().raw("error", &inner.finish()).finish()
            }
            WireFormat::Anthropic => {
                let inner = ObjectWriter::new().text("type", kind.unwrap_or("api_error"));
                let inner = inner.text("message", &self.message).finish();
                ObjectWriter::new().text("type", "error").raw("error", &inner).finish()
            }
        }
    }

    /// Returns this error as an event inside a stream, with this number in formats that number their events.
    #[must_use]
    pub fn to_event(&self, wire_format: WireFormat, number: u64) -> WireEvent {
        match wire_format {
            WireFormat::Chat => WireEvent::unnamed(self.to_json(wire_format)),
            WireFormat::Anthropic => WireEvent::named("error", self.to_json(wire_format)),
            WireFormat::Responses => {
                let data = ObjectWriter::new()
                    .text("type", "error")
                    .text_or_null("code", self.code.as_deref().or(self.kind.as_deref()))
                    .text("message", &self.message)
                    .text_or_null("param", self.param.as_deref())
                    .number("sequence_number", number);
                WireEvent::named("error", data.finish())
            }
        }
    }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
