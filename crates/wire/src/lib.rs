//! The messages between an agent and a model: requests, answers and streams of events in three wire formats.
//!
//! A [`Request`] is an envelope around messages that can be changed and written back byte for byte. A whole response ([`Answer::decode`])
//! and a stream ([`StreamDecoder`], or [`SseReader`] and [`AnswerStream`] where the bytes are forwarded too) give the same [`Answer`]:
//! messages for the history in their wire format, and the same content in neutral terms. The writers ([`AnswerDraft::to_response`],
//! [`AnswerDraft::to_stream`]) do the inverse from an [`AnswerDraft`].
//!
//! ```
//! use throughline_transcript::WireFormat;
//! use throughline_wire::{AnswerDraft, StreamDecoder, StreamShape, WireEvent};
//!
//! let events = AnswerDraft::text("Hello.").to_stream(WireFormat::Anthropic, &StreamShape::default());
//! let (mut decoder, mut deltas) = (StreamDecoder::new(WireFormat::Anthropic), Vec::new());
//! for chunk in events.iter().map(WireEvent::to_bytes) {
//!     decoder.feed(&chunk, &mut deltas)?;
//! }
//! let answer = decoder.finish(&mut deltas)?;
//! assert_eq!(answer.text(), "Hello.");
//! assert_eq!(answer.messages[0].json(), r#"{"role":"assistant","content":[{"type":"text","text":"Hello."}]}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not for: sockets, HTTP, retries, prices, or what a conversation should look like.

mod answer;
mod delta;
mod draft;
mod error_body;
mod json_object;
mod json_tree;
mod json_value;
mod parts;
mod request;
mod response;
mod shape;
mod sse_reader;
mod sse_writer;
mod stop;
mod stream;
mod translate;
mod write;

pub use answer::{Answer, AnswerPart, Seal, Stop, StopReason, ToolCall};
pub use delta::Delta;
pub use draft::{AnswerDraft, ReportedUsage, StreamShape, StreamUsage};
pub use error_body::ErrorBody;
pub use request::{CapMember, Request, RequestError, RequestParts, Streaming, System};
pub use response::ResponseError;
pub use shape::Shape;
pub use sse_reader::{SseFrame, SseReader};
pub use sse_writer::WireEvent;
pub use stream::{AnswerStream, Flow, Interrupted, Interruption, StreamDecoder, StreamError};
pub use translate::{LiveTranslation, TranslationBack};
