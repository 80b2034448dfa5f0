//! The two full-text indexes: `words`, written with the rows, and `grams` for substrings, which follows behind.
//!
//! Neither holds any text: terms are cut and folded in Rust, and what an index proposes is verified against the row it
//! names. A row's number is the message's id; pieces of artifacts have numbers of their own, from [`ARTIFACT_ROWS`] up.
//! Beside its words, a message is indexed by marks for its owner, conversation, role and tools, so that a filtered
//! search reads no more of the index than it has to.

use std::cell::RefCell;
use std::fmt::Write as _;

use rusqlite::{Connection, params};
use throughline_transcript::{Message, Role, SharedText, decode_message};

use crate::artifact::{ArtifactId, ArtifactRange};
use crate::artifact_folder::ArtifactFolder;
use crate::artifact_pieces::{PIECES_PER_ARTIFACT, pieces};
use crate::error::Result;
use crate::fold::fold_text;
use crate::message::speaks_as;
use crate::searchable::searchable_text;
use crate::terms::index_terms;

use super::body::unpack_skeleton;

/// Rows of pieces of artifacts begin here; no message ever gets so large an id.
pub(super) const ARTIFACT_ROWS: i64 = 1 << 40;
/// The substring index may lag behind by this many messages; who appends more catches up first.
pub(super) const MAX_GRAMS_BACKLOG: u64 = 10_000;

/// Tables of the indexes. The position is the last message the substring index covers.
pub(super) const SCHEMA: &str = "
CREATE VIRTUAL TABLE words USING fts5(
    terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE grams USING fts5(
    folded, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
CREATE TABLE grams_position (one INTEGER PRIMARY KEY CHECK (one = 1), message INTEGER NOT NULL) STRICT;
INSERT INTO grams_position VALUES (1, 0);
";

/// What a message is found by beside its words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks<'a> {
    /// Whose it is.
    pub(super) owner: &'a str,
    /// Ordinal of the first session of its chain.
    pub(super) chain: u64,
    /// Tools it calls or answers for.
    pub(super) tools: &'a [String],
}

/// First characters of marks: private ones, which no text is cut into.
const OWNER_MARK: char = '\u{e000}';
const CHAIN_MARK: char = '\u{e001}';
const ROLE_MARK: char = '\u{e002}';
const TOOL_MARK: char = '\u{e003}';

/// The mark of an owner.
pub(super) fn owner_mark(owner: &str) -> String {
    name_mark(OWNER_MARK, owner)
}

/// The mark of a chain.
pub(super) fn chain_mark(chain: u64) -> String {
    format!("{CHAIN_MARK}{chain:x}")
}

/// The mark of a role.
pub(super) fn role_mark(role: Role) -> String {
    format!("{ROLE_MARK}{}", role.name())
}

/// The mark of a tool, whose case makes no difference.
pub(super) fn tool_mark(tool: &str) -> String {
    name_mark(TOOL_MARK, &tool.to_lowercase())
}

/// Names may hold anything, a term may not: it is made of a hash.
fn name_mark(first: char, name: &str) -> String {
    format!("{first}{}", &blake3::hash(name.as_bytes()).to_hex().as_str()[..12])
}

thread_local! {
    static BUFFERS: RefCell<(String, String)> = const { RefCell::new((String::new(), String::new())) };
}

/// Gives the two buffers that indexing reuses, emptied.
fn with_buffers<T>(work: impl FnOnce(&mut String, &mut String) -> T) -> T {
    BUFFERS.with_borrow_mut(|(text, terms)| {
        text.clear();
        terms.clear();
        work(text, terms)
    })
}

/// Indexes the words of a message whose row was written.
pub(super) fn index_message(
    conn: &Connection,
    id: i64,
    message: &Message,
    marks: &Marks<'_>,
) -> rusqlite::Result<()> {
    with_buffers(|text, terms| {
        searchable_text(message, text);
        marks_text(marks, speaks_as(message), terms);
        index_terms(text, terms);
        insert_words(conn, id, terms)
    })
}

/// Appends the marks of a message as terms.
pub(super) fn marks_text(marks: &Marks<'_>, role: Role, terms: &mut String) {
    let _ = write!(terms, "{} {} {} ", owner_mark(marks.owner), chain_mark(marks.chain), role_mark(role));
    for tool in marks.tools {
        let _ = write!(terms, "{} ", tool_mark(tool));
    }
}

fn insert_words(conn: &Connection, row: i64, terms: &str) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT INTO words (rowid, terms) VALUES (?1, ?2)")?.execute(params![row, terms])?;
    Ok(())
}

fn insert_grams(conn: &Connection, row: i64, folded: &str) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT INTO grams (rowid, folded) VALUES (?1, ?2)")?
        .execute(params![row, folded])?;
    Ok(())
}

/// Takes messages out of both indexes.
pub(super) fn forget_messages(conn: &Connection, ids: &[i64]) -> rusqlite::Result<()> {
    let position = grams_position(conn)?;
    let mut from_words = conn.prepare_cached("DELETE FROM words WHERE rowid = ?1")?;
    let mut from_grams = conn.prepare_cached("DELETE FROM grams WHERE rowid = ?1")?;
    for &id in ids {
        from_words.execute([id])?;
        if id <= position {
            from_grams.execute([id])?;
        }
    }
    Ok(())
}

/// The row of a piece of an artifact.
fn piece_row(artifact: i64, piece: i64) -> i64 {
    ARTIFACT_ROWS + artifact * PIECES_PER_ARTIFACT as i64 + piece
}

/// Indexes the words of an artifact that was recorded.
pub(super) fn index_artifact(conn: &Connection, artifact: i64, text: &str) -> rusqlite::Result<()> {
    let mut add_piece = conn.prepare_cached(
        "INSERT INTO artifact_pieces (row, artifact, first_byte, bytes, first_line) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (number, piece) in (0..).zip(pieces(text)) {
        let row = piece_row(artifact, number);
        add_piece.execute(params![row, artifact, piece.first_byte, piece.text.len(), piece.first_line])?;
        with_buffers(|_, terms| {
            index_terms(piece.text, terms);
            insert_words(conn, row, terms)
        })?;
    }
    Ok(())
}

/// Takes an artifact out of both indexes.
pub(super) fn forget_artifact(conn: &Connection, artifact: i64) -> rusqlite::Result<()> {
    let rows = params![piece_row(artifact, 0), piece_row(artifact + 1, 0)];
    for (select, delete) in [
        (
            "SELECT row FROM artifact_pieces WHERE row >= ?1 AND row < ?2",
            "DELETE FROM words WHERE rowid = ?1",
        ),
        (
            "SELECT row FROM artifact_pieces WHERE row >= ?1 AND row < ?2 AND has_grams = 1",
            "DELETE FROM grams WHERE rowid = ?1",
        ),
    ] {
        let mut delete = conn.prepare_cached(delete)?;
        let mut select = conn.prepare_cached(select)?;
        let mut found = select.query(rows)?;
        while let Some(row) = found.next()? {
            delete.execute([row.get::<_, i64>(0)?])?;
        }
    }
    conn.execute("DELETE FROM artifact_pieces WHERE row >= ?1 AND row < ?2", rows)?;
    Ok(())
}

/// The last message the substring index covers.
pub(super) fn grams_position(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("SELECT message FROM grams_position")?.query_row([], |row| row.get(0))
}

/// How many messages and pieces of artifacts the substring index does not cover yet.
pub(super) fn grams_backlog(conn: &Connection) -> rusqlite::Result<u64> {
    conn.prepare_cached(
        "SELECT max(0, coalesce((SELECT max(id) FROM messages), 0) - (SELECT message FROM grams_position))
              + (SELECT count(*) FROM artifact_pieces WHERE has_grams = 0)",
    )?
    .query_row([], |row| row.get(0))
}

/// Brings the substring index forward by at most so many messages and pieces of artifacts, inside the caller's
/// transaction. Returns how many it did; fewer than asked for means that nothing is left.
pub(super) fn catch_up_grams(
    conn: &Connection,
    at_most: usize,
    artifacts: &ArtifactFolder,
) -> rusqlite::Result<usize> {
    // The database has no larger numbers.
    let at_most = at_most.min(i64::MAX as usize);
    let messages = catch_up_messages(conn, at_most)?;
    Ok(messages + catch_up_artifacts(conn, at_most - messages, artifacts)?)
}

fn catch_up_messages(conn: &Connection, at_most: usize) -> rusqlite::Result<usize> {
    let mut done = 0;
    let mut position = grams_position(conn)?;
    let mut select =
        conn.prepare_cached("SELECT id, coding, origin FROM messages WHERE id > ?1 ORDER BY id LIMIT ?2")?;
    let mut rows = select.query(params![position, at_most])?;
    while let Some(row) = rows.next()? {
        position = row.get(0)?;
        // Damage is for others to report; a row that cannot be read cannot be found either.
        if let Some(message) = message_without_artifacts(row.get(1)?, row.get_ref(2)?.as_blob()?) {
            with_buffers(|text, folded| {
                searchable_text(&message, text);
                fold_text(text, folded);
                insert_grams(conn, position, folded)
            })?;
        }
        done += 1;
    }
    if done > 0 {
        conn.prepare_cached("UPDATE grams_position SET message = ?1")?.execute([position])?;
    }
    Ok(done)
}

/// The message in a row, without the texts that are kept as artifacts.
pub(super) fn message_without_artifacts(coding: i64, origin: &[u8]) -> Option<Message> {
    decode_message(SharedText::new(unpack_skeleton(coding, origin).ok()?.json))
}

fn catch_up_artifacts(
    conn: &Connection,
    at_most: usize,
    artifacts: &ArtifactFolder,
) -> rusqlite::Result<usize> {
    if at_most == 0 {
        return Ok(0);
    }
    let mut select = conn.prepare_cached(
        "SELECT p.row, a.name, p.first_byte, p.bytes FROM artifact_pieces p JOIN artifacts a ON a.n = p.artifact
         WHERE p.has_grams = 0 ORDER BY p.row LIMIT ?1",
    )?;
    let pieces: Vec<(i64, PieceText)> = select
        .query_map([at_most], |row| Ok((row.get(0)?, PieceText::from_row(row, 1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut mark = conn.prepare_cached("UPDATE artifact_pieces SET has_grams = 1 WHERE row = ?1")?;
    for (row, piece) in &pieces {
        // As above: a file that is gone is found missing by those who look for it.
        let text = piece.read(artifacts).unwrap_or_default();
        with_buffers(|_, folded| {
            fold_text(&text, folded);
            insert_grams(conn, *row, folded)
        })?;
        mark.execute([row])?;
    }
    Ok(pieces.len())
}

/// Where the text of a piece is.
pub(super) struct PieceText {
    pub(super) artifact: ArtifactId,
    pub(super) first_byte: u64,
    pub(super) bytes: u64,
}

impl PieceText {
    /// From three columns of a row: name, first byte, bytes.
    pub(super) fn from_row(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            artifact: ArtifactId::from_text(row.get::<_, String>(at)?),
            first_byte: row.get(at + 1)?,
            bytes: row.get(at + 2)?,
        })
    }

    /// Reads it.
    pub(super) fn read(&self, artifacts: &ArtifactFolder) -> Result<String> {
        artifacts.read(&self.artifact, ArtifactRange::Bytes { first: self.first_byte, count: self.bytes })
    }
}
