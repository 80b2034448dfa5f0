//! Events for the user while an agent works. None of them goes to the model.

use throughline_engine::{EngineEvent, Pressure};
use throughline_provider::CacheOutcome;
use throughline_tokens::{Cost, Usage};
use throughline_wire::StopReason;

/// Something happened.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// A request was sent; the answer has not begun.
    Asked {
        /// The model.
        model: String,
    },
    /// More text of the answer.
    Text(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// The model began to write a call of this tool.
    CallBegun {
        /// The tool.
        tool: String,
    },
    /// The model has answered, wholly.
    Answered(Box<AnswerReport>),
    /// A tool runs.
    ToolStarted {
        /// The tool.
        tool: String,
        /// The call in one line.
        title: String,
    },
    /// A tool is done.
    ToolFinished(Box<ToolDone>),
    /// The user's message is too large for the window, and its middle is set aside before it is sent.
    WordsSetAside(WordsSetAside),
    /// Something about the context.
    Engine(EngineEvent),
}

/// The sizes of a message that is too large for the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordsSetAside {
    /// Their characters.
    pub chars: u64,
    /// About how many tokens they are.
    pub tokens: u64,
    /// Characters that the model is shown.
    pub shown_chars: u64,
    /// The window.
    pub window_tokens: u64,
}

/// An answer in figures.
#[derive(Clone, Debug)]
pub struct AnswerReport {
    /// The model.
    pub model: String,
    /// The tokens the call used.
    pub usage: Usage,
    /// The cost.
    pub cost: Cost,
    /// How it fared with the provider's cache.
    pub cache: CacheOutcome,
    /// How full the conversation is.
    pub pressure: Pressure,
    /// How long it took.
    pub took_ms: u64,
    /// Why it stopped.
    pub stop: StopReason,
}

/// A tool call that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDone {
    /// The tool.
    pub tool: String,
    /// The call in one line.
    pub title: String,
    /// How long it took.
    pub took_ms: u64,
    /// How it ended.
    pub end: ToolEnd,
    /// Details for the user: a difference, or the beginning of the output.
    pub shown: Option<String>,
}

/// How a tool call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolEnd {
    /// The tool ran.
    Done,
    /// Done, and it did not end well, like this: `exit code 3`. The model sees that for itself.
    EndedBadly(String),
    /// It failed. The model receives the error.
    Failed(String),
    /// The user denied it, or there was no user to ask.
    Denied,
    /// The person stopped it.
    Stopped,
}

/// Receives events, to show them.
pub trait AgentEvents: Send + Sync {
    /// Receives an event. Must not block.
    fn tell(&self, event: AgentEvent);
}

impl<F: Fn(AgentEvent) + Send + Sync> AgentEvents for F {
    fn tell(&self, event: AgentEvent) {
        self(event);
    }
}
