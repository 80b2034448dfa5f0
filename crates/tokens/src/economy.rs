//! The switches of the means of saving money.

/// Means of saving money (`economy`). None of them is needed for a conversation to fit its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Economy {
    /// Costs and savings decide when to compact, and how far.
    pub compaction: bool,
    /// A conversation whose cached prompt has expired is compacted before its next call.
    pub cold_cache: bool,
    /// Tool results are shortened before they are first sent.
    pub tool_results: bool,
    /// Tool definitions that are not needed are left out of the prompt.
    pub tools: ToolDeferral,
}

/// Whether tool definitions are left out of the prompt, and how they are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolDeferral {
    /// They are never left out.
    #[default]
    Off,
    /// They are added to the list of tools, which precedes everything: the whole prompt is rewritten.
    ByList,
    /// They are loaded where a result refers to them: the prompt before that is unchanged.
    ByReference,
}

impl Economy {
    /// Compaction by the window alone.
    pub const OFF: Self =
        Self { compaction: false, cold_cache: false, tool_results: false, tools: ToolDeferral::Off };
    /// The means that leave the content of the client's requests unchanged.
    pub const BALANCED: Self = Self { compaction: true, cold_cache: true, ..Self::OFF };
    /// All means.
    pub const THRIFT: Self = Self { tool_results: true, tools: ToolDeferral::ByList, ..Self::BALANCED };

    /// Whether all of them are off.
    #[must_use]
    pub fn is_off(self) -> bool {
        self == Self::OFF
    }
}
