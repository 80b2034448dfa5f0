//! The interface to the model: a provider's client, or a script in tests.

pub(crate) mod translating;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use throughline_provider::{Chunk, OutgoingCall, ProviderError, Refusal};
use throughline_wire::Answer;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::decide::recovery::PartialAnswer;

/// A piece of an answer that is being received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPiece {
    /// The head of the answer.
    Begun {
        /// The HTTP status.
        status: u16,
        /// The headers, in the order received.
        headers: Vec<(String, String)>,
    },
    /// Raw bytes, and the new text in them.
    Chunk(Chunk),
}

/// Where the pieces of an answer go as they arrive. The sender waits while the channel is full; the call is cancelled once the receiver is
/// dropped.
pub type PieceSender = mpsc::Sender<AnswerPiece>;

/// A complete answer.
#[derive(Clone, Debug)]
pub struct UpstreamAnswer {
    /// The answer.
    pub answer: Answer,
    /// Time until the first content.
    pub first_content: Option<Duration>,
}

/// A call without an answer, or with an incomplete one.
#[derive(Clone, Debug)]
pub struct UpstreamFailure {
    /// The reason there is no answer.
    pub cause: UpstreamFailureCause,
    /// The part of the answer received, as far as it can be added to a history.
    pub received: Option<Answer>,
    /// Whether any part of the answer was passed on to the caller.
    pub passed_on: PartialAnswer,
    /// The response that the provider sent instead of an answer, unchanged.
    pub refusal: Option<Box<Refusal>>,
}

impl UpstreamFailure {
    /// A call that failed before anything was received.
    #[must_use]
    pub fn trouble(trouble: ProviderError) -> Self {
        Self {
            cause: UpstreamFailureCause::Trouble(trouble),
            received: None,
            passed_on: PartialAnswer::Nothing,
            refusal: None,
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamFailureCause {
    /// The provider or the connection failed.
    Trouble(ProviderError),
    /// The caller cancelled the call.
    Cancelled,
}

/// The future of an answer.
pub type UpstreamFuture<'a> =
    Pin<Box<dyn Future<Output = Result<UpstreamAnswer, Box<UpstreamFailure>>> + Send + 'a>>;

/// A model to call.
pub trait Upstream: Send + Sync {
    /// Sends a call once and waits for the answer; recovery from failures is up to the caller. Pieces are sent to `pieces` as they arrive,
    /// if given. Dropping the future cancels the call; `cancel` does too, and then returns what was received.
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        pieces: Option<&'a PieceSender>,
        cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a>;

    /// Whether foreground requests cancel background requests here. If so, background preparation may never finish while the conversation
    /// continues.
    fn cancels_background(&self) -> bool {
        false
    }

    /// Returns advice for the user about a failure. The upstream knows the endpoint and its settings.
    fn advice(&self, _trouble: &ProviderError, _model: &str) -> Option<String> {
        None
    }
}
