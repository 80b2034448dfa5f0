//! Nodes as rows: stored with the summaries, and distinguished by a member of their figures.

use rusqlite::{Connection, Row};

use crate::error::StoreError;
use crate::ids::{Millis, Owner, SessionId};
use crate::views::node::{NewNode, NodeHead};
use crate::views::summary::{NewSummary, Summary, SummaryId};

use super::commit::{put_summary, require_open};
use super::error::TxResult;
use super::rows::{count, from_json_text, int, require_session};
use super::sessions::SessionIds;

pub(super) fn put(
    conn: &Connection,
    owner: &Owner,
    id: &SessionId,
    node: NewNode,
    at_ms: Millis,
) -> TxResult<SummaryId> {
    let session = require_session(conn, owner, id)?;
    require_open(conn, &session)?;
    let children: Vec<SummaryId> = node.node.children.iter().map(|child| child.id).collect();
    heads(conn, owner, &children)?;
    let figures = node.figures();
    let NewNode { author, document, sources, facts, .. } = node;
    put_summary(
        conn,
        &session,
        &NewSummary { author, document, sources, supersedes: None, facts, figures },
        at_ms,
    )
}

/// All columns of a summary except its text and facts.
macro_rules! head_columns {
    () => {
        "summaries.id, summaries.session, created_ms, author, sources, figures"
    };
}

fn read(conn: &Connection, row: &Row<'_>, ids: &mut SessionIds) -> TxResult<NodeHead> {
    let summary = Summary {
        id: SummaryId(row.get(0).map(count)?),
        session: ids.get(conn, row.get(1)?)?,
        created_ms: row.get(2)?,
        author: row.get(3)?,
        document: String::new(),
        sources: from_json_text(&row.get::<_, String>(4)?)?,
        supersedes: None,
        facts: serde_json::Value::Null,
        figures: from_json_text(&row.get::<_, String>(5)?)?,
    };
    Ok(summary.head())
}

pub(super) fn heads(conn: &Connection, owner: &Owner, wanted: &[SummaryId]) -> TxResult<Vec<NodeHead>> {
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        head_columns!(),
        " FROM summaries JOIN sessions ON ordinal = session WHERE summaries.id = ?1 AND owner = ?2"
    ))?;
    let mut ids = SessionIds::default();
    let mut found = Vec::with_capacity(wanted.len());
    for id in wanted {
        let mut rows = statement.query((int(id.0), owner.as_str()))?;
        match rows.next()? {
            Some(row) => found.push(read(conn, row, &mut ids)?),
            None => return Err(StoreError::UnknownSummary { id: id.0 }.into()),
        }
    }
    Ok(found)
}

pub(super) fn since(
    conn: &Connection,
    owner: &Owner,
    id: &SessionId,
    after: SummaryId,
) -> TxResult<Vec<NodeHead>> {
    let chain = require_session(conn, owner, id)?.chain;
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        head_columns!(),
        " FROM sessions CROSS JOIN summaries ON session = ordinal WHERE chain = ?1 AND summaries.id > ?2 \
         AND json_extract(figures, '$.node') IS NOT NULL ORDER BY summaries.id"
    ))?;
    let mut ids = SessionIds::default();
    let mut rows = statement.query((int(chain), int(after.0)))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(conn, row, &mut ids)?);
    }
    Ok(found)
}
