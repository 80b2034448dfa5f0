//! The events in the life of a conversation that an engine receives. A compaction is a boundary, not an end.

use serde::{Deserialize, Serialize};
use throughline_store::{EndReason, SessionId};
use throughline_transcript::WireFormat;

/// The start of a conversation, or its continuation after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStart {
    /// The session.
    pub session: SessionId,
    /// The first session of its chain, whose id identifies the conversation permanently.
    pub conversation: SessionId,
    /// The wire format of its messages.
    #[serde(rename = "dialect")]
    pub wire_format: WireFormat,
    /// The program it belongs to: `chat`, `gateway`, ...
    pub program: String,
    /// Number of compactions so far.
    pub compactions: u64,
}

/// The end of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnd {
    /// The session that ended.
    pub session: SessionId,
    /// Why the session ended.
    pub reason: EndReason,
}

/// Why a conversation continues in another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundaryReason {
    /// A compaction made a new view.
    Compression,
    /// A compaction was undone.
    Undo,
    /// An undone compaction was redone.
    Redo,
    /// Another process changed the conversation.
    Elsewhere,
}

/// The continuation of a conversation in another session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boundary {
    /// Why a new session began.
    pub reason: BoundaryReason,
    /// The previous session.
    pub old: SessionId,
    /// The new session.
    pub new: SessionId,
}
