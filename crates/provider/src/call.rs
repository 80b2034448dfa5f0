//! An outgoing call, its limits, and its failures.

use std::time::Duration;

use bytes::Bytes;
use throughline_transcript::WireFormat;
use throughline_wire::{Delta, Interrupted, Request, Streaming};

use crate::endpoint::Endpoint;
use crate::provider_error::ProviderError;
use crate::send_state::{Priority, SendState};
use crate::sizes::RequestLimits;

/// The time limits of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// For connecting. It is set once, when a client is built.
    pub connect: Duration,
    /// For the first byte of a stream; models read long prompts before they answer.
    pub first_byte: Duration,
    /// Between two pieces of a stream. Keep-alive messages count.
    pub silence: Duration,
    /// For the whole answer, streamed or not.
    pub whole: Duration,
}

impl TimeLimits {
    /// The limits for providers on the network.
    pub const REMOTE: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(300),
        silence: Duration::from_secs(180),
        whole: Duration::from_secs(3_600),
    };

    /// The limits for models on this machine or near it, which read prompts slowly and may have to be loaded first.
    pub const LOCAL: Self = Self {
        connect: Duration::from_secs(3),
        first_byte: Duration::from_secs(1_800),
        silence: Duration::from_secs(600),
        whole: Duration::from_secs(7_200),
    };
}

impl TimeLimits {
    /// Returns the limits for an endpoint.
    #[must_use]
    pub fn of(endpoint: &Endpoint) -> Self {
        if endpoint.base.is_local() { Self::LOCAL } else { Self::REMOTE }
    }
}

/// Limits on retries. A call is retried only while no part of its answer has been passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// The maximum number of attempts, including the first.
    pub attempts: u32,
    /// The maximum number of attempts after timeouts, because each may be billed.
    pub attempts_after_timeout: u32,
    /// The first wait; each further one is twice as long.
    pub first_wait: Duration,
    /// The longest wait. If a provider requests a longer one, the call is not retried.
    pub longest_wait: Duration,
}

impl RetryLimits {
    /// The limits for calls that a person waits for.
    pub const USUAL: Self = Self {
        attempts: 4,
        attempts_after_timeout: 2,
        first_wait: Duration::from_millis(500),
        longest_wait: Duration::from_secs(30),
    };

    /// The limits for auxiliary queries.
    pub const ONCE: Self = Self { attempts: 1, attempts_after_timeout: 1, ..Self::USUAL };
}

/// How long the beginning of a stream is withheld. During that time a failure can be retried without the caller
/// noticing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldBack {
    /// Until the model has produced content.
    UntilContent,
    /// Until the first byte: for clients that expect a sign of life immediately.
    UntilBytes,
}

/// A request to send.
#[derive(Clone, Debug)]
pub struct OutgoingCall {
    /// The wire format of the body.
    pub wire_format: WireFormat,
    /// The body. Retrying needs no copy.
    pub body: Bytes,
    /// Whether the call requests a stream.
    pub streaming: Streaming,
    /// The request's limits, which help to classify an error.
    pub request_limits: RequestLimits,
    /// Headers of its own, sent after the endpoint's and in this order.
    pub headers: Vec<(String, String)>,
    /// The query string of the address.
    pub query: Option<String>,
    /// How long the beginning of the answer is withheld.
    pub hold_back: HoldBack,
    /// The priority of the call, for servers that process few requests at once.
    pub priority: Priority,
    /// Whether it has been sent.
    pub send_state: SendState,
}

impl OutgoingCall {
    /// Creates a call with default options.
    #[must_use]
    pub fn new(wire_format: WireFormat, streaming: Streaming, body: impl Into<Bytes>) -> Self {
        Self {
            wire_format,
            body: body.into(),
            streaming,
            request_limits: RequestLimits::default(),
            headers: Vec::new(),
            query: None,
            hold_back: HoldBack::UntilContent,
            priority: Priority::Foreground,
            send_state: SendState::default(),
        }
    }
}

impl OutgoingCall {
    /// Creates a call of a request with this body, to a model with this assumed window.
    #[must_use]
    pub fn of(request: &Request, body: impl Into<Bytes>, window_tokens: Option<u64>) -> Self {
        let request_limits = RequestLimits { output_cap_tokens: request.output_cap_tokens(), window_tokens };
        Self { request_limits, ..Self::new(request.wire_format(), request.streaming(), body) }
    }
}

/// A provider's error response, byte for byte: a proxy passes it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The headers, in the order received.
    pub headers: Vec<(String, String)>,
    /// The body, as far as it was read.
    pub body: Bytes,
}

/// A failed attempt that was followed by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The error that ended the attempt.
    pub trouble: ProviderError,
    /// How long the call waited before the next attempt.
    pub waited: Duration,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallEnd {
    /// The call failed.
    #[error(transparent)]
    Failed(Box<ProviderError>),
    /// The call was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
}

/// A call without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{end}")]
pub struct CallError {
    /// The reason there is no answer.
    pub end: CallEnd,
    /// The part of the answer received.
    pub partial: Option<Box<Interrupted>>,
    /// The error response, if there was one.
    pub refusal: Option<Box<Refusal>>,
    /// Attempts before the last.
    pub attempts: Vec<FailedAttempt>,
}

impl CallError {
    /// Returns the error, unless the call was cancelled.
    #[must_use]
    pub fn trouble(&self) -> Option<&ProviderError> {
        match &self.end {
            CallEnd::Failed(trouble) => Some(trouble),
            CallEnd::Cancelled => None,
        }
    }
}

/// The durations of a call.
#[cfg(feature = "client")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTimings {
    /// Until the head of the answer arrived.
    pub head: Duration,
    /// Until the model had produced content.
    pub first_content: Option<Duration>,
    /// Until its end.
    pub whole: Duration,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes, unchanged.
    pub raw: Bytes,
    /// The parsed content of these bytes.
    pub deltas: Vec<Delta>,
}

#[cfg(feature = "client")]
impl Chunk {
    /// Whether it has content, not only the frame of a message.
    pub(crate) fn has_content(&self) -> bool {
        self.deltas.iter().any(|delta| !matches!(delta, Delta::Started { .. }))
    }
}
