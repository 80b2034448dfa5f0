//! A call to be made, and its outcome.

use throughline_provider::{CacheOutcome, PlacedMarks};
use throughline_store::{SessionId, UsageKind};
use throughline_tokens::{Cost, Usage};
use throughline_wire::Answer;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::setup::IncomingMessage;
use crate::context_engine::status::Pressure;
use crate::decide::recovery::{RecoveryAction, WaitPolicy};
use crate::prompt::envelope::Envelope;
use crate::prompt::request_extras::RequestExtras;
use crate::upstream::PieceSender;

/// A call to be made.
#[derive(Debug)]
pub struct CallInput {
    /// System prompt, tools and parameters.
    pub envelope: Envelope,
    /// Another envelope to use once a compaction has rewritten the prefix, if it differs.
    pub after_compaction: Option<Envelope>,
    /// The new messages of the conversation.
    pub messages: Vec<IncomingMessage>,
    /// Receives the answer piece by piece while it arrives.
    pub pieces: Option<PieceSender>,
    /// The purpose of the call: `chat`, `title`, ...
    pub task: String,
    /// Headers, query and streaming options of the request.
    pub extras: RequestExtras,
    /// Whether the session or its caller waits when a provider is busy.
    pub waiting: WaitPolicy,
    /// When the new messages are written to the record.
    pub recorded: RecordTiming,
    /// From which call on cache markers are added.
    pub marking: CacheMarking,
    /// Cancels the call. The part of the answer received until then is recorded.
    pub cancel: CancellationToken,
    /// Notified as soon as a whole answer is recorded and booked, so that it can be found by its id. Also notified if the
    /// answer could not be written, after an event about that.
    pub on_recorded: Option<oneshot::Sender<()>>,
}

/// From which call on cache markers are added to the prompts of a conversation whose client places none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMarking {
    /// From the first call on: the conversation is expected to continue.
    #[default]
    Always,
    /// From the second call on: it is unknown whether the conversation continues.
    FromSecondCall,
}

/// When the new messages are written to the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordTiming {
    /// Before the request is sent: whatever happens then, the messages are recorded.
    #[default]
    First,
    /// While the provider works on the answer, for callers who keep their messages until they are answered. Before the call
    /// returns, the messages are written, or an event says that they could not be.
    Meanwhile,
}

impl CallInput {
    /// A call with default options, whose answer is returned whole.
    #[must_use]
    pub fn new(envelope: Envelope, messages: Vec<IncomingMessage>) -> Self {
        Self {
            envelope,
            after_compaction: None,
            messages,
            pieces: None,
            task: "chat".to_owned(),
            extras: RequestExtras::default(),
            waiting: WaitPolicy::default(),
            recorded: RecordTiming::default(),
            marking: CacheMarking::default(),
            cancel: CancellationToken::new(),
            on_recorded: None,
        }
    }
}

/// An answer with its usage and cost.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    /// The answer. It is in the record already.
    pub answer: Answer,
    /// The session it was written to.
    pub session: SessionId,
    /// The model that was called.
    pub model: String,
    /// Its usage.
    pub usage: Usage,
    /// Whether the usage was measured or estimated.
    pub usage_kind: UsageKind,
    /// Its cost.
    pub cost: Cost,
    /// How much of the prompt the provider's cache had.
    pub cache: CacheOutcome,
    /// The positions of the cache markers in the prompt.
    pub marks: PlacedMarks,
    /// How full the conversation is now.
    pub pressure: Pressure,
    /// The duration of the call.
    pub latency_ms: u64,
    /// The recovery steps that were taken, in order.
    pub tried: Vec<RecoveryAction>,
}
