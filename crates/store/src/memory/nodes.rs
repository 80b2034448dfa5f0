//! Nodes of the record in memory.

use crate::error::Result;
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::chain::ended;
use crate::views::node::{NewNode, NodeHead};
use crate::views::summary::{NewSummary, SummaryId};

use super::state::MemoryState;

impl MemoryState {
    pub(super) fn put_node(
        &mut self,
        owner: &Owner,
        id: &SessionId,
        node: NewNode,
        at_ms: Millis,
    ) -> Result<SummaryId> {
        let session = self.find(owner, id)?.clone();
        if session.ended_ms.is_some() {
            return Err(ended(&session, self.tip(session.chain)));
        }
        for child in &node.node.children {
            self.summary(owner, child.id)?;
        }
        let figures = node.figures();
        let NewNode { author, document, sources, facts, .. } = node;
        let summary = NewSummary { author, document, sources, supersedes: None, facts, figures };
        self.keep_summary(&session, at_ms, summary);
        Ok(SummaryId(self.last_summary))
    }

    pub(super) fn node_heads(&self, owner: &Owner, ids: &[SummaryId]) -> Result<Vec<NodeHead>> {
        ids.iter().map(|id| self.summary(owner, *id).map(|summary| summary.head())).collect()
    }

    pub(super) fn nodes_since(
        &self,
        owner: &Owner,
        id: &SessionId,
        after: SummaryId,
    ) -> Result<Vec<NodeHead>> {
        let chain = self.find(owner, id)?.chain;
        let newer = self.summaries.range(after.0.saturating_add(1)..).map(|(_, summary)| summary);
        let nodes = newer.filter(|summary| {
            summary.node().is_some()
                && self.known(owner, &summary.session).is_some_and(|session| session.chain == chain)
        });
        Ok(nodes.map(|summary| summary.head()).collect())
    }
}
