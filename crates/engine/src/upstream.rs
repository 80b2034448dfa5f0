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

/// A piece of an answer on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPiece {
    /// The head of the answer.
    Begun {
        /// The HTTP status.
        status: u16,
        /// The headers, in their order.
        headers: Vec<(String, String)>,
    },
    /// Bytes as they came, and what is new in them for people.
    Chunk(Chunk),
}

/// Where pieces of an answer go while it is being written. The sender waits until there is room; when the other end
/// is gone, the call is given up.
pub type PieceSender = mpsc::Sender<AnswerPiece>;

/// An answer, whole.
#[derive(Clone, Debug)]
pub struct UpstreamAnswer {
    /// The answer.
    pub answer: Answer,
    /// How long until the model had said something.
    pub first_content: Option<Duration>,
}

/// No answer, or not all of one.
#[derive(Clone, Debug)]
pub struct UpstreamFailure {
    /// The reason there is no answer.
    pub cause: UpstreamFailureCause,
    /// What had been received, as far as it can go back into a history.
    pub received: Option<Answer>,
    /// Whether any of it was passed on.
    pub passed_on: PartialAnswer,
    /// What came instead of an answer, as it came.
    pub refusal: Option<Box<Refusal>>,
}

impl UpstreamFailure {
    /// A call that failed before anything came.
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
    /// It failed.
    Trouble(ProviderError),
    /// The caller no longer wants it.
    Cancelled,
}

/// An answer on its way.
pub type UpstreamFuture<'a> =
    Pin<Box<dyn Future<Output = Result<UpstreamAnswer, Box<UpstreamFailure>>> + Send + 'a>>;

/// A model to call.
pub trait Upstream: Send + Sync {
    /// Sends a call once and waits for the answer; what is done about a failure is the caller's. Pieces go to `pieces` as
    /// they come, if anyone wants them. Dropping the future gives the call up; `cancel` does too, and what was received
    /// until then comes back.
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        pieces: Option<&'a PieceSender>,
        cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a>;

    /// Whether background requests give way to foreground requests here: then what is prepared in the background may
    /// never be finished while the conversation goes on.
    fn cancels_background(&self) -> bool {
        false
    }

    /// What a person can do about a failure. The upstream knows the endpoint and its settings.
    fn advice(&self, _trouble: &ProviderError, _model: &str) -> Option<String> {
        None
    }
}
