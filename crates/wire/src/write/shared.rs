//! Parts shared by the writers of all wire formats: usage, stop reasons, splitting of texts.

use throughline_tokens::Usage;
use throughline_transcript::WireFormat;

use crate::answer::StopReason;
use crate::draft::ReportedUsage;
use crate::json_object::ObjectWriter;

impl ReportedUsage {
    /// Returns this report in a wire format.
    #[must_use]
    pub fn to_json(&self, wire_format: WireFormat) -> String {
        let usage = self.usage;
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
            WireFormat::Anthropic => anthropic_usage(self),
        }
    }
}

/// Returns the word of a wire format for a stop reason, or for the most similar one; `None` if it omits the field.
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

/// Splits a text into pieces of at most `chars` characters; none for an empty text.
pub(crate) fn pieces(text: &str, chars: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(chars.max(1)).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at_checked(end)?;
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns the report for Anthropic, with the lifetimes of cache writes.
pub(crate) fn anthropic_usage(reported: &ReportedUsage) -> String {
    let Usage { input, output, cache_read, cache_write, reasoning } = reported.usage;
    let long = reported.cache_write_1h.min(cache_write);
    let by_lifetime = ObjectWriter::new()
        .number("ephemeral_5m_input_tokens", cache_write - long)
        .number("ephemeral_1h_input_tokens", long);
    let thinking = (reasoning > 0).then(|| ObjectWriter::new().number("thinking_tokens", reasoning).finish());
    ObjectWriter::new()
        .number("input_tokens", input)
        .number("cache_creation_input_tokens", cache_write)
        .number("cache_read_input_tokens", cache_read)
        .raw("cache_creation", &by_lifetime.finish())
        .number("output_tokens", output)
        .maybe("output_tokens_details", thinking.as_deref())
        .finish()
}
