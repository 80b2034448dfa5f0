//! Every limit of the engine and its tools.

/// Limits, in tokens unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LcmLimits {
    /// The approximate tokens of messages that a leaf covers.
    pub chunk_tokens: u64,
    /// Number of nodes that are condensed into one.
    pub fan_in: usize,
    /// Tokens of all nodes of a view together; `None` for the compressor's limit of a summary.
    pub nodes_tokens: Option<u64>,
    /// Percentage of that limit for nodes of earlier compactions; the rest is for newly compacted messages.
    pub older_percent: u64,
    /// Percentage of that limit for a condensed node.
    pub condensed_percent: u64,
    /// Limits of the tools.
    pub recall: RecallLimits,
}

/// Limits of the tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallLimits {
    /// The maximum tokens of one expansion.
    pub expand_tokens: u64,
    /// The maximum hits of one search.
    pub grep_hits: usize,
    /// The maximum tokens of originals from which a question is answered.
    pub query_tokens: u64,
    /// The maximum tokens of the answer to a question.
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
