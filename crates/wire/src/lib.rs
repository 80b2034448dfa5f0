//! What travels between an agent and a model: requests, answers and streams of events on three wires.
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
mod write;

pub use answer::{Answer, AnswerPart, Seal, Stop, StopReason, ToolCall};
pub use delta::Delta;
pub use draft::{AnswerDraft, ReportedUsage, StreamShape, StreamUsage};
pub use error_body::ErrorBody;
pub use request::{CapMember, Request, RequestError, RequestParts, Streaming, System};
pub use response::{ResponseError, decode_response};
pub use shape::Shape;
pub use sse_reader::{DEFAULT_MAX_EVENT_BYTES, SseError, SseFrame, SseFrames, SseReader};
pub use sse_writer::{DONE, WireEvent, write_comment, write_event};
pub use stream::{
    AnswerStream, DEFAULT_MAX_STREAM_BYTES, Flow, Interrupted, Interruption, StreamDecoder, StreamError,
};
pub use write::{write_error, write_error_event, write_response, write_stream, write_usage};
