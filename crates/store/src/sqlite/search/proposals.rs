//! The candidates that the index proposes: messages and pieces of blocks with the fingerprints of a query, newest first.
//!
//! A substring of one or two characters has no triples. It is searched for at the beginning of words in the whole
//! record, and at any position in the newest part.

use std::ops::Range;

use rusqlite::{Connection, Statement, params};

use crate::artifacts::folder::ArtifactFolder;
use crate::search::fingerprint::{BlockSet, fingerprints_of_any, rarest_triples};
use crate::search::query::ParsedQuery;

use super::super::error::TxResult;
use super::super::fingerprint_index::{IndexLookup, IndexSegment, LookupTerms};
use super::blocks::QuestionBlocks;
use super::candidates::{SearchRow, row_columns};
use super::scope::SearchScope;
use super::state::{Bounds, SearchState};

/// Things the index is asked for at once; the first tell most. Texts decide about the rest.
const MAX_LOOKED_UP: usize = 40;
/// A conversation of fewer messages is read through rather than looked up.
const SMALL_CONVERSATION: i64 = 3_000;

/// The first and the last row of each kind.
pub(super) const MESSAGE_ROWS: &str = "SELECT (SELECT min(id) FROM messages), (SELECT max(id) FROM messages)";
pub(super) const PIECE_ROWS: &str =
    "SELECT (SELECT min(row) FROM artifact_pieces), (SELECT max(row) FROM artifact_pieces)";

/// What is known of the blocks of messages before a query is looked up: numbers of the words of a question that every text has which
/// holds the words of the query.
pub(super) type BlockFilter<'b> = Option<(&'b QuestionBlocks, Vec<usize>)>;

/// Gathers messages and pieces of artifacts that hold the words of a question.
pub(super) fn word_candidates(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    query: &ParsedQuery,
    known: &BlockFilter<'_>,
    scope: &mut SearchScope<'_>,
    gathered: &mut SearchState<'_>,
) -> TxResult<()> {
    for look_up in query.look_ups() {
        let wanted: Vec<Vec<u32>> =
            look_up.iter().take(MAX_LOOKED_UP).flat_map(|one_of| fingerprints_of_any(one_of)).collect();
        messages_with(conn, &wanted, known, scope, gathered)?;
        pieces_with(conn, artifacts, &wanted, scope, gathered)?;
    }
    Ok(())
}

/// Gathers what holds a question as a substring.
pub(super) fn substring_candidates(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    query: &ParsedQuery,
    scope: &mut SearchScope<'_>,
    gathered: &mut SearchState<'_>,
) -> TxResult<()> {
    let wanted = each_alone(rarest_triples(&query.substring));
    if wanted.is_empty() && !query.wanted.is_empty() {
        // Words first: they are found wherever they are.
        word_candidates(conn, artifacts, query, &None, scope, gathered)?;
    }
    if !read_small_conversation(conn, scope, gathered)? {
        messages_with(conn, &wanted, &None, scope, gathered)?;
    }
    pieces_with(conn, artifacts, &wanted, scope, gathered)
}

/// Fingerprints that are all wanted.
fn each_alone(fingerprints: impl IntoIterator<Item = u32>) -> Vec<Vec<u32>> {
    fingerprints.into_iter().map(|fingerprint| vec![fingerprint]).collect()
}

/// Looks at the messages in blocks that hold what is wanted.
fn messages_with(
    conn: &Connection,
    wanted: &LookupTerms,
    known: &BlockFilter<'_>,
    scope: &mut SearchScope<'_>,
    gathered: &mut SearchState<'_>,
) -> TxResult<()> {
    let wanted = [scope.fingerprints()?, wanted.to_vec()].concat();
    let mut bounds = Bounds::new(gathered);
    let segments = segments(conn, MESSAGE_ROWS)?;
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        row_columns!(),
        " FROM messages m WHERE m.id >= ?1 AND m.id < ?2 ORDER BY m.id DESC"
    ))?;
    each_block(conn, segments, &wanted, known, |rows| {
        messages_in(&mut statement, rows, &mut bounds, scope, gathered)
    })
}

/// Looks at the pieces of artifacts that hold what is wanted. Of an artifact the piece that fits best is kept.
fn pieces_with(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    wanted: &LookupTerms,
    scope: &mut SearchScope<'_>,
    gathered: &mut SearchState<'_>,
) -> TxResult<()> {
    let segments = segments(conn, PIECE_ROWS)?;
    each_block(conn, segments, wanted, &None, |rows| pieces_in(conn, artifacts, rows, scope, gathered))
}

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanStep {
    Yes,
    No,
}

/// Segments from the first row to the last that a statement names.
pub(super) fn segments(conn: &Connection, sql: &str) -> TxResult<Vec<IndexSegment>> {
    let rows: (Option<i64>, Option<i64>) =
        conn.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match rows {
        (Some(first), Some(last)) => {
            IndexSegment::of_row(first).through(IndexSegment::of_row(last)).collect()
        }
        _ => Vec::new(),
    })
}

/// Notes messages that the index does not know at all: it was damaged, or another program removed parts of it.
pub(super) fn note_unindexed(
    conn: &Connection,
    known: Option<&QuestionBlocks>,
    scope: &mut SearchScope<'_>,
) -> TxResult<()> {
    let lookup = IndexLookup::new(conn)?;
    let mut select =
        conn.prepare_cached("SELECT session, seq FROM messages WHERE id >= ?1 AND id < ?2 LIMIT 20")?;
    for segment in segments(conn, MESSAGE_ROWS)? {
        if known.is_some_and(|blocks| blocks.knows(segment)) || lookup.knows(segment)? {
            continue;
        }
        let rows = segment.rows();
        let mut rows = select.query([rows.start, rows.end])?;
        while let Some(row) = rows.next()? {
            let (session, seq) = (row.get(0)?, row.get(1)?);
            if scope.admits_place(session, seq)? {
                scope.note_unseen(session, seq);
            }
        }
    }
    Ok(())
}

/// Calls `look` with the rows of blocks that hold what is wanted, the newest first, until it has seen enough.
fn each_block(
    conn: &Connection,
    segments: Vec<IndexSegment>,
    wanted: &LookupTerms,
    known: &BlockFilter<'_>,
    mut look: impl FnMut(Range<i64>) -> TxResult<ScanStep>,
) -> TxResult<()> {
    let mut holders = IndexLookup::new(conn)?;
    for segment in segments.into_iter().rev() {
        let within = known.as_ref().map(|(blocks, words)| blocks.with_all(segment, words));
        if within.as_ref().is_some_and(BlockSet::is_empty) {
            continue;
        }
        let mut found = holders.of(segment, wanted)?;
        within.iter().for_each(|within| found.keep(within));
        // IndexBlocks that follow one another are read as one.
        let mut run: Option<Range<i64>> = None;
        for block in found.descending() {
            let rows = segment.rows_of(block);
            let before = match &mut run {
                Some(run) if rows.end == run.start => {
                    run.start = rows.start;
                    continue;
                }
                other => other.replace(rows),
            };
            if before.map_or(Ok(ScanStep::Yes), &mut look)? == ScanStep::No {
                return Ok(());
            }
        }
        if run.map_or(Ok(ScanStep::Yes), &mut look)? == ScanStep::No {
            return Ok(());
        }
    }
    Ok(())
}

/// Looks at messages one by one, the newest first.
fn messages_in(
    statement: &mut Statement<'_>,
    ids: Range<i64>,
    bounds: &mut Bounds,
    scope: &mut SearchScope<'_>,
    gathered: &mut SearchState<'_>,
) -> TxResult<ScanStep> {
    let mut rows = statement.query(params![ids.start, ids.end])?;
    while let Some(row) = rows.next()? {
        if !bounds.admit_another(gathered) {
            return Ok(ScanStep::No);
        }
        if let Some(row) = SearchRow::new(row) {
            gathered.look_at(&row, scope)?;
        }
    }
    Ok(ScanStep::Yes)
}

/// Looks at pieces of artifacts one by one, the newest first.
fn pieces_in(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    rows: Range<i64>,
    scope: &mut SearchScope<'_>,
    gathered: &mut SearchState<'_>,
) -> TxResult<ScanStep> {
    let mut statement = conn.prepare_cached(
        "SELECT p.row, p.artifact, a.name, p.first_byte, p.bytes
         FROM artifact_pieces p JOIN artifacts a ON a.n = p.artifact
         WHERE p.row >= ?1 AND p.row < ?2 ORDER BY p.row DESC",
    )?;
    let mut rows = statement.query(params![rows.start, rows.end])?;
    while let Some(row) = rows.next()? {
        if !gathered.may_read_piece() {
            return Ok(ScanStep::No);
        }
        gathered.look_at_piece(conn, artifacts, row, scope)?;
    }
    Ok(ScanStep::Yes)
}

/// Whether everything that may be seen is so little that it is read rather than looked up.
pub(super) fn is_small(conn: &Connection, scope: &SearchScope<'_>) -> TxResult<bool> {
    let messages = match scope.chains() {
        Some(chains) => messages_of(conn, &chains)?,
        None => {
            let rows: (Option<i64>, Option<i64>) =
                conn.prepare_cached(MESSAGE_ROWS)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.1.unwrap_or_default() - rows.0.unwrap_or_default()
        }
    };
    Ok(messages <= SMALL_CONVERSATION)
}

/// How many messages some chains have.
fn messages_of(conn: &Connection, chains: &[i64]) -> TxResult<i64> {
    let mut count =
        conn.prepare_cached("SELECT coalesce(sum(messages), 0) FROM sessions WHERE chain = ?1")?;
    chains.iter().try_fold(0, |sum, chain| Ok(sum + count.query_row([chain], |row| row.get::<_, i64>(0))?))
}

/// Looks at every message of the conversation that is searched, if it is one and it is small. Tells whether it did.
fn read_small_conversation(
    conn: &Connection,
    scope: &mut SearchScope<'_>,
    gathered: &mut SearchState<'_>,
) -> TxResult<bool> {
    let Some(chains) = scope.chains() else { return Ok(false) };
    if messages_of(conn, &chains)? > SMALL_CONVERSATION {
        return Ok(false);
    }
    let mut statement = conn.prepare_cached(concat!(
        "SELECT ",
        row_columns!(),
        " FROM sessions s CROSS JOIN messages m ON m.session = s.ordinal WHERE s.chain = ?1"
    ))?;
    for chain in chains {
        let mut rows = statement.query([chain])?;
        while let Some(row) = rows.next()? {
            if let Some(row) = SearchRow::new(row) {
                gathered.look_at(&row, scope)?;
            }
        }
    }
    Ok(true)
}
