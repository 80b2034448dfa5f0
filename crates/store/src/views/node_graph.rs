//! Checks the graph of nodes. Pure, so that the doctor and the property tests use the same rules.
//!
//! - There are no cycles: a node is newer than all its children, and on a higher level.
//! - Every message of a node is in exactly one of its children, and every message a view compacted in exactly one of its
//!   top nodes.
//! - No node is above the top level, so that three expansions lead from a view to any message.

use std::collections::HashMap;

use crate::views::node::SummaryNode;
use crate::views::summary::{MessageRun, SummaryId};

/// The relevant data of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLink {
    /// The owner.
    pub owner: String,
    /// The messages it covers.
    pub sources: Vec<MessageRun>,
    /// Its properties, if it is a node.
    pub node: Option<SummaryNode>,
    /// Its nodes, if it is a view's summary.
    pub top: Vec<SummaryId>,
}

/// Returns all problems of nodes: the id of the summary and a description.
#[must_use]
pub fn node_problems(links: &HashMap<SummaryId, NodeLink>) -> Vec<(SummaryId, String)> {
    let mut problems = Vec::new();
    let mut ids: Vec<&SummaryId> = links.keys().collect();
    ids.sort_unstable();
    for (id, link) in ids.into_iter().filter_map(|id| links.get_key_value(id)) {
        let parts: Vec<SummaryId> = match &link.node {
            Some(node) => node.children.iter().map(|child| child.id).collect(),
            None => link.top.clone(),
        };
        let found = match &link.node {
            Some(node) if node.level > SummaryNode::TOP_LEVEL => {
                Some(format!("stands on level {}", node.level))
            }
            Some(node) if node.level > 0 && parts.is_empty() => Some("took up nothing".to_owned()),
            Some(node) if node.level == 0 && !parts.is_empty() => {
                Some("is a leaf and took something up".to_owned())
            }
            _ => None,
        };
        let found =
            found.or_else(|| (!parts.is_empty()).then(|| problem_of(*id, link, &parts, links)).flatten());
        problems.extend(found.map(|words| (*id, words)));
    }
    problems
}

fn problem_of(
    id: SummaryId,
    link: &NodeLink,
    parts: &[SummaryId],
    links: &HashMap<SummaryId, NodeLink>,
) -> Option<String> {
    let mut covered = Vec::new();
    for part in parts {
        let Some(child) = links.get(part) else { return Some(format!("names {part}, which is not there")) };
        if child.owner != link.owner {
            return Some(format!("names {part}, which belongs to another owner"));
        }
        if *part >= id {
            return Some(format!("names {part}, which is not older than it"));
        }
        let level = child.node.as_ref().map_or(0, |node| node.level);
        if link.node.as_ref().is_some_and(|node| level >= node.level) {
            return Some(format!("took up {part}, which stands on no lower level"));
        }
        covered.extend(child.sources.iter().cloned());
    }
    let Some(covered) = MessageRun::joined(covered) else {
        return Some("has a message in two of the nodes it names".to_owned());
    };
    let own = MessageRun::joined(link.sources.clone());
    (own.as_ref() != Some(&covered)).then(|| "covers other messages than the nodes it names".to_owned())
}

#[cfg(test)]
#[path = "node_graph_tests.rs"]
mod tests;
