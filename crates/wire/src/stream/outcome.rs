//! The results of reading a stream: more to come, an error, an interrupted answer.
//!
//! Shared by the readers of all wire formats and by [`AnswerStream`](crate::AnswerStream).

use throughline_transcript::WireFormat;

use crate::answer::{Answer, AnswerPart};
use crate::error_body::ErrorBody;
use crate::shape::Shape;
use crate::sse_reader::SseError;

/// Whether more events are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The answer is not complete.
    More,
    /// The stream stated that the answer is complete.
    Done,
}

/// Why a stream cannot be read further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The provider reports an error.
    #[error("the provider reported an error: {0}")]
    Upstream(Box<ErrorBody>),
    /// An event is not JSON.
    #[error("event {number} of the stream is not valid JSON: {excerpt}")]
    Malformed {
        /// The number of the event, from one.
        number: usize,
        /// Its beginning.
        excerpt: String,
    },
    /// Events of another wire format, or no events.
    #[error("expected events of the {expected} wire, got {found}")]
    NotAnEvent {
        /// The expected wire format.
        expected: WireFormat,
        /// The content that was received.
        found: Shape,
    },
    /// The stream exceeds the limit.
    #[error("the stream is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// The framing is invalid.
    #[error(transparent)]
    Framing(#[from] SseError),
}

/// Why an answer was interrupted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interruption {
    /// Nothing was received.
    #[error("the stream ended before anything was received")]
    Empty,
    /// The stream ended before it stated that the answer is complete.
    #[error("the stream ended before the answer was complete")]
    EndedEarly,
    /// The stream could not be read further.
    #[error(transparent)]
    Failed(#[from] StreamError),
}

/// An interrupted answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct Interrupted {
    /// The received part that can go back into a history: complete parts, and incomplete text.
    pub received: Answer,
    /// The received parts that cannot: reasoning without its proof, incomplete tool calls.
    pub unfinished: Vec<AnswerPart>,
    /// The cause.
    pub cause: Interruption,
}

/// The result of an assembler.
pub(crate) struct Assembled {
    pub(crate) answer: Answer,
    pub(crate) unfinished: Vec<AnswerPart>,
    pub(crate) is_complete: bool,
}
