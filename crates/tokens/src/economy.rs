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
    /// Tool definitions that are not needed leave the prompt.
    pub tools: ToolDeferral,
}

/// Whether tool definitions leave the prompt, and how they come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolDeferral {
    /// They stay.
    #[default]
    Off,
    /// Into the list of tools, in front of everything: all of the prompt is written anew.
    ByList,
    /// Where a result refers to them: what is in front of that stays as it was.
    ByReference,
}

impl Economy {
    /// Compaction by the window alone.
    pub const OFF: Self =
        Self { compaction: false, cold_cache: false, tool_results: false, tools: ToolDeferral::Off };
    /// The content of the client's requests stays as it is.
    pub const BALANCED: Self = Self { compaction: true, cold_cache: true, ..Self::OFF };
    /// Everything.
    pub const THRIFT: Self = Self { tool_results: true, tools: ToolDeferral::ByList, ..Self::BALANCED };

    /// Whether none of them is in use.
    #[must_use]
    pub fn is_off(self) -> bool {
        self == Self::OFF
    }
}
