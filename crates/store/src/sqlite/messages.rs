//! Messages: appending them with their artifacts and what they are found by, and reading them back.

use rusqlite::{Connection, params};

use crate::artifact_folder::ArtifactFolder;
use crate::chain::Stretch;
use crate::ids::{Owner, SessionId};
use crate::message::{Appended, NewMessage, StoredMessage, speaks_as};
use crate::session::Session;
use crate::summary::Run;

use super::artifacts::{self, Reference};
use super::body::{self, PackedBody};
use super::continuing::require_open;
use super::index::{Belonging, Indexing, take_numbers};
use super::rows::{
    MACHINE_WRITTEN, RESULTS_ONLY, int, known_session, members_of, names_text, role_code, write_progress,
};
use super::sessions::line_of;
use super::trouble::Outcome;
use super::views;

/// Appends messages to a session. What it costs does not depend on what is there already.
pub(super) fn append(
    conn: &Connection,
    folder: &ArtifactFolder,
    owner: &Owner,
    id: &SessionId,
    messages: Vec<NewMessage>,
) -> Outcome<Appended> {
    let mut session = known_session(conn, owner, id)?;
    require_open(conn, &session)?;
    let first_seq = session.next_seq;
    if messages.is_empty() {
        return Ok(Appended { first_seq, next_seq: first_seq });
    }
    let first_number = take_numbers(conn, "message", messages.len())?;
    let mut indexing = Indexing::new(conn);
    let mut renditions = Vec::new();
    for (number, new) in (first_number..).zip(messages) {
        write(conn, folder, &session, number, &new, &mut indexing)?;
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
    Ok(Appended { first_seq, next_seq: session.next_seq })
}

/// Writes one message at the next place of a session.
fn write(
    conn: &Connection,
    folder: &ArtifactFolder,
    session: &Session,
    number: i64,
    new: &NewMessage,
    indexing: &mut Indexing<'_>,
) -> Outcome<()> {
    let message = &new.message;
    let PackedBody { coding, bytes, artifacts } = body::pack(message, folder)?;
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
        message.content_hash().0.as_slice(),
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
        // A message answers for one tool, as a rule; which of several a text came from is not worth another column.
        let label = new.tools.first().map_or("", String::as_str);
        let session = int(session.ordinal);
        let reference = Reference { session, message: Some(number), label, at_ms: new.at_ms };
        artifacts::keep(conn, &artifact.id, &artifact.file, &artifact.text, &reference, indexing)?;
    }
    Ok(())
}

/// Messages appended to this very session.
pub(super) fn of_session(
    conn: &Connection,
    folder: &ArtifactFolder,
    owner: &Owner,
    id: &SessionId,
) -> Outcome<Vec<StoredMessage>> {
    let session = known_session(conn, owner, id)?;
    let mut messages = Vec::new();
    views::run(conn, folder, int(session.ordinal), &session.id, 0..i64::MAX, |message| {
        messages.push(message)
    })?;
    Ok(messages)
}

/// The messages of a run.
pub(super) fn of_run(
    conn: &Connection,
    folder: &ArtifactFolder,
    owner: &Owner,
    run: &Run,
) -> Outcome<Vec<StoredMessage>> {
    let session = known_session(conn, owner, &run.session)?;
    let mut messages = Vec::new();
    let places = int(run.first_seq)..int(run.end_seq);
    views::run(conn, folder, int(session.ordinal), &session.id, places, |message| messages.push(message))?;
    Ok(messages)
}

/// Everything that was said up to and including a session.
pub(super) fn transcript(
    conn: &Connection,
    folder: &ArtifactFolder,
    owner: &Owner,
    id: &SessionId,
) -> Outcome<Vec<StoredMessage>> {
    let session = known_session(conn, owner, id)?;
    let mut messages = Vec::new();
    for stretch in line_of(conn, owner, Stretch::through(&session))?.iter().rev() {
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
