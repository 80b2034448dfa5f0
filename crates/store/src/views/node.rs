//! Nodes: summaries of summaries, down to the messages they cover.
//!
//! A node is stored with the summaries, with its links under the name [`NODE`] in its figures. A leaf covers a run of
//! messages, a condensed node the nodes it includes. A view shows one summary that names its nodes under
//! [`SummaryNode::TOP_NODES`]; a summary of another engine counts as a leaf. A node is stored as soon as it is written
//! and never changed, so that it is found again after an interrupted compaction.

use serde::{Deserialize, Serialize};

use crate::ids::{Millis, SessionId};
use crate::views::summary::{MessageRun, Summary, SummaryId};

/// The member of a summary's figures that makes it a node.
pub(crate) const NODE: &str = "node";

/// A node included in another, with the range of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Its id.
    pub id: SummaryId,
    /// The position of its first message.
    pub first_seq: u64,
    /// The position after its last.
    pub end_seq: u64,
}

/// The properties of a node, without its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryNode {
    /// Its distance from messages: zero for a leaf.
    pub level: u32,
    /// The nodes it includes, oldest first; empty for a leaf.
    #[serde(default)]
    pub children: Vec<Child>,
    /// Number of messages it covers.
    pub messages: u64,
    /// Their tokens.
    pub source_tokens: u64,
    /// Tokens of its own text as a view shows it.
    pub tokens: u64,
    /// The time of its first message, if known.
    #[serde(default)]
    pub first_ms: Option<Millis>,
    /// The time of its last message.
    #[serde(default)]
    pub last_ms: Option<Millis>,
    /// Files in its messages, those that were changed first.
    #[serde(default)]
    pub files: Vec<String>,
    /// Subjects for which one would expand it, in words.
    #[serde(default)]
    pub expand_for: String,
    /// The requested focus, if any.
    #[serde(default)]
    pub focus: Option<String>,
}

/// A node to store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewNode {
    /// The author: `rules`, or the name of a model.
    pub author: String,
    /// Its document, as Markdown.
    pub document: String,
    /// The messages it covers.
    pub sources: Vec<MessageRun>,
    /// Facts kept, attached and removed.
    pub facts: serde_json::Value,
    /// Its properties.
    pub node: SummaryNode,
}

/// A node without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeHead {
    /// Its id.
    pub id: SummaryId,
    /// The session it was made in.
    pub session: SessionId,
    /// When it was written.
    pub created_ms: Millis,
    /// The author.
    pub author: String,
    /// The messages it covers.
    pub sources: Vec<MessageRun>,
    /// Its properties. A summary of another engine is a leaf with unknown sizes.
    pub node: SummaryNode,
}

impl NodeHead {
    /// Whether it covers a message.
    #[must_use]
    pub fn covers(&self, session: &SessionId, seq: u64) -> bool {
        holds(&self.sources, session, seq)
    }

    /// Returns the range of its messages: the position of the first, and that after the last.
    #[must_use]
    pub fn between(&self) -> (u64, u64) {
        bounds(&self.sources)
    }
}

/// Whether runs contain a message.
fn holds(runs: &[MessageRun], session: &SessionId, seq: u64) -> bool {
    runs.iter().any(|run| run.session == *session && (run.first_seq..run.end_seq).contains(&seq))
}

/// Returns the range of runs: the position of the first message, and that after the last.
fn bounds(runs: &[MessageRun]) -> (u64, u64) {
    let first = runs.iter().map(|run| run.first_seq).min().unwrap_or(0);
    (first, runs.iter().map(|run| run.end_seq).max().unwrap_or(first))
}

impl MessageRun {
    /// Returns runs in the order of the conversation, with adjacent ones joined. `None` if a message is in two of them.
    #[must_use]
    pub fn joined(mut runs: Vec<Self>) -> Option<Vec<Self>> {
        runs.retain(|run| run.first_seq < run.end_seq);
        // Positions count through all sessions of a conversation.
        runs.sort_by_key(|run| (run.first_seq, run.end_seq));
        let mut all: Vec<Self> = Vec::with_capacity(runs.len());
        for run in runs {
            match all.last_mut() {
                Some(last) if run.first_seq < last.end_seq => return None,
                Some(last) if last.session == run.session && run.first_seq == last.end_seq => {
                    last.end_seq = run.end_seq;
                }
                _ => all.push(run),
            }
        }
        Some(all)
    }
}

impl SummaryNode {
    /// The member of a summary's figures that lists the nodes which a view shows.
    pub const TOP_NODES: &str = "nodes";
    /// The level of nodes that cover messages directly.
    pub const LEAF_LEVEL: u32 = 0;
    /// The highest level: three expansions lead from a view to any message.
    pub const TOP_LEVEL: u32 = 2;
}

impl Summary {
    /// Returns its properties as a node, if it is one.
    #[must_use]
    pub fn node(&self) -> Option<SummaryNode> {
        self.figures.get(NODE).and_then(|node| serde_json::from_value(node.clone()).ok())
    }

    /// Returns the nodes in a view's summary, if it was made by an engine with nodes.
    #[must_use]
    pub fn top_nodes(&self) -> Vec<SummaryId> {
        let listed = self.figures.get(SummaryNode::TOP_NODES);
        listed.and_then(|ids| serde_json::from_value(ids.clone()).ok()).unwrap_or_default()
    }

    /// Returns the summary as a node, without its text: one that is not a node is a leaf.
    #[must_use]
    pub fn head(&self) -> NodeHead {
        let plain = || SummaryNode {
            messages: self.sources.iter().map(|run| run.end_seq.saturating_sub(run.first_seq)).sum(),
            ..SummaryNode::default()
        };
        NodeHead {
            id: self.id,
            session: self.session.clone(),
            created_ms: self.created_ms,
            author: self.author.clone(),
            sources: self.sources.clone(),
            node: self.node().unwrap_or_else(plain),
        }
    }
}

impl NewNode {
    /// Returns the figures to store.
    pub(crate) fn figures(&self) -> serde_json::Value {
        serde_json::json!({ NODE: self.node })
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
