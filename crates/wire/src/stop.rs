//! The stop reasons of each wire format.

use throughline_transcript::RawJson;

use crate::answer::{AnswerPart, Stop, StopReason};
use crate::json_value::{member, non_empty_text, text_member};

impl StopReason {
    /// Parses the stop reason of any wire format: the words do not conflict, and servers mix them.
    #[must_use]
    pub fn of_word(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "stop" | "end_turn" | "completed" | "eos" | "eos_token" => Self::EndOfTurn,
            "stop_sequence" => Self::StopSequence,
            "tool_calls" | "tool_use" | "function_call" => Self::ToolCalls,
            "length" | "max_tokens" | "max_output_tokens" | "max_completion_tokens" => Self::OutputLimit,
            "model_context_window_exceeded" => Self::WindowLimit,
            "content_filter" | "refusal" | "safety" => Self::Refused,
            "pause_turn" => Self::Paused,
            "compaction" => Self::Compacted,
            "cancelled" => Self::Cancelled,
            "" => Self::Unstated,
            _ => Self::Other,
        }
    }
}

impl Stop {
    /// Creates the stop from the word of a wire format, if there is one.
    #[must_use]
    pub fn of_word(word: Option<String>) -> Self {
        let word = word.filter(|word| !word.is_empty());
        let reason = word.as_deref().map_or(StopReason::Unstated, StopReason::of_word);
        Self { reason, raw: word, sequence: None }
    }

    /// Creates the stop from the members of an Anthropic message.
    pub(crate) fn of_anthropic(message: RawJson<'_>) -> Self {
        let stop = Self::of_word(text_member(message, "stop_reason"));
        Self { sequence: message.get("stop_sequence").and_then(non_empty_text), ..stop }
    }

    /// Creates the stop from a Responses object: the reason why it is incomplete, or else its status.
    pub(crate) fn of_responses(response: RawJson<'_>) -> Self {
        let why = member(response, "incomplete_details").and_then(|details| text_member(details, "reason"));
        Self::of_word(why.or_else(|| text_member(response, "status")))
    }

    /// A turn that ended with tool calls has the reason tool calls, even if the server reports the end of the turn.
    pub(crate) fn given_parts(mut self, parts: &[AnswerPart]) -> Self {
        let has_calls = parts.iter().any(|part| matches!(part, AnswerPart::ToolCall(_)));
        if has_calls && self.reason == StopReason::EndOfTurn {
            self.reason = StopReason::ToolCalls;
        }
        self
    }
}
