//! The facts of a session log beyond its messages: their places and times, the calls with their usage, compactions by the client, and the
//! conversations of its sub-agents.
//!
//! Nothing here is read unless requested: [`Transcript::log_facts`] reads the lines a second time. Facts are as the client wrote them and
//! are not interpreted here.

use crate::message::Message;
use crate::shared_text::SharedText;
use crate::transcript::Transcript;

/// The facts of a log about the conversation as a whole, and about each message and call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// The client's id of the session.
    pub session: Option<String>,
    /// The sub-agent of that session; `None` for the session itself.
    pub agent: Option<String>,
    /// The session that started this one as its sub-agent.
    pub parent_session: Option<String>,
    /// The session from which the beginning of this log is copied.
    pub copied_from: Option<String>,
    /// The folder the client worked in.
    pub folder: Option<String>,
    /// The git branch, as last stated.
    pub git_branch: Option<String>,
    /// The title the user or the client gave it.
    pub title: Option<String>,
    /// The provider, if the log states it.
    pub provider: Option<String>,
    /// When it began.
    pub started_ms: Option<i64>,
    /// The facts of each message of the transcript, in order.
    pub messages: Vec<MessageFacts>,
    /// Compactions made by the client, in order.
    pub compactions: Vec<LogCompaction>,
    /// Calls to models, in order, including those for messages that were edited away.
    pub calls: Vec<LogCall>,
}

/// The place of a message in its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFacts {
    /// When it was written.
    pub at_ms: Option<i64>,
    /// Its id in the log.
    pub id: Option<String>,
    /// The number of its first line, from one.
    pub line: usize,
}

/// A compaction of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCompaction {
    /// Number of messages of the transcript before it.
    pub message: usize,
    /// The time in milliseconds since 1970, if the log states it.
    pub at_ms: Option<i64>,
    /// The view that the model was shown from then on.
    pub view: NewView,
}

/// The view after a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewView {
    /// The next message of the transcript is the summary; nothing before it is shown any more.
    NextMessage,
    /// These messages, which are not part of the transcript.
    Messages {
        /// In order.
        messages: Vec<Message>,
        /// The text of the summary, which may be in one of them.
        summary: Option<String>,
    },
}

/// A call to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCall {
    /// Identifies the call within the log, and stays the same when the log grows.
    pub key: String,
    /// The model that answered.
    pub model: Option<String>,
    /// The usage object, unchanged.
    pub usage: SharedText,
    /// The time at which the answer started.
    pub at_ms: Option<i64>,
    /// The message with the answer, if it is in the transcript.
    pub message: Option<usize>,
    /// Whether usage was logged while the answer was still being written, so that its output count is incomplete.
    pub output_unfinished: bool,
}

/// A conversation of a sub-agent inside the log of its parent session.
#[derive(Clone, Debug)]
pub struct SubAgent {
    /// The agent's id in the log.
    pub id: String,
    /// Number of messages of the session's transcript before it started.
    pub after_messages: usize,
    /// Its messages. Their [`log_facts`](Transcript::log_facts) are separate.
    pub transcript: Transcript,
}
