//! The fingerprints of a row: those of its text, and those of its owner, conversation, role and tools.
//!
//! The index contains no text: its proposals are verified against the rows. A row's number is the message's id; pieces of artifacts have
//! numbers of their own, from [`ARTIFACT_ROWS`] up. The fingerprints of owner, conversation, role and tools let a filtered search read no
//! more than it must.

use rusqlite::{Connection, OptionalExtension, params};
use throughline_search::fingerprint::FingerprintSet;
use throughline_transcript::{Message, Role, SharedText, decode_message};

use crate::artifacts::artifact::{ArtifactId, ArtifactRange};
use crate::artifacts::files::ArtifactFiles;
use crate::artifacts::pieces::pieces;
use crate::error::Result;
use crate::search::searchable::searchable_text;
pub(super) use throughline_search::belonging::Belonging;

use super::error::TxResult;
use super::fingerprint_index::{self, ARTIFACT_ROWS, FingerprintWriter, IndexSegment, RowState};
use super::message_codec::unpack_skeleton;
use super::progress::StoreProgress;
use super::rows::{count, names, role_of, speaker_of};

/// Indexes the rows that one transaction writes.
pub(super) struct Indexing<'c> {
    conn: &'c Connection,
    fingerprints: FingerprintWriter,
    text: String,
}

impl<'c> Indexing<'c> {
    /// Starts with nothing.
    pub(super) fn new(conn: &'c Connection) -> Self {
        Self { conn, fingerprints: FingerprintWriter::default(), text: String::new() }
    }

    /// Indexes a written message.
    pub(super) fn message(
        &mut self,
        id: i64,
        message: &Message,
        belonging: &Belonging<'_>,
    ) -> rusqlite::Result<()> {
        self.text.clear();
        searchable_text(message, &mut self.text);
        self.fingerprints.add(self.conn, id, |set| {
            belonging.add_to(set);
            set.add_text(&self.text);
        })
    }

    /// Splits a recorded artifact into pieces, and indexes them.
    pub(super) fn artifact(&mut self, artifact: i64, text: &str) -> rusqlite::Result<()> {
        let mut add_piece = self.conn.prepare_cached(
            "INSERT INTO artifact_pieces (row, artifact, first_byte, bytes, first_line) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        let pieces: Vec<_> = pieces(text).collect();
        let first = ARTIFACT_ROWS + take_numbers(self.conn, "piece", pieces.len())?;
        for (row, piece) in (first..).zip(pieces) {
            let bytes = piece.text.len();
            add_piece.execute(params![row, artifact, piece.first_byte, bytes, piece.first_line])?;
            self.fingerprints.add(self.conn, row, |set| set.add_text(piece.text))?;
        }
        Ok(())
    }

    /// Completes the index. Without this the last rows cannot be found.
    pub(super) fn finish(self) -> rusqlite::Result<()> {
        self.fingerprints.finish(self.conn)
    }
}

/// Reserves the next numbers of a kind; they are never used again, even after deletions.
pub(super) fn take_numbers(conn: &Connection, name: &str, how_many: usize) -> rusqlite::Result<i64> {
    conn.prepare_cached("UPDATE numbers SET next = next + ?2 WHERE name = ?1 RETURNING next - ?2")?
        .query_row(params![name, how_many as i64], |row| row.get(0))
}

/// Updates the index for rows that were deleted or changed.
pub(super) fn read_again(conn: &Connection, artifacts: &ArtifactFiles, rows: &[i64]) -> rusqlite::Result<()> {
    fingerprint_index::read_again(conn, rows, &|row, set| add_fingerprints(conn, artifacts, row, set))
}

/// Deletes the pieces of an artifact. Returns their rows, which must be indexed again.
pub(super) fn forget_pieces(conn: &Connection, artifact: i64) -> rusqlite::Result<Vec<i64>> {
    conn.prepare_cached("DELETE FROM artifact_pieces WHERE artifact = ?1 RETURNING row")?
        .query_map([artifact], |row| row.get(0))?
        .collect()
}

/// Splits an artifact into pieces again and indexes them. One with an unreadable file is not changed.
pub(super) fn cut_anew(conn: &Connection, number: i64, folder: &ArtifactFiles) -> TxResult<()> {
    let name: String = conn
        .prepare_cached("SELECT name FROM artifacts WHERE n = ?1")?
        .query_row([number], |row| row.get(0))?;
    if let Ok(text) = folder.read(&ArtifactId::from_text(name), ArtifactRange::All) {
        let gone = forget_pieces(conn, number)?;
        let mut indexing = Indexing::new(conn);
        indexing.artifact(number, &text)?;
        indexing.finish()?;
        read_again(conn, folder, &gone)?;
    }
    Ok(())
}

/// Fills an empty index, and splits artifacts without pieces.
pub(super) fn make_anew(
    conn: &Connection,
    folder: &ArtifactFiles,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<()> {
    let range: (Option<i64>, Option<i64>) =
        conn.query_row("SELECT min(id), max(id) FROM messages", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let segments: Vec<IndexSegment> = match range {
        (Some(first), Some(last)) => {
            IndexSegment::of_row(first).through(IndexSegment::of_row(last)).collect()
        }
        _ => Vec::new(),
    };
    let artifacts: Vec<i64> = conn
        .prepare("SELECT n FROM artifacts ORDER BY n")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let total = (segments.len() + artifacts.len()) as u64;
    let mut done = 0;
    let mut step = || {
        progress(StoreProgress { what: "indexing", done, total });
        done += 1;
    };
    for segment in segments {
        step();
        read_again(conn, folder, &segment.rows().collect::<Vec<i64>>())?;
    }
    for artifact in artifacts {
        step();
        cut_anew(conn, artifact, folder)?;
    }
    Ok(())
}

/// Adds the fingerprints of a row to a set.
pub(super) fn add_fingerprints(
    conn: &Connection,
    artifacts: &ArtifactFiles,
    row: i64,
    set: &mut FingerprintSet,
) -> rusqlite::Result<RowState> {
    if row < ARTIFACT_ROWS {
        return add_fingerprints_of_message(conn, row, set);
    }
    let piece = conn
        .prepare_cached(
            "SELECT a.name, p.first_byte, p.bytes FROM artifact_pieces p JOIN artifacts a ON a.n = p.artifact
             WHERE p.row = ?1",
        )?
        .query_row([row], |row| PieceText::from_row(row, 0))
        .optional()?;
    Ok(match piece.map(|piece| piece.read(artifacts)) {
        None => RowState::Gone,
        Some(Err(_)) => RowState::Unreadable,
        Some(Ok(text)) => {
            set.add_text(&text);
            RowState::Read
        }
    })
}

fn add_fingerprints_of_message(
    conn: &Connection,
    id: i64,
    set: &mut FingerprintSet,
) -> rusqlite::Result<RowState> {
    let mut select = conn.prepare_cached(
        "SELECT coalesce(s.owner, ''), coalesce(s.chain, m.session), m.role, m.flags, m.tools, m.coding, m.origin
         FROM messages m LEFT JOIN sessions s ON s.ordinal = m.session WHERE m.id = ?1",
    )?;
    let mut rows = select.query([id])?;
    let Some(row) = rows.next()? else { return Ok(RowState::Gone) };
    let owner: String = row.get(0)?;
    let role = speaker_of(role_of(row.get(2)?).unwrap_or(Role::Other), row.get(3)?);
    let tools = names(row.get::<_, Option<String>>(4)?.as_deref()).unwrap_or_default();
    Belonging { owner: &owner, chain: row.get(1).map(count)?, role, tools: &tools }.add_to(set);
    Ok(match message_without_artifacts(row.get(5)?, row.get_ref(6)?.as_blob()?) {
        None => RowState::Unreadable,
        Some(message) => {
            let mut text = String::new();
            searchable_text(&message, &mut text);
            set.add_text(&text);
            RowState::Read
        }
    })
}

/// Returns the message in a row, without the texts stored as artifacts.
pub(super) fn message_without_artifacts(coding: i64, origin: &[u8]) -> Option<Message> {
    decode_message(SharedText::new(unpack_skeleton(coding, origin).ok()?.json.into_owned()))
}

/// The location of a piece's text.
pub(super) struct PieceText {
    pub(super) artifact: ArtifactId,
    pub(super) first_byte: u64,
    pub(super) bytes: u64,
}

impl PieceText {
    /// Reads it from three columns of a row: name, first byte, bytes.
    pub(super) fn from_row(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            artifact: ArtifactId::from_text(row.get::<_, String>(at)?),
            first_byte: row.get(at + 1)?,
            bytes: row.get(at + 2)?,
        })
    }

    /// Reads the text.
    pub(super) fn read(&self, artifacts: &ArtifactFiles) -> Result<String> {
        artifacts.read(&self.artifact, ArtifactRange::Bytes { first: self.first_byte, count: self.bytes })
    }
}
