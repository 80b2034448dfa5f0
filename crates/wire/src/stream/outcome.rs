//! What reading a stream can end in: more to come, an error, an answer that was cut short.
//!
//! Shared by the readers of all wire formats and by `AnswerStream`.

use throughline_transcript::WireFormat;

use crate::answer::{Answer, AnswerPart};
use crate::error_body::ErrorBody;
use crate::shape::Shape;
use crate::sse_reader::SseError;

/// Whether more is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The answer is not complete.
    More,
    /// The stream stated that the answer is complete.
    Done,
}

/// Why a stream cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The provider reports an error.
    #[error("the provider reported an error: {0}")]
    Upstream(Box<ErrorBody>),
    /// An event that is no JSON.
    #[error("event {number} of the stream is not valid JSON: {excerpt}")]
    Malformed {
        /// The number of the event, from one.
        number: usize,
        /// How it begins.
        excerpt: String,
    },
    /// Events of another wire, or none at all.
    #[error("expected events of the {expected} wire, got {found}")]
    NotAnEvent {
        /// The wire.
        expected: WireFormat,
        /// The content that was received.
        found: Shape,
    },
    /// More than anyone should have to keep.
    #[error("the stream is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// The framing cannot be read.
    #[error(transparent)]
    Framing(#[from] SseError),
}

/// What cut an answer short.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interruption {
    /// Nothing came at all.
    #[error("the stream ended before anything was received")]
    Empty,
    /// The stream ended before it stated that the answer is complete.
    #[error("the stream ended before the answer was complete")]
    EndedEarly,
    /// It could not be read on.
    #[error(transparent)]
    Failed(#[from] StreamError),
}

/// An answer that was cut short.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct Interrupted {
    /// The received part that can go back into a history: whole parts, and incomplete text.
    pub received: Answer,
    /// What was received and cannot: reasoning without its seal, tool calls without their end.
    pub unfinished: Vec<AnswerPart>,
    /// What cut it short.
    pub cause: Interruption,
}

/// The result of an assembler.
pub(crate) struct Assembled {
    pub(crate) answer: Answer,
    pub(crate) unfinished: Vec<AnswerPart>,
    pub(crate) is_complete: bool,
}
