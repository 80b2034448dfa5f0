//! The search index: which blocks of rows contain which fingerprints. It is written in the same transaction as the rows.
//!
//! Two messages form a block; a piece of an artifact, which is longer than many messages, is a block by itself; blocks
//! form segments. The block of a row follows from its number, and numbers are assigned in order: only the last segment
//! of messages and the last of pieces grow, all others are sealed (see `throughline_search::fingerprint` for the two forms).
//! If a row is added late or deleted, its segment is opened and sealed again.
//!
//! A block's fingerprints are exactly those of the rows it covers. Not for: computing the fingerprints of a row.

mod lookup;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rusqlite::{Connection, params};
use throughline_search::fingerprint::{
    FingerprintList, FingerprintSet, MAX_BLOCKS, SLICES, encode_list, slices, unfold_slice,
};
use throughline_search::segments::{MESSAGES, PIECES, SegmentLayout};

pub(super) use throughline_search::segments::{ARTIFACT_ROWS, IndexSegment};

pub(super) use lookup::IndexLookup;

/// The tables of both forms. A slice after the last of a sealed segment has the covered rows.
pub(super) const SCHEMA: &str = "
CREATE TABLE clues_open (
    block    INTEGER PRIMARY KEY,
    covered  INTEGER NOT NULL,
    clues    BLOB    NOT NULL
) STRICT;
CREATE TABLE clues_sealed (
    slice    INTEGER PRIMARY KEY,
    entries  BLOB    NOT NULL
) STRICT;
";

/// Number of keys of blocks and of slices per segment.
const BLOCK_KEYS: i64 = MAX_BLOCKS as i64;
const SLICE_KEYS: i64 = 2 * SLICES as i64;
/// The slice with the covered rows.
const COVERED_SLICE: i64 = SLICES as i64;

/// The keys under which a segment is stored.
trait SegmentKeys {
    fn of_block_key(key: i64) -> Self;
    fn block_keys(self) -> Range<i64>;
    fn slice_keys(self) -> Range<i64>;
}

impl SegmentKeys for IndexSegment {
    fn of_block_key(key: i64) -> Self {
        Self(key.div_euclid(BLOCK_KEYS))
    }

    fn block_keys(self) -> Range<i64> {
        self.0 * BLOCK_KEYS..(self.0 + 1) * BLOCK_KEYS
    }

    fn slice_keys(self) -> Range<i64> {
        self.0 * SLICE_KEYS..(self.0 + 1) * SLICE_KEYS
    }
}

/// Returns the key of a row's block, and the row's bit in it.
fn place_of(row: i64) -> (i64, i64) {
    let segment = IndexSegment::of_row(row);
    let within = row - segment.rows().start;
    let rows = segment.family().block_rows;
    (segment.block_keys().start + within / rows, 1 << (within % rows))
}

/// Adds rows to the index, block by block.
#[derive(Default)]
pub(super) struct FingerprintWriter {
    set: FingerprintSet,
    /// The block being filled, and its new rows.
    filling: Option<(i64, i64)>,
}

impl FingerprintWriter {
    /// Adds a row with its fingerprints. Adding rows in order is fastest.
    pub(super) fn add(
        &mut self,
        conn: &Connection,
        row: i64,
        add_fingerprints: impl FnOnce(&mut FingerprintSet),
    ) -> rusqlite::Result<()> {
        let (key, bit) = place_of(row);
        let covered = match self.filling {
            Some((filling, covered)) if filling == key => covered,
            _ => {
                self.write_block(conn)?;
                0
            }
        };
        self.filling = Some((key, covered | bit));
        add_fingerprints(&mut self.set);
        Ok(())
    }

    /// Writes the rest, and seals complete segments. Without this the last rows are not indexed.
    pub(super) fn finish(mut self, conn: &Connection) -> rusqlite::Result<()> {
        self.write_block(conn)?;
        seal_complete(conn)
    }

    fn write_block(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let Some((key, mut covered)) = self.filling.take() else { return Ok(()) };
        let mut known = conn.prepare_cached("SELECT covered, clues FROM clues_open WHERE block = ?1")?;
        let mut known = known.query([key])?;
        if let Some(row) = known.next()? {
            covered |= row.get::<_, i64>(0)?;
            if let Some(list) = FingerprintList::new(row.get_ref(1)?.as_blob()?) {
                list.iter().for_each(|fingerprint| self.set.add(fingerprint));
            }
        }
        write_open(conn, key, covered, &self.set.take())
    }
}

fn write_open(conn: &Connection, key: i64, covered: i64, fingerprints: &[u32]) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT OR REPLACE INTO clues_open (block, covered, clues) VALUES (?1, ?2, ?3)")?
        .execute(params![key, covered, encode_list(fingerprints)])?;
    Ok(())
}

/// Returns the segment that grows.
fn growing(conn: &Connection, family: &SegmentLayout) -> rusqlite::Result<IndexSegment> {
    let next: i64 = conn
        .prepare_cached("SELECT next FROM numbers WHERE name = ?1")?
        .query_row([family.numbers], |row| row.get(0))?;
    Ok(IndexSegment::of_row(family.first_row + (next - 1).max(0)))
}

/// Seals complete segments.
pub(super) fn seal_complete(conn: &Connection) -> rusqlite::Result<()> {
    let mut lowest =
        conn.prepare_cached("SELECT min(block) FROM clues_open WHERE block >= ?1 AND block < ?2")?;
    for family in [&MESSAGES, &PIECES] {
        let end = growing(conn, family)?.block_keys().start;
        let mut from = IndexSegment::of_row(family.first_row).block_keys().start;
        while let Some(key) = lowest.query_row([from, end], |row| row.get::<_, Option<i64>>(0))? {
            let segment = IndexSegment::of_block_key(key);
            // A damaged one is searched as it is, and repaired by the doctor.
            if let Some(blocks) = read(conn, segment)? {
                replace(conn, segment, &blocks)?;
            }
            from = segment.block_keys().end;
        }
    }
    Ok(())
}

/// A block of a segment that is read or written as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IndexBlock {
    /// The covered rows, one bit each.
    covered: i64,
    fingerprints: Vec<u32>,
}

impl IndexBlock {
    /// Returns the number of covered rows.
    pub(super) fn rows(&self) -> u64 {
        u64::from(self.covered.count_ones())
    }
}

/// The blocks of a segment by index.
pub(super) type IndexBlocks = BTreeMap<usize, IndexBlock>;

/// Reads a whole segment; `None` if it is damaged.
pub(super) fn read(conn: &Connection, segment: IndexSegment) -> rusqlite::Result<Option<IndexBlocks>> {
    let mut blocks = IndexBlocks::new();
    let Some(()) = read_sealed(conn, segment, &mut blocks)? else { return Ok(None) };
    let keys = segment.block_keys();
    let mut open = conn.prepare_cached(
        "SELECT block, covered, clues FROM clues_open WHERE block >= ?1 AND block < ?2 ORDER BY block",
    )?;
    let mut open = open.query([keys.start, keys.end])?;
    while let Some(row) = open.next()? {
        let Some(list) = FingerprintList::new(row.get_ref(2)?.as_blob()?) else { return Ok(None) };
        let place = (row.get::<_, i64>(0)? - keys.start) as usize;
        let block = blocks.entry(place).or_default();
        block.covered |= row.get::<_, i64>(1)?;
        block.fingerprints.extend(list.iter());
        if !block.fingerprints.is_sorted() {
            block.fingerprints.sort_unstable();
            block.fingerprints.dedup();
        }
    }
    Ok(Some(blocks))
}

fn read_sealed(
    conn: &Connection,
    segment: IndexSegment,
    blocks: &mut IndexBlocks,
) -> rusqlite::Result<Option<()>> {
    let keys = segment.slice_keys();
    let mut sealed = conn.prepare_cached(
        "SELECT slice, entries FROM clues_sealed WHERE slice >= ?1 AND slice < ?2 ORDER BY slice",
    )?;
    let mut sealed = sealed.query([keys.start, keys.end])?;
    let mut held: Vec<Vec<u32>> = Vec::new();
    while let Some(row) = sealed.next()? {
        held.resize_with(segment.blocks(), Vec::new);
        let (slice, entries) = (row.get::<_, i64>(0)? - keys.start, row.get_ref(1)?.as_blob()?);
        if slice == COVERED_SLICE {
            for (place, covered) in covered_blocks(segment, entries) {
                blocks.entry(place).or_default().covered = covered;
            }
            continue;
        }
        let add = |block: usize, fingerprint| {
            if let Some(fingerprints) = held.get_mut(block) {
                fingerprints.push(fingerprint);
            }
        };
        if unfold_slice(slice as usize, entries, segment.blocks(), add).is_none() {
            return Ok(None);
        }
    }
    for (place, fingerprints) in
        held.into_iter().enumerate().filter(|(_, fingerprints)| !fingerprints.is_empty())
    {
        blocks.entry(place).or_default().fingerprints = fingerprints;
    }
    Ok(Some(()))
}

/// Returns the covered rows of the blocks of a sealed segment, from one bit per row.
fn covered_blocks(segment: IndexSegment, bits: &[u8]) -> impl Iterator<Item = (usize, i64)> {
    let rows = segment.family().block_rows as usize;
    let is_set = move |row: usize| bits.get(row / 8).is_some_and(|byte| byte & (1 << (row % 8)) != 0);
    (0..segment.blocks()).filter_map(move |block| {
        let covered: i64 = (0..rows).filter(|at| is_set(block * rows + at)).map(|at| 1 << at).sum();
        (covered != 0).then_some((block, covered))
    })
}

/// Rewrites a segment in its proper form.
pub(super) fn replace(
    conn: &Connection,
    segment: IndexSegment,
    blocks: &IndexBlocks,
) -> rusqlite::Result<()> {
    let (slice_keys, block_keys) = (segment.slice_keys(), segment.block_keys());
    conn.prepare_cached("DELETE FROM clues_sealed WHERE slice >= ?1 AND slice < ?2")?
        .execute([slice_keys.start, slice_keys.end])?;
    conn.prepare_cached("DELETE FROM clues_open WHERE block >= ?1 AND block < ?2")?
        .execute([block_keys.start, block_keys.end])?;
    if segment >= growing(conn, segment.family())? {
        return blocks.iter().try_for_each(|(place, block)| {
            write_open(conn, block_keys.start + *place as i64, block.covered, &block.fingerprints)
        });
    }
    if blocks.is_empty() {
        return Ok(());
    }
    let mut insert = conn.prepare_cached("INSERT INTO clues_sealed (slice, entries) VALUES (?1, ?2)")?;
    let fingerprints: Vec<(usize, &[u32])> =
        blocks.iter().map(|(place, block)| (*place, block.fingerprints.as_slice())).collect();
    for (key, entries) in (slice_keys.start..).zip(slices(&fingerprints, segment.blocks())) {
        if !entries.is_empty() {
            insert.execute(params![key, entries])?;
        }
    }
    let rows = segment.family().block_rows as usize;
    let mut covered = vec![0_u8; (segment.blocks() * rows).div_ceil(8)];
    for (place, block) in blocks {
        for at in (0..rows).filter(|at| block.covered & (1 << at) != 0) {
            let row = place * rows + at;
            if let Some(byte) = covered.get_mut(row / 8) {
                *byte |= 1 << (row % 8);
            }
        }
    }
    insert.execute(params![slice_keys.start + COVERED_SLICE, covered])?;
    Ok(())
}

/// The result of reading a row for its fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowState {
    /// There is no such row.
    Gone,
    /// It exists, but its content cannot be read.
    Unreadable,
    /// It was read.
    Read,
}

/// Adds the fingerprints of a row to a set.
pub(super) type ReadRow<'a> = dyn Fn(i64, &mut FingerprintSet) -> rusqlite::Result<RowState> + 'a;

/// Builds blocks from the contents of rows.
pub(super) struct BlockBuilder<'a> {
    read_row: &'a ReadRow<'a>,
    set: FingerprintSet,
}

impl<'a> BlockBuilder<'a> {
    /// Creates a builder with a function that reads rows.
    pub(super) fn new(read_row: &'a ReadRow<'a>) -> Self {
        Self { read_row, set: FingerprintSet::default() }
    }

    /// Returns a block with its correct content; `None` if none of its rows exists. The known fingerprints of an unreadable row are kept.
    pub(super) fn make(
        &mut self,
        segment: IndexSegment,
        place: usize,
        known: Option<&IndexBlock>,
    ) -> rusqlite::Result<Option<IndexBlock>> {
        let mut covered = 0;
        for row in segment.rows_of(place) {
            match (self.read_row)(row, &mut self.set)? {
                RowState::Gone => continue,
                RowState::Unreadable => {
                    known
                        .iter()
                        .flat_map(|block| &block.fingerprints)
                        .for_each(|fingerprint| self.set.add(*fingerprint));
                }
                RowState::Read => {}
            }
            covered |= place_of(row).1;
        }
        let fingerprints = self.set.take();
        Ok((covered != 0).then_some(IndexBlock { covered, fingerprints }))
    }
}

/// Rebuilds the blocks of these rows.
pub(super) fn read_again(conn: &Connection, rows: &[i64], read_row: &ReadRow<'_>) -> rusqlite::Result<()> {
    let mut changed: BTreeMap<IndexSegment, BTreeSet<usize>> = BTreeMap::new();
    for row in rows {
        let segment = IndexSegment::of_row(*row);
        let place = (place_of(*row).0 - segment.block_keys().start) as usize;
        changed.entry(segment).or_default().insert(place);
    }
    let mut maker = BlockBuilder::new(read_row);
    for (segment, mut places) in changed {
        let mut blocks = match read(conn, segment)? {
            Some(blocks) => blocks,
            None => {
                places = (0..segment.blocks()).collect();
                IndexBlocks::new()
            }
        };
        for place in places {
            match maker.make(segment, place, blocks.get(&place))? {
                Some(block) => blocks.insert(place, block),
                None => blocks.remove(&place),
            };
        }
        replace(conn, segment, &blocks)?;
    }
    Ok(())
}

/// Returns the rows that each segment claims to cover.
pub(super) fn covered(conn: &Connection) -> rusqlite::Result<BTreeMap<IndexSegment, RowSet>> {
    let mut covered: BTreeMap<IndexSegment, RowSet> = BTreeMap::new();
    let mut add = |segment: IndexSegment, place: usize, bits: i64| {
        let rows = covered.entry(segment).or_default();
        (0..)
            .zip(segment.rows_of(place))
            .filter(|(at, _)| bits & (1 << at) != 0)
            .for_each(|(_, row)| rows.add(row));
    };
    let mut first = conn.prepare("SELECT min(slice) FROM clues_sealed WHERE slice >= ?1")?;
    let mut told = conn.prepare("SELECT entries FROM clues_sealed WHERE slice = ?1")?;
    let mut from = i64::MIN;
    while let Some(slice) = first.query_row([from], |row| row.get::<_, Option<i64>>(0))? {
        let segment = IndexSegment(slice.div_euclid(SLICE_KEYS));
        let mut rows = told.query([segment.slice_keys().start + COVERED_SLICE])?;
        if let Some(row) = rows.next()? {
            covered_blocks(segment, row.get_ref(0)?.as_blob()?)
                .for_each(|(place, bits)| add(segment, place, bits));
        }
        from = segment.slice_keys().end;
    }
    let mut open = conn.prepare("SELECT block, covered FROM clues_open")?;
    let mut open = open.query([])?;
    while let Some(row) = open.next()? {
        let key: i64 = row.get(0)?;
        let segment = IndexSegment::of_block_key(key);
        add(segment, key.rem_euclid(BLOCK_KEYS) as usize, row.get(1)?);
    }
    Ok(covered)
}

/// Some rows of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RowSet(BTreeMap<i64, u64>);

impl RowSet {
    pub(super) fn add(&mut self, row: i64) {
        *self.0.entry(row >> 6).or_default() |= 1 << (row & 63);
    }

    /// Returns how many of them are not in another set.
    pub(super) fn missing_in(&self, other: &Self) -> u64 {
        self.0
            .iter()
            .map(|(at, bits)| u64::from((bits & !other.0.get(at).copied().unwrap_or_default()).count_ones()))
            .sum()
    }
}

#[cfg(test)]
#[path = "fingerprint_index_tests.rs"]
mod tests;
