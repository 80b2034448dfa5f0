//! What is answered: an answer, an error or any bytes, at which pace, and where it breaks.

use std::time::Duration;

use bytes::Bytes;
use throughline_wire::{AnswerDraft, ErrorBody, StreamShape};

use super::gate::Gate;

/// What is answered to one request.
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
    /// An answer under the name of the model that was asked, its usage by the cache if there is one.
    Answer(AnswerDraft),
    /// An answer exactly as it is drafted.
    Exact(AnswerDraft),
    /// An error in the form of the wire.
    Error(u16, ErrorBody),
    /// These bytes.
    Raw { status: u16, kind: String, body: Bytes },
}

/// Whether an answer comes in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As the request asks.
    #[default]
    AsAsked,
    /// As a stream of events, whatever was asked.
    Streamed,
    /// In one piece, whatever was asked.
    Whole,
}

/// How bytes are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Each event in a piece of its own, a whole body in two, without waiting.
    #[default]
    Pieces,
    /// So many bytes at a time, with a pause between them: events are cut anywhere.
    Drip {
        /// Bytes a piece; at least one.
        bytes: usize,
        /// Between two pieces.
        pause: Duration,
    },
}

/// What breaks a reply.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing more comes until the other side hangs up.
    Stall,
    /// The connection ends without the end of the body.
    Cut,
    /// The connection is reset.
    Reset,
    /// These bytes come in between.
    Garbage(Vec<u8>),
    /// An error comes in the middle of a stream, in the form of the wire.
    ErrorEvent(ErrorBody),
    /// It waits until the test opens the gate.
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

    /// An answer under the name of the model that was asked. Its usage is by the cache where there is one, unless the
    /// draft reports none.
    #[must_use]
    pub fn answer(draft: AnswerDraft) -> Self {
        Self::of(Content::Answer(draft))
    }

    /// An answer exactly as it is drafted: model, id and usage.
    #[must_use]
    pub fn exactly(draft: AnswerDraft) -> Self {
        Self::of(Content::Exact(draft))
    }

    /// An error in the form of the wire.
    #[must_use]
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let error =
            ErrorBody { message: message.to_owned(), kind: Some(kind.to_owned()), ..ErrorBody::default() };
        Self::error_body(status, error)
    }

    /// An error with every field a wire has.
    #[must_use]
    pub fn error_body(status: u16, error: ErrorBody) -> Self {
        Self::of(Content::Error(status, error))
    }

    /// Any bytes with any status.
    #[must_use]
    pub fn raw(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        Self::of(Content::Raw { status, kind: kind.to_owned(), body: body.into() })
    }

    /// JSON with any status, unchecked.
    #[must_use]
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self::raw(status, "application/json", body)
    }

    /// A page for people, as proxies send it.
    #[must_use]
    pub fn html(status: u16, words: &str) -> Self {
        let page = format!(
            "<!DOCTYPE html><html><head><title>{words}</title></head><body><h1>{words}</h1></body></html>"
        );
        Self::raw(status, "text/html; charset=utf-8", page)
    }

    /// A body that is none.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self::raw(status, "application/json", Bytes::new())
    }

    /// Not a byte, not even a status, until the other side hangs up.
    #[must_use]
    pub fn stall() -> Self {
        Self::empty(200).failing_after(0, Fault::Stall)
    }

    /// A connection that is reset instead of an answer.
    #[must_use]
    pub fn reset() -> Self {
        Self::empty(200).failing_after(0, Fault::Reset)
    }

    /// A connection that ends instead of an answer.
    #[must_use]
    pub fn cut() -> Self {
        Self::empty(200).failing_after(0, Fault::Cut)
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// In pieces or not, whatever was asked.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Cut into events like this.
    #[must_use]
    pub fn shape(mut self, shape: StreamShape) -> Self {
        self.shape = shape;
        self
    }

    /// At this pace.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Breaks after so many pieces (events of a stream; a whole body comes in two). After no pieces means before the status;
    /// several faults happen in their order.
    #[must_use]
    pub fn failing_after(mut self, pieces: usize, fault: Fault) -> Self {
        self.faults.push((pieces, fault));
        self.faults.sort_by_key(|(pieces, _)| *pieces);
        self
    }
}
