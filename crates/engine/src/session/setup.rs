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

/// The parts of a session.
#[derive(Clone)]
pub struct SessionSetup {
    /// The record.
    pub store: Arc<dyn Store>,
    /// The owner of its conversations.
    pub owner: Owner,
    /// The context engine of this conversation.
    pub engine: Arc<dyn ContextEngine>,
    /// Time, random numbers and process liveness.
    pub host: Arc<dyn Host>,
    /// The receiver of events.
    pub events: Arc<dyn EventSink>,
    /// The model.
    pub target: ModelTarget,
    /// Models to call when it cannot answer, in this order.
    pub alternatives: Vec<ModelTarget>,
    /// Options for every call.
    pub policy: CallPolicy,
    /// How long tool results are shortened. The limits are those of the target.
    pub tool_output: ToolOutputPolicy,
}

/// Options for every call.
#[derive(Clone, Copy, Debug)]
pub struct CallPolicy {
    /// Whether compaction is automatic (`compression.enabled`).
    pub automatic: Automatic,
    /// What to do when the record cannot be written.
    pub record: RecordPolicy,
    /// When the conversation is locked against other processes.
    pub lock: LockPolicy,
    /// The form of new session ids.
    pub ids: IdLength,
    /// The passages of compacted messages that are sent along with a human message (`recall.automatic`).
    pub recall: Option<AutomaticRecall>,
}

/// The limits of automatic recall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutomaticRecall {
    /// Tokens of all passages together.
    pub tokens: u64,
}

/// What to do when the record cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPolicy {
    /// A request that cannot be recorded is not sent. An answer that cannot be recorded stays in memory, and no further
    /// request is sent before it is written.
    Require,
    /// The call is made with a warning event. Unwritten messages stay in memory and are written when that is possible again.
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

/// Which side owns the history when another process writes to the same conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// The record: messages by others belong to the conversation, and new ones are added after them.
    #[default]
    Record,
    /// The client, which sends the whole history with each request: messages by others are not part of its conversation. A
    /// call during which another process wrote continues as a branch.
    Client {
        /// The key under which such a branch is found again, before it is numbered.
        branch_key: Option<String>,
    },
}

/// The result of comparing a session with the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// No other process wrote to the conversation.
    Current,
    /// Another process did, and the session was reloaded.
    Reloaded,
}

/// A message that is new to the conversation.
#[derive(Clone, Debug)]
pub struct IncomingMessage {
    /// The message.
    pub message: Message,
    /// The form shown to the model instead, if the caller decides that. Long tool results are shortened separately.
    pub rendition: Option<StoredRendition>,
}

impl From<Message> for IncomingMessage {
    fn from(message: Message) -> Self {
        Self { message, rendition: None }
    }
}
