//! Continues a conversation: appending, compacting, undo and redo; and the summaries of compactions.

use rusqlite::{Connection, Row, named_params};

use crate::error::StoreError;
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::chain::{self, LinePart, ended, place_on, selected, successor};
use crate::sessions::session::{EndReason, Session};
use crate::views::assembly::{own_items, push, restored_view, settled, with_summary};
use crate::views::item::ViewItem;
use crate::views::summary::{Continuation, NewSummary, Selection, Summary, SummaryId, ViewSelection};

use super::error::{TxError, TxResult};
use super::rows::{count, find_session, from_json_text, int, json_text, members_of, require_session, tip_of};
use super::sessions::{self, SessionIds, line_of};
use super::{guards, views};

/// Fails for an ended session, naming the one that continues its conversation.
pub(super) fn require_open(conn: &Connection, session: &Session) -> TxResult<()> {
    if session.ended_ms.is_none() {
        return Ok(());
    }
    let tip = tip_of(conn, session.chain)?;
    Err(ended(session, tip.as_ref()).into())
}

pub(super) fn continue_session(
    conn: &Connection,
    owner: &Owner,
    continuation: Continuation,
) -> TxResult<Session> {
    let Continuation { from, id, reason, at_ms, made_at_seq, lease, summary, view } = continuation;
    lease.as_ref().map_or(Ok(()), |lease| guards::check_lease(conn, lease))?;
    let from = require_session(conn, owner, &from)?;
    require_open(conn, &from)?;
    if !(from.first_seq..=from.next_seq).contains(&made_at_seq) {
        return Err(StoreError::UnknownMessage { session: from.id, seq: made_at_seq }.into());
    }
    let line = line_of(conn, owner, LinePart::through(&from))?;
    let summary_id = match &summary {
        Some(summary) => Some(put_summary(conn, &from, summary, at_ms)?),
        None => None,
    };
    let view = with_summary(view, summary_id)?;
    require_summaries(conn, owner, &view)?;
    let mut view = settled(view, &line, Some((&from.id, made_at_seq)), |id| {
        find_session(conn, owner, id).map_err(TxError::from)
    })?;
    if made_at_seq < from.next_seq {
        let since = own_items(views::items_of(conn, &from)?, &from, made_at_seq);
        since.into_iter().for_each(|item| push(&mut view, item));
    }
    let opened = take_over(conn, &from, id, &reason, at_ms, ViewBase::Own, view)?;
    if let Some(summary) = summary_id {
        conn.prepare_cached("UPDATE summaries SET session = ?1 WHERE id = ?2")?
            .execute((int(opened.ordinal), int(summary.0)))?;
    }
    Ok(opened)
}

/// The base of a new session's view.
enum ViewBase {
    Own,
    Of(u64),
}

/// Ends the tip of a chain and opens its successor with a view.
fn take_over(
    conn: &Connection,
    from: &Session,
    id: SessionId,
    reason: &EndReason,
    at_ms: Millis,
    base: ViewBase,
    view: Vec<ViewItem>,
) -> TxResult<Session> {
    let new = successor(from, id, at_ms);
    let tip = tip_of(conn, from.chain)?;
    let place = match &new.link {
        Some(link) => place_on(link, from, tip.as_ref().unwrap_or(from))?,
        None => chain::place_of_root(),
    };
    sessions::end(conn, from, reason, at_ms)?;
    let base = match base {
        ViewBase::Own => None,
        ViewBase::Of(ordinal) => Some(ordinal),
    };
    sessions::add(conn, &new, place, base, view)
}

pub(super) fn select_view(conn: &Connection, owner: &Owner, wanted: ViewSelection) -> TxResult<Session> {
    let ViewSelection { session: id, selection, successor, at_ms, limit_tokens, lease } = wanted;
    lease.as_ref().map_or(Ok(()), |lease| guards::check_lease(conn, lease))?;
    let members = members_of(conn, require_session(conn, owner, &id)?.chain)?;
    let target = selected(&members, selection)?;
    let (Some(tip), Some(from_target)) = (members.last(), members.get(target..)) else {
        return Err(StoreError::UnknownSession { reference: id.to_string() }.into());
    };
    let base = members.get(target).map_or(tip.base, |member| member.ordinal);
    let mut views = Vec::with_capacity(from_target.len());
    for member in from_target {
        views.push((member.clone(), views::items_of(conn, member)?));
    }
    let view = restored_view(views);
    let needed_tokens = views::tokens_of(conn, &view)?;
    if needed_tokens > limit_tokens {
        return Err(StoreError::DoesNotFit { needed_tokens, limit_tokens }.into());
    }
    let reason = match selection {
        Selection::Undo => EndReason::UNDO,
        Selection::Redo => EndReason::REDO,
    };
    take_over(conn, tip, successor, &reason, at_ms, ViewBase::Of(base), view)
}

pub(super) fn put_summary(
    conn: &Connection,
    session: &Session,
    summary: &NewSummary,
    created_ms: Millis,
) -> TxResult<SummaryId> {
    conn.prepare_cached(
        "INSERT INTO summaries (session, created_ms, author, document, sources, supersedes, facts, figures) \
         VALUES (:session, :created_ms, :author, :document, :sources, :supersedes, :facts, :figures)",
    )?
    .execute(named_params! {
        ":session": int(session.ordinal),
        ":created_ms": created_ms,
        ":author": summary.author,
        ":document": summary.document,
        ":sources": json_text(&summary.sources)?,
        ":supersedes": summary.supersedes.map(|id| int(id.0)),
        ":facts": json_text(&summary.facts)?,
        ":figures": json_text(&summary.figures)?,
    })?;
    Ok(SummaryId(count(conn.last_insert_rowid())))
}

/// Fails for a view with a summary that the owner does not have.
fn require_summaries(conn: &Connection, owner: &Owner, view: &[ViewItem]) -> TxResult<()> {
    for item in view {
        if let ViewItem::Summary { summary, .. } = item {
            summary_of(conn, owner, *summary)?;
        }
    }
    Ok(())
}

macro_rules! summary_columns {
    () => {
        "summaries.id, summaries.session, created_ms, author, document, sources, supersedes, facts, figures"
    };
}

fn read_summary(conn: &Connection, row: &Row<'_>, ids: &mut SessionIds) -> TxResult<Summary> {
    Ok(Summary {
        id: SummaryId(row.get(0).map(count)?),
        session: ids.get(conn, row.get(1)?)?,
        created_ms: row.get(2)?,
        author: row.get(3)?,
        document: row.get(4)?,
        sources: from_json_text(&row.get::<_, String>(5)?)?,
        supersedes: row.get::<_, Option<i64>>(6)?.map(|id| SummaryId(count(id))),
        facts: from_json_text(&row.get::<_, String>(7)?)?,
        figures: from_json_text(&row.get::<_, String>(8)?)?,
    })
}

pub(super) fn summary_of(conn: &Connection, owner: &Owner, id: SummaryId) -> TxResult<Summary> {
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        summary_columns!(),
        " FROM summaries JOIN sessions ON ordinal = session WHERE summaries.id = ?1 AND owner = ?2"
    ))?;
    let mut rows = statement.query((int(id.0), owner.as_str()))?;
    match rows.next()? {
        Some(row) => read_summary(conn, row, &mut SessionIds::default()),
        None => Err(StoreError::UnknownSummary { id: id.0 }.into()),
    }
}

pub(super) fn summaries_of(conn: &Connection, owner: &Owner, id: &SessionId) -> TxResult<Vec<Summary>> {
    let chain = require_session(conn, owner, id)?.chain;
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        summary_columns!(),
        " FROM sessions JOIN summaries ON session = ordinal WHERE chain = ?1 \
         AND json_extract(figures, '$.node') IS NULL ORDER BY summaries.id"
    ))?;
    let mut ids = SessionIds::default();
    let mut rows = statement.query([int(chain)])?;
    let mut summaries = Vec::new();
    while let Some(row) = rows.next()? {
        summaries.push(read_summary(conn, row, &mut ids)?);
    }
    Ok(summaries)
}
