//! The parts and options that a session is opened with.

use std::sync::Arc;

use throughline_store::{IdLength, Owner, Store, StoredRendition};
use throughline_transcript::Message;

use crate::context_engine::ContextEngine;
use crate::decide::trigger::Automatic;
use crate::event::EventSink;
use crate::host::Host;
use crate::limits::target::ModelTarget;
use crate::prompt::tool_output::ToolOutputPolicy;

/// What a session stands on.
#[derive(Clone)]
pub struct SessionSetup {
    /// The record.
    pub store: Arc<dyn Store>,
    /// Whose conversations.
    pub owner: Owner,
    /// What manages the context of this conversation.
    pub engine: Arc<dyn ContextEngine>,
    /// Time, chance and liveness.
    pub host: Arc<dyn Host>,
    /// Who is told what happens.
    pub events: Arc<dyn EventSink>,
    /// The model.
    pub target: ModelTarget,
    /// Models to be asked when it cannot answer, in this order.
    pub alternatives: Vec<ModelTarget>,
    /// Choices.
    pub policy: CallPolicy,
    /// What is done about long tool results; their limits are the target's.
    pub tool_output: ToolOutputPolicy,
}

/// Choices for every call.
#[derive(Clone, Copy, Debug)]
pub struct CallPolicy {
    /// Whether compaction happens on its own (`compression.enabled`).
    pub automatic: Automatic,
    /// What happens when the record cannot be written.
    pub record: RecordPolicy,
    /// When the conversation is locked against other processes.
    pub lock: LockPolicy,
    /// How new sessions are named.
    pub ids: IdLength,
    /// What is sent along of the compacted part with what a person says (`recall.automatic`).
    pub recall: Option<AutomaticRecall>,
}

/// What may be sent along of the compacted part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutomaticRecall {
    /// Tokens of all passages together.
    pub tokens: u64,
}

/// What happens when the record cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPolicy {
    /// What cannot be recorded is not asked. An answer that cannot be is kept all the same, and nothing further is asked
    /// before it is written.
    Require,
    /// The call is made and people are told; what could not be written is kept and written when that is possible again.
    GoOn,
}

/// When a conversation is locked against other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockPolicy {
    /// As long as the session is open.
    WholeSession,
    /// While a compaction is made.
    Compactions,
}

/// Who knows what the conversation consists of, where another process writes to it too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// The record: whatever others said belongs to the conversation, and what is new goes behind it.
    #[default]
    Record,
    /// The client, which sends all of it with each request: what others said meanwhile is not part of its conversation. A
    /// call during which somebody else wrote goes on as a branch.
    Client {
        /// The key under which such a branch is found again, before it is numbered.
        branch_key: Option<String>,
    },
}

/// What a look at the record came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Nobody else wrote to the conversation.
    Current,
    /// Somebody did, and the session was loaded again.
    Reloaded,
}

/// A message that is new to the conversation.
#[derive(Clone, Debug)]
pub struct IncomingMessage {
    /// The message.
    pub message: Message,
    /// What the model is shown in its place, when the caller knows; long tool results are seen to otherwise.
    pub rendition: Option<StoredRendition>,
}

impl From<Message> for IncomingMessage {
    fn from(message: Message) -> Self {
        Self { message, rendition: None }
    }
}
