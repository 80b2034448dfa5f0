//! A simple description of an answer, from which the writers produce each wire format.

use throughline_tokens::Usage;

use crate::answer::{AnswerPart, StopReason};

/// The usage that a written answer reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportedUsage {
    /// The buckets.
    pub usage: Usage,
    /// The part of the cache writes with a lifetime of one hour.
    pub cache_write_1h: u64,
}

/// An answer to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerDraft {
    /// The id of the answer.
    pub id: String,
    /// The model named in the response.
    pub model: String,
    /// Creation time in seconds since 1970.
    pub created_secs: u64,
    /// The content, in order. A wire format that has no place for a part omits it: see each writer.
    pub parts: Vec<AnswerPart>,
    /// Why it stopped.
    pub stop: StopReason,
    /// Its usage. `None` omits the report.
    pub usage: Option<ReportedUsage>,
}

impl AnswerDraft {
    /// Returns an answer of plain text that ended by itself.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::of_parts(vec![AnswerPart::Text(text.into())])
    }

    /// Returns an answer of these parts. Its stop reason is tool calls if it has any.
    #[must_use]
    pub fn of_parts(parts: Vec<AnswerPart>) -> Self {
        let has_calls = parts.iter().any(|part| matches!(part, AnswerPart::ToolCall(_)));
        Self {
            id: "answer_1".into(),
            model: "test-model".into(),
            created_secs: 1_700_000_000,
            parts,
            stop: if has_calls { StopReason::ToolCalls } else { StopReason::EndOfTurn },
            usage: Some(ReportedUsage::default()),
        }
    }

    /// Returns the answer with this usage.
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        Self { usage: Some(ReportedUsage { usage, cache_write_1h: 0 }), ..self }
    }
}

/// How an answer is split into the events of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamShape {
    /// Characters of text, reasoning or arguments in one event; at least one.
    pub chunk_chars: usize,
    /// Whether a chat stream ends with a chunk of usage, as `stream_options.include_usage` asks.
    pub usage: StreamUsage,
}

/// Whether a chat stream reports usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamUsage {
    /// In a chunk of its own at the end.
    #[default]
    Included,
    /// Not at all.
    Omitted,
}

impl Default for StreamShape {
    fn default() -> Self {
        Self { chunk_chars: 24, usage: StreamUsage::Included }
    }
}
