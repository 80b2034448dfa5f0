//! Checks nodes by the rules of [`node_graph`](crate::views::node_graph), and repairs an inconsistent node by making it
//! a leaf. A leaf refers to the messages directly, so only the intermediate steps are lost.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::views::node::{NODE, SummaryNode};
use crate::views::node_graph::{NodeLink, node_problems};
use crate::views::summary::SummaryId;

use super::super::error::TxResult;
use super::super::rows::{count, from_json_text, int, json_text};
use super::examination::NAMED;
use super::problem::RecordProblem;

/// Returns every summary with its node data.
fn links(conn: &Connection) -> TxResult<HashMap<SummaryId, NodeLink>> {
    let mut links = HashMap::new();
    let any: bool = conn.query_row(
        "SELECT EXISTS (SELECT 1 FROM summaries WHERE json_extract(figures, '$.node') IS NOT NULL
                        OR json_extract(figures, '$.nodes') IS NOT NULL)",
        [],
        |row| row.get(0),
    )?;
    if !any {
        return Ok(links);
    }
    let mut statement = conn.prepare(
        "SELECT summaries.id, owner, sources, json_extract(figures, '$.node'), json_extract(figures, '$.nodes')
         FROM summaries JOIN sessions ON ordinal = session",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let node: Option<String> = row.get(3)?;
        let top: Option<String> = row.get(4)?;
        let link = NodeLink {
            owner: row.get(1)?,
            sources: from_json_text(&row.get::<_, String>(2)?)?,
            node: node.map(|node| from_json_text(&node)).transpose()?,
            top: top.map(|top| from_json_text(&top)).transpose()?.unwrap_or_default(),
        };
        links.insert(SummaryId(row.get(0).map(count)?), link);
    }
    Ok(links)
}

pub(super) fn check(conn: &Connection) -> TxResult<Vec<RecordProblem>> {
    let problems = node_problems(&links(conn)?);
    if problems.is_empty() {
        return Ok(Vec::new());
    }
    let examples = problems.iter().take(NAMED).map(|(id, words)| format!("{id} {words}")).collect();
    Ok(vec![RecordProblem::BrokenNodes { count: problems.len() as u64, problems: examples }])
}

/// Turns inconsistent nodes into leaves, and those in views into plain summaries.
pub(super) fn repair(conn: &Connection) -> TxResult<()> {
    let links = links(conn)?;
    for (id, _) in node_problems(&links) {
        let Some(link) = links.get(&id) else { continue };
        match &link.node {
            Some(node) => {
                let leaf =
                    SummaryNode { level: SummaryNode::LEAF_LEVEL, children: Vec::new(), ..node.clone() };
                conn.prepare_cached(
                    "UPDATE summaries SET figures = json_set(figures, '$.' || ?1, json(?2)) WHERE id = ?3",
                )?
                .execute((NODE, json_text(&leaf)?, int(id.0)))?;
            }
            None => {
                conn.prepare_cached(
                    "UPDATE summaries SET figures = json_remove(figures, '$.' || ?1) WHERE id = ?2",
                )?
                .execute((SummaryNode::TOP_NODES, int(id.0)))?;
            }
        }
    }
    Ok(())
}
