//! The new content of a stream while it runs.

/// New content of an answer that is still being written. Tool calls are numbered in the order in which they started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// The answer started.
    Started {
        /// The provider's id of it.
        id: Option<String>,
        /// The model that answers.
        model: Option<String>,
    },
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// More text of a refusal.
    Refusal(String),
    /// A tool call started.
    ToolCallStart {
        /// Its number.
        call: usize,
        /// The id its result has to name.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a tool call's arguments.
    ToolCallArguments {
        /// Its number.
        call: usize,
        /// The next characters.
        fragment: String,
    },
    /// A tool call is complete.
    ToolCallEnd {
        /// Its number.
        call: usize,
    },
}
