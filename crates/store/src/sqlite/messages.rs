//! Messages: appending them with their artifacts and fingerprints, and reading them.

use rusqlite::{Connection, OptionalExtension, Row, params};
use throughline_transcript::ContentHash;

use crate::artifacts::files::ArtifactFiles;
use crate::error::StoreError;
use crate::ids::{Owner, SessionId};
use crate::message::{AppendRange, MessageHead, NewMessage, StoredMessage, speaks_as};
use crate::sessions::chain::LinePart;
use crate::sessions::session::Session;
use crate::sessions::version::{LastMessage, Version};
use crate::views::summary::MessageRun;

use super::artifacts::{self, Reference};
use super::commit::require_open;
use super::error::{TxError, TxResult};
use super::indexing::{Belonging, Indexing, take_numbers};
use super::message_codec::{self, PackedBody};
use super::rows::{
    MACHINE_WRITTEN, RESULTS_ONLY, count, int, members_of, names_text, require_session, role_code, role_of,
    speaker_of, write_progress,
};
use super::sessions::line_of;
use super::views;

/// Appends messages to a session. The cost does not depend on the size of the record.
pub(super) fn append(
    conn: &Connection,
    folder: &ArtifactFiles,
    owner: &Owner,
    id: &SessionId,
    messages: Vec<NewMessage>,
) -> TxResult<AppendRange> {
    append_all(conn, folder, owner, id, messages).map(|(appended, _)| appended)
}

/// Appends messages, and returns the identity of the last one; `None` if there were none.
fn append_all(
    conn: &Connection,
    folder: &ArtifactFiles,
    owner: &Owner,
    id: &SessionId,
    messages: Vec<NewMessage>,
) -> TxResult<(AppendRange, Option<LastMessage>)> {
    let mut session = require_session(conn, owner, id)?;
    require_open(conn, &session)?;
    let first_seq = session.next_seq;
    if messages.is_empty() {
        return Ok((AppendRange { first_seq, next_seq: first_seq }, None));
    }
    let mut last = None;
    let first_number = take_numbers(conn, "message", messages.len())?;
    let mut indexing = Indexing::new(conn);
    let mut renditions = Vec::new();
    for (number, new) in (first_number..).zip(messages) {
        let hash = write(conn, folder, &session, number, &new, &mut indexing)?;
        last = Some(LastMessage { id: count(number), at_ms: new.at_ms, hash });
        renditions.extend(new.rendition.map(|rendition| (session.next_seq, rendition)));
        session.next_seq += 1;
        session.active_ms = session.active_ms.max(new.at_ms);
        session.counters.messages += 1;
        session.counters.message_tokens = session.counters.message_tokens.saturating_add(new.tokens);
    }
    indexing.finish()?;
    write_progress(conn, &session)?;
    if !renditions.is_empty() {
        views::grow(conn, &session, renditions)?;
    }
    Ok((AppendRange { first_seq, next_seq: session.next_seq }, last))
}

/// Selects the newest session of a session's chain, and its last message. One statement on three indexes, because it runs before every
/// request of a gateway.
const VERSION: &str = "SELECT tip.id, tip.next_seq, messages.id, messages.at_ms, messages.hash FROM sessions AS one \
     JOIN sessions AS tip ON tip.chain = one.chain \
     LEFT JOIN messages ON messages.session = tip.ordinal AND messages.seq = tip.next_seq - 1 \
     WHERE one.id = ?1 AND one.owner = ?2 ORDER BY tip.ordinal DESC LIMIT 1";

/// Returns the version of a session's conversation.
pub(super) fn version(conn: &Connection, owner: &Owner, id: &SessionId) -> TxResult<Version> {
    let found = conn
        .prepare_cached(VERSION)?
        .query_row((id.as_str(), owner.as_str()), |row| {
            let (next_seq, last) = end_of(row)?;
            Ok(Version { tip: SessionId::from_text(row.get::<_, String>(0)?), next_seq, last })
        })
        .optional()?;
    found.ok_or_else(|| StoreError::UnknownSession { reference: id.to_string() }.into())
}

/// Reads the position after the last message, and that message.
fn end_of(row: &Row<'_>) -> rusqlite::Result<(u64, Option<LastMessage>)> {
    let last = match row.get::<_, Option<i64>>(2)? {
        None => None,
        Some(id) => Some(LastMessage { id: count(id), at_ms: row.get(3)?, hash: ContentHash(row.get(4)?) }),
    };
    Ok((count(row.get(1)?), last))
}

/// Whether a conversation is at a version.
fn is_at(conn: &Connection, owner: &Owner, version: &Version) -> rusqlite::Result<bool> {
    let found = conn
        .prepare_cached(VERSION)?
        .query_row((version.tip.as_str(), owner.as_str()), |row| {
            let is_tip = row.get_ref(0)?.as_str()? == version.tip.as_str();
            Ok(is_tip && end_of(row)? == (version.next_seq, version.last))
        })
        .optional()?;
    Ok(found == Some(true))
}

/// Appends messages if the conversation is at this version.
pub(super) fn append_at(
    conn: &Connection,
    folder: &ArtifactFiles,
    owner: &Owner,
    expected: &Version,
    messages: Vec<NewMessage>,
) -> TxResult<Version> {
    if !is_at(conn, owner, expected)? {
        let now = version(conn, owner, &expected.tip)?;
        return Err(StoreError::VersionConflict { id: expected.tip.clone(), tip: now.tip }.into());
    }
    let (appended, last) = append_all(conn, folder, owner, &expected.tip, messages)?;
    Ok(Version { tip: expected.tip.clone(), next_seq: appended.next_seq, last: last.or(expected.last) })
}

/// Writes one message at the next position of a session; returns the hash of its bytes.
fn write(
    conn: &Connection,
    folder: &ArtifactFiles,
    session: &Session,
    number: i64,
    new: &NewMessage,
    indexing: &mut Indexing<'_>,
) -> TxResult<ContentHash> {
    let message = &new.message;
    let hash = message.content_hash();
    let PackedBody { coding, bytes, artifacts } = message_codec::pack(message, folder)?;
    let mut flags = if message.is_machine_written() { MACHINE_WRITTEN } else { 0 };
    if speaks_as(message) != message.role() {
        flags |= RESULTS_ONLY;
    }
    conn.prepare_cached(
        "INSERT INTO messages (id, session, seq, role, flags, at_ms, tokens, hash, tools, coding, origin) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        number,
        int(session.ordinal),
        int(session.next_seq),
        role_code(message.role()),
        flags,
        new.at_ms,
        int(new.tokens),
        hash.0.as_slice(),
        names_text(&new.tools)?,
        coding,
        bytes.as_ref(),
    ])?;
    let belonging = Belonging {
        owner: session.owner.as_str(),
        chain: session.chain,
        role: speaks_as(message),
        tools: &new.tools,
    };
    indexing.message(number, message, &belonging)?;
    for artifact in artifacts {
        // A message usually has results of one tool; which of several a text comes from is not stored.
        let label = new.tools.first().map_or("", String::as_str);
        let session = int(session.ordinal);
        let reference = Reference { session, message: Some(number), label, at_ms: new.at_ms };
        artifacts::keep(conn, &artifact.id, &artifact.file, &artifact.text, &reference, indexing)?;
    }
    Ok(hash)
}

/// Returns messages appended to this session.
pub(super) fn of_session(
    conn: &Connection,
    folder: &ArtifactFiles,
    owner: &Owner,
    id: &SessionId,
) -> TxResult<Vec<StoredMessage>> {
    let session = require_session(conn, owner, id)?;
    let mut messages = Vec::new();
    views::run(conn, folder, int(session.ordinal), &session.id, 0..i64::MAX, |message| {
        messages.push(message)
    })?;
    Ok(messages)
}

/// Returns the messages of a run.
pub(super) fn of_run(
    conn: &Connection,
    folder: &ArtifactFiles,
    owner: &Owner,
    run: &MessageRun,
) -> TxResult<Vec<StoredMessage>> {
    let session = require_session(conn, owner, &run.session)?;
    let mut messages = Vec::new();
    let places = int(run.first_seq)..int(run.end_seq);
    views::run(conn, folder, int(session.ordinal), &session.id, places, |message| messages.push(message))?;
    Ok(messages)
}

/// Returns messages of a session without their bytes.
pub(super) fn heads(conn: &Connection, owner: &Owner, id: &SessionId) -> TxResult<Vec<MessageHead>> {
    let session = require_session(conn, owner, id)?;
    let mut statement = conn.prepare_cached(
        "SELECT seq, role, flags, tokens, at_ms FROM messages WHERE session = ?1 ORDER BY seq",
    )?;
    let mut rows = statement.query([int(session.ordinal)])?;
    let mut heads = Vec::new();
    while let Some(row) = rows.next()? {
        let role: i64 = row.get(1)?;
        let role = role_of(role).ok_or_else(|| TxError::unreadable(format!("there is no role {role}")))?;
        heads.push(MessageHead {
            seq: count(row.get(0)?),
            speaker: speaker_of(role, row.get(2)?),
            tokens: count(row.get(3)?),
            at_ms: row.get(4)?,
        });
    }
    Ok(heads)
}

/// Returns all messages up to and including a session.
pub(super) fn transcript(
    conn: &Connection,
    folder: &ArtifactFiles,
    owner: &Owner,
    id: &SessionId,
) -> TxResult<Vec<StoredMessage>> {
    let session = require_session(conn, owner, id)?;
    let mut messages = Vec::new();
    for stretch in line_of(conn, owner, LinePart::through(&session))?.iter().rev() {
        for member in members_of(conn, stretch.chain)? {
            let Some(end) = stretch.end_in(&member) else { continue };
            let places = 0..int(end);
            views::run(conn, folder, int(member.ordinal), &member.id, places, |message| {
                messages.push(message)
            })?;
        }
    }
    Ok(messages)
}
