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

use throughline_transcript::WireFormat;

use crate::answer::StopReason;
use crate::draft::{AnswerDraft, ReportedUsage, StreamShape};
use crate::error_body::ErrorBody;
use crate::json_object::ObjectWriter;
use crate::sse_writer::WireEvent;

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

/// A report of usage in the form of a wire.
#[must_use]
pub fn write_usage(wire_format: WireFormat, reported: &ReportedUsage) -> String {
    let usage = reported.usage;
    let cached = || {
        let details = ObjectWriter::new().number("cached_tokens", usage.cache_read);
        details.number("cache_write_tokens", usage.cache_write).finish()
    };
    let reasoning = || ObjectWriter::new().number("reasoning_tokens", usage.reasoning).finish();
    match wire_format {
        WireFormat::Chat => ObjectWriter::new()
            .number("prompt_tokens", usage.prompt())
            .number("completion_tokens", usage.output)
            .number("total_tokens", usage.total())
            .raw("prompt_tokens_details", &cached())
            .raw("completion_tokens_details", &reasoning())
            .finish(),
        WireFormat::Responses => ObjectWriter::new()
            .number("input_tokens", usage.prompt())
            .raw("input_tokens_details", &cached())
            .number("output_tokens", usage.output)
            .raw("output_tokens_details", &reasoning())
            .number("total_tokens", usage.total())
            .finish(),
        WireFormat::Anthropic => anthropic::usage(reported),
    }
}

/// The word of a wire for a reason to stop; `None` where it says nothing. A wire that lacks a reason says the nearest.
pub(crate) fn stop_word(wire_format: WireFormat, reason: StopReason) -> Option<&'static str> {
    let [chat, responses, anthropic] = match reason {
        StopReason::EndOfTurn | StopReason::Other => ["stop", "completed", "end_turn"],
        StopReason::StopSequence => ["stop", "completed", "stop_sequence"],
        StopReason::ToolCalls => ["tool_calls", "completed", "tool_use"],
        StopReason::OutputLimit => ["length", "max_output_tokens", "max_tokens"],
        StopReason::WindowLimit => ["length", "max_output_tokens", "model_context_window_exceeded"],
        StopReason::Refused => ["content_filter", "content_filter", "refusal"],
        StopReason::Paused => ["stop", "completed", "pause_turn"],
        StopReason::Compacted => ["stop", "completed", "compaction"],
        StopReason::Cancelled => ["stop", "cancelled", "end_turn"],
        StopReason::Unstated => return None,
    };
    Some(match wire_format {
        WireFormat::Chat => chat,
        WireFormat::Responses => responses,
        WireFormat::Anthropic => anthropic,
    })
}

/// A text in pieces of at most `chars` characters; none for no text.
pub(crate) fn pieces(text: &str, chars: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(chars.max(1)).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at_checked(end)?;
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
