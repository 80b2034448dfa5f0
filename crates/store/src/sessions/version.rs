//! The version of a conversation: it is compared with that of a copy in memory before the copy is used.
//!
//! A conversation changes in two ways only: messages are appended to its newest session, or a new session continues it (a compaction, an
//! undo). So the newest session and the position after its last message identify a state. A restored backup may have other messages at the
//! same positions, so the last message is part of the version as well.

use throughline_transcript::ContentHash;

use crate::ids::{Millis, SessionId};

/// A state of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The newest session of the chain.
    pub tip: SessionId,
    /// The position after its last message.
    pub next_seq: u64,
    /// The last message of that session; `None` if it has no messages of its own.
    pub last: Option<LastMessage>,
}

/// Identifies the last message of a session among others at the same position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastMessage {
    /// Its number in the whole record.
    pub id: u64,
    /// Its time.
    pub at_ms: Millis,
    /// Hash of its bytes.
    pub hash: ContentHash,
}
