//! The version of a conversation: a copy in memory is compared with it before it is used.
//!
//! A conversation changes in two ways only: messages are appended to its newest session, or a new session continues it
//! (a compaction, an undo). So the newest session and the position after its last message identify a state. A restored
//! backup may have other messages at the same positions, so the last message is part of the version as well.

use throughline_transcript::ContentHash;

use crate::ids::{Millis, SessionId};

/// A state of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The newest session of the chain.
    pub tip: SessionId,
    /// The place after its last message.
    pub next_seq: u64,
    /// The last message of that session; `None` where it has no messages of its own.
    pub last: Option<LastMessage>,
}

/// What tells the last message of a session from another one at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastMessage {
    /// Its number over the whole record.
    pub id: u64,
    /// When it was said.
    pub at_ms: Millis,
    /// Hash of its bytes.
    pub hash: ContentHash,
}
