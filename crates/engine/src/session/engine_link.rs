//! The connection of a session to its context engine.

use crate::dedup_notice::NoticeFilter;

/// The state of the connection: whether the engine is up to date, and which of its failures were reported.
#[derive(Default)]
pub(super) struct EngineLink {
    /// Whether the engine was given its model and session. If not, the next call does it.
    pub(super) is_informed: bool,
    /// Failures reported since the engine last succeeded.
    pub(super) notices: NoticeFilter,
}
