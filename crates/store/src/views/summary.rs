//! Summaries and the compactions they come from.

use std::fmt;
use std::str::FromStr;

use crate::error::StoreError;
use crate::ids::{Millis, SessionId};
use crate::sessions::lock::Lease;
use crate::sessions::session::EndReason;
use crate::views::item::NewViewItem;

/// The id of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SummaryId(pub u64);

impl fmt::Display for SummaryId {
    /// Formats it as shown to people and models: `n12`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("n{}", self.0))
    }
}

impl FromStr for SummaryId {
    type Err = StoreError;

    /// Parses `n12`, and also `12`.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        let text = text.trim();
        let digits = text.strip_prefix(['n', 'N']).unwrap_or(text);
        let number = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
        number.map(Self).ok_or_else(|| StoreError::NoNodeId { text: text.chars().take(80).collect() })
    }
}

/// A run of messages.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MessageRun {
    /// The session they were appended to.
    pub session: SessionId,
    /// The position of the first.
    pub first_seq: u64,
    /// The position after the last.
    pub end_seq: u64,
}

/// A summary to record.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSummary {
    /// The author: `rules`, or the name of a model.
    pub author: String,
    /// The document, as Markdown.
    pub document: String,
    /// The messages it covers.
    pub sources: Vec<MessageRun>,
    /// The earlier summary that it includes, if any.
    pub supersedes: Option<SummaryId>,
    /// Facts kept, attached and removed, and the figures of the compaction, as JSON objects.
    pub facts: serde_json::Value,
    /// Tokens and messages before and after, timings.
    pub figures: serde_json::Value,
}

/// A recorded summary.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Its id.
    pub id: SummaryId,
    /// The session whose view it was made for.
    pub session: SessionId,
    /// When it was written.
    pub created_ms: Millis,
    /// The author.
    pub author: String,
    /// The document, as Markdown.
    pub document: String,
    /// The messages it covers.
    pub sources: Vec<MessageRun>,
    /// The earlier summary that it includes, if any.
    pub supersedes: Option<SummaryId>,
    /// Facts kept, attached and removed.
    pub facts: serde_json::Value,
    /// Tokens and messages before and after, timings.
    pub figures: serde_json::Value,
}

/// A compaction to commit: the session ends, and its successor continues with a new view.
#[derive(Clone, Debug)]
pub struct Continuation {
    /// The session that ends. It must be the tip of its chain.
    pub from: SessionId,
    /// The id of the successor.
    pub id: SessionId,
    /// The end reason of the session.
    pub reason: EndReason,
    /// The time of the commit.
    pub at_ms: Millis,
    /// The position after the last message of the session when the view was made; later messages are shown after it.
    pub made_at_seq: u64,
    /// The lock under which the view was made: if it is no longer held, nothing is committed. `None` if no lock is needed.
    pub lease: Option<Lease>,
    /// The summary, if the view has a new one.
    pub summary: Option<NewSummary>,
    /// The initial view of the successor, without the run of its own messages.
    pub view: Vec<NewViewItem>,
}

/// The view to select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The view before the last compaction.
    Undo,
    /// The view of the compaction that was undone.
    Redo,
}

/// A selection of another view for a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewSelection {
    /// A session of the conversation.
    pub session: SessionId,
    /// The view to select.
    pub selection: Selection,
    /// The id of the session that starts with it.
    pub successor: SessionId,
    /// The time of the selection.
    pub at_ms: Millis,
    /// The maximum tokens of the view.
    pub limit_tokens: u64,
    /// The lock under which it was selected: if it is no longer held, nothing is changed. `None` if no lock is needed.
    pub lease: Option<Lease>,
}
