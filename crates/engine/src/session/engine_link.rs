//! The connection of a session to its context engine.

use crate::dedup_notice::NoticeFilter;

/// Whether the engine is up to date, and which of its failures were reported.
#[derive(Default)]
pub(super) struct EngineLink {
    /// Whether the engine knows its model and its session. If not, the next call tells it again.
    pub(super) is_informed: bool,
    /// Failures that were reported since the engine last did its work.
    pub(super) notices: NoticeFilter,
}
