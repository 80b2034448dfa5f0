//! Nodes as rows: stored among the summaries, distinguished by a column.

use crate::coding::int as stored;
use crate::error::StoreError;
use crate::ids::{Millis, Owner, SessionId};
use crate::views::node::{NewNode, NodeHead};
use crate::views::summary::{NewSummary, SummaryId};

use super::commit::{IsNode, SUMMARIES, put_summary, read_summary, require_open};
use super::connection::Tx;
use super::error::PgResult;
use super::rows::{require_for_writing, require_session};
use super::value::{SqlValue, values};

pub(super) fn put(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &SessionId,
    node: &NewNode,
    at_ms: Millis,
) -> PgResult<SummaryId> {
    let session = require_for_writing(tx, owner, id)?;
    require_open(tx, &session)?;
    let children: Vec<SummaryId> = node.node.children.iter().map(|child| child.id).collect();
    heads(tx, owner, &children)?;
    let figures = node.figures();
    let NewNode { author, document, sources, facts, .. } = node.clone();
    let summary = NewSummary { author, document, sources, supersedes: None, facts, figures };
    put_summary(tx, &session, &summary, IsNode::Yes, at_ms)
}

pub(super) fn heads(tx: &Tx<'_>, owner: &Owner, wanted: &[SummaryId]) -> PgResult<Vec<NodeHead>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let rows = tx.query(
        format!("{SUMMARIES} AND s.id = ANY ($2)"),
        vec![owner.into(), SqlValue::ints(wanted.iter().map(|id| stored(id.0)))],
    )?;
    let found = rows.iter().map(read_summary).collect::<PgResult<Vec<_>>>()?;
    wanted
        .iter()
        .map(|id| {
            let summary = found.iter().find(|summary| summary.id == *id);
            Ok(summary.ok_or(StoreError::UnknownSummary { id: id.0 })?.head())
        })
        .collect()
}

pub(super) fn since(tx: &Tx<'_>, owner: &Owner, id: &SessionId, after: SummaryId) -> PgResult<Vec<NodeHead>> {
    let chain = require_session(tx, owner, id)?.chain;
    let rows = tx.query(
        format!("{SUMMARIES} AND t.chain = $2 AND s.id > $3 AND s.is_node ORDER BY s.id"),
        values![owner, chain, after.0],
    )?;
    rows.iter().map(|row| Ok(read_summary(row)?.head())).collect()
}
