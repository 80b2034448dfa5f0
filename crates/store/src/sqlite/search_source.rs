//! The search source in SQLite. Rows of the index are ids of messages and numbers of pieces.

use std::borrow::Cow;
use std::ops::Range;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Params, Row};
use throughline_search::meaning::{Nearest, QuestionVector};
use throughline_transcript::Role;

use crate::artifacts::artifact::{ArtifactId, ArtifactRange};
use crate::artifacts::files::ArtifactFiles;
use crate::ids::{Owner, SessionId};
use crate::record_search::source::{
    ArtifactReference, MessageRows, PieceRow, PieceRows, PlaceOrder, ScanStep, SearchRow, SearchSource,
    speaker_and_writer, tool_names,
};
use crate::sessions::chain::LinePart;
use crate::sessions::session::Session;

use super::error::{TxError, TxResult};
use super::fingerprint_index::IndexLookup;
use super::rows;
use super::sessions;
use super::vectors;

/// The maximum number of messages named in a missing part of the index.
const MAX_PLACES: i64 = 20;

macro_rules! row_columns {
    () => {
        "m.id, m.session, m.seq, m.role, m.flags, m.at_ms, m.hash, m.tools, m.coding, m.origin"
    };
}
pub(super) use row_columns;

/// Reads a message from a row of [`row_columns`]; `None` if it is damaged, which other checks report.
pub(super) fn search_row<'r>(row: &'r Row<'_>) -> Option<SearchRow<'r>> {
    let id = row.get(0).ok()?;
    let (role, machine_written) = speaker_and_writer(row.get(3).ok()?, row.get(4).ok()?)?;
    Some(SearchRow {
        id,
        row: id,
        session: row.get(1).ok()?,
        seq: row.get(2).ok()?,
        role,
        machine_written,
        at_ms: row.get(5).ok()?,
        hash: row.get(6).ok()?,
        tools: match row.get_ref(7).ok()? {
            ValueRef::Null => None,
            other => Some(Cow::Borrowed(other.as_str().ok()?)),
        },
        coding: row.get(8).ok()?,
        origin: row.get_ref(9).ok()?.as_blob().ok()?,
    })
}

/// A record searched by an owner.
pub(super) struct SqliteSource<'a> {
    pub(super) conn: &'a Connection,
    pub(super) artifacts: &'a ArtifactFiles,
    pub(super) owner: &'a Owner,
}

/// Calls `look` with the converted rows, until it stops.
fn scan<T>(
    statement: &mut CachedStatement<'_>,
    values: impl Params,
    read: impl for<'r> Fn(&'r Row<'_>) -> TxResult<Option<T>>,
    look: &mut impl FnMut(&T) -> TxResult<ScanStep>,
) -> TxResult<ScanStep> {
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        if let Some(read) = read(row)?
            && look(&read)? == ScanStep::No
        {
            return Ok(ScanStep::No);
        }
    }
    Ok(ScanStep::Yes)
}

fn scan_messages(
    statement: &mut CachedStatement<'_>,
    values: impl Params,
    look: &mut impl FnMut(&SearchRow<'_>) -> TxResult<ScanStep>,
) -> TxResult<ScanStep> {
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        if let Some(row) = search_row(row)
            && look(&row)? == ScanStep::No
        {
            return Ok(ScanStep::No);
        }
    }
    Ok(ScanStep::Yes)
}

fn piece_row(row: &Row<'_>) -> TxResult<Option<PieceRow>> {
    Ok(Some(PieceRow {
        key: row.get(0)?,
        artifact: row.get(1)?,
        name: ArtifactId::from_text(row.get::<_, String>(2)?),
        first_byte: row.get(3)?,
        bytes: row.get(4)?,
        first_line: row.get(5)?,
    }))
}

macro_rules! pieces {
    ($($rest:literal),*) => {
        concat!(
            "SELECT p.row, p.artifact, a.name, p.first_byte, p.bytes, p.first_line \
             FROM artifact_pieces p JOIN artifacts a ON a.n = p.artifact WHERE ",
            $($rest),*
        )
    };
}

impl SqliteSource<'_> {
    fn range(&self, sql: &str) -> TxResult<Option<(i64, i64)>> {
        let rows: (Option<i64>, Option<i64>) =
            self.conn.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.0.zip(rows.1))
    }
}

impl SearchSource for SqliteSource<'_> {
    type Error = TxError;
    type Lookup<'s>
        = IndexLookup<'s>
    where
        Self: 's;

    fn owner(&self) -> &Owner {
        self.owner
    }

    fn require_session(&self, id: &SessionId) -> TxResult<Session> {
        rows::require_session(self.conn, self.owner, id)
    }

    fn find_session(&self, id: &SessionId) -> TxResult<Option<Session>> {
        Ok(rows::find_session(self.conn, self.owner, id)?)
    }

    fn session_at(&self, ordinal: u64) -> TxResult<Option<Session>> {
        Ok(rows::session_at(self.conn, ordinal)?)
    }

    fn tip_of(&self, chain: u64) -> TxResult<Option<Session>> {
        Ok(rows::tip_of(self.conn, chain)?)
    }

    fn members_of(&self, chain: u64) -> TxResult<Vec<Session>> {
        Ok(rows::members_of(self.conn, chain)?)
    }

    fn line_of(&self, part: LinePart) -> TxResult<Vec<LinePart>> {
        sessions::line_of(self.conn, self.owner, part)
    }

    fn is_owners(&self, ordinal: i64) -> TxResult<bool> {
        Ok(self
            .conn
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM sessions WHERE ordinal = ?1 AND owner = ?2)")?
            .query_row((ordinal, self.owner.as_str()), |row| row.get(0))?)
    }

    fn has_other_owners(&self) -> TxResult<bool> {
        let mut statement = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM sessions WHERE is_tip = 1 AND owner < ?1)
                 OR EXISTS (SELECT 1 FROM sessions WHERE is_tip = 1 AND owner > ?1)",
        )?;
        Ok(statement.query_row([self.owner.as_str()], |row| row.get(0))?)
    }

    fn message_rows(&self) -> TxResult<Option<(i64, i64)>> {
        self.range("SELECT (SELECT min(id) FROM messages), (SELECT max(id) FROM messages)")
    }

    fn piece_rows(&self) -> TxResult<Option<(i64, i64)>> {
        self.range("SELECT (SELECT min(row) FROM artifact_pieces), (SELECT max(row) FROM artifact_pieces)")
    }

    fn messages_of(&self, chains: &[i64]) -> TxResult<i64> {
        let mut count =
            self.conn.prepare_cached("SELECT coalesce(sum(messages), 0) FROM sessions WHERE chain = ?1")?;
        chains
            .iter()
            .try_fold(0, |sum, chain| Ok(sum + count.query_row([chain], |row| row.get::<_, i64>(0))?))
    }

    fn lookup(&self) -> TxResult<IndexLookup<'_>> {
        Ok(IndexLookup::new(self.conn)?)
    }

    fn each_message(
        &self,
        rows: MessageRows<'_>,
        mut look: impl FnMut(&SearchRow<'_>) -> TxResult<ScanStep>,
    ) -> TxResult<ScanStep> {
        let look = &mut look;
        macro_rules! messages {
            ($rest:literal) => {
                self.conn.prepare_cached(concat!("SELECT ", row_columns!(), " FROM ", $rest))?
            };
        }
        match rows {
            MessageRows::All => scan_messages(&mut messages!("messages m"), [], look),
            MessageRows::OfChains(chains) => {
                let mut statement =
                    messages!("sessions s CROSS JOIN messages m ON m.session = s.ordinal WHERE s.chain = ?1");
                for chain in chains {
                    if scan_messages(&mut statement, [chain], look)? == ScanStep::No {
                        return Ok(ScanStep::No);
                    }
                }
                Ok(ScanStep::Yes)
            }
            MessageRows::NewestFirst(ranges) | MessageRows::InOrder(ranges) => {
                let mut statement = match rows {
                    MessageRows::NewestFirst(_) => {
                        messages!("messages m WHERE m.id >= ?1 AND m.id < ?2 ORDER BY m.id DESC")
                    }
                    _ => messages!("messages m WHERE m.id >= ?1 AND m.id < ?2"),
                };
                for range in ranges {
                    if scan_messages(&mut statement, [range.start, range.end], look)? == ScanStep::No {
                        return Ok(ScanStep::No);
                    }
                }
                Ok(ScanStep::Yes)
            }
            MessageRows::One(id) => scan_messages(&mut messages!("messages m WHERE m.id = ?1"), [id], look),
            MessageRows::Places { session, seqs, order } => {
                let mut statement = match order {
                    PlaceOrder::First => messages!(
                        "messages m WHERE m.session = ?1 AND m.seq >= ?2 AND m.seq < ?3 ORDER BY m.seq"
                    ),
                    PlaceOrder::Last => messages!(
                        "messages m WHERE m.session = ?1 AND m.seq >= ?2 AND m.seq < ?3 ORDER BY m.seq DESC"
                    ),
                };
                scan_messages(&mut statement, [session, seqs.start, seqs.end], look)
            }
        }
    }

    fn places_in(&self, rows: Range<i64>) -> TxResult<Vec<(i64, u64)>> {
        let mut select = self
            .conn
            .prepare_cached("SELECT session, seq FROM messages WHERE id >= ?1 AND id < ?2 LIMIT ?3")?;
        let places =
            select.query_map([rows.start, rows.end, MAX_PLACES], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(places.collect::<rusqlite::Result<_>>()?)
    }

    fn each_piece(
        &self,
        rows: PieceRows<'_>,
        mut look: impl FnMut(&PieceRow) -> TxResult<ScanStep>,
    ) -> TxResult<ScanStep> {
        let look = &mut look;
        let (ranges, sql) = match rows {
            PieceRows::NewestFirst(ranges) => {
                (ranges, pieces!("p.row >= ?1 AND p.row < ?2 ORDER BY p.row DESC"))
            }
            PieceRows::InOrder(ranges) => (ranges, pieces!("p.row >= ?1 AND p.row < ?2")),
            PieceRows::One(key) => {
                return scan(&mut self.conn.prepare_cached(pieces!("p.row = ?1"))?, [key], piece_row, look);
            }
        };
        let mut statement = self.conn.prepare_cached(sql)?;
        for range in ranges {
            if scan(&mut statement, [range.start, range.end], piece_row, look)? == ScanStep::No {
                return Ok(ScanStep::No);
            }
        }
        Ok(ScanStep::Yes)
    }

    fn piece_text(&self, piece: &PieceRow) -> TxResult<Option<String>> {
        let range = ArtifactRange::Bytes { first: piece.first_byte, count: piece.bytes };
        Ok(self.artifacts.read(&piece.name, range).ok())
    }

    fn each_reference(
        &self,
        artifact: i64,
        mut look: impl FnMut(ArtifactReference) -> TxResult<ScanStep>,
    ) -> TxResult<()> {
        // An artifact without a message belongs to the last message before it in its session, or replaces a tool's answer.
        let mut statement = self.conn.prepare_cached(
            "SELECT r.session, coalesce(m.id, 0), coalesce(m.seq, s.first_seq), coalesce(m.role, 4), m.tools,
                    coalesce(m.at_ms, r.created_ms), coalesce(m.flags, 0)
             FROM artifact_refs r JOIN artifacts a ON a.n = r.artifact JOIN sessions s ON s.ordinal = r.session
             LEFT JOIN messages m ON m.id = iif(r.message <> 0, r.message,
                 (SELECT id FROM messages WHERE session = r.session ORDER BY seq DESC LIMIT 1))
             WHERE r.artifact = ?1 ORDER BY r.session DESC, r.message DESC",
        )?;
        let mut rows = statement.query([artifact])?;
        while let Some(row) = rows.next()? {
            let speaker = speaker_and_writer(row.get(3)?, row.get(6)?);
            let reference = ArtifactReference {
                session: row.get(0)?,
                message: row.get(1)?,
                seq: row.get(2)?,
                role: speaker.map_or(Role::Tool, |(role, _)| role),
                tools: tool_names(row.get::<_, Option<String>>(4)?.as_deref())?,
                at_ms: row.get(5)?,
            };
            if look(reference)? == ScanStep::No {
                break;
            }
        }
        Ok(())
    }

    fn nearest(&self, model: &str, question: &QuestionVector, chains: Option<Vec<i64>>) -> TxResult<Nearest> {
        let chains = match chains {
            Some(chains) => chains,
            None => vectors::chains_of(self.conn, self.owner.as_str())?,
        };
        vectors::nearest(self.conn, model, question, &chains)
    }

    fn vectors_waiting(&self, model: &str) -> TxResult<u64> {
        Ok(vectors::waiting(self.conn, model)?)
    }
}
