//! The nodes of a conversation from the newest view down to the messages they cover.

use serde::Serialize;
use throughline_store::{NodeHead, SessionId, SummaryId};

use crate::recall::{RecallReader, RecallResult, unknown_node};

/// The nodes of a conversation.
#[derive(Clone, Debug, Serialize)]
pub struct NodeTree {
    /// The session whose view it is.
    pub session: SessionId,
    /// Number of messages in the conversation.
    pub messages: u64,
    /// The nodes in view, oldest first.
    pub nodes: Vec<TreeNode>,
}

/// A node with its descendants.
#[derive(Clone, Debug, Serialize)]
pub struct TreeNode {
    /// Its properties.
    #[serde(flatten)]
    pub head: NodeHead,
    /// The nodes it includes, oldest first.
    pub took_up: Vec<TreeNode>,
}

impl RecallReader<'_> {
    /// Returns the nodes of a session's conversation.
    pub fn tree(&self, session: &SessionId) -> RecallResult<NodeTree> {
        let found = self.store.session(self.owner, session)?;
        let top = self.top_nodes(session)?;
        let nodes =
            top.into_iter().map(|head| self.below(head, &mut Vec::new())).collect::<RecallResult<_>>()?;
        Ok(NodeTree { session: found.id, messages: found.next_seq, nodes })
    }

    fn below(&self, head: NodeHead, above: &mut Vec<SummaryId>) -> RecallResult<TreeNode> {
        above.push(head.id);
        // No node is its own descendant, even in a damaged record.
        let children: Vec<SummaryId> =
            head.node.children.iter().map(|child| child.id).filter(|id| !above.contains(id)).collect();
        let heads = self.store.node_heads(self.owner, &children).map_err(unknown_node)?;
        let took_up = heads.into_iter().map(|child| self.below(child, above)).collect::<RecallResult<_>>()?;
        above.pop();
        Ok(TreeNode { head, took_up })
    }
}
