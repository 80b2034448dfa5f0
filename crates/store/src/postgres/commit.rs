//! How a conversation goes on: compacting it, going back and forth between views; and the summaries that come of it.

use tokio_postgres::Row;

use crate::coding::int as stored;
use crate::error::StoreError;
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::chain::{self, LinePart, ended, place_on, selected, successor};
use crate::sessions::session::{EndReason, Session};
use crate::views::assembly::{own_items, push, restored_view, settled, with_summary};
use crate::views::item::ViewItem;
use crate::views::summary::{Continuation, NewSummary, Selection, Summary, SummaryId, ViewSelection};

use super::connection::Tx;
use super::error::PgResult;
use super::rows::{
    Access, find_session, from_json_text, json_text, require_for_writing, require_session, text_of_bytes,
    tip_of, unknown,
};
use super::sessions::{self, line_of, members_for_writing, share_families};
use super::value::{self, SqlValue, count, int, opt_count, text, values};
use super::{guards, views};

/// Refuses a session that has ended, naming where its conversation goes on.
pub(super) fn require_open(tx: &Tx<'_>, session: &Session) -> PgResult<()> {
    if session.ended_ms.is_none() {
        return Ok(());
    }
    let tip = tip_of(tx, &session.owner, session.chain)?;
    Err(ended(session, tip.as_ref()).into())
}

pub(super) fn continue_session(tx: &Tx<'_>, owner: &Owner, continuation: &Continuation) -> PgResult<Session> {
    let Continuation { from, id, reason, at_ms, made_at_seq, lease, summary, view } = continuation;
    lease.as_ref().map_or(Ok(()), |lease| guards::check_lease(tx, lease))?;
    let (at_ms, made_at_seq) = (*at_ms, *made_at_seq);
    share_families(tx, owner);
    let from = require_for_writing(tx, owner, from)?;
    require_open(tx, &from)?;
    if !(from.first_seq..=from.next_seq).contains(&made_at_seq) {
        return Err(StoreError::UnknownMessage { session: from.id, seq: made_at_seq }.into());
    }
    let line = line_of(tx, owner, LinePart::through(&from))?;
    let summary_id = match summary {
        Some(summary) => Some(put_summary(tx, &from, summary, IsNode::No, at_ms)?),
        None => None,
    };
    let view = with_summary(view.clone(), summary_id)?;
    require_summaries(tx, owner, &view)?;
    let mut view =
        settled(view, &line, Some((&from.id, made_at_seq)), |id| find_session(tx, owner, id, Access::Read))?;
    if made_at_seq < from.next_seq {
        let since = own_items(views::items_of(tx, &from)?, &from, made_at_seq);
        since.into_iter().for_each(|item| push(&mut view, item));
    }
    let opened = take_over(tx, &from, id.clone(), reason, at_ms, None, view)?;
    if let Some(summary) = summary_id {
        tx.later(
            "UPDATE summaries SET session = $3 WHERE owner = $1 AND id = $2",
            values![owner, summary.0, opened.ordinal],
        );
    }
    Ok(opened)
}

/// Ends the tip of a chain and opens its successor with a view; `base` is the session whose view that is, if not its own.
fn take_over(
    tx: &Tx<'_>,
    from: &Session,
    id: SessionId,
    reason: &EndReason,
    at_ms: Millis,
    base: Option<u64>,
    view: Vec<ViewItem>,
) -> PgResult<Session> {
    let new = successor(from, id, at_ms);
    let tip = tip_of(tx, &from.owner, from.chain)?;
    let place = match &new.link {
        Some(link) => place_on(link, from, tip.as_ref().unwrap_or(from))?,
        None => chain::place_of_root(),
    };
    sessions::end(tx, from, reason, at_ms);
    sessions::add(tx, &new, place, base, view)
}

pub(super) fn select_view(tx: &Tx<'_>, owner: &Owner, wanted: &ViewSelection) -> PgResult<Session> {
    wanted.lease.as_ref().map_or(Ok(()), |lease| guards::check_lease(tx, lease))?;
    share_families(tx, owner);
    let chain = require_session(tx, owner, &wanted.session)?.chain;
    let members = members_for_writing(tx, owner, chain)?;
    let target = selected(&members, wanted.selection)?;
    let (Some(tip), Some(from_target)) = (members.last(), members.get(target..)) else {
        return Err(unknown(&wanted.session));
    };
    let base = members.get(target).map_or(tip.base, |member| member.ordinal);
    let mut views = Vec::with_capacity(from_target.len());
    for member in from_target {
        views.push((member.clone(), views::items_of(tx, member)?));
    }
    let view = restored_view(views);
    let needed_tokens = views::tokens_of(tx, owner, &view)?;
    if needed_tokens > wanted.limit_tokens {
        return Err(StoreError::DoesNotFit { needed_tokens, limit_tokens: wanted.limit_tokens }.into());
    }
    let reason = match wanted.selection {
        Selection::Undo => EndReason::UNDO,
        Selection::Redo => EndReason::REDO,
    };
    take_over(tx, tip, wanted.successor.clone(), &reason, wanted.at_ms, Some(base), view)
}

/// Whether a summary is a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IsNode {
    Yes,
    No,
}

pub(super) fn put_summary(
    tx: &Tx<'_>,
    session: &Session,
    summary: &NewSummary,
    is_node: IsNode,
    created_ms: Millis,
) -> PgResult<SummaryId> {
    let is_node = is_node == IsNode::Yes || summary.figures.get("node").is_some_and(|node| !node.is_null());
    let row = tx.query_one(
        "INSERT INTO summaries (owner, session, is_node, created_ms, author, document, sources, supersedes, facts, figures) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id",
        values![
            &session.owner,
            session.ordinal,
            is_node,
            created_ms,
            &summary.author,
            summary.document.as_bytes().to_vec(),
            json_text(&summary.sources)?,
            summary.supersedes.map(|id| id.0),
            json_text(&summary.facts)?,
            json_text(&summary.figures)?,
        ],
    )?;
    Ok(SummaryId(count(&row, 0)?))
}

/// Refuses a view that shows a summary the owner does not have.
fn require_summaries(tx: &Tx<'_>, owner: &Owner, view: &[ViewItem]) -> PgResult<()> {
    let wanted: Vec<SummaryId> = view
        .iter()
        .filter_map(|item| match item {
            ViewItem::Summary { summary, .. } => Some(*summary),
            _ => None,
        })
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let rows = tx.query(
        "SELECT id FROM summaries WHERE owner = $1 AND id = ANY ($2)",
        vec![owner.into(), SqlValue::ints(wanted.iter().map(|id| stored(id.0)))],
    )?;
    let known = rows.iter().map(|row| count(row, 0)).collect::<PgResult<Vec<u64>>>()?;
    match wanted.iter().find(|id| !known.contains(&id.0)) {
        Some(missing) => Err(StoreError::UnknownSummary { id: missing.0 }.into()),
        None => Ok(()),
    }
}

/// Summaries of an owner with the ids of their sessions, as [`read_summary`] reads them. Conditions follow.
pub(super) const SUMMARIES: &str = "SELECT s.id, t.id, s.created_ms, s.author, s.document, s.sources, s.supersedes, s.facts, \
     s.figures FROM summaries s JOIN sessions t ON t.owner = $1 AND t.ordinal = s.session WHERE s.owner = $1";

pub(super) fn read_summary(row: &Row) -> PgResult<Summary> {
    Ok(Summary {
        id: SummaryId(count(row, 0)?),
        session: SessionId::from_text(text(row, 1)?),
        created_ms: int(row, 2)?,
        author: text(row, 3)?,
        document: text_of_bytes(value::bytes(row, 4)?)?,
        sources: from_json_text(&text(row, 5)?)?,
        supersedes: opt_count(row, 6)?.map(SummaryId),
        facts: from_json_text(&text(row, 7)?)?,
        figures: from_json_text(&text(row, 8)?)?,
    })
}

pub(super) fn summary_of(tx: &Tx<'_>, owner: &Owner, id: SummaryId) -> PgResult<Summary> {
    let row = tx.query_opt(format!("{SUMMARIES} AND s.id = $2"), values![owner, id.0])?;
    read_summary(&row.ok_or(StoreError::UnknownSummary { id: id.0 })?)
}

pub(super) fn summaries_of(tx: &Tx<'_>, owner: &Owner, id: &SessionId) -> PgResult<Vec<Summary>> {
    let chain = require_session(tx, owner, id)?.chain;
    let rows = tx.query(
        format!("{SUMMARIES} AND t.chain = $2 AND NOT s.is_node ORDER BY s.id"),
        values![owner, chain],
    )?;
    rows.iter().map(read_summary).collect()
}
