//! Reads one answer from its connection, within limits of time and size.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use throughline_transcript::WireFormat;
use throughline_wire::{Answer, Flow, Interrupted, StreamDecoder, StreamError};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::call::{CallEnd, Chunk, Refusal, TimeLimits};
use crate::failure::{Failure, TransportFault};
use crate::held::{HeldBytes, bytes_held_of};
use crate::provider_error::{ProviderError, ProviderErrorKind, WrongWireSign};
use crate::reply::{BrokenCall, Opening};
use crate::sent_secrets::SentSecrets;
use crate::sizes::RequestLimits;
use crate::transport::{Stage, fault_of};

/// The maximum size of an error's body that is read; the reading has a time limit too.
const MOST_ERROR_BYTES: usize = 256 * 1024;
const ERROR_BODY_LIMIT: Duration = Duration::from_secs(20);
/// How long the end of a stream may take once the answer is complete.
const FAREWELL: Duration = Duration::from_secs(5);

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct ReplyReader {
    response: Response,
    decoder: Option<StreamDecoder>,
    wire_format: WireFormat,
    request_limits: RequestLimits,
    secrets: SentSecrets,
    cancel: CancellationToken,
    limits: TimeLimits,
    began: Instant,
    /// The time by which the next piece must arrive.
    deadline: Instant,
    flow: Flow,
    has_events: bool,
    /// The buffered part of the answer; `None` once it exceeded the limit, after which bytes are only passed on.
    held: Option<HeldBytes>,
    /// Why the answer is no longer buffered.
    not_held: Option<ProviderError>,
}

/// A body that was read to its end, or to the buffer limit.
pub(crate) enum WholeBody {
    All(Bytes),
    /// It is too large to buffer: this is its beginning, and the rest follows piece by piece.
    NotHeld {
        beginning: Bytes,
    },
}

/// The result of one step.
pub(crate) enum ReadStep {
    Chunk(Chunk),
    Over { last: Option<Chunk>, ending: Ending },
}

/// The result of reading an answer.
pub(crate) type Ending = Result<Box<Answer>, Box<BrokenCall>>;

/// The result of reading a piece.
enum ReadPiece {
    Bytes(Bytes),
    End,
    Fault(TransportFault),
    Cancelled,
}

impl ReplyReader {
    /// Takes over the secrets of the request, which are not needed elsewhere any more.
    pub(crate) fn new(response: Response, opening: &mut Opening<'_>) -> Self {
        Self {
            response,
            decoder: Some(StreamDecoder::new(opening.call.wire_format)),
            wire_format: opening.call.wire_format,
            request_limits: opening.call.request_limits,
            secrets: std::mem::take(&mut opening.secrets),
            cancel: opening.cancel.clone(),
            limits: opening.limits,
            began: opening.began,
            deadline: opening.first_byte_deadline,
            flow: Flow::More,
            has_events: false,
            held: Some(HeldBytes::new(opening.hold.clone())),
            not_held: None,
        }
    }

    pub(crate) fn wire_format(&self) -> WireFormat {
        self.wire_format
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the next piece of a stream.
    pub(crate) async fn next(&mut self) -> ReadStep {
        let late = if self.has_events { TransportFault::Silence } else { TransportFault::FirstByteTimeout };
        match self.piece(late).await {
            ReadPiece::Bytes(raw) => self.take(raw),
            ReadPiece::End => self.over(None),
            // The answer was complete; how the connection ends does not matter.
            ReadPiece::Fault(_) | ReadPiece::Cancelled if self.flow == Flow::Done => self.over(None),
            ReadPiece::Fault(fault) => {
                let trouble = ProviderError::classify(Failure::Transport(fault), self.request_limits);
                self.over(Some(CallEnd::Failed(Box::new(trouble))))
            }
            ReadPiece::Cancelled => self.over(Some(CallEnd::Cancelled)),
        }
    }

    fn take(&mut self, raw: Bytes) -> ReadStep {
        let mut deltas = Vec::new();
        if self.not_held.is_some() {
            self.deadline = Instant::now() + self.limits.silence;
            return ReadStep::Chunk(Chunk { raw, deltas });
        }
        let Some(decoder) = self.decoder.as_mut() else { return self.over(None) };
        let fed = decoder.feed(&raw, &mut deltas);
        let was_done = self.flow == Flow::Done;
        let is_first = !self.has_events;
        self.has_events = true;
        let chunk = Chunk { raw, deltas };
        if self.held.as_mut().is_some_and(|held| !held.add(bytes_held_of(&chunk))) {
            self.stop_holding();
            return ReadStep::Chunk(chunk);
        }
        match fed {
            Ok(flow) => {
                self.flow = flow;
                self.deadline = match flow {
                    Flow::More => Instant::now() + self.limits.silence,
                    // Only once: later bytes do not extend the deadline.
                    Flow::Done if was_done => self.deadline,
                    Flow::Done => Instant::now() + FAREWELL,
                };
                ReadStep::Chunk(chunk)
            }
            Err(_) if was_done => ReadStep::Chunk(chunk),
            Err(error) => {
                let trouble = self.trouble_of(&error, is_first);
                match self.over(Some(CallEnd::Failed(Box::new(trouble)))) {
                    ReadStep::Over { ending, .. } => ReadStep::Over { last: Some(chunk), ending },
                    step @ ReadStep::Chunk(_) => step,
                }
            }
        }
    }

    /// Ends a stream and returns its result. `end` is the reason if it ends early.
    fn over(&mut self, end: Option<CallEnd>) -> ReadStep {
        let mut deltas = Vec::new();
        if let Some(trouble) = self.not_held.take() {
            let end = end.unwrap_or_else(|| CallEnd::Failed(Box::new(trouble)));
            return ReadStep::Over { last: None, ending: Err(Box::new(BrokenCall::new(end))) };
        }
        let Some(decoder) = self.decoder.take() else {
            let end = end.unwrap_or(CallEnd::Cancelled);
            return ReadStep::Over { last: None, ending: Err(Box::new(BrokenCall::new(end))) };
        };
        let finished = decoder.finish(&mut deltas);
        let last = (!deltas.is_empty()).then(|| Chunk { raw: Bytes::new(), deltas });
        let ending = match (finished, end) {
            (Ok(answer), None) => Ok(Box::new(answer)),
            // The answer is complete, although its end was not received.
            (Ok(answer), Some(CallEnd::Failed(_))) => Ok(Box::new(answer)),
            (Ok(_), Some(CallEnd::Cancelled)) => Err(BrokenCall::cancelled()),
            (Err(interrupted), end) => {
                let trouble = || CallEnd::Failed(Box::new(ProviderError::of(ProviderErrorKind::Interrupted)));
                let end = end.unwrap_or_else(trouble);
                let partial = partial_of(interrupted);
                Err(self.scrubbed(BrokenCall { partial, ..BrokenCall::new(end) }))
            }
        };
        ReadStep::Over { last, ending }
    }

    async fn piece(&mut self, late: TransportFault) -> ReadPiece {
        let deadline = self.deadline.min(self.began + self.limits.whole);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => ReadPiece::Cancelled,
            read = timeout_at(deadline, self.response.chunk()) => match read {
                Err(_) => ReadPiece::Fault(late),
                Ok(Ok(Some(bytes))) => ReadPiece::Bytes(bytes),
                Ok(Ok(None)) => ReadPiece::End,
                Ok(Err(error)) => ReadPiece::Fault(fault_of(&error, Stage::Reading)),
            },
        }
    }

    /// Stops buffering the answer and returns the buffered bytes.
    fn stop_holding(&mut self) {
        self.not_held = self.held.take().map(|held| held.trouble());
        self.decoder = None;
    }

    /// Reads a whole body, up to the buffer limit.
    pub(crate) async fn read_whole(&mut self) -> Result<WholeBody, Box<BrokenCall>> {
        self.deadline = self.began + self.limits.whole;
        let mut body = BytesMut::new();
        loop {
            match self.piece(TransportFault::Silence).await {
                ReadPiece::Bytes(bytes) => {
                    body.extend_from_slice(&bytes);
                    if self.held.as_mut().is_some_and(|held| !held.add(bytes.len())) {
                        self.stop_holding();
                        return Ok(WholeBody::NotHeld { beginning: body.freeze() });
                    }
                }
                ReadPiece::End => return Ok(WholeBody::All(body.freeze())),
                ReadPiece::Fault(fault) => return Err(BrokenCall::transport(fault)),
                ReadPiece::Cancelled => return Err(BrokenCall::cancelled()),
            }
        }
    }

    /// Reads and classifies the body of an error, as far as it can be read.
    pub(crate) async fn read_error(&mut self, status: u16, headers: &[(String, String)]) -> Box<BrokenCall> {
        self.deadline = Instant::now() + ERROR_BODY_LIMIT;
        let mut body = BytesMut::new();
        while body.len() < MOST_ERROR_BYTES {
            match self.piece(TransportFault::Silence).await {
                ReadPiece::Bytes(bytes) => body.extend_from_slice(&bytes),
                ReadPiece::Cancelled => return BrokenCall::cancelled(),
                // The status is still useful if the body breaks off.
                ReadPiece::End | ReadPiece::Fault(_) => break,
            }
        }
        self.refused(status, headers, body.freeze())
    }

    /// Classifies a body that is not an answer.
    pub(crate) fn refused(&self, status: u16, headers: &[(String, String)], body: Bytes) -> Box<BrokenCall> {
        let listed: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let trouble = ProviderError::classify(
            Failure::Answer { status, headers: &listed, body: &body },
            self.request_limits,
        );
        let mut broken = self.broken(trouble);
        let mut refusal = Refusal { status, headers: headers.to_vec(), body };
        self.secrets.scrub_refusal(&mut refusal);
        broken.refusal = Some(Box::new(refusal));
        broken
    }

    pub(crate) fn broken(&self, trouble: ProviderError) -> Box<BrokenCall> {
        self.scrubbed(BrokenCall::new(CallEnd::Failed(Box::new(trouble))))
    }

    /// Masks the keys, which providers repeat in their errors.
    fn scrubbed(&self, mut broken: BrokenCall) -> Box<BrokenCall> {
        if let CallEnd::Failed(trouble) = &mut broken.end {
            self.secrets.scrub_trouble(trouble);
        }
        Box::new(broken)
    }

    /// Decodes a stream that arrived as one body, without being declared as a stream.
    pub(crate) fn decode_stream(&mut self, body: &Bytes) -> Ending {
        match self.take(body.clone()) {
            ReadStep::Over { ending, .. } => ending,
            ReadStep::Chunk(_) => match self.over(None) {
                ReadStep::Over { ending, .. } => ending,
                ReadStep::Chunk(_) => Err(BrokenCall::cancelled()),
            },
        }
    }

    fn trouble_of(&self, error: &StreamError, is_first: bool) -> ProviderError {
        let kind = match error {
            StreamError::Upstream(body) => {
                return ProviderError::classify(Failure::Event { data: &body.raw }, self.request_limits);
            }
            StreamError::NotAnEvent { .. } => {
                ProviderErrorKind::WrongWire { sign: WrongWireSign::OtherShape }
            }
            StreamError::Malformed { .. } if is_first => {
                ProviderErrorKind::WrongWire { sign: WrongWireSign::NotJson }
            }
            StreamError::Malformed { .. } => ProviderErrorKind::Interrupted,
            StreamError::TooLarge { .. } | StreamError::Framing(_) => ProviderErrorKind::Unknown,
        };
        let should_retry = (kind == ProviderErrorKind::Unknown).then_some(false);
        ProviderError { words: error.to_string(), should_retry, ..ProviderError::of(kind) }
    }
}

/// Returns the part that was received, if there is any.
fn partial_of(interrupted: Box<Interrupted>) -> Option<Box<Interrupted>> {
    let is_empty = interrupted.received.parts.is_empty() && interrupted.unfinished.is_empty();
    (!is_empty).then_some(interrupted)
}
