//! Looks up the blocks that contain given fingerprints.

use std::collections::BTreeSet;

use rusqlite::{CachedStatement, Connection};
use throughline_search::fingerprint::{BlockSet, FingerprintList, holders_of, slice_of};

use crate::record_search::source::{LookupTerms, SegmentLookup};

use super::super::error::{TxError, TxResult};
use super::{COVERED_SLICE, IndexSegment, SegmentKeys};

/// Looks up segments in turn.
pub(in crate::sqlite) struct IndexLookup<'c> {
    conn: &'c Connection,
    sealed: CachedStatement<'c>,
    open: CachedStatement<'c>,
    /// Segments with blocks in the open form: usually only the one that grows.
    open_segments: BTreeSet<IndexSegment>,
}

impl<'c> IndexLookup<'c> {
    /// Creates a lookup in the present index.
    pub(in crate::sqlite) fn new(conn: &'c Connection) -> rusqlite::Result<Self> {
        let mut open_segments = BTreeSet::new();
        let mut last = conn.prepare_cached("SELECT max(block) FROM clues_open WHERE block < ?1")?;
        let mut end = i64::MAX;
        while let Some(key) = last.query_row([end], |row| row.get::<_, Option<i64>>(0))? {
            let segment = IndexSegment::of_block_key(key);
            end = segment.block_keys().start;
            open_segments.insert(segment);
        }
        Ok(Self {
            conn,
            sealed: conn.prepare_cached("SELECT entries FROM clues_sealed WHERE slice = ?1")?,
            open: conn
                .prepare_cached("SELECT block, clues FROM clues_open WHERE block >= ?1 AND block < ?2")?,
            open_segments,
        })
    }

    /// Adds the blocks in the open form.
    fn add_open(
        &mut self,
        segment: IndexSegment,
        wanted: &LookupTerms,
        found: &mut BlockSet,
    ) -> rusqlite::Result<()> {
        let keys = segment.block_keys();
        let mut open = self.open.query([keys.start, keys.end])?;
        while let Some(row) = open.next()? {
            let list = FingerprintList::new(row.get_ref(1)?.as_blob()?);
            let holds_one = |list: &FingerprintList<'_>, any: &Vec<u32>| {
                any.iter().any(|fingerprint| list.holds(*fingerprint))
            };
            if list.is_none_or(|list| wanted.iter().all(|any| holds_one(&list, any))) {
                found.add((row.get::<_, i64>(0)? - keys.start) as usize);
            }
        }
        Ok(())
    }

    /// Returns the blocks of a sealed segment with a fingerprint.
    fn in_sealed(&mut self, segment: IndexSegment, fingerprint: u32) -> rusqlite::Result<BlockSet> {
        let mut rows = self.sealed.query([segment.slice_keys().start + slice_of(fingerprint) as i64])?;
        Ok(match rows.next()? {
            None => BlockSet::none(),
            // With a damaged slice, any block may have the fingerprint: the texts decide.
            Some(row) => {
                let holders = holders_of(fingerprint, row.get_ref(0)?.as_blob()?, segment.blocks());
                holders.unwrap_or_else(BlockSet::all)
            }
        })
    }
}

impl SegmentLookup for IndexLookup<'_> {
    type Error = TxError;

    fn knows(&self, segment: IndexSegment) -> TxResult<bool> {
        if self.open_segments.contains(&segment) {
            return Ok(true);
        }
        Ok(self
            .conn
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM clues_sealed WHERE slice = ?1)")?
            .query_row([segment.slice_keys().start + COVERED_SLICE], |row| row.get(0))?)
    }

    fn of(&mut self, segment: IndexSegment, wanted: &LookupTerms) -> TxResult<BlockSet> {
        // Missing blocks have no rows either.
        let mut found = BlockSet::all();
        for alternatives in wanted {
            // Excluding a block costs a tenth of reading it.
            if found.is_empty() {
                break;
            }
            let mut holders = BlockSet::none();
            for fingerprint in alternatives {
                holders.join(&self.in_sealed(segment, *fingerprint)?);
            }
            found.keep(&holders);
        }
        if self.open_segments.contains(&segment) {
            self.add_open(segment, wanted, &mut found)?;
        }
        Ok(found)
    }

    fn by_word(&mut self, segment: IndexSegment, words: &LookupTerms) -> TxResult<Vec<BlockSet>> {
        let mut found = Vec::with_capacity(words.len());
        for forms in words {
            let mut holders = BlockSet::none();
            for fingerprint in forms {
                holders.join(&self.in_sealed(segment, *fingerprint)?);
            }
            found.push(holders);
        }
        if self.open_segments.contains(&segment) {
            let keys = segment.block_keys();
            let mut open = self.open.query([keys.start, keys.end])?;
            while let Some(row) = open.next()? {
                let Some(list) = FingerprintList::new(row.get_ref(1)?.as_blob()?) else { continue };
                let place = (row.get::<_, i64>(0)? - keys.start) as usize;
                for (holders, forms) in found.iter_mut().zip(words) {
                    if forms.iter().any(|fingerprint| list.holds(*fingerprint)) {
                        holders.add(place);
                    }
                }
            }
        }
        Ok(found)
    }
}
