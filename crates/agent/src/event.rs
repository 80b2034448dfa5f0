//! Events for the user while an agent works. None of them goes to the model.

use throughline_engine::{EngineEvent, Pressure};
use throughline_provider::CacheOutcome;
use throughline_tokens::{Cost, Usage};
use throughline_wire::StopReason;

/// An event for the user.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// A request was sent; the answer has not started.
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
    /// The answer is complete.
    Answered(Box<AnswerReport>),
    /// A tool started.
    ToolStarted {
        /// The tool.
        tool: String,
        /// The call in one line.
        title: String,
    },
    /// A tool finished.
    ToolFinished(Box<ToolDone>),
    /// The user's message is too large for the window; its middle is left out of the sent text.
    WordsSetAside(WordsSetAside),
    /// An event about the context.
    Engine(EngineEvent),
}

/// The sizes of a message that is too large for the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordsSetAside {
    /// The characters of the message.
    pub chars: u64,
    /// The estimated tokens of the message.
    pub tokens: u64,
    /// The characters that the model receives.
    pub shown_chars: u64,
    /// The window in tokens.
    pub window_tokens: u64,
}

/// The figures of an answer.
#[derive(Clone, Debug)]
pub struct AnswerReport {
    /// The model.
    pub model: String,
    /// The tokens the call used.
    pub usage: Usage,
    /// The cost.
    pub cost: Cost,
    /// The result with the provider's cache.
    pub cache: CacheOutcome,
    /// The fill of the window.
    pub pressure: Pressure,
    /// The duration in milliseconds.
    pub took_ms: u64,
    /// The stop reason.
    pub stop: StopReason,
}

/// A finished tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDone {
    /// The tool.
    pub tool: String,
    /// The call in one line.
    pub title: String,
    /// The duration in milliseconds.
    pub took_ms: u64,
    /// How it ended.
    pub end: ToolEnd,
    /// Details for the user: a diff, or the beginning of the output.
    pub shown: Option<String>,
}

/// How a tool call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolEnd {
    /// The tool ran.
    Done,
    /// The tool ran with a bad result, such as `exit code 3`, which the model sees as well.
    EndedBadly(String),
    /// The tool failed. The model receives the error.
    Failed(String),
    /// The user denied the call, or there was no user to ask.
    Denied,
    /// The user cancelled the call.
    Stopped,
}

/// Receives events and shows them.
pub trait AgentEvents: Send + Sync {
    /// Receives an event. Must not block.
    fn tell(&self, event: AgentEvent);
}

impl<F: Fn(AgentEvent) + Send + Sync> AgentEvents for F {
    fn tell(&self, event: AgentEvent) {
        self(event);
    }
}
