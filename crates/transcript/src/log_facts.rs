//! What a session log knows beyond its messages: where and when they were said, which calls were made and what they
//! used, where the client compacted by itself, and the conversations its sub-agents held.
//!
//! Nothing here is read unless it is asked for: [`Transcript::log_facts`] goes over the lines a second time. Facts are as
//! the client wrote them; what they mean for a record is for others to decide.

use crate::message::Message;
use crate::shared_text::SharedText;
use crate::transcript::Transcript;

/// The facts a log has about the conversation as a whole, and about each message and call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// The client's id of the session.
    pub session: Option<String>,
    /// The sub-agent of that session; `None` for the session itself.
    pub agent: Option<String>,
    /// The session that started this one to work for it.
    pub parent_session: Option<String>,
    /// The session whose history this log begins with a copy of.
    pub copied_from: Option<String>,
    /// The folder the client worked in.
    pub folder: Option<String>,
    /// The git branch, as last stated.
    pub git_branch: Option<String>,
    /// The title the user or the client gave it.
    pub title: Option<String>,
    /// The provider, where the log states it.
    pub provider: Option<String>,
    /// When it began.
    pub started_ms: Option<i64>,
    /// One entry a message of the transcript, in its order.
    pub messages: Vec<MessageFacts>,
    /// Compactions the client made by itself, in order.
    pub compactions: Vec<LogCompaction>,
    /// Calls to models, in order, those for messages that were edited away included.
    pub calls: Vec<LogCall>,
}

/// Where a message stands in its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFacts {
    /// When it was written.
    pub at_ms: Option<i64>,
    /// What the log calls it.
    pub id: Option<String>,
    /// The first of its lines, counted from one.
    pub line: usize,
}

/// A compaction of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCompaction {
    /// Messages of the transcript that were said before it.
    pub message: usize,
    /// Time of the call in milliseconds since 1970, where the log states it.
    pub at_ms: Option<i64>,
    /// What the model was shown from then on.
    pub view: NewView,
}

/// What a compaction put in the place of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewView {
    /// The next message of the transcript is the summary; nothing before it is shown any more.
    NextMessage,
    /// These messages, which are not part of the transcript.
    Messages {
        /// In order.
        messages: Vec<Message>,
        /// The text of the summary, which one of them may hold.
        summary: Option<String>,
    },
}

/// A call to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCall {
    /// Tells calls of one log apart, and stays the same when the log grows.
    pub key: String,
    /// The model that answered.
    pub model: Option<String>,
    /// The usage object as it stands.
    pub usage: SharedText,
    /// When the answer began.
    pub at_ms: Option<i64>,
    /// The message that holds the answer, if it is in the transcript.
    pub message: Option<usize>,
    /// The log noted usage while the answer was still being written: its count of output is only a beginning.
    pub output_unfinished: bool,
}

/// A conversation a sub-agent held, inside the log of the session it worked for.
#[derive(Clone, Debug)]
pub struct SubAgent {
    /// What the log calls the agent.
    pub id: String,
    /// Messages of the session's transcript that were said before it began.
    pub after_messages: usize,
    /// What was said. Its [`log_facts`](Transcript::log_facts) are its own.
    pub transcript: Transcript,
}
