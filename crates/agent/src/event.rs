//! What a person is told while an agent works. None of it goes to the model.

use throughline_engine::{EngineEvent, Pressure};
use throughline_provider::CacheOutcome;
use throughline_tokens::{Cost, Usage};
use throughline_wire::StopReason;

/// Something happened.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// The model is asked; nothing of its answer is there yet.
    Asked {
        /// The model.
        model: String,
    },
    /// More words of the answer.
    Text(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// The model began to write a call of this tool.
    CallBegun {
        /// The tool.
        tool: String,
    },
    /// The model has answered, wholly.
    Answered(Box<Answered>),
    /// A tool runs.
    ToolStarted {
        /// The tool.
        tool: String,
        /// What it does, in one line.
        title: String,
    },
    /// A tool is done.
    ToolFinished(Box<ToolDone>),
    /// What the person said is larger than the window has room for, and is set aside before it is sent.
    WordsSetAside(WordsSetAside),
    /// Something about the context.
    Engine(EngineEvent),
}

/// Words that are too long for the window, in figures.
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
pub struct Answered {
    /// The model.
    pub model: String,
    /// Tokens.
    pub usage: Usage,
    /// Money.
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
    /// What it did, in one line.
    pub title: String,
    /// How long it took.
    pub took_ms: u64,
    /// How it ended.
    pub end: ToolEnd,
    /// What a person is shown beside that: a difference, or how the output begins.
    pub shown: Option<String>,
}

/// How a tool call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolEnd {
    /// Done.
    Done,
    /// Done, and it did not end well, like this: `exit code 3`. The model sees that for itself.
    EndedBadly(String),
    /// It failed; the model was told.
    Failed(String),
    /// The person, or nobody, allowed it.
    Denied,
    /// The person stopped it.
    Stopped,
}

/// Whoever shows what happens.
pub trait AgentEvents: Send + Sync {
    /// Told of an event. Must not wait.
    fn tell(&self, event: AgentEvent);
}

impl<F: Fn(AgentEvent) + Send + Sync> AgentEvents for F {
    fn tell(&self, event: AgentEvent) {
        self(event);
    }
}
