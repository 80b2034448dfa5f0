//! Views: their items as rows, and loaded with the bytes of their messages.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use crate::artifacts::files::ArtifactFiles;
pub(super) use crate::coding::{RANGE, RENDITION, SUMMARY, SYNTHETIC};
use crate::error::StoreError;
use crate::ids::{Owner, SessionId};
use crate::message::{StoredMessage, StoredRendition};
use crate::sessions::session::Session;
use crate::views::assembly::{closed, grown, open_run, push, visible_items};
use crate::views::item::{ViewItem, ViewMessage};
use crate::views::summary::SummaryId;

use super::error::{TxError, TxResult};
use super::rows::{count, from_json_text, int, json_text, message, message_columns, require_session};
use super::sessions::SessionIds;

/// Returns the stored items of a session: the last is the open run of its own messages.
pub(super) fn items_of(conn: &Connection, session: &Session) -> TxResult<Vec<ViewItem>> {
    let mut ids = SessionIds::default();
    let mut statement = conn.prepare_cached(
        "SELECT v.kind, v.of_session, v.first_seq, v.end_seq, v.number, v.name, \
         coalesce(v.json, r.json), coalesce(v.tokens, r.tokens), r.kinds \
         FROM view_items v LEFT JOIN renditions r ON v.kind = 1 AND r.number = v.number \
         WHERE v.session = ?1 ORDER BY v.position",
    )?;
    let mut rows = statement.query([int(session.ordinal)])?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.push(item(conn, row, &mut ids)?);
    }
    Ok(items)
}

fn item(conn: &Connection, row: &Row<'_>, ids: &mut SessionIds) -> TxResult<ViewItem> {
    let tokens = |row: &Row<'_>| row.get(7).map(count);
    Ok(match row.get(0)? {
        RANGE => ViewItem::Range {
            session: ids.get(conn, row.get(1)?)?,
            first_seq: row.get(2).map(count)?,
            end_seq: row.get::<_, Option<i64>>(3)?.map(count),
        },
        RENDITION => ViewItem::Rendition {
            session: ids.get(conn, row.get(1)?)?,
            seq: row.get(2).map(count)?,
            rendition: StoredRendition {
                kinds: from_json_text(&row.get::<_, String>(8)?)?,
                json: row.get(6)?,
                tokens: tokens(row)?,
            },
        },
        SUMMARY => ViewItem::Summary {
            summary: SummaryId(row.get(4).map(count)?),
            json: row.get(6)?,
            tokens: tokens(row)?,
        },
        SYNTHETIC => ViewItem::Synthetic { kind: row.get(5)?, json: row.get(6)?, tokens: tokens(row)? },
        other => return Err(TxError::unreadable(format!("there are no view items of kind {other}"))),
    })
}

/// Writes the view of a new session, with the open run of its own messages at the end.
pub(super) fn write_new(conn: &Connection, session: &Session, mut view: Vec<ViewItem>) -> TxResult<()> {
    push(&mut view, open_run(&session.id, session.first_seq));
    write_from(conn, session, 0, &view)
}

/// Extends the view of a session by renditions `(position, rendition)` of messages that were just appended to it.
pub(super) fn grow(
    conn: &Connection,
    session: &Session,
    renditions: Vec<(u64, StoredRendition)>,
) -> TxResult<()> {
    let open: Option<(i64, i64)> = conn
        .prepare_cached(
            "SELECT position, first_seq FROM view_items \
             WHERE session = ?1 AND kind = 0 AND end_seq IS NULL ORDER BY position DESC LIMIT 1",
        )?
        .query_row([int(session.ordinal)], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((position, run_first_seq)) = open else {
        return Err(TxError::unreadable(format!("the view of session {} does not grow", session.id)));
    };
    conn.prepare_cached("DELETE FROM view_items WHERE session = ?1 AND position = ?2")?
        .execute((int(session.ordinal), position))?;
    write_from(conn, session, position, &grown(&session.id, count(run_first_seq), renditions))
}

pub(super) fn write_from(
    conn: &Connection,
    session: &Session,
    first_position: i64,
    items: &[ViewItem],
) -> TxResult<()> {
    let mut ordinals = Ordinals::default();
    let mut insert = conn.prepare_cached(
        "INSERT INTO view_items (session, position, kind, of_session, first_seq, end_seq, number, name, json, tokens) \
         VALUES (:session, :position, :kind, :of_session, :first_seq, :end_seq, :number, :name, :json, :tokens)",
    )?;
    for (item, position) in items.iter().zip(first_position..) {
        let of_session = match item {
            ViewItem::Range { session, .. } | ViewItem::Rendition { session, .. } => {
                Some(ordinals.get(conn, session)?)
            }
            _ => None,
        };
        let number = match (item, of_session) {
            (ViewItem::Rendition { seq, rendition, .. }, Some(of_session)) => {
                Some(put_rendition(conn, of_session, *seq, rendition)?)
            }
            (ViewItem::Summary { summary, .. }, _) => Some(int(summary.0)),
            _ => None,
        };
        let (kind, first_seq, end_seq, name, shown) = match item {
            ViewItem::Range { first_seq, end_seq, .. } => (RANGE, Some(*first_seq), *end_seq, None, None),
            ViewItem::Rendition { seq, .. } => (RENDITION, Some(*seq), None, None, None),
            ViewItem::Summary { json, tokens, .. } => (SUMMARY, None, None, None, Some((json, *tokens))),
            ViewItem::Synthetic { kind, json, tokens } => {
                (SYNTHETIC, None, None, Some(kind), Some((json, *tokens)))
            }
        };
        insert.execute(named_params! {
            ":session": int(session.ordinal),
            ":position": position,
            ":kind": kind,
            ":of_session": of_session,
            ":first_seq": first_seq.map(int),
            ":end_seq": end_seq.map(int),
            ":number": number,
            ":name": name,
            ":json": shown.map(|(json, _)| json),
            ":tokens": shown.map(|(_, tokens)| int(tokens)),
        })?;
    }
    Ok(())
}

/// Returns the number of a message's rendition; equal ones are stored once.
fn put_rendition(conn: &Connection, of_session: i64, seq: u64, rendition: &StoredRendition) -> TxResult<i64> {
    let kinds = json_text(&rendition.kinds)?;
    let values = (of_session, int(seq), kinds.as_str(), int(rendition.tokens), rendition.json.as_str());
    let known: Option<i64> = conn
        .prepare_cached(
            "SELECT number FROM renditions \
             WHERE session = ?1 AND seq = ?2 AND kinds = ?3 AND tokens = ?4 AND json = ?5 LIMIT 1",
        )?
        .query_row(values, |row| row.get(0))
        .optional()?;
    if let Some(number) = known {
        return Ok(number);
    }
    conn.prepare_cached(
        "INSERT INTO renditions (session, seq, kinds, tokens, json) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(values)?;
    Ok(conn.last_insert_rowid())
}

/// Ordinals of sessions by id; adjacent items of a view usually share one.
#[derive(Default)]
struct Ordinals {
    last: Option<(SessionId, i64)>,
}

impl Ordinals {
    fn get(&mut self, conn: &Connection, id: &SessionId) -> TxResult<i64> {
        if let Some((last, ordinal)) = &self.last
            && last == id
        {
            return Ok(*ordinal);
        }
        let found: Option<i64> = conn
            .prepare_cached("SELECT ordinal FROM sessions WHERE id = ?1")?
            .query_row([id.as_str()], |row| row.get(0))
            .optional()?;
        let ordinal = found.ok_or_else(|| StoreError::UnknownSession { reference: id.to_string() })?;
        self.last = Some((id.clone(), ordinal));
        Ok(ordinal)
    }
}

pub(super) fn items_of_session(conn: &Connection, owner: &Owner, id: &SessionId) -> TxResult<Vec<ViewItem>> {
    let session = require_session(conn, owner, id)?;
    Ok(visible_items(items_of(conn, &session)?, &session))
}

/// Returns what would be sent for a session, up to a position in it.
pub(super) fn shown(
    conn: &Connection,
    artifacts: &ArtifactFiles,
    owner: &Owner,
    id: &SessionId,
    to_seq: Option<u64>,
) -> TxResult<Vec<ViewMessage>> {
    let session = require_session(conn, owner, id)?;
    let end = to_seq.map_or(session.next_seq, |to_seq| to_seq.min(session.next_seq));
    let mut ordinals = Ordinals::default();
    let mut shown = Vec::new();
    for item in closed(items_of(conn, &session)?, &session.id, end) {
        match item {
            ViewItem::Range { session: of, first_seq, end_seq } => {
                let ordinal = ordinals.get(conn, &of)?;
                let end_seq = end_seq.map_or(i64::MAX, int);
                run(conn, artifacts, ordinal, &of, int(first_seq)..end_seq, |message| {
                    shown.push(ViewMessage::Verbatim(message));
                })?;
            }
            ViewItem::Rendition { session: of, seq, rendition } => {
                let ordinal = ordinals.get(conn, &of)?;
                let mut original = None;
                run(conn, artifacts, ordinal, &of, int(seq)..int(seq) + 1, |message| {
                    original = Some(message)
                })?;
                let original = original.ok_or(StoreError::UnknownMessage { session: of, seq })?;
                shown.push(ViewMessage::Rendition(original, rendition));
            }
            ViewItem::Summary { summary, json, tokens } => {
                shown.push(ViewMessage::Summary { summary, json, tokens })
            }
            ViewItem::Synthetic { kind, json, tokens } => {
                shown.push(ViewMessage::Synthetic { kind, json, tokens })
            }
        }
    }
    Ok(shown)
}

/// Calls `each` with the messages of a session at these positions, in order.
pub(super) fn run(
    conn: &Connection,
    artifacts: &ArtifactFiles,
    ordinal: i64,
    id: &SessionId,
    places: std::ops::Range<i64>,
    mut each: impl FnMut(StoredMessage),
) -> TxResult<()> {
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        message_columns!(),
        " FROM messages WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq"
    ))?;
    let mut rows = statement.query((ordinal, places.start, places.end))?;
    while let Some(row) = rows.next()? {
        each(message(row, id, artifacts)?);
    }
    Ok(())
}

/// Returns the size of closed items.
pub(super) fn tokens_of(conn: &Connection, items: &[ViewItem]) -> TxResult<u64> {
    let mut ordinals = Ordinals::default();
    let mut sum = 0_u64;
    for item in items {
        sum = sum.saturating_add(match item {
            ViewItem::Range { session, first_seq, end_seq } => {
                let ordinal = ordinals.get(conn, session)?;
                let mut statement = conn.prepare_cached(
                    "SELECT tokens FROM messages WHERE session = ?1 AND seq >= ?2 AND seq < ?3",
                )?;
                let tokens = statement
                    .query_map((ordinal, int(*first_seq), end_seq.map_or(i64::MAX, int)), |row| {
                        row.get(0).map(count)
                    })?;
                let mut run_sum = 0_u64;
                for tokens in tokens {
                    run_sum = run_sum.saturating_add(tokens?);
                }
                run_sum
            }
            ViewItem::Rendition { rendition, .. } => rendition.tokens,
            ViewItem::Summary { tokens, .. } | ViewItem::Synthetic { tokens, .. } => *tokens,
        });
    }
    Ok(sum)
}
