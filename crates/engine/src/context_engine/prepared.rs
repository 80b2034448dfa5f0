//! What an engine prepared in advance, in a form that the record keeps: another gateway, or this one after a restart, takes it over.

use serde::{Deserialize, Serialize};
use throughline_store::SessionId;

/// What an engine prepared for the next compaction of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreparedState {
    /// The engine that prepared it; no other can read it.
    pub engine: String,
    /// The session it was prepared for. A compaction begins another one, for which it is of no use.
    pub session: SessionId,
    /// What was prepared, in the engine's own form.
    pub content: serde_json::Value,
}
