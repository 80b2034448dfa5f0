//! Assembles the events of a stream to the [`Answer`] that a whole response would have given, with deltas on the way.
//!
//! [`AnswerStream`] takes events; [`StreamDecoder`] takes bytes. Missing parts of a stream are never guessed: one that ends early or fails
//! gives an [`Interrupted`] with the part that was received.
//!
//! Not for: time limits, retries, or forwarding bytes.

mod anthropic;
mod chat;
mod chat_calls;
mod outcome;
mod responses;
mod unstreamed;

use throughline_transcript::{RawJson, WireFormat};

use crate::answer::Answer;
use crate::delta::Delta;
use crate::error_body::ErrorBody;
use crate::json_value::is_json;
use crate::shape::Shape;
use crate::sse_reader::{SseFrame, SseReader};
use crate::sse_writer::DONE;
pub use outcome::{Flow, Interrupted, Interruption, StreamError};

use anthropic::AnthropicStream;
use chat::ChatStream;
use outcome::Assembled;
use responses::ResponsesStream;

/// The default limit of the size of all events of a stream. The longest answers of today take some 30 MB as events.
pub(crate) const DEFAULT_MAX_STREAM_BYTES: usize = 256 * 1024 * 1024;

/// Assembles an answer from the events of its stream.
#[derive(Clone, Debug)]
pub struct AnswerStream {
    wire_format: WireFormat,
    wire: FormatReader,
    events: usize,
    bytes: usize,
    max_bytes: usize,
    /// Whether an event of this wire format has arrived.
    is_known: bool,
    has_started: bool,
    failure: Option<StreamError>,
}

#[derive(Clone, Debug)]
enum FormatReader {
    Chat(ChatStream),
    Responses(Box<ResponsesStream>),
    Anthropic(Box<AnthropicStream>),
}

impl AnswerStream {
    /// Creates an assembler at the beginning of a stream.
    #[must_use]
    pub fn new(wire_format: WireFormat) -> Self {
        Self::with_limit(wire_format, DEFAULT_MAX_STREAM_BYTES)
    }

    /// Like [`new`](Self::new), with another limit of the size of all events together.
    #[must_use]
    pub fn with_limit(wire_format: WireFormat, max_bytes: usize) -> Self {
        let wire = match wire_format {
            WireFormat::Chat => FormatReader::Chat(ChatStream::default()),
            WireFormat::Responses => FormatReader::Responses(Box::default()),
            WireFormat::Anthropic => FormatReader::Anthropic(Box::default()),
        };
        Self {
            wire_format,
            wire,
            events: 0,
            bytes: 0,
            max_bytes,
            is_known: false,
            has_started: false,
            failure: None,
        }
    }

    /// Reads a frame of the stream. A frame without an event changes nothing.
    pub fn accept(&mut self, frame: &SseFrame<'_>, deltas: &mut Vec<Delta>) -> Result<Flow, StreamError> {
        match &frame.data {
            Some(data) => self.accept_event(frame.name.as_deref(), data, deltas),
            None => Ok(self.flow()),
        }
    }

    /// Reads an event and appends its new content. After a failure, every further event fails in the same way.
    pub fn accept_event(
        &mut self,
        name: Option<&str>,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<Flow, StreamError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        match self.take(name, data.trim(), deltas) {
            Ok(()) => Ok(self.flow()),
            Err(failure) => {
                self.failure = Some(failure.clone());
                Err(failure)
            }
        }
    }

    fn take(&mut self, name: Option<&str>, data: &str, deltas: &mut Vec<Delta>) -> Result<(), StreamError> {
        self.bytes = self.bytes.saturating_add(data.len());
        if self.bytes > self.max_bytes {
            return Err(StreamError::TooLarge { limit_bytes: self.max_bytes });
        }
        if data == DONE {
            self.events += 1;
            match &mut self.wire {
                FormatReader::Chat(stream) => stream.done(deltas),
                FormatReader::Responses(stream) => stream.done(),
                FormatReader::Anthropic(stream) => stream.done(),
            }
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        self.events += 1;
        if !is_json(data) {
            if name == Some("error") {
                let error = ErrorBody::of_failed_response(data.as_bytes());
                return Err(StreamError::Upstream(Box::new(error)));
            }
            return Err(StreamError::Malformed { number: self.events, excerpt: excerpt(data) });
        }
        self.take_json(name, RawJson(data), deltas)
    }

    fn take_json(
        &mut self,
        name: Option<&str>,
        event: RawJson<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), StreamError> {
        if !self.is_known || !event.0.starts_with('{') {
            self.check_wire(event)?;
        }
        let first_delta = deltas.len();
        let outcome = match &mut self.wire {
            FormatReader::Chat(stream) => stream.take(event, deltas),
            FormatReader::Responses(stream) => stream.take(name, event, deltas),
            FormatReader::Anthropic(stream) => stream.take(name, event, deltas),
        };
        if !self.has_started
            && let Some(started) = self.started()
        {
            self.has_started = true;
            deltas.insert(first_delta, started);
        }
        let outcome = match (outcome, name) {
            // An event named `error` is an error, whatever its content.
            (Ok(()), Some("error")) => Err(ErrorBody::of_failed_response(event.0.as_bytes())),
            (outcome, _) => outcome,
        };
        outcome.map_err(|error| StreamError::Upstream(Box::new(error)))
    }

    /// Refuses events that only another wire format has. After the first event of our own, only values that are not objects are checked: a
    /// server does not change its format within a stream.
    fn check_wire(&mut self, event: RawJson<'_>) -> Result<(), StreamError> {
        // Some servers report an error as a list of one.
        if let Some(error) = event.elements().next().and_then(|first| ErrorBody::in_object(first, event.0)) {
            return Err(StreamError::Upstream(Box::new(error)));
        }
        let found = Shape::of_json(event);
        let is_own = match found {
            Shape::Event(wire_format) => Some(wire_format == self.wire_format),
            // Servers of the chat format are inconsistent about the type of a chunk.
            Shape::Answer(wire_format) => {
                Some(wire_format == self.wire_format && wire_format == WireFormat::Chat)
            }
            Shape::OtherJson(_) => Some(false),
            Shape::OtherObject | Shape::EventStream | Shape::Html => None,
        };
        if is_own == Some(false) {
            return Err(StreamError::NotAnEvent { expected: self.wire_format, found });
        }
        self.is_known |= is_own.is_some();
        Ok(())
    }

    fn started(&self) -> Option<Delta> {
        let (id, model) = match &self.wire {
            FormatReader::Chat(stream) => stream.identity(),
            FormatReader::Responses(stream) => stream.identity(),
            FormatReader::Anthropic(stream) => stream.identity(),
        };
        (id.is_some() || model.is_some()).then_some(Delta::Started { id, model })
    }

    fn flow(&self) -> Flow {
        let is_done = match &self.wire {
            FormatReader::Chat(stream) => stream.is_done(),
            FormatReader::Responses(stream) => stream.is_done(),
            FormatReader::Anthropic(stream) => stream.is_done(),
        };
        if is_done { Flow::Done } else { Flow::More }
    }

    /// Ends the stream and returns the answer, or the part that was received.
    pub fn finish(self) -> Result<Answer, Box<Interrupted>> {
        let assembled = match self.wire {
            FormatReader::Chat(stream) => stream.finish(),
            FormatReader::Responses(stream) => stream.finish(),
            FormatReader::Anthropic(stream) => stream.finish(),
        };
        let cause = match self.failure {
            Some(failure) => Interruption::Failed(failure),
            None if assembled.is_complete => return Ok(assembled.answer),
            None if self.events == 0 => Interruption::Empty,
            None => Interruption::EndedEarly,
        };
        let Assembled { answer, unfinished, .. } = assembled;
        Err(Box::new(Interrupted { received: answer, unfinished, cause }))
    }
}

/// Assembles an answer from the bytes of its stream.
#[derive(Debug)]
pub struct StreamDecoder {
    reader: SseReader,
    answer: AnswerStream,
}

impl StreamDecoder {
    /// Creates a decoder at the beginning of a stream.
    #[must_use]
    pub fn new(wire_format: WireFormat) -> Self {
        Self { reader: SseReader::default(), answer: AnswerStream::new(wire_format) }
    }

    /// Reads the next bytes.
    pub fn feed(&mut self, chunk: &[u8], deltas: &mut Vec<Delta>) -> Result<Flow, StreamError> {
        let mut frames = self.reader.read(chunk);
        loop {
            match frames.next() {
                Ok(Some(frame)) => self.answer.accept(&frame, deltas)?,
                Ok(None) => return Ok(self.answer.flow()),
                Err(error) => return Err(self.answer.fail(error.into())),
            };
        }
    }

    /// Ends the stream. An event without its last blank line is accepted, and so is a body that is the whole answer, from a server that
    /// does not stream.
    pub fn finish(mut self, deltas: &mut Vec<Delta>) -> Result<Answer, Box<Interrupted>> {
        let Some(frame) = self.reader.finish() else { return self.answer.finish() };
        match frame.data.as_deref() {
            Some(data) if data.trim() == DONE || is_json(data) => {
                // A failure is stored and returned below.
                let _ = self.answer.accept(&frame, deltas);
            }
            None if self.answer.is_untouched() => {
                match unstreamed::read(self.answer.wire_format, frame.raw, deltas) {
                    Ok(Some(answer)) => return Ok(answer),
                    Ok(None) => {}
                    Err(failure) => drop(self.answer.fail(failure)),
                }
            }
            _ => {}
        }
        self.answer.finish()
    }
}

impl AnswerStream {
    /// Whether nothing has arrived yet.
    fn is_untouched(&self) -> bool {
        self.events == 0 && self.failure.is_none()
    }

    fn fail(&mut self, failure: StreamError) -> StreamError {
        self.failure.get_or_insert(failure).clone()
    }
}

/// Returns the beginning of an unreadable text.
fn excerpt(data: &str) -> String {
    const MAX_EXCERPT_CHARS: usize = 120;
    let mut excerpt: String = data.chars().take(MAX_EXCERPT_CHARS).collect();
    if excerpt.len() < data.len() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
