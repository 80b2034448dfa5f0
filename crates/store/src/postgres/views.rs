//! Views: their items as rows, and with the bytes of their messages.

use std::collections::HashMap;

use tokio_postgres::Row;

use crate::coding::{RANGE, RENDITION, SUMMARY, SYNTHETIC, count as counted, int as stored};
use crate::error::StoreError;
use crate::ids::{Owner, SessionId};
use crate::message::{StoredMessage, StoredRendition};
use crate::sessions::session::Session;
use crate::views::assembly::{closed, grown, open_run, push, visible_items};
use crate::views::item::{ViewItem, ViewMessage};
use crate::views::summary::SummaryId;

use super::connection::Tx;
use super::error::{PgError, PgResult};
use super::rows::{
    from_json_text, json_text, message_columns, messages, ordinals_of, require_session, text_of_bytes,
};
use super::value::{self, SqlValue, count, int, opt_bytes, opt_count, opt_text, text, values};

/// The items of a session as they are stored: the last is the run of its own messages, open at its end.
pub(super) fn items_of(tx: &Tx<'_>, session: &Session) -> PgResult<Vec<ViewItem>> {
    let rows = tx.query(
        "SELECT v.kind::int8, s.id, v.first_seq, v.end_seq, v.number, v.name, coalesce(v.json, r.json), \
         coalesce(v.tokens, r.tokens), r.kinds FROM view_items v \
         LEFT JOIN renditions r ON v.kind = 1 AND r.owner = $1 AND r.number = v.number \
         LEFT JOIN sessions s ON s.owner = $1 AND s.ordinal = v.of_session \
         WHERE v.owner = $1 AND v.session = $2 ORDER BY v.position",
        values![&session.owner, session.ordinal],
    )?;
    rows.iter().map(item).collect()
}

fn item(row: &Row) -> PgResult<ViewItem> {
    let session = || {
        let id = opt_text(row, 1)?;
        id.map(SessionId::from_text).ok_or_else(|| PgError::unreadable("an item of a view names no session"))
    };
    let json = || match opt_bytes(row, 6)? {
        Some(bytes) => text_of_bytes(bytes),
        None => Err(PgError::unreadable("an item of a view has no message")),
    };
    Ok(match int(row, 0)? {
        RANGE => {
            ViewItem::Range { session: session()?, first_seq: count(row, 2)?, end_seq: opt_count(row, 3)? }
        }
        RENDITION => ViewItem::Rendition {
            session: session()?,
            seq: count(row, 2)?,
            rendition: StoredRendition {
                kinds: from_json_text(&text(row, 8)?)?,
                json: json()?,
                tokens: count(row, 7)?,
            },
        },
        SUMMARY => {
            ViewItem::Summary { summary: SummaryId(count(row, 4)?), json: json()?, tokens: count(row, 7)? }
        }
        SYNTHETIC => ViewItem::Synthetic { kind: text(row, 5)?, json: json()?, tokens: count(row, 7)? },
        other => return Err(PgError::unreadable(format!("there are no view items of kind {other}"))),
    })
}

/// Writes the view of a session that was just opened, with the open run of its own messages at its end.
pub(super) fn write_new(tx: &Tx<'_>, session: &Session, mut view: Vec<ViewItem>) -> PgResult<()> {
    push(&mut view, open_run(&session.id, session.first_seq));
    write_from(tx, session, 0, &view, Renditions::MayBeStored)
}

/// Lets the view of a session grow by renditions `(place, rendition)` of messages that were just appended to it.
pub(super) fn grow(tx: &Tx<'_>, session: &Session, renditions: Vec<(u64, StoredRendition)>) -> PgResult<()> {
    let open = tx.query_opt(
        "DELETE FROM view_items WHERE owner = $1 AND session = $2 AND position = (SELECT max(position) FROM view_items \
         WHERE owner = $1 AND session = $2 AND kind = 0 AND end_seq IS NULL) RETURNING position, first_seq",
        values![&session.owner, session.ordinal],
    )?;
    let Some(open) = open else {
        return Err(PgError::unreadable(format!("the view of session {} does not grow", session.id)));
    };
    let items = grown(&session.id, count(&open, 1)?, renditions);
    write_from(tx, session, int(&open, 0)?, &items, Renditions::AreNew)
}

/// Whether renditions may be those of an earlier view.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Renditions {
    AreNew,
    MayBeStored,
}

fn write_from(
    tx: &Tx<'_>,
    session: &Session,
    first_position: i64,
    items: &[ViewItem],
    renditions: Renditions,
) -> PgResult<()> {
    let owner = &session.owner;
    let shown = items.iter().filter_map(|item| match item {
        ViewItem::Range { session, .. } | ViewItem::Rendition { session, .. } => Some(session),
        _ => None,
    });
    let others: Vec<&SessionId> = shown.filter(|id| **id != session.id).collect();
    let mut ordinals = ordinals_of(tx, owner, others)?;
    ordinals.insert(session.id.clone(), stored(session.ordinal));
    let ordinal_of = |id: &SessionId| {
        let known = ordinals.get(id).copied();
        known.ok_or_else(|| PgError::from(StoreError::UnknownSession { reference: id.to_string() }))
    };
    let mut numbers = put_renditions(tx, owner, items, &ordinal_of, renditions)?.into_iter();
    let (mut of_sessions, mut positions, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
    let (mut firsts, mut ends, mut item_numbers) = (Vec::new(), Vec::new(), Vec::new());
    let (mut names, mut shown, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
    for (item, position) in items.iter().zip(first_position..) {
        positions.push(position);
        let (kind, of, first, end, number, name, json, size) = match item {
            ViewItem::Range { session, first_seq, end_seq } => (
                RANGE,
                Some(ordinal_of(session)?),
                Some(stored(*first_seq)),
                end_seq.map(stored),
                None,
                None,
                None,
                None,
            ),
            ViewItem::Rendition { session, seq, .. } => (
                RENDITION,
                Some(ordinal_of(session)?),
                Some(stored(*seq)),
                None,
                numbers.next(),
                None,
                None,
                None,
            ),
            ViewItem::Summary { summary, json, tokens } => {
                (SUMMARY, None, None, None, Some(stored(summary.0)), None, Some(json), Some(stored(*tokens)))
            }
            ViewItem::Synthetic { kind, json, tokens } => {
                (SYNTHETIC, None, None, None, None, Some(kind), Some(json), Some(stored(*tokens)))
            }
        };
        kinds.push(kind);
        of_sessions.push(of);
        firsts.push(first);
        ends.push(end);
        item_numbers.push(number);
        names.push(name.map(|name| value::stored_text(name)));
        // An empty text means no message: no message is empty.
        shown.push(json.map(|json| json.as_bytes().to_vec()).unwrap_or_default());
        tokens.push(size);
    }
    tx.later(
        "INSERT INTO view_items (owner, session, position, kind, of_session, first_seq, end_seq, number, name, json, tokens) \
         SELECT $1, $2, i.position, i.kind, i.of_session, i.first_seq, i.end_seq, i.number, i.name, \
         nullif(i.json, ''::bytea), i.tokens FROM unnest($3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], \
         $8::int8[], $9::text[], $10::bytea[], $11::int8[]) \
         AS i (position, kind, of_session, first_seq, end_seq, number, name, json, tokens)",
        vec![
            owner.into(),
            session.ordinal.into(),
            SqlValue::ints(positions),
            SqlValue::ints(kinds),
            SqlValue::Ints(of_sessions),
            SqlValue::Ints(firsts),
            SqlValue::Ints(ends),
            SqlValue::Ints(item_numbers),
            SqlValue::Texts(names),
            SqlValue::Blobs(shown),
            SqlValue::Ints(tokens),
        ],
    );
    Ok(())
}

/// Numbers of the renditions among items, in order; the same one is stored once.
fn put_renditions(
    tx: &Tx<'_>,
    owner: &Owner,
    items: &[ViewItem],
    ordinal_of: &dyn Fn(&SessionId) -> PgResult<i64>,
    renditions: Renditions,
) -> PgResult<Vec<i64>> {
    let mut all: Vec<(i64, i64, String, &StoredRendition)> = Vec::new();
    for item in items {
        if let ViewItem::Rendition { session, seq, rendition } = item {
            all.push((ordinal_of(session)?, stored(*seq), json_text(&rendition.kinds)?, rendition));
        }
    }
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let mut known: HashMap<(i64, i64, String, u64, String), i64> = HashMap::new();
    if renditions == Renditions::MayBeStored {
        let rows = tx.query(
            "SELECT r.session, r.seq, r.kinds, r.tokens, r.json, r.number FROM renditions r WHERE r.owner = $1 \
             AND (r.session, r.seq) IN (SELECT * FROM unnest($2::int8[], $3::int8[])) ORDER BY r.number DESC",
            vec![
                owner.into(),
                SqlValue::ints(all.iter().map(|(session, ..)| *session)),
                SqlValue::ints(all.iter().map(|(_, seq, ..)| *seq)),
            ],
        )?;
        for row in &rows {
            let key = (
                int(row, 0)?,
                int(row, 1)?,
                text(row, 2)?,
                count(row, 3)?,
                text_of_bytes(value::bytes(row, 4)?)?,
            );
            known.insert(key, int(row, 5)?);
        }
    }
    let key = |(session, seq, kinds, rendition): &(i64, i64, String, &StoredRendition)| {
        (*session, *seq, kinds.clone(), rendition.tokens, rendition.json.clone())
    };
    let new: Vec<&(i64, i64, String, &StoredRendition)> =
        all.iter().filter(|one| !known.contains_key(&key(one))).collect();
    if !new.is_empty() {
        let rows = tx.query(
            "SELECT nextval(pg_get_serial_sequence('renditions', 'number')) FROM generate_series(1, $1)",
            values![new.len() as i64],
        )?;
        let numbers = rows.iter().map(|row| int(row, 0)).collect::<PgResult<Vec<i64>>>()?;
        tx.later(
            "INSERT INTO renditions (owner, number, session, seq, kinds, tokens, json) SELECT $1, r.* \
             FROM unnest($2::int8[], $3::int8[], $4::int8[], $5::text[], $6::int8[], $7::bytea[]) AS r",
            vec![
                owner.into(),
                SqlValue::ints(numbers.iter().copied()),
                SqlValue::ints(new.iter().map(|(session, ..)| *session)),
                SqlValue::ints(new.iter().map(|(_, seq, ..)| *seq)),
                SqlValue::texts(new.iter().map(|(_, _, kinds, _)| kinds)),
                SqlValue::ints(new.iter().map(|(.., rendition)| stored(rendition.tokens))),
                SqlValue::Blobs(
                    new.iter().map(|(.., rendition)| rendition.json.as_bytes().to_vec()).collect(),
                ),
            ],
        );
        for (one, number) in new.iter().zip(numbers) {
            known.insert(key(one), number);
        }
    }
    let number_of = |one| known.get(&key(one)).copied();
    all.iter()
        .map(|one| number_of(one).ok_or_else(|| PgError::unreadable("a rendition was not stored")))
        .collect()
}

pub(super) fn items_of_session(tx: &Tx<'_>, owner: &Owner, id: &SessionId) -> PgResult<Vec<ViewItem>> {
    let session = require_session(tx, owner, id)?;
    Ok(visible_items(items_of(tx, &session)?, &session))
}

/// What would be sent for a session, up to a place in it.
pub(super) fn shown(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &SessionId,
    to_seq: Option<u64>,
) -> PgResult<Vec<ViewMessage>> {
    let session = require_session(tx, owner, id)?;
    let end = to_seq.map_or(session.next_seq, |to_seq| to_seq.min(session.next_seq));
    let items = closed(items_of(tx, &session)?, &session.id, end);
    let mut runs = Vec::new();
    for item in &items {
        match item {
            ViewItem::Range { session, first_seq, end_seq } => {
                runs.push((session, stored(*first_seq), end_seq.map_or(i64::MAX, stored)));
            }
            ViewItem::Rendition { session, seq, .. } => {
                runs.push((session, stored(*seq), stored(*seq).saturating_add(1)));
            }
            ViewItem::Summary { .. } | ViewItem::Synthetic { .. } => {}
        }
    }
    let mut read = read_runs(tx, owner, &runs)?.into_iter();
    let mut shown = Vec::new();
    for item in items {
        match item {
            ViewItem::Range { .. } => {
                shown.extend(read.next().unwrap_or_default().into_iter().map(ViewMessage::Verbatim));
            }
            ViewItem::Rendition { session, seq, rendition } => {
                let original = read.next().unwrap_or_default().into_iter().next();
                let original = original.ok_or(StoreError::UnknownMessage { session, seq })?;
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

/// The messages of runs (session, first place, place after the last), run by run.
pub(super) fn read_runs(
    tx: &Tx<'_>,
    owner: &Owner,
    runs: &[(&SessionId, i64, i64)],
) -> PgResult<Vec<Vec<StoredMessage>>> {
    let ordinals = ordinals_of(tx, owner, runs.iter().map(|(id, ..)| *id))?;
    let mut known = Vec::with_capacity(runs.len());
    for (id, first, end) in runs {
        let ordinal = ordinals.get(*id).copied();
        let ordinal = ordinal.ok_or_else(|| StoreError::UnknownSession { reference: id.to_string() })?;
        known.push((ordinal, (*id).clone(), *first, *end));
    }
    runs_at(tx, owner, &known)
}

/// The same for sessions whose ordinals are known.
pub(super) fn runs_at(
    tx: &Tx<'_>,
    owner: &Owner,
    runs: &[(i64, SessionId, i64, i64)],
) -> PgResult<Vec<Vec<StoredMessage>>> {
    let mut read: Vec<Vec<StoredMessage>> = runs.iter().map(|_| Vec::new()).collect();
    if runs.is_empty() {
        return Ok(read);
    }
    let rows = tx.query(
        concat!(
            "SELECT ",
            message_columns!(),
            ", r.n FROM unnest($2::int8[], $3::int8[], $4::int8[]) WITH ORDINALITY AS r (s, a, b, n) \
             JOIN messages ON owner = $1 AND session = r.s AND seq >= r.a AND seq < r.b ORDER BY r.n, seq"
        ),
        vec![
            owner.into(),
            SqlValue::ints(runs.iter().map(|(ordinal, ..)| *ordinal)),
            SqlValue::ints(runs.iter().map(|(_, _, first, _)| *first)),
            SqlValue::ints(runs.iter().map(|(.., end)| *end)),
        ],
    )?;
    let id_of = |ordinal: i64| {
        let run = runs.iter().find(|(known, ..)| *known == ordinal);
        run.map(|(_, id, ..)| id.clone()).ok_or_else(|| PgError::unreadable("a message of no session"))
    };
    let places = rows.iter().map(|row| count(row, 11)).collect::<PgResult<Vec<u64>>>()?;
    for (message, place) in messages(tx, owner, &rows, id_of)?.into_iter().zip(places) {
        let at = usize::try_from(place).unwrap_or_default().saturating_sub(1);
        if let Some(run) = read.get_mut(at) {
            run.push(message);
        }
    }
    Ok(read)
}

/// The size of closed items.
pub(super) fn tokens_of(tx: &Tx<'_>, owner: &Owner, items: &[ViewItem]) -> PgResult<u64> {
    let mut sum = 0_u64;
    let mut runs = Vec::new();
    for item in items {
        match item {
            ViewItem::Range { session, first_seq, end_seq } => {
                runs.push((session, stored(*first_seq), end_seq.map_or(i64::MAX, stored)));
            }
            ViewItem::Rendition { rendition, .. } => sum = sum.saturating_add(rendition.tokens),
            ViewItem::Summary { tokens, .. } | ViewItem::Synthetic { tokens, .. } => {
                sum = sum.saturating_add(*tokens);
            }
        }
    }
    let ordinals = ordinals_of(tx, owner, runs.iter().map(|(id, ..)| *id))?;
    let mut places = Vec::with_capacity(runs.len());
    for (id, ..) in &runs {
        let ordinal = ordinals.get(*id).copied();
        places.push(ordinal.ok_or_else(|| StoreError::UnknownSession { reference: id.to_string() })?);
    }
    let rows = tx.query(
        "SELECT least(coalesce(sum(tokens), 0), 9223372036854775807)::int8 \
         FROM unnest($2::int8[], $3::int8[], $4::int8[]) AS r (s, a, b) \
         JOIN messages ON owner = $1 AND session = r.s AND seq >= r.a AND seq < r.b",
        vec![
            owner.into(),
            SqlValue::ints(places),
            SqlValue::ints(runs.iter().map(|(_, first, _)| *first)),
            SqlValue::ints(runs.iter().map(|(.., end)| *end)),
        ],
    )?;
    let of_messages = rows.first().map_or(Ok(0), |row| int(row, 0))?;
    Ok(sum.saturating_add(counted(of_messages)))
}
