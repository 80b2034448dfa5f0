//! What a result that states no failure means, by the tool.
//!
//! A mark that is absent says nothing by itself: Chat Completions and Responses have no place for one, and an agent may
//! set it only when a tool could not run at all, not when a command ended with another status than zero. It says
//! something where the tool states every failure, in a mark or in the text of the result.

/// What a result without a mark of error means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbsentMark {
    /// Nothing: the command may have failed.
    #[default]
    SaysNothing,
    /// Status zero.
    IsSuccess,
}

/// Tools for commands that state every status other than zero, by the names their agents give them. `Bash` is Claude Code's: a
/// failure is marked, and its text begins with `Exit code N`, which a translation to a wire format without marks keeps.
const STATES_FAILURES: &[&str] = &["Bash"];

impl AbsentMark {
    /// Returns the meaning for a result of `tool`.
    #[must_use]
    pub fn of(tool: &str) -> Self {
        if STATES_FAILURES.contains(&tool) { Self::IsSuccess } else { Self::SaysNothing }
    }
}
