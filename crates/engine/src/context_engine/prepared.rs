//! Work that an engine prepared in advance, in the form in which it is recorded: another gateway, or this one after a restart, can adopt
//! it.

use serde::{Deserialize, Serialize};
use throughline_store::SessionId;

/// The work that an engine prepared for the next compaction of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreparedState {
    /// The engine that prepared it; no other engine can read it.
    pub engine: String,
    /// The session it was prepared for. It is useless after a compaction, which starts another session.
    pub session: SessionId,
    /// The prepared work, in the engine's own form.
    pub content: serde_json::Value,
}
