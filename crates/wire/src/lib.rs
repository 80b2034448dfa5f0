//! What travels between an agent and a model: requests, answers and streams of events on three wires.
//!
//! Not for: sockets, HTTP, retries, prices, or what a conversation should look like.

mod answer;
mod chat_calls;
mod delta;
mod draft;
mod error_body;
mod json_object;
mod json_tree;
mod json_value;
mod parts;
mod request;
mod request_build;
mod request_decode;
mod request_error;
mod request_list;
mod request_members;
mod response;
mod shape;
mod sse_reader;
mod sse_writer;
mod stop;
mod stream;
mod stream_anthropic;
mod stream_chat;
mod stream_responses;
mod write;
mod write_anthropic;
mod write_chat;
mod write_responses;

pub use answer::{Answer, AnswerPart, Seal, Stop, StopReason, ToolCall};
pub use delta::Delta;
pub use draft::{AnswerDraft, ReportedUsage, StreamShape, StreamUsage};
pub use error_body::ErrorBody;
pub use request::{CapMember, Request, Streaming};
pub use request_build::{RequestParts, System};
pub use request_error::RequestError;
pub use response::{ResponseError, decode_response};
pub use shape::Shape;
pub use sse_reader::{DEFAULT_MAX_EVENT_BYTES, SseError, SseFrame, SseFrames, SseReader};
pub use sse_writer::{DONE, WireEvent, write_comment, write_event};
pub use stream::{
    AnswerStream, DEFAULT_MAX_STREAM_BYTES, Flow, Interrupted, Interruption, StreamDecoder, StreamError,
};
pub use write::{write_error, write_error_event, write_response, write_stream, write_usage};
