//! Rows and what they stand for: sessions and messages. Every question begins with the owner.

use std::collections::HashMap;

use throughline_tokens::Usage;
use throughline_transcript::{ContentHash, SharedText, WireFormat};
use tokio_postgres::Row;

use crate::artifacts::artifact::ArtifactId;
use crate::artifacts::folder::ArtifactFile;
use crate::coding::{MACHINE_WRITTEN, role_of};
use crate::error::{Result, StoreError};
use crate::ids::{Owner, SessionId};
use crate::message::StoredMessage;
use crate::message_codec::{self, ArtifactTexts, artifacts_of};
use crate::sessions::session::{EndReason, Link, LinkKind, Origin, Session, SessionCounters};

use super::artifacts;
use super::connection::Tx;
use super::error::{PgError, PgResult};
use super::value::{self, SqlValue, count, int, opt_int, opt_text, text, values};

macro_rules! session_columns {
    () => {
        "ordinal, id, owner, chain, base, parent_id, link_kind, leaves_at, first_seq, next_seq, started_ms, \
         active_ms, ended_ms, end_reason, model, title, program, origin_key, project, dialect, messages, \
         message_tokens, calls, input, output, cache_read, cache_write, reasoning, cost_micro_usd, unpriced_calls"
    };
}
pub(super) use session_columns;

fn unknown_word(word: &str) -> PgError {
    PgError::unreadable(format!("unknown word `{word}`"))
}

/// A session from a row of [`session_columns`].
pub(super) fn session(row: &Row) -> PgResult<Session> {
    let link = match opt_text(row, 5)? {
        None => None,
        Some(parent) => {
            let kind = text(row, 6)?;
            Some(Link {
                parent: SessionId::from_text(parent),
                kind: LinkKind::parse(&kind).ok_or_else(|| unknown_word(&kind))?,
                leaves_at: count(row, 7)?,
            })
        }
    };
    let wire_format = text(row, 19)?;
    Ok(Session {
        ordinal: count(row, 0)?,
        id: SessionId::from_text(text(row, 1)?),
        owner: Owner::new(text(row, 2)?),
        chain: count(row, 3)?,
        base: count(row, 4)?,
        link,
        first_seq: count(row, 8)?,
        next_seq: count(row, 9)?,
        started_ms: int(row, 10)?,
        active_ms: int(row, 11)?,
        ended_ms: opt_int(row, 12)?,
        end_reason: opt_text(row, 13)?.map(EndReason::named),
        model: opt_text(row, 14)?,
        title: opt_text(row, 15)?,
        origin: Origin { program: text(row, 16)?, key: opt_text(row, 17)?, project: opt_text(row, 18)? },
        wire_format: WireFormat::ALL
            .into_iter()
            .find(|known| known.name() == wire_format)
            .ok_or_else(|| unknown_word(&wire_format))?,
        counters: SessionCounters {
            messages: count(row, 20)?,
            message_tokens: count(row, 21)?,
            calls: count(row, 22)?,
            usage: Usage {
                input: count(row, 23)?,
                output: count(row, 24)?,
                cache_read: count(row, 25)?,
                cache_write: count(row, 26)?,
                reasoning: count(row, 27)?,
            },
            cost_micro_usd: count(row, 28)?,
            unpriced_calls: count(row, 29)?,
        },
    })
}

/// Sessions of a question.
pub(super) fn sessions(tx: &Tx<'_>, sql: &str, values: Vec<SqlValue>) -> PgResult<Vec<Session>> {
    tx.query(sql, values)?.iter().map(session).collect()
}

/// Whether a session is read to be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// No one else writes to it until the transaction ends.
    Write,
}

/// A session of an owner by its whole id, if there is one.
pub(super) fn find_session(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &SessionId,
    access: Access,
) -> PgResult<Option<Session>> {
    let sql = match access {
        Access::Read => concat!("SELECT ", session_columns!(), " FROM sessions WHERE owner = $1 AND id = $2"),
        Access::Write => {
            concat!(
                "SELECT ",
                session_columns!(),
                " FROM sessions WHERE owner = $1 AND id = $2 FOR NO KEY UPDATE"
            )
        }
    };
    tx.query_opt(sql, values![owner, id])?.as_ref().map(session).transpose()
}

pub(super) fn unknown(id: &SessionId) -> PgError {
    StoreError::UnknownSession { reference: id.to_string() }.into()
}

/// A session of an owner by its whole id.
pub(super) fn require_session(tx: &Tx<'_>, owner: &Owner, id: &SessionId) -> PgResult<Session> {
    find_session(tx, owner, id, Access::Read)?.ok_or_else(|| unknown(id))
}

/// The same, for writing.
pub(super) fn require_for_writing(tx: &Tx<'_>, owner: &Owner, id: &SessionId) -> PgResult<Session> {
    find_session(tx, owner, id, Access::Write)?.ok_or_else(|| unknown(id))
}

/// The chain that a session of an owner belongs to.
pub(super) fn chain_of(tx: &Tx<'_>, owner: &Owner, id: &SessionId) -> PgResult<i64> {
    let row = tx.query_opt("SELECT chain FROM sessions WHERE owner = $1 AND id = $2", values![owner, id])?;
    int(&row.ok_or_else(|| unknown(id))?, 0)
}

/// A session by its ordinal.
pub(super) fn session_at(tx: &Tx<'_>, owner: &Owner, ordinal: u64) -> PgResult<Option<Session>> {
    let sql = concat!("SELECT ", session_columns!(), " FROM sessions WHERE owner = $1 AND ordinal = $2");
    tx.query_opt(sql, values![owner, ordinal])?.as_ref().map(session).transpose()
}

/// The newest session of a chain.
pub(super) fn tip_of(tx: &Tx<'_>, owner: &Owner, chain: u64) -> PgResult<Option<Session>> {
    let sql = concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE owner = $1 AND chain = $2 ORDER BY ordinal DESC LIMIT 1"
    );
    tx.query_opt(sql, values![owner, chain])?.as_ref().map(session).transpose()
}

/// The sessions of a chain, oldest first.
pub(super) fn members_of(tx: &Tx<'_>, owner: &Owner, chain: u64) -> PgResult<Vec<Session>> {
    sessions(
        tx,
        concat!(
            "SELECT ",
            session_columns!(),
            " FROM sessions WHERE owner = $1 AND chain = $2 ORDER BY ordinal"
        ),
        values![owner, chain],
    )
}

/// Ordinals of sessions of an owner by their ids.
pub(super) fn ordinals_of<'a>(
    tx: &Tx<'_>,
    owner: &Owner,
    ids: impl IntoIterator<Item = &'a SessionId>,
) -> PgResult<HashMap<SessionId, i64>> {
    let mut ids: Vec<&str> = ids.into_iter().map(SessionId::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = tx.query(
        "SELECT id, ordinal FROM sessions WHERE owner = $1 AND id = ANY ($2)",
        vec![owner.into(), SqlValue::texts(ids)],
    )?;
    rows.iter().map(|row| Ok((SessionId::from_text(text(row, 0)?), int(row, 1)?))).collect()
}

/// Has what changes in a session while it goes on written: its place, times and counters.
pub(super) fn write_progress(tx: &Tx<'_>, session: &Session) {
    let SessionCounters { messages, message_tokens, calls, usage, cost_micro_usd, unpriced_calls } =
        session.counters;
    tx.later(
        "UPDATE sessions SET next_seq = $3, active_ms = $4, messages = $5, message_tokens = $6, calls = $7, \
         input = $8, output = $9, cache_read = $10, cache_write = $11, reasoning = $12, cost_micro_usd = $13, \
         unpriced_calls = $14 WHERE owner = $1 AND ordinal = $2",
        values![
            &session.owner,
            session.ordinal,
            session.next_seq,
            session.active_ms,
            messages,
            message_tokens,
            calls,
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write,
            usage.reasoning,
            cost_micro_usd,
            unpriced_calls,
        ],
    );
}

macro_rules! message_columns {
    () => {
        "session, id, seq, role::int8, flags::int8, at_ms, tokens, hash, tools, coding::int8, origin"
    };
}
pub(super) use message_columns;

/// Texts of artifacts that were read ahead.
pub(super) struct TextsAtHand(pub(super) HashMap<String, String>);

impl ArtifactTexts for TextsAtHand {
    fn put(&self, text: &str) -> Result<(ArtifactId, ArtifactFile)> {
        let _ = text;
        Err(StoreError::Unsupported { what: "storing a text while reading" })
    }

    fn text(&self, id: &ArtifactId) -> Result<String> {
        self.0.get(id.as_str()).cloned().ok_or_else(|| StoreError::ArtifactDamaged {
            id: id.to_string(),
            problem: "missing".to_owned(),
            path: "artifact_pieces".into(),
        })
    }
}

/// Messages from rows of [`message_columns`], with the texts that are stored as artifacts.
pub(super) fn messages(
    tx: &Tx<'_>,
    owner: &Owner,
    rows: &[Row],
    id_of: impl Fn(i64) -> PgResult<SessionId>,
) -> PgResult<Vec<StoredMessage>> {
    let mut cut_out = Vec::new();
    for row in rows {
        cut_out.extend(artifacts_of(int(row, 9)?, value::bytes(row, 10)?));
    }
    let texts = TextsAtHand(artifacts::texts(tx, owner, cut_out)?);
    rows.iter().map(|row| message(row, id_of(int(row, 0)?)?, &texts)).collect()
}

fn message(row: &Row, session: SessionId, texts: &TextsAtHand) -> PgResult<StoredMessage> {
    let role = int(row, 3)?;
    Ok(StoredMessage {
        id: count(row, 1)?,
        session,
        seq: count(row, 2)?,
        role: role_of(role).ok_or_else(|| PgError::unreadable(format!("there is no role {role}")))?,
        machine_written: int(row, 4)? & MACHINE_WRITTEN != 0,
        at_ms: int(row, 5)?,
        tokens: count(row, 6)?,
        hash: ContentHash(value::hash(row, 7)?),
        tools: names(opt_text(row, 8)?.as_deref())?,
        json: SharedText::new(message_codec::unpack(int(row, 9)?, value::bytes(row, 10)?, texts)?),
    })
}

/// Names as they are stored; nothing for none.
pub(super) fn names_text(names: &[String]) -> PgResult<Option<String>> {
    if names.is_empty() {
        return Ok(None);
    }
    json_text(names).map(Some)
}

/// Names from what was stored.
pub(super) fn names(text: Option<&str>) -> PgResult<Vec<String>> {
    text.map_or(Ok(Vec::new()), from_json_text)
}

/// A value as the JSON that is stored for it.
pub(super) fn json_text(value: &(impl serde::Serialize + ?Sized)) -> PgResult<String> {
    serde_json::to_string(value).map_err(|error| {
        StoreError::Database { what: "writing a value as JSON", source: Box::new(error) }.into()
    })
}

/// A value from the JSON that was stored for it.
pub(super) fn from_json_text<T: serde::de::DeserializeOwned>(text: &str) -> PgResult<T> {
    serde_json::from_str(text).map_err(|error| PgError::unreadable(error.to_string()))
}

/// A text that is stored as bytes, because it may hold any character and is compared with nothing.
pub(super) fn text_of_bytes(bytes: &[u8]) -> PgResult<String> {
    String::from_utf8(bytes.to_vec()).map_err(|error| PgError::unreadable(error.to_string()))
}
