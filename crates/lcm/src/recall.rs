//! Finds, describes and expands the messages behind summaries, in a record and for one owner. These are blocking functions: callers that
//! must not block run them on a thread. They work for summaries of every engine; one that was not stored as a node counts as a leaf.

pub(crate) mod expand;
pub(crate) mod grep;
pub(crate) mod names;
pub(crate) mod question;
mod rank_names;
pub(crate) mod record_tools;
pub(crate) mod tools;
pub(crate) mod tree;

use serde::Serialize;
use throughline_store::{
    MessageRun, NodeHead, Owner, Session, SessionId, Store, StoreError, StoredMessage, SummaryId, ViewItem,
};
use throughline_tokens::{TextProfile, TokenModel};
use throughline_transcript::{JsonStr, Message, Part, WireFormat};

use crate::limits::RecallLimits;

/// Recall in one record for one owner.
#[derive(Clone, Copy)]
pub struct RecallReader<'a> {
    /// The record.
    pub store: &'a dyn Store,
    /// The owner of the data.
    pub owner: &'a Owner,
    /// The limits.
    pub limits: &'a RecallLimits,
}

/// Why something cannot be recalled, in words for the caller.
#[derive(Debug, thiserror::Error)]
pub enum RecallError {
    /// There is no such node, or it belongs to another owner.
    #[error("there is no node {id} here; the notes in the conversation name theirs in brackets, like [n12]")]
    UnknownNode {
        /// The requested node.
        id: SummaryId,
    },
    /// There is no such message.
    #[error(
        "there is no message {seq} in this conversation; its messages are numbered from {first} to {last}"
    )]
    UnknownMessage {
        /// The requested message.
        seq: u64,
        /// The first message.
        first: u64,
        /// The last message.
        last: u64,
    },
    /// The pattern is invalid or too large.
    #[error("the pattern cannot be used: {problem}")]
    BadPattern {
        /// The problem.
        problem: String,
    },
    /// The request is empty.
    #[error("{0}")]
    NothingAsked(&'static str),
    /// No model answered the question.
    #[error("the question was not answered: {0}; lcm_grep and lcm_expand show the originals")]
    NotAnswered(String),
    /// The record failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A result of recall.
pub(crate) type RecallResult<T> = std::result::Result<T, RecallError>;

/// A node with its text and its children.
#[derive(Clone, Debug, Serialize)]
pub struct NodeDescription {
    /// Its properties.
    #[serde(flatten)]
    pub head: NodeHead,
    /// Its text.
    pub document: String,
    /// The nodes it includes, oldest first.
    pub took_up: Vec<NodeHead>,
}

/// A part of a conversation: the messages of this session before a position.
pub(crate) struct SeqRange {
    pub(crate) session: Session,
    pub(crate) end_seq: u64,
}

impl<'a> RecallReader<'a> {
    /// Returns a node with its text and its children.
    pub fn describe(&self, id: SummaryId) -> RecallResult<NodeDescription> {
        let summary = self.store.summary(self.owner, id).map_err(unknown_node)?;
        let head = summary.head();
        let children: Vec<SummaryId> = match head.node.children.is_empty() {
            false => head.node.children.iter().map(|child| child.id).collect(),
            true => summary.top_nodes(),
        };
        let took_up = self.store.node_heads(self.owner, &children).map_err(unknown_node)?;
        Ok(NodeDescription { head, document: summary.document, took_up })
    }

    /// Fails for a node of another conversation: the numbers of its messages would be confused with those of this one.
    pub(crate) fn check_within(&self, session: &SessionId, id: SummaryId) -> RecallResult<()> {
        let head = self.head(id)?;
        let own = self.stretches(session)?;
        match own.iter().any(|stretch| stretch.session.id == head.session) {
            true => Ok(()),
            false => Err(RecallError::UnknownNode { id }),
        }
    }

    pub(crate) fn head(&self, id: SummaryId) -> RecallResult<NodeHead> {
        let mut heads = self.store.node_heads(self.owner, &[id]).map_err(unknown_node)?;
        heads.pop().ok_or(RecallError::UnknownNode { id })
    }

    /// Returns the nodes in a session's view, oldest first.
    pub fn top_nodes(&self, session: &SessionId) -> RecallResult<Vec<NodeHead>> {
        let mut nodes = Vec::new();
        for item in self.store.view_items(self.owner, session)? {
            let ViewItem::Summary { summary, .. } = item else { continue };
            let shown = self.store.summary(self.owner, summary).map_err(unknown_node)?;
            match shown.top_nodes().as_slice() {
                [] => nodes.push(shown.head()),
                top => nodes.extend(self.store.node_heads(self.owner, top).map_err(unknown_node)?),
            }
        }
        Ok(nodes)
    }

    /// Returns the sessions with the messages of a conversation, newest first.
    pub(crate) fn stretches(&self, session: &SessionId) -> RecallResult<Vec<SeqRange>> {
        let session = self.store.session(self.owner, session)?;
        let mut end_seq = session.next_seq;
        let mut stretches: Vec<SeqRange> = Vec::new();
        let mut next = Some(session);
        while let Some(session) = next.take() {
            let end = end_seq.min(session.next_seq);
            end_seq = end.min(session.first_seq);
            let parent = session.link.clone().filter(|link| {
                link.kind.shares_messages() && !stretches.iter().any(|known| known.session.id == link.parent)
            });
            if let Some(link) = &parent {
                end_seq = end_seq.min(link.leaves_at);
            }
            stretches.push(SeqRange { session, end_seq: end });
            next = match parent.map(|link| self.store.session(self.owner, &link.parent)) {
                Some(Ok(parent)) => Some(parent),
                // It may have been deleted; the rest can be read.
                Some(Err(StoreError::UnknownSession { .. })) | None => None,
                Some(Err(error)) => return Err(error.into()),
            };
        }
        Ok(stretches)
    }

    /// Returns the session with a message of a conversation.
    pub(crate) fn session_of(&self, stretches: &[SeqRange], seq: u64) -> RecallResult<SessionId> {
        let holds = |stretch: &&SeqRange| (stretch.session.first_seq..stretch.end_seq).contains(&seq);
        let unknown = || {
            let first = stretches.last().map_or(0, |stretch| stretch.session.first_seq);
            let end = stretches.first().map_or(0, |stretch| stretch.end_seq);
            RecallError::UnknownMessage { seq, first, last: end.saturating_sub(1).max(first) }
        };
        stretches.iter().find(holds).map(|stretch| stretch.session.id.clone()).ok_or_else(unknown)
    }

    /// Returns one message.
    pub(crate) fn message(&self, session: &SessionId, seq: u64) -> RecallResult<Option<StoredMessage>> {
        let run = MessageRun { session: session.clone(), first_seq: seq, end_seq: seq.saturating_add(1) };
        Ok(self.store.messages_of_run(self.owner, &run)?.pop())
    }
}

/// Converts the error for a missing summary to that for a missing node.
pub(crate) fn unknown_node(error: StoreError) -> RecallError {
    match error {
        StoreError::UnknownSummary { id } => RecallError::UnknownNode { id: SummaryId(id) },
        other => RecallError::Store(other),
    }
}

/// Returns all readable parts of a message: text, reasoning, calls, results.
pub(crate) fn readable(message: &Message) -> String {
    let mut out = String::new();
    add_parts(message, message.parts(), &mut out);
    out
}

fn add_parts(message: &Message, parts: &[Part], out: &mut String) {
    for part in parts {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        match part {
            Part::Text(string) | Part::Reasoning { text: Some(string), .. } => {
                out.push_str(&message.str(*string));
            }
            Part::ToolCall { name, arguments, .. } => {
                out.push_str(&message.str(*name));
                out.push(' ');
                // Arguments are JSON, often inside a string: shown unescaped.
                JsonStr::unescape_into(&message.arguments_text(*arguments), out);
            }
            Part::ToolResult { content, .. } => add_parts(message, content, out),
            Part::Image { .. } => out.push_str("[a picture]"),
            Part::Reasoning { text: None, .. } => {}
            Part::Opaque { block, .. } => out.push_str(message.raw(*block)),
        }
    }
}

/// Returns the approximate tokens of a text, for any model.
pub(crate) fn text_tokens(text: &str) -> u64 {
    let model: TokenModel = TokenModel::for_model("", WireFormat::Chat);
    model.estimate(&TextProfile::of(text))
}
