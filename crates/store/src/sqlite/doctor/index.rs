//! Checks the search index: it must cover exactly the searchable data, unchanged.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use crate::artifacts::artifact::ArtifactId;
use crate::artifacts::files::ArtifactFiles;

use super::super::error::TxResult;
use super::super::fingerprint_index::{self, BlockBuilder, IndexSegment, RowSet};
use super::super::indexing::add_fingerprints;
use super::super::progress::StoreProgress;
use super::examination::Depth;
use super::problem::RecordProblem;

/// Returns artifacts that were not, or not completely, split into pieces, although they are readable.
pub(super) fn artifacts_without_pieces(
    conn: &Connection,
    folder: &ArtifactFiles,
) -> rusqlite::Result<Vec<i64>> {
    let found: Vec<(i64, String)> = conn
        .prepare(
            "SELECT n, name FROM artifacts a WHERE bytes > (
                 SELECT coalesce(sum(p.bytes), 0) FROM artifact_pieces p WHERE p.artifact = a.n) ORDER BY n",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let is_readable = |(_, name): &(i64, String)| folder.verify(&ArtifactId::from_text(name)).is_ok();
    Ok(found.into_iter().filter(is_readable).map(|(number, _)| number).collect())
}

/// Returns pieces of missing artifacts.
pub(super) fn pieces_without_artifact(conn: &Connection) -> rusqlite::Result<Vec<i64>> {
    conn.prepare("SELECT row FROM artifact_pieces WHERE artifact NOT IN (SELECT n FROM artifacts)")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Compares the index with the data it should cover.
pub(super) fn check(
    conn: &Connection,
    folder: &ArtifactFiles,
    depth: Depth,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<Vec<RecordProblem>> {
    let gaps = gaps(conn, folder, depth, progress)?;
    let sum = |of: fn(&Gap) -> u64| gaps.iter().map(of).sum::<u64>();
    let missing = sum(|gap| gap.missing) + artifacts_without_pieces(conn, folder)?.len() as u64;
    let surplus = sum(|gap| gap.surplus) + pieces_without_artifact(conn)?.len() as u64;
    Ok(match missing + surplus {
        0 => Vec::new(),
        _ => vec![RecordProblem::SearchIndex { missing, surplus }],
    })
}

/// A segment of the index that does not match its rows.
pub(super) struct Gap {
    pub(super) segment: IndexSegment,
    /// Number of rows that it does not cover, or covers wrongly.
    missing: u64,
    /// Number of missing rows that it covers.
    surplus: u64,
}

/// Returns the segments of the index to rebuild: by the rows they claim to cover, and for a thorough check by the content of every row.
pub(super) fn gaps(
    conn: &Connection,
    folder: &ArtifactFiles,
    depth: Depth,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<Vec<Gap>> {
    let mut wanted: BTreeMap<IndexSegment, RowSet> = BTreeMap::new();
    let mut select = conn.prepare("SELECT id FROM messages UNION ALL SELECT row FROM artifact_pieces")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let row: i64 = row.get(0)?;
        wanted.entry(IndexSegment::of_row(row)).or_default().add(row);
    }
    let covered = fingerprint_index::covered(conn)?;
    let all: BTreeSet<IndexSegment> = wanted.keys().chain(covered.keys()).copied().collect();
    let none = RowSet::default();
    let read_row = |row, set: &mut _| add_fingerprints(conn, folder, row, set);
    let mut maker = BlockBuilder::new(&read_row);
    let mut gaps = Vec::new();
    let total = all.len() as u64;
    for (done, segment) in (0..).zip(all) {
        let (wanted, covered) =
            (wanted.get(&segment).unwrap_or(&none), covered.get(&segment).unwrap_or(&none));
        let mut gap =
            Gap { segment, missing: wanted.missing_in(covered), surplus: covered.missing_in(wanted) };
        if depth == Depth::Thorough && gap.missing + gap.surplus == 0 {
            progress(StoreProgress { what: "index", done, total });
            gap.missing = wrong_rows(conn, segment, &mut maker)?;
        }
        if gap.missing + gap.surplus > 0 {
            gaps.push(gap);
        }
    }
    Ok(gaps)
}

/// Returns the number of rows in blocks whose fingerprints differ from those of their rows.
fn wrong_rows(conn: &Connection, segment: IndexSegment, maker: &mut BlockBuilder<'_>) -> TxResult<u64> {
    let known = fingerprint_index::read(conn, segment)?;
    let mut wrong = 0;
    for place in 0..segment.blocks() {
        let known = known.as_ref().and_then(|known| known.get(&place));
        let block = maker.make(segment, place, known)?;
        if block.as_ref() != known {
            wrong += block.map_or(1, |block| block.rows());
        }
    }
    Ok(wrong)
}
