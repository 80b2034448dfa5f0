//! Which means of saving money are in use, one switch each.

/// Means of saving money (`economy`). None of them is needed for a conversation to fit its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Economy {
    /// When and how deeply to compact is decided by what it costs and saves.
    pub compaction: bool,
    /// A conversation whose cached prompt has expired is compacted before its next call.
    pub cold_cache: bool,
    /// Tool results are shortened before they are first sent.
    pub tool_results: bool,
}

impl Economy {
    /// Compaction by the window alone.
    pub const OFF: Self = Self { compaction: false, cold_cache: false, tool_results: false };
    /// The content of the client's requests stays as it is.
    pub const BALANCED: Self = Self { compaction: true, cold_cache: true, tool_results: false };
    /// Everything.
    pub const THRIFT: Self = Self { tool_results: true, ..Self::BALANCED };

    /// Whether none of them is in use.
    #[must_use]
    pub fn is_off(self) -> bool {
        self == Self::OFF
    }
}
