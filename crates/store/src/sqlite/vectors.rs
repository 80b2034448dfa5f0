//! Vectors of the record: passages of human messages and answers, one row each, with the model and the conversation they belong to. They
//! are computed after the messages, in the same order, and deleted with them.
//!
//! If the vectors of a model change their length, it counts as another version of the model: the old vectors are deleted and all are
//! computed again. Tool results have no vectors: they are 95 % of a session, and are found by words.

use std::fs::{File, TryLockError};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};
use throughline_search::meaning::{NearHit, Nearest, QuestionVector, StoredVector, VectorState, VectorStep};
use throughline_search::windows::{PASSAGE_WORDS, count_words, last_words, windows};

use crate::record_search::source::SearchRow;

use super::error::TxResult;
use super::search_source::{row_columns, search_row};

pub(super) const SCHEMA: &str = "
CREATE TABLE vector_models (
    n           INTEGER PRIMARY KEY,
    name        TEXT    NOT NULL,
    dimensions  INTEGER NOT NULL,
    done        INTEGER NOT NULL,            -- messages up to this one were looked at
    tokens      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX vector_models_by_name ON vector_models (name);
CREATE TABLE vectors (
    model    INTEGER NOT NULL,
    chain    INTEGER NOT NULL,
    message  INTEGER NOT NULL,
    part     INTEGER NOT NULL,               -- which window of the message
    scale    REAL    NOT NULL,
    entries  BLOB    NOT NULL,
    PRIMARY KEY (model, chain, message, part)
) STRICT, WITHOUT ROWID;
";

/// Number of messages in a step.
const STEP_MESSAGES: usize = 256;
/// Number of passages in a step: as many as an endpoint accepts in one request.
const STEP_PASSAGES: usize = 96;
/// The maximum number of windows of a message with vectors: the first eight thousand words.
const MAX_PARTS: usize = 100;
/// A shorter window is extended by the end of the message before it: alone it rarely shows its subject.
const MIN_WORDS: usize = 40;
/// The maximum number of passages compared in a search: some hundred milliseconds.
const MAX_COMPARED: usize = 200_000;
/// The maximum number of nearest passages that a search uses.
const MAX_NEAR: usize = 100;

/// Which process makes vectors of a record. Only one does at a time; the lock ends with its process.
#[derive(Debug)]
pub(super) enum Turn {
    /// This one, while the file is open; without a file if no other process can have the record, or files cannot be locked.
    Ours { _file: Option<File> },
    /// Another process.
    Elsewhere,
}

impl Turn {
    /// Takes the turn for the record at `path`, if it is free. The lock is beside the record, because SQLite's own must not be held while a
    /// model works.
    pub(super) fn take(path: &Path, is_in_memory: bool) -> Self {
        if is_in_memory {
            return Self::Ours { _file: None };
        }
        let mut name = path.as_os_str().to_owned();
        name.push("-vectors.lock");
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let Ok(file) = options.open(Path::new(&name)) else { return Self::Ours { _file: None } };
        match file.try_lock() {
            Ok(()) => Self::Ours { _file: Some(file) },
            Err(TryLockError::WouldBlock) => Self::Elsewhere,
            Err(TryLockError::Error(_)) => Self::Ours { _file: None },
        }
    }

    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Elsewhere)
    }
}

/// Passages without vectors.
pub(super) struct PendingPassages {
    /// The progress before: another process may have continued meanwhile.
    from: i64,
    /// The last message that was examined.
    through: i64,
    messages: u64,
    places: Vec<PassagePlace>,
    /// Their texts, in order.
    pub(super) texts: Vec<String>,
}

struct PassagePlace {
    chain: i64,
    message: i64,
    part: usize,
}

impl PendingPassages {
    pub(super) fn is_empty(&self) -> bool {
        self.messages == 0
    }
}

fn version(conn: &Connection, model: &str) -> rusqlite::Result<Option<(i64, i64, i64)>> {
    conn.prepare_cached("SELECT n, dimensions, done FROM vector_models WHERE name = ?1")?
        .query_row([model], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()
}

/// Returns the next passages without vectors of a model.
pub(super) fn pending(conn: &Connection, model: &str) -> TxResult<PendingPassages> {
    let from = version(conn, model)?.map_or(0, |(_, _, done)| done);
    let mut found =
        PendingPassages { from, through: from, messages: 0, places: Vec::new(), texts: Vec::new() };
    let mut select = conn.prepare_cached(concat!(
        "SELECT ",
        row_columns!(),
        ", s.chain FROM messages m JOIN sessions s ON s.ordinal = m.session WHERE m.id > ?1 ORDER BY m.id LIMIT ?2"
    ))?;
    let mut rows = select.query(params![from, STEP_MESSAGES])?;
    let mut before: Option<(i64, u64, String)> = None;
    while let Some(row) = rows.next()? {
        if found.texts.len() >= STEP_PASSAGES {
            break;
        }
        found.messages += 1;
        found.through = row.get(0)?;
        let chain: i64 = row.get(10)?;
        // Unreadable messages have no vectors.
        let Some(row) = search_row(row).filter(is_dialogue) else { continue };
        let Some(text) = row.text() else { continue };
        for (part, window) in windows(&text).into_iter().take(MAX_PARTS).enumerate() {
            let own = text.get(window).unwrap_or_default();
            let room = PASSAGE_WORDS.saturating_sub(count_words(own, PASSAGE_WORDS));
            let mut passage = String::new();
            if part == 0 && room >= PASSAGE_WORDS - MIN_WORDS {
                let known = before
                    .as_ref()
                    .filter(|(session, seq, _)| *session == row.session && seq + 1 == row.seq)
                    .map(|(_, _, text)| text.clone());
                let known = match known {
                    Some(known) => Some(known),
                    None => text_before(conn, row.session, row.seq)?,
                };
                if let Some(known) = known {
                    passage.push_str(known.get(last_words(&known, room)).unwrap_or_default());
                    passage.push('\n');
                }
            }
            passage.push_str(own);
            found.places.push(PassagePlace { chain, message: row.id, part });
            found.texts.push(passage);
        }
        before = Some((row.session, row.seq, text));
    }
    Ok(found)
}

fn is_dialogue(row: &SearchRow<'_>) -> bool {
    row.speaker().is_dialogue()
}

/// Returns the text of the message before one, if a person or a model wrote it.
fn text_before(conn: &Connection, session: i64, seq: u64) -> TxResult<Option<String>> {
    let Some(seq) = seq.checked_sub(1) else { return Ok(None) };
    let mut select = conn.prepare_cached(concat!(
        "SELECT ",
        row_columns!(),
        " FROM messages m WHERE m.session = ?1 AND m.seq = ?2"
    ))?;
    let mut rows = select.query(params![session, seq])?;
    let Some(row) = rows.next()?.and_then(search_row) else { return Ok(None) };
    Ok(if is_dialogue(&row) { row.text() } else { None })
}

/// Writes the vectors of passages, in order.
pub(super) fn put(
    conn: &Connection,
    model: &str,
    pending: &PendingPassages,
    vectors: &[Vec<f32>],
    tokens: u64,
) -> TxResult<VectorStep> {
    let dimensions = vectors.first().map(Vec::len);
    let known = version(conn, model)?;
    let number = match (known, dimensions) {
        (Some((number, _, _)), None) => Some(number),
        (Some((number, known, _)), Some(now)) if known == now as i64 || known == 0 => {
            conn.execute("UPDATE vector_models SET dimensions = ?2 WHERE n = ?1", params![number, now])?;
            Some(number)
        }
        (Some((number, _, _)), Some(now)) => {
            // The model changed: earlier vectors cannot be compared with new ones.
            conn.execute("DELETE FROM vectors WHERE model = ?1", [number])?;
            let sql = "UPDATE vector_models SET dimensions = ?2, done = 0, tokens = tokens + ?3 WHERE n = ?1";
            conn.execute(sql, params![number, now, tokens])?;
            return Ok(VectorStep { messages: pending.messages, ..VectorStep::default() });
        }
        (None, _) => None,
    };
    let number = match number {
        Some(number) => number,
        None => {
            let sql = "INSERT INTO vector_models (name, dimensions, done, tokens) VALUES (?1, ?2, 0, 0) RETURNING n";
            conn.query_row(sql, params![model, dimensions.unwrap_or_default()], |row| row.get(0))?
        }
    };
    let mut step = VectorStep { messages: pending.messages, ..VectorStep::default() };
    let is_first = known.map_or(0, |(_, _, done)| done) == pending.from;
    if is_first {
        let mut insert = conn.prepare_cached(
            "INSERT OR REPLACE INTO vectors (model, chain, message, part, scale, entries)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM messages WHERE id = ?3)",
        )?;
        for (place, vector) in pending.places.iter().zip(vectors) {
            if let Some(vector) =
                StoredVector::new(vector).filter(|vector| Some(vector.entries.len()) == dimensions)
            {
                let row =
                    params![number, place.chain, place.message, place.part, vector.scale, vector.entries];
                step.passages += insert.execute(row)? as u64;
            }
        }
        conn.execute("UPDATE vector_models SET done = ?2 WHERE n = ?1", [number, pending.through])?;
    }
    conn.execute("UPDATE vector_models SET tokens = tokens + ?2 WHERE n = ?1", params![number, tokens])?;
    Ok(step)
}

/// Returns the progress of a model's vectors.
pub(super) fn state(conn: &Connection, model: &str) -> TxResult<VectorState> {
    let known = version(conn, model)?;
    let mut state = VectorState { model: model.to_owned(), ..VectorState::default() };
    let done = known.map_or(0, |(_, _, done)| done);
    state.waiting = waiting_after(conn, done)?;
    if let Some((number, dimensions, _)) = known {
        state.dimensions = dimensions.unsigned_abs();
        state.tokens =
            conn.query_row("SELECT tokens FROM vector_models WHERE n = ?1", [number], |row| row.get(0))?;
        let sql = "SELECT count(*), coalesce(sum(length(entries)), 0) FROM vectors WHERE model = ?1";
        (state.passages, state.bytes) =
            conn.query_row(sql, [number], |row| Ok((row.get(0)?, row.get(1)?)))?;
    }
    Ok(state)
}

fn waiting_after(conn: &Connection, done: i64) -> rusqlite::Result<u64> {
    conn.prepare_cached("SELECT count(*) FROM messages WHERE id > ?1")?.query_row([done], |row| row.get(0))
}

/// Returns the number of messages without vectors of a model.
pub(super) fn waiting(conn: &Connection, model: &str) -> rusqlite::Result<u64> {
    waiting_after(conn, version(conn, model)?.map_or(0, |(_, _, done)| done))
}

/// Deletes the vectors of the messages of a session.
pub(super) fn delete_session(conn: &Connection, ordinal: i64) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "DELETE FROM vectors WHERE model IN (SELECT n FROM vector_models)
             AND chain = (SELECT chain FROM sessions WHERE ordinal = ?1)
             AND message IN (SELECT id FROM messages WHERE session = ?1)",
    )?
    .execute([ordinal])
    .map(drop)
}

/// Returns the passages of some conversations nearest to a question, newest conversations first.
pub(super) fn nearest(
    conn: &Connection,
    model: &str,
    question: &QuestionVector,
    chains: &[i64],
) -> TxResult<Nearest> {
    let Some((number, dimensions, _)) = version(conn, model)? else { return Ok(Nearest::default()) };
    if dimensions != question.dimensions() as i64 {
        return Ok(Nearest::default());
    }
    let mut select = conn.prepare_cached(
        "SELECT message, part, scale, entries FROM vectors WHERE model = ?1 AND chain = ?2",
    )?;
    let mut hits = Vec::new();
    let mut newest_only = false;
    for chain in chains {
        if hits.len() >= MAX_COMPARED {
            newest_only = true;
            break;
        }
        let mut rows = select.query([number, *chain])?;
        while let Some(row) = rows.next()? {
            let similarity =
                question.similarity(row.get(2)?, row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?);
            hits.push(NearHit { message: row.get(0)?, part: row.get(1)?, similarity });
        }
    }
    Ok(Nearest::of(hits, newest_only, MAX_NEAR))
}

/// Returns the conversations of an owner, newest first.
pub(super) fn chains_of(conn: &Connection, owner: &str) -> rusqlite::Result<Vec<i64>> {
    conn.prepare_cached("SELECT DISTINCT chain FROM sessions WHERE owner = ?1 ORDER BY chain DESC")?
        .query_map([owner], |row| row.get(0))?
        .collect()
}

#[cfg(test)]
#[path = "vectors_tests.rs"]
mod tests;
