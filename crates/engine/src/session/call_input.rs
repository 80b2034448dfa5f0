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
    /// The same to be sent once a compaction has written the prefix anew, where that differs.
    pub after_compaction: Option<Envelope>,
    /// What is new in the conversation.
    pub messages: Vec<IncomingMessage>,
    /// Where the answer goes while it is being written, if anyone wants it.
    pub pieces: Option<PieceSender>,
    /// What the call is for: `chat`, `title`, ...
    pub task: String,
    /// What goes along with the request without being part of it.
    pub extras: RequestExtras,
    /// Who waits when a provider is busy.
    pub waiting: WaitPolicy,
    /// When what is new is written to the record.
    pub recorded: RecordTiming,
    /// From when on cache marks are added.
    pub marking: CacheMarking,
    /// Calls the call off; what was received until then is kept.
    pub cancel: CancellationToken,
    /// Told as soon as a whole answer is in the record and booked, so that it is found by its id, and before anything is
    /// learnt from it; also when it could not be written, after people were told so.
    pub on_recorded: Option<oneshot::Sender<()>>,
}

/// From when on cache marks are added to the prompts of a conversation whose client places none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMarking {
    /// From the first call on: the conversation will go on.
    #[default]
    Always,
    /// From the second call on: nobody knows whether the conversation goes on.
    FromSecondCall,
}

/// When what is new is written to the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordTiming {
    /// Before anyone is asked: whatever happens then, it was said.
    #[default]
    First,
    /// While the provider works on it, for callers who keep what they say until it is answered. It has been written, or
    /// people were told that it could not be, before the call is over.
    Meanwhile,
}

impl CallInput {
    /// A call with nothing special about it, whose answer is wanted whole.
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

/// An answer and what it took.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    /// The answer. It is in the record already.
    pub answer: Answer,
    /// The session it was written to.
    pub session: SessionId,
    /// The model that was asked.
    pub model: String,
    /// What it used.
    pub usage: Usage,
    /// Whether that was measured.
    pub usage_kind: UsageKind,
    /// What it cost.
    pub cost: Cost,
    /// How it fared with the provider's cache.
    pub cache: CacheOutcome,
    /// Where the prompt was marked for it.
    pub marks: PlacedMarks,
    /// How full the conversation is now.
    pub pressure: Pressure,
    /// How long it took.
    pub latency_ms: u64,
    /// What had to be done to get it through, in order.
    pub tried: Vec<RecoveryAction>,
}
