//! What a result without a mark of error means, by the wire format and the tool.
//!
//! A mark that is absent says nothing by itself: Chat Completions and Responses have no place for one, and an agent may
//! set it only when a tool could not run at all, not when a command ended with another status than zero. It says
//! something where both the wire format has a mark and the tool's contract is to set it for every failure.

use throughline_transcript::Role;

/// What a result without a mark of error means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbsentMark {
    /// Nothing: the command may have failed.
    #[default]
    SaysNothing,
    /// Status zero.
    IsSuccess,
}

/// Tools for commands that mark every result of a status other than zero, by the names their agents give them. `Bash` is
/// Claude Code's: a failure is marked and begins with `Exit code N`.
const MARKS_FAILURES: &[&str] = &["Bash"];

impl AbsentMark {
    /// The meaning for a result of `tool` in a message of `role`. Results stand in a user's message in Anthropic
    /// Messages alone, the one wire format that has a mark.
    #[must_use]
    pub fn of(tool: &str, role: Role) -> Self {
        if role == Role::User && MARKS_FAILURES.contains(&tool) { Self::IsSuccess } else { Self::SaysNothing }
    }
}
