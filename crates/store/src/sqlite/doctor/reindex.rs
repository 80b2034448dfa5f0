//! Bringing single rows into the indexes again.

use rusqlite::{Connection, OptionalExtension, params};
use throughline_transcript::{Message, Role};

use crate::artifact::{ArtifactId, ArtifactRange};
use crate::artifact_folder::ArtifactFolder;
use crate::fold::fold_text;
use crate::searchable::searchable_text;
use crate::terms::index_terms;

use super::super::index::{
    Marks, PieceText, forget_artifact, index_artifact, index_message, marks_text, message_without_artifacts,
};
use super::super::rows::{MACHINE_WRITTEN, count, names, role_of, speaker_of};
use super::super::trouble::Outcome;
use super::indexes::is_message;

/// Indexes the words of a message or of a piece of an artifact. What cannot be read is indexed without words.
pub(super) fn words(conn: &Connection, row: i64, folder: &ArtifactFolder) -> Outcome<()> {
    if is_message(row) {
        return message_words(conn, row);
    }
    let mut terms = String::new();
    index_terms(&piece_text(conn, row, folder)?, &mut terms);
    conn.prepare_cached("INSERT INTO words (rowid, terms) VALUES (?1, ?2)")?.execute(params![row, terms])?;
    Ok(())
}

/// A message with what it is found by beside its words.
struct Found {
    owner: String,
    chain: u64,
    tools: Option<String>,
    role: i64,
    flags: i64,
    /// Nothing if its bytes cannot be read.
    message: Option<Message>,
}

fn message_words(conn: &Connection, id: i64) -> Outcome<()> {
    let found = conn
        .prepare_cached(
            "SELECT owner, chain, tools, role, flags, coding, origin FROM messages m JOIN sessions s ON s.ordinal = m.session
             WHERE m.id = ?1",
        )?
        .query_row([id], |row| {
            Ok(Found {
                owner: row.get(0)?,
                chain: row.get(1).map(count)?,
                tools: row.get(2)?,
                role: row.get(3)?,
                flags: row.get(4)?,
                message: message_without_artifacts(row.get(5)?, row.get_ref(6)?.as_blob()?),
            })
        })
        .optional()?;
    let Some(found) = found else { return Ok(()) };
    let tools = names(found.tools.as_deref()).unwrap_or_default();
    let marks = Marks { owner: &found.owner, chain: found.chain, tools: &tools };
    if let Some(mut message) = found.message {
        if found.flags & MACHINE_WRITTEN != 0 {
            message = message.marked_machine_written();
        }
        index_message(conn, id, &message, &marks)?;
        return Ok(());
    }
    let mut terms = String::new();
    let role = speaker_of(role_of(found.role).unwrap_or(Role::Other), found.flags);
    marks_text(&marks, role, &mut terms);
    conn.prepare_cached("INSERT INTO words (rowid, terms) VALUES (?1, ?2)")?.execute(params![id, terms])?;
    Ok(())
}

/// Indexes a message or a piece of an artifact for substrings.
pub(super) fn grams(conn: &Connection, row: i64, folder: &ArtifactFolder) -> Outcome<()> {
    let mut text = String::new();
    if is_message(row) {
        let message: Option<Message> = conn
            .prepare_cached("SELECT coding, origin FROM messages WHERE id = ?1")?
            .query_row([row], |row| Ok(message_without_artifacts(row.get(0)?, row.get_ref(1)?.as_blob()?)))
            .optional()?
            .flatten();
        if let Some(message) = message {
            searchable_text(&message, &mut text);
        }
    } else {
        text = piece_text(conn, row, folder)?;
    }
    let mut folded = String::new();
    fold_text(&text, &mut folded);
    conn.prepare_cached("INSERT INTO grams (rowid, folded) VALUES (?1, ?2)")?
        .execute(params![row, folded])?;
    Ok(())
}

/// Cuts an artifact into pieces anew and indexes their words. One whose file cannot be read is left alone.
pub(super) fn artifact(conn: &Connection, number: i64, folder: &ArtifactFolder) -> Outcome<()> {
    let name: String = conn
        .prepare_cached("SELECT name FROM artifacts WHERE n = ?1")?
        .query_row([number], |row| row.get(0))?;
    if let Ok(text) = folder.read(&ArtifactId::from_text(name), ArtifactRange::All) {
        forget_artifact(conn, number)?;
        index_artifact(conn, number, &text)?;
    }
    Ok(())
}

fn piece_text(conn: &Connection, row: i64, folder: &ArtifactFolder) -> Outcome<String> {
    let piece = conn
        .prepare_cached(
            "SELECT a.name, p.first_byte, p.bytes FROM artifact_pieces p JOIN artifacts a ON a.n = p.artifact
             WHERE p.row = ?1",
        )?
        .query_row([row], |row| PieceText::from_row(row, 0))
        .optional()?;
    Ok(piece.and_then(|piece| piece.read(folder).ok()).unwrap_or_default())
}
