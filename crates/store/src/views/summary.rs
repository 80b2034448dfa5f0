//! Summaries and the compactions they come from.

use std::fmt;
use std::str::FromStr;

use crate::error::StoreError;
use crate::ids::{Millis, SessionId};
use crate::sessions::lock::Lease;
use crate::sessions::session::EndReason;
use crate::views::item::NewViewItem;

/// The number of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SummaryId(pub u64);

impl fmt::Display for SummaryId {
    /// As people and models name it: `n12`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("n{}", self.0))
    }
}

impl FromStr for SummaryId {
    type Err = StoreError;

    /// Reads `n12`, and `12` too.
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
    /// The first.
    pub first_seq: u64,
    /// After the last.
    pub end_seq: u64,
}

/// A summary to be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSummary {
    /// Who wrote it: `rules`, or the name of a model.
    pub author: String,
    /// The document, as Markdown.
    pub document: String,
    /// The messages it covers.
    pub sources: Vec<MessageRun>,
    /// An earlier summary that it took up.
    pub supersedes: Option<SummaryId>,
    /// Facts kept, attached and removed, and the figures of the compaction, as JSON objects.
    pub facts: serde_json::Value,
    /// Tokens and messages before and after, timings.
    pub figures: serde_json::Value,
}

/// A summary as recorded.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Its number.
    pub id: SummaryId,
    /// The session whose view it was made for.
    pub session: SessionId,
    /// When it was written.
    pub created_ms: Millis,
    /// Who wrote it.
    pub author: String,
    /// The document, as Markdown.
    pub document: String,
    /// The messages it covers.
    pub sources: Vec<MessageRun>,
    /// An earlier summary that it took up.
    pub supersedes: Option<SummaryId>,
    /// Facts kept, attached and removed.
    pub facts: serde_json::Value,
    /// Tokens and messages before and after, timings.
    pub figures: serde_json::Value,
}

/// A compaction to be committed: the session ends, its successor takes over with a new view.
#[derive(Clone, Debug)]
pub struct Continuation {
    /// The session that ends. It must be the tip of its chain.
    pub from: SessionId,
    /// The id of the successor.
    pub id: SessionId,
    /// Why the session ends.
    pub reason: EndReason,
    /// When it was written.
    pub at_ms: Millis,
    /// The place after the last message of the session when the view was made: if more came since, they are shown
    /// after it.
    pub made_at_seq: u64,
    /// The lock under which the view was made: if it is not held any more, nothing is committed. `None` where the caller needs
    /// none.
    pub lease: Option<Lease>,
    /// The summary, if the view has a new one.
    pub summary: Option<NewSummary>,
    /// The view the successor starts with, without the run of its own messages to come.
    pub view: Vec<NewViewItem>,
}

/// Which view a conversation goes back or forward to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The view before the last compaction.
    Undo,
    /// The view of the compaction that was undone.
    Redo,
}

/// A change of the view that a conversation goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewSelection {
    /// A session of the conversation.
    pub session: SessionId,
    /// Which view it goes on with.
    pub selection: Selection,
    /// The id of the session that begins with it.
    pub successor: SessionId,
    /// When it was selected.
    pub at_ms: Millis,
    /// What it may need at most.
    pub limit_tokens: u64,
    /// The lock under which it was selected: if it is not held any more, nothing is changed. `None` where the caller needs none.
    pub lease: Option<Lease>,
}
