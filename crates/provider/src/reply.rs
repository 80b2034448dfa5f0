//! An answer as it arrives: pieces with their raw bytes and new content, and at the end the whole answer.
//!
//! Raw bytes accompany the parsed content, so that a proxy can pass them on unchanged. Not for: retries.

use std::collections::VecDeque;

use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use throughline_wire::{Answer, Delta, Interrupted, ResponseError, Shape};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::{
    CallEnd, CallError, CallTimings, Chunk, FailedAttempt, HoldBack, OutgoingCall, Refusal, TimeLimits,
};
use crate::failure::{Failure, TransportFault};
use crate::held::HoldBudget;
use crate::provider_error::{ProviderError, ProviderErrorKind};
use crate::reader::{Ending, ReadStep, ReplyReader, WholeBody};
use crate::sent_secrets::SentSecrets;
use crate::sizes::RequestLimits;
use crate::slots::ServerSlot;

/// An answer that is being received.
#[derive(Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    held: VecDeque<Chunk>,
    reader: Option<ReplyReader>,
    ending: Option<Ending>,
    attempts: Vec<FailedAttempt>,
    timings: CallTimings,
    /// Held until the answer ends. Last field, so that the connection is closed before the slot is released.
    slot: Option<ServerSlot>,
}

/// Why there is no answer, and the part that was received.
#[derive(Debug)]
pub(crate) struct BrokenCall {
    pub(crate) end: CallEnd,
    pub(crate) partial: Option<Box<Interrupted>>,
    pub(crate) refusal: Option<Box<Refusal>>,
}

impl BrokenCall {
    pub(crate) fn new(end: CallEnd) -> Self {
        Self { end, partial: None, refusal: None }
    }

    pub(crate) fn failed(trouble: ProviderError) -> Box<Self> {
        Box::new(Self::new(CallEnd::Failed(Box::new(trouble))))
    }

    pub(crate) fn cancelled() -> Box<Self> {
        Box::new(Self::new(CallEnd::Cancelled))
    }

    pub(crate) fn transport(fault: TransportFault) -> Box<Self> {
        Self::failed(ProviderError::classify(Failure::Transport(fault), RequestLimits::default()))
    }
}

/// The state when the head of an answer arrives.
pub(crate) struct Opening<'a> {
    pub(crate) call: &'a OutgoingCall,
    pub(crate) secrets: SentSecrets,
    pub(crate) cancel: CancellationToken,
    pub(crate) hold: HoldBudget,
    pub(crate) limits: TimeLimits,
    pub(crate) began: Instant,
    pub(crate) first_byte_deadline: Instant,
}

impl Opening<'_> {
    /// Reads the withheld beginning of an answer: a stream up to its first content, anything else to its end.
    pub(crate) async fn read(mut self, response: Response) -> Result<Reply, Box<BrokenCall>> {
        let head = self.began.elapsed();
        let status = response.status().as_u16();
        let headers = listed(response.headers());
        let is_stream = is_event_stream(response.headers());
        let mut reader = ReplyReader::new(response, &mut self);
        let mut reply = Reply {
            status,
            headers,
            held: VecDeque::new(),
            reader: None,
            ending: None,
            attempts: Vec::new(),
            timings: CallTimings { head, ..CallTimings::default() },
            slot: None,
        };
        if !(200..300).contains(&status) {
            return Err(reader.read_error(status, &reply.headers).await);
        }
        if is_stream {
            reply.open_stream(reader, self.call.hold_back).await?;
        } else {
            reply.read_whole(reader).await?;
        }
        Ok(reply)
    }
}

impl Reply {
    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The headers, in their order.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Attempts that failed before this one.
    #[must_use]
    pub fn attempts(&self) -> &[FailedAttempt] {
        &self.attempts
    }

    /// Returns the durations so far.
    #[must_use]
    pub fn timings(&self) -> CallTimings {
        self.timings
    }

    /// Keeps the server's slot until the answer is over.
    pub(crate) fn hold(&mut self, slot: ServerSlot) {
        self.slot = self.reader.is_some().then_some(slot);
    }

    pub(crate) fn set_attempts(&mut self, attempts: Vec<FailedAttempt>) {
        self.attempts = attempts;
    }

    /// Returns the next piece; `None` at the end of the answer or after a failure. May be dropped and called again without loss.
    pub async fn next(&mut self) -> Option<Chunk> {
        match self.held.pop_front() {
            Some(chunk) => Some(chunk),
            None => self.read_on().await,
        }
    }

    async fn read_on(&mut self) -> Option<Chunk> {
        let reader = self.reader.as_mut()?;
        let step = reader.next().await;
        let elapsed = reader.elapsed();
        let chunk = match step {
            ReadStep::Chunk(chunk) => Some(chunk),
            ReadStep::Over { last, ending } => {
                self.timings.whole = elapsed;
                self.reader = None;
                self.slot = None;
                self.ending = Some(ending);
                last
            }
        };
        if chunk.as_ref().is_some_and(Chunk::has_content) {
            self.timings.first_content.get_or_insert(elapsed);
        }
        chunk
    }

    /// Reads the rest and returns the whole answer.
    pub async fn finish(mut self) -> Result<(Answer, CallTimings), CallError> {
        while self.next().await.is_some() {}
        let attempts = std::mem::take(&mut self.attempts);
        match self.ending.take() {
            Some(Ok(answer)) => Ok((*answer, self.timings)),
            Some(Err(broken)) => {
                let BrokenCall { end, partial, refusal } = *broken;
                Err(CallError { end, partial, refusal, attempts })
            }
            None => Err(CallError { end: CallEnd::Cancelled, partial: None, refusal: None, attempts }),
        }
    }

    /// Reads a stream up to the first event that may be passed on. A failure before it can be retried.
    async fn open_stream(&mut self, reader: ReplyReader, hold_back: HoldBack) -> Result<(), Box<BrokenCall>> {
        self.reader = Some(reader);
        while let Some(chunk) = self.read_on().await {
            let may_go = match hold_back {
                HoldBack::UntilBytes => true,
                HoldBack::UntilContent => chunk.has_content(),
            };
            self.held.push_back(chunk);
            if may_go {
                break;
            }
        }
        match self.ending.take() {
            Some(Err(broken)) => Err(broken),
            ending => {
                self.ending = ending;
                Ok(())
            }
        }
    }

    /// Reads an answer that is not a stream, even if a stream was requested.
    async fn read_whole(&mut self, mut reader: ReplyReader) -> Result<(), Box<BrokenCall>> {
        let body = match reader.read_whole().await? {
            WholeBody::All(body) => body,
            WholeBody::NotHeld { beginning } => {
                self.held.push_back(Chunk { raw: beginning, deltas: Vec::new() });
                self.reader = Some(reader);
                return Ok(());
            }
        };
        let answer = match Answer::decode(reader.wire_format(), &body) {
            Ok(answer) => Box::new(answer),
            Err(ResponseError::NotAnAnswer { found: Shape::EventStream, .. }) => {
                reader.decode_stream(&body)?
            }
            Err(ResponseError::Empty) => {
                return Err(reader.broken(ProviderError::of(ProviderErrorKind::Interrupted)));
            }
            Err(_) => return Err(reader.refused(self.status, &self.headers, body)),
        };
        let text = answer.text();
        let deltas = if text.is_empty() { Vec::new() } else { vec![Delta::Text(text)] };
        let elapsed = reader.elapsed();
        self.timings.first_content = Some(elapsed);
        self.timings.whole = elapsed;
        self.held.push_back(Chunk { raw: body, deltas });
        self.ending = Some(Ok(answer));
        Ok(())
    }
}

pub(crate) fn listed(headers: &HeaderMap) -> Vec<(String, String)> {
    let readable = headers.iter().filter_map(|(name, value)| Some((name, value.to_str().ok()?)));
    readable.map(|(name, value)| (name.as_str().to_owned(), value.to_owned())).collect()
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}
