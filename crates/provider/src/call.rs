//! A call on its way out, what limits it, and how it can fail.

use std::time::Duration;

use bytes::Bytes;
use throughline_transcript::WireFormat;
use throughline_wire::{Delta, Interrupted, Request, Streaming};

use crate::endpoint::Endpoint;
use crate::provider_error::ProviderError;
use crate::send_state::{Priority, SendState};
use crate::sizes::RequestLimits;

/// How long each part of a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// Time to connect. It is set once, when a client is built.
    pub connect: Duration,
    /// Until the first byte of a stream; models read long prompts before they say anything.
    pub first_byte: Duration,
    /// Between two pieces of a stream. Signs of life count.
    pub silence: Duration,
    /// For the whole answer, streamed or not.
    pub whole: Duration,
}

impl TimeLimits {
    /// For providers on the network.
    pub const REMOTE: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(300),
        silence: Duration::from_secs(180),
        whole: Duration::from_secs(3_600),
    };

    /// For models on this machine or near it, which read prompts slowly and may have to be loaded first.
    pub const LOCAL: Self = Self {
        connect: Duration::from_secs(3),
        first_byte: Duration::from_secs(1_800),
        silence: Duration::from_secs(600),
        whole: Duration::from_secs(7_200),
    };
}

impl TimeLimits {
    /// The limits that suit an endpoint.
    #[must_use]
    pub fn of(endpoint: &Endpoint) -> Self {
        if endpoint.base.is_local() { Self::LOCAL } else { Self::REMOTE }
    }
}

/// Limits on retries. A call is retried only while no part of its answer has been passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// Times it is sent at most, the first one included.
    pub attempts: u32,
    /// Times it is sent at most when the provider took too long: each time may be billed.
    pub attempts_after_timeout: u32,
    /// The first wait; every further one is twice as long.
    pub first_wait: Duration,
    /// The longest wait. When a provider asks for more, the call is not retried.
    pub longest_wait: Duration,
}

impl RetryLimits {
    /// For calls that a person waits for.
    pub const USUAL: Self = Self {
        attempts: 4,
        attempts_after_timeout: 2,
        first_wait: Duration::from_millis(500),
        longest_wait: Duration::from_secs(30),
    };

    /// For questions on the side.
    pub const ONCE: Self = Self { attempts: 1, attempts_after_timeout: 1, ..Self::USUAL };
}

/// How long the beginning of a stream is withheld. During that time a failure can be retried without the caller
/// noticing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldBack {
    /// Until the model has produced content.
    UntilContent,
    /// Until the first byte: for clients that expect signs of life at once.
    UntilBytes,
}

/// A request as it will be sent.
#[derive(Clone, Debug)]
pub struct OutgoingCall {
    /// The wire it is of.
    pub wire_format: WireFormat,
    /// Its body. Trying again costs no copy.
    pub body: Bytes,
    /// Whether the call requests a stream.
    pub streaming: Streaming,
    /// Figures of the request, which help to classify an error.
    pub request_limits: RequestLimits,
    /// Headers of its own, sent after the endpoint's and in this order.
    pub headers: Vec<(String, String)>,
    /// The query string of the address.
    pub query: Option<String>,
    /// How long the beginning of the answer is withheld.
    pub hold_back: HoldBack,
    /// Whether anyone waits for the call, for servers that work on few requests at once.
    pub priority: Priority,
    /// Whether it was sent yet.
    pub send_state: SendState,
}

impl OutgoingCall {
    /// A call with nothing special about it.
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
    /// A request that is sent with this body to a model whose window is believed to be that large.
    #[must_use]
    pub fn of(request: &Request, body: impl Into<Bytes>, window_tokens: Option<u64>) -> Self {
        let request_limits = RequestLimits { output_cap_tokens: request.output_cap_tokens(), window_tokens };
        Self { request_limits, ..Self::new(request.wire_format(), request.streaming(), body) }
    }
}

/// The error response of a provider, byte for byte: a proxy passes it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The headers, in their order.
    pub headers: Vec<(String, String)>,
    /// The body, as much of it as was read.
    pub body: Bytes,
}

/// An attempt that failed and was followed by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The error that ended the attempt.
    pub trouble: ProviderError,
    /// How long was waited before the next.
    pub waited: Duration,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallEnd {
    /// It failed.
    #[error(transparent)]
    Failed(Box<ProviderError>),
    /// It was called off.
    #[error("the call was cancelled")]
    Cancelled,
}

/// A call without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{end}")]
pub struct CallError {
    /// The reason there is no answer.
    pub end: CallEnd,
    /// What had been received of the answer.
    pub partial: Option<Box<Interrupted>>,
    /// The error response, if there was one.
    pub refusal: Option<Box<Refusal>>,
    /// Attempts before the last.
    pub attempts: Vec<FailedAttempt>,
}

impl CallError {
    /// The trouble, unless it was called off.
    #[must_use]
    pub fn trouble(&self) -> Option<&ProviderError> {
        match &self.end {
            CallEnd::Failed(trouble) => Some(trouble),
            CallEnd::Cancelled => None,
        }
    }
}

/// How long things took.
#[cfg(feature = "client")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTimings {
    /// Until the head of the answer was there.
    pub head: Duration,
    /// Until the model had produced content.
    pub first_content: Option<Duration>,
    /// Until it was over.
    pub whole: Duration,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes as they came.
    pub raw: Bytes,
    /// The parsed content of these bytes.
    pub deltas: Vec<Delta>,
}

#[cfg(feature = "client")]
impl Chunk {
    /// Whether it has content, and not only the frame of a message.
    pub(crate) fn has_content(&self) -> bool {
        self.deltas.iter().any(|delta| !matches!(delta, Delta::Started { .. }))
    }
}
