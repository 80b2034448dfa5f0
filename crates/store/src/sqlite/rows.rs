//! Converts rows to values: numbers, sessions, messages.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use throughline_tokens::Usage;
use throughline_transcript::{ContentHash, SharedText, WireFormat};

use crate::artifacts::files::ArtifactFiles;
pub(super) use crate::coding::{MACHINE_WRITTEN, RESULTS_ONLY, count, int, role_code, role_of, speaker_of};
use crate::error::StoreError;
use crate::ids::{Owner, SessionId};
use crate::message::StoredMessage;
use crate::sessions::session::{EndReason, Link, LinkKind, Origin, Session, SessionCounters};

use super::error::{TxError, TxResult};
use super::message_codec;

fn get_count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(count)
}

fn unknown_word(column: usize, word: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, format!("unknown word `{word}`").into())
}

macro_rules! session_columns {
    () => {
        "ordinal, id, owner, chain, base, parent_id, link_kind, leaves_at, first_seq, next_seq, started_ms, \
         active_ms, ended_ms, end_reason, model, title, program, origin_key, project, dialect, messages, \
         message_tokens, calls, input, output, cache_read, cache_write, reasoning, cost_micro_usd, unpriced_calls"
    };
}
pub(super) use session_columns;

/// The position of the chain among [`session_columns`].
pub(super) const CHAIN_COLUMN: usize = 3;

/// A session from a row of [`session_columns`].
pub(super) fn session(row: &Row<'_>) -> rusqlite::Result<Session> {
    let link = match row.get::<_, Option<String>>(5)? {
        None => None,
        Some(parent) => {
            let kind: String = row.get(6)?;
            Some(Link {
                parent: SessionId::from_text(parent),
                kind: LinkKind::parse(&kind).ok_or_else(|| unknown_word(6, &kind))?,
                leaves_at: get_count(row, 7)?,
            })
        }
    };
    let wire_format: String = row.get(19)?;
    Ok(Session {
        ordinal: get_count(row, 0)?,
        id: SessionId::from_text(row.get::<_, String>(1)?),
        owner: Owner::new(row.get::<_, String>(2)?),
        chain: get_count(row, 3)?,
        base: get_count(row, 4)?,
        link,
        first_seq: get_count(row, 8)?,
        next_seq: get_count(row, 9)?,
        started_ms: row.get(10)?,
        active_ms: row.get(11)?,
        ended_ms: row.get(12)?,
        end_reason: row.get::<_, Option<String>>(13)?.map(EndReason::named),
        model: row.get(14)?,
        title: row.get(15)?,
        origin: Origin { program: row.get(16)?, key: row.get(17)?, project: row.get(18)? },
        wire_format: parse_wire_format(&wire_format).ok_or_else(|| unknown_word(19, &wire_format))?,
        counters: SessionCounters {
            messages: get_count(row, 20)?,
            message_tokens: get_count(row, 21)?,
            calls: get_count(row, 22)?,
            usage: Usage {
                input: get_count(row, 23)?,
                output: get_count(row, 24)?,
                cache_read: get_count(row, 25)?,
                cache_write: get_count(row, 26)?,
                reasoning: get_count(row, 27)?,
            },
            cost_micro_usd: get_count(row, 28)?,
            unpriced_calls: get_count(row, 29)?,
        },
    })
}

fn parse_wire_format(name: &str) -> Option<WireFormat> {
    WireFormat::ALL.into_iter().find(|wire_format| wire_format.name() == name)
}

/// A session of an owner by its whole id, if there is one.
pub(super) fn find_session(
    conn: &Connection,
    owner: &Owner,
    id: &SessionId,
) -> rusqlite::Result<Option<Session>> {
    conn.prepare_cached(concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE id = ?1 AND owner = ?2"
    ))?
    .query_row((id.as_str(), owner.as_str()), session)
    .optional()
}

/// A session of an owner by its whole id.
pub(super) fn require_session(conn: &Connection, owner: &Owner, id: &SessionId) -> TxResult<Session> {
    let found = find_session(conn, owner, id)?;
    found.ok_or_else(|| StoreError::UnknownSession { reference: id.to_string() }.into())
}

/// Returns only the chain of an owner's session.
pub(super) fn chain_of(conn: &Connection, owner: &Owner, id: &SessionId) -> TxResult<i64> {
    let found = conn
        .prepare_cached("SELECT chain FROM sessions WHERE id = ?1 AND owner = ?2")?
        .query_row((id.as_str(), owner.as_str()), |row| row.get(0))
        .optional()?;
    found.ok_or_else(|| StoreError::UnknownSession { reference: id.to_string() }.into())
}

/// A session by its ordinal.
pub(super) fn session_at(conn: &Connection, ordinal: u64) -> rusqlite::Result<Option<Session>> {
    conn.prepare_cached(concat!("SELECT ", session_columns!(), " FROM sessions WHERE ordinal = ?1"))?
        .query_row([int(ordinal)], session)
        .optional()
}

/// The newest session of a chain.
pub(super) fn tip_of(conn: &Connection, chain: u64) -> rusqlite::Result<Option<Session>> {
    conn.prepare_cached(concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE chain = ?1 ORDER BY ordinal DESC LIMIT 1"
    ))?
    .query_row([int(chain)], session)
    .optional()
}

/// The sessions of a chain, oldest first.
pub(super) fn members_of(conn: &Connection, chain: u64) -> rusqlite::Result<Vec<Session>> {
    conn.prepare_cached(concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE chain = ?1 ORDER BY ordinal"
    ))?
    .query_map([int(chain)], session)?
    .collect()
}

/// Writes the values of a session that change while it continues: its position, times and counters.
pub(super) fn write_progress(conn: &Connection, session: &Session) -> rusqlite::Result<()> {
    let SessionCounters { messages, message_tokens, calls, usage, cost_micro_usd, unpriced_calls } =
        session.counters;
    conn.prepare_cached(
        "UPDATE sessions SET next_seq = :next_seq, active_ms = :active_ms, messages = :messages, \
         message_tokens = :message_tokens, calls = :calls, input = :input, output = :output, \
         cache_read = :cache_read, cache_write = :cache_write, reasoning = :reasoning, \
         cost_micro_usd = :cost, unpriced_calls = :unpriced WHERE ordinal = :ordinal",
    )?
    .execute(named_params! {
        ":next_seq": int(session.next_seq),
        ":active_ms": session.active_ms,
        ":messages": int(messages),
        ":message_tokens": int(message_tokens),
        ":calls": int(calls),
        ":input": int(usage.input),
        ":output": int(usage.output),
        ":cache_read": int(usage.cache_read),
        ":cache_write": int(usage.cache_write),
        ":reasoning": int(usage.reasoning),
        ":cost": int(cost_micro_usd),
        ":unpriced": int(unpriced_calls),
        ":ordinal": int(session.ordinal),
    })
    .map(drop)
}

macro_rules! message_columns {
    () => {
        "id, seq, role, flags, at_ms, tokens, hash, tools, coding, origin"
    };
}
pub(super) use message_columns;

/// A message of `session` from a row of [`message_columns`].
pub(super) fn message(
    row: &Row<'_>,
    session: &SessionId,
    artifacts: &ArtifactFiles,
) -> TxResult<StoredMessage> {
    let role: i64 = row.get(2)?;
    let coding: i64 = row.get(8)?;
    let origin = row.get_ref(9)?.as_blob().map_err(rusqlite::Error::from)?;
    Ok(StoredMessage {
        id: get_count(row, 0)?,
        session: session.clone(),
        seq: get_count(row, 1)?,
        role: role_of(role).ok_or_else(|| TxError::unreadable(format!("there is no role {role}")))?,
        machine_written: row.get::<_, i64>(3)? & MACHINE_WRITTEN != 0,
        at_ms: row.get(4)?,
        tokens: get_count(row, 5)?,
        hash: ContentHash(row.get(6)?),
        tools: names(row.get_ref(7)?.as_str_or_null().map_err(rusqlite::Error::from)?)?,
        json: SharedText::new(message_codec::unpack(coding, origin, artifacts)?),
    })
}

/// Returns names in their stored form; `None` if there are none.
pub(super) fn names_text(names: &[String]) -> TxResult<Option<String>> {
    if names.is_empty() {
        return Ok(None);
    }
    json_text(names).map(Some)
}

/// Parses stored names.
pub(super) fn names(text: Option<&str>) -> TxResult<Vec<String>> {
    text.map_or(Ok(Vec::new()), from_json_text)
}

/// Returns the stored JSON of a value.
pub(super) fn json_text(value: &(impl serde::Serialize + ?Sized)) -> TxResult<String> {
    serde_json::to_string(value).map_err(|error| {
        StoreError::Database { what: "writing a value as JSON", source: Box::new(error) }.into()
    })
}

/// Parses a value from stored JSON.
pub(super) fn from_json_text<T: serde::de::DeserializeOwned>(text: &str) -> TxResult<T> {
    serde_json::from_str(text).map_err(|error| TxError::unreadable(error.to_string()))
}
