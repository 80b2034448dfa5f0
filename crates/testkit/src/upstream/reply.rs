//! Replies: an answer, an error or any bytes, with their pace and faults.

use std::time::Duration;

use bytes::Bytes;
use throughline_wire::{AnswerDraft, ErrorBody, StreamShape};

use super::gate::Gate;

/// The reply to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) content: Content,
    pub(super) headers: Vec<(String, String)>,
    pub(super) form: Form,
    pub(super) shape: StreamShape,
    pub(super) pace: Pace,
    pub(super) faults: Vec<(usize, Fault)>,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    /// An answer with the requested model; its usage follows from the cache, if there is one.
    Answer(AnswerDraft),
    /// An answer exactly as drafted.
    Exact(AnswerDraft),
    /// An error in the form of the wire format.
    Error(u16, ErrorBody),
    /// These bytes.
    Raw { status: u16, kind: String, body: Bytes },
}

/// Whether an answer is streamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As requested.
    #[default]
    AsAsked,
    /// Streamed, whatever was requested.
    Streamed,
    /// Whole, whatever was requested.
    Whole,
}

/// How bytes are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Each event as a separate piece, a whole body as two, without pauses.
    #[default]
    Pieces,
    /// A number of bytes at a time, with a pause in between, which splits events anywhere.
    Drip {
        /// Bytes per piece, at least one.
        bytes: usize,
        /// The pause between two pieces.
        pause: Duration,
    },
}

/// A fault of a reply.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing more is sent until the client disconnects.
    Stall,
    /// The connection ends before the end of the body.
    Cut,
    /// The connection is reset.
    Reset,
    /// These bytes are inserted.
    Garbage(Vec<u8>),
    /// An error event is inserted into a stream, in the form of the wire format.
    ErrorEvent(ErrorBody),
    /// The reply waits until the test opens the gate.
    Wait(Gate),
}

impl Reply {
    fn of(content: Content) -> Self {
        Self {
            content,
            headers: Vec::new(),
            form: Form::AsAsked,
            shape: StreamShape::default(),
            pace: Pace::Pieces,
            faults: Vec::new(),
        }
    }

    /// An answer of plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::answer(AnswerDraft::text(text))
    }

    /// An answer with the requested model. Its usage follows from the cache, if there is one, unless the draft reports none.
    #[must_use]
    pub fn answer(draft: AnswerDraft) -> Self {
        Self::of(Content::Answer(draft))
    }

    /// An answer exactly as drafted, with its model, id and usage.
    #[must_use]
    pub fn exactly(draft: AnswerDraft) -> Self {
        Self::of(Content::Exact(draft))
    }

    /// An error in the form of the wire format.
    #[must_use]
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let error =
            ErrorBody { message: message.to_owned(), kind: Some(kind.to_owned()), ..ErrorBody::default() };
        Self::error_body(status, error)
    }

    /// An error with all fields of the wire format.
    #[must_use]
    pub fn error_body(status: u16, error: ErrorBody) -> Self {
        Self::of(Content::Error(status, error))
    }

    /// Any bytes with any status.
    #[must_use]
    pub fn raw(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        Self::of(Content::Raw { status, kind: kind.to_owned(), body: body.into() })
    }

    /// JSON with any status, not validated.
    #[must_use]
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self::raw(status, "application/json", body)
    }

    /// An HTML page, as proxies send it.
    #[must_use]
    pub fn html(status: u16, words: &str) -> Self {
        let page = format!(
            "<!DOCTYPE html><html><head><title>{words}</title></head><body><h1>{words}</h1></body></html>"
        );
        Self::raw(status, "text/html; charset=utf-8", page)
    }

    /// An empty body.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self::raw(status, "application/json", Bytes::new())
    }

    /// Sends nothing, not even a status, until the client disconnects.
    #[must_use]
    pub fn stall() -> Self {
        Self::empty(200).failing_after(0, Fault::Stall)
    }

    /// Resets the connection instead of answering.
    #[must_use]
    pub fn reset() -> Self {
        Self::empty(200).failing_after(0, Fault::Reset)
    }

    /// Closes the connection instead of answering.
    #[must_use]
    pub fn cut() -> Self {
        Self::empty(200).failing_after(0, Fault::Cut)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets whether the answer is streamed.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Sets how the answer is split into events.
    #[must_use]
    pub fn shape(mut self, shape: StreamShape) -> Self {
        self.shape = shape;
        self
    }

    /// Sets the pace.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Adds a fault after a number of pieces (events of a stream; a whole body has two). After 0 pieces means before the status. Several
    /// faults happen in order.
    #[must_use]
    pub fn failing_after(mut self, pieces: usize, fault: Fault) -> Self {
        self.faults.push((pieces, fault));
        self.faults.sort_by_key(|(pieces, _)| *pieces);
        self
    }
}
