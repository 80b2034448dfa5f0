//! The events in the life of a conversation that an engine receives. A compaction is a boundary, not an end.

use serde::{Deserialize, Serialize};
use throughline_store::{EndReason, SessionId};
use throughline_transcript::WireFormat;

/// A conversation begins, or goes on after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStart {
    /// The session.
    pub session: SessionId,
    /// The first session of its chain, which names the conversation for good.
    pub conversation: SessionId,
    /// The wire of its messages.
    #[serde(rename = "dialect")]
    pub wire_format: WireFormat,
    /// The program it belongs to: `chat`, `gateway`, ...
    pub program: String,
    /// Compactions it has been through.
    pub compactions: u64,
}

/// A conversation is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnd {
    /// The session that ended.
    pub session: SessionId,
    /// Why the session ended.
    pub reason: EndReason,
}

/// Why a conversation goes on in another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundaryReason {
    /// A compaction made a new view.
    Compression,
    /// A compaction was undone.
    Undo,
    /// An undone compaction was taken up again.
    Redo,
    /// Another process moved the conversation on.
    Elsewhere,
}

/// The same conversation goes on in another session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boundary {
    /// Why a new session began.
    pub reason: BoundaryReason,
    /// The session that was.
    pub old: SessionId,
    /// The session that is.
    pub new: SessionId,
}
