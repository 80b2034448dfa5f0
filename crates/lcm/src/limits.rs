//! Every limit of the engine and its tools.

/// Limits, in tokens where nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LcmLimits {
    /// Messages a leaf covers have about so many tokens.
    pub chunk_tokens: u64,
    /// So many nodes are condensed into one.
    pub fan_in: usize,
    /// Room for all nodes of a view together; `None` for as much as a summary of the compressor may have.
    pub nodes_tokens: Option<u64>,
    /// Share of that room for nodes of earlier compactions, in per cent; the rest is for what is compacted now.
    pub older_percent: u64,
    /// Share of that room that a condensed node may have, in per cent.
    pub condensed_percent: u64,
    /// Limits of the tools.
    pub recall: RecallLimits,
}

/// Limits of the tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallLimits {
    /// What one expansion shows at most.
    pub expand_tokens: u64,
    /// Hits one search shows at most.
    pub grep_hits: usize,
    /// What a question is answered from at most.
    pub query_tokens: u64,
    /// What the answer to a question may have.
    pub answer_tokens: u64,
}

impl Default for RecallLimits {
    fn default() -> Self {
        Self { expand_tokens: 8_000, grep_hits: 20, query_tokens: 24_000, answer_tokens: 1_500 }
    }
}

impl Default for LcmLimits {
    fn default() -> Self {
        Self {
            chunk_tokens: 20_000,
            fan_in: 4,
            nodes_tokens: None,
            older_percent: 40,
            condensed_percent: 10,
            recall: RecallLimits::default(),
        }
    }
}
