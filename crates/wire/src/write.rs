//! The inverse of reading: what a provider of each wire sends for an [`AnswerDraft`], whole or as the events of a stream.
//!
//! A stream says what the whole says: read back, both give the same answer. What a wire has no place for is left out:
//! the chat wire has one text and one reasoning for all parts and none for [`AnswerPart::Other`](crate::AnswerPart);
//! Anthropic has no refusals apart from text.
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
pub use shared::write_usage;

/// The body of a whole response.
#[must_use]
pub fn write_response(wire_format: WireFormat, draft: &AnswerDraft) -> String {
    match wire_format {
        WireFormat::Chat => chat::response(draft),
        WireFormat::Responses => responses::response(draft),
        WireFormat::Anthropic => anthropic::response(draft),
    }
}

/// The events of a stream.
#[must_use]
pub fn write_stream(wire_format: WireFormat, draft: &AnswerDraft, shape: &StreamShape) -> Vec<WireEvent> {
    match wire_format {
        WireFormat::Chat => chat::stream(draft, shape),
        WireFormat::Responses => responses::stream(draft, shape),
        WireFormat::Anthropic => anthropic::stream(draft, shape),
    }
}

/// The body of an error in the form of a wire.
#[must_use]
pub fn write_error(wire_format: WireFormat, error: &ErrorBody) -> String {
    let kind = error.kind.as_deref();
    match wire_format {
        WireFormat::Chat | WireFormat::Responses => {
            let inner = ObjectWriter::new()
                .text("message", &error.message)
                .text_or_null("type", kind)
                .text_or_null("param", error.param.as_deref())
                .text_or_null("code", error.code.as_deref());
            ObjectWriter::new().raw("error", &inner.finish()).finish()
        }
        WireFormat::Anthropic => {
            let inner = ObjectWriter::new().text("type", kind.unwrap_or("api_error"));
            let inner = inner.text("message", &error.message).finish();
            ObjectWriter::new().text("type", "error").raw("error", &inner).finish()
        }
    }
}

/// An error in the middle of a stream, as its event of this number on wires that count them.
#[must_use]
pub fn write_error_event(wire_format: WireFormat, error: &ErrorBody, number: u64) -> WireEvent {
    match wire_format {
        WireFormat::Chat => WireEvent::unnamed(write_error(wire_format, error)),
        WireFormat::Anthropic => WireEvent::named("error", write_error(wire_format, error)),
        WireFormat::Responses => {
            let data = ObjectWriter::new()
                .text("type", "error")
                .text_or_null("code", error.code.as_deref().or(error.kind.as_deref()))
                .text("message", &error.message)
                .text_or_null("param", error.param.as_deref())
                .number("sequence_number", number);
            WireEvent::named("error", data.finish())
        }
    }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
