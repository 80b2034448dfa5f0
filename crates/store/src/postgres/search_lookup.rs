//! Looks up in the index of an owner which blocks contain the wanted fingerprints. Slices of several segments are read in one query:
//! the segments given to `read_ahead`, or, for a search from the newest segment to the oldest, a growing number of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use throughline_search::fingerprint::{BlockSet, FingerprintList};
use throughline_search::segments::IndexSegment;

use crate::record_search::source::{LookupTerms, SegmentLookup};

use super::error::{PgError, PgResult};
use super::search_index::IndexKind;
use super::search_source::PostgresSource;
use super::value::{self, SqlValue, int};

/// Number of segments whose slices the first query reads ...
const FIRST_SEGMENTS: i64 = 8;
/// ... the factor by which the number grows with each query ...
const MORE_SEGMENTS: i64 = 8;
/// ... and its maximum.
const MOST_SEGMENTS: i64 = 512;
/// The most slices kept in memory.
const MAX_SLICES: usize = 16 * 1024;

/// The lists of rows of a segment that is not sealed, block by block.
pub(super) type OpenBlocks = BTreeMap<usize, Vec<Arc<[u8]>>>;
/// The open blocks of all segments that are not sealed.
pub(super) type OpenSegments = HashMap<IndexSegment, OpenBlocks>;

/// Asks the segments of an owner's index.
pub(super) struct PostgresLookup<'s, 'c> {
    source: &'s PostgresSource<'s, 'c>,
    /// By kind, segment and slice; `None` where a slice is empty.
    slices: HashMap<(i64, i64, i64), Option<Vec<u8>>>,
    /// Number of segments that the next query reads.
    at_once: i64,
}

fn kind_of(segment: IndexSegment) -> IndexKind {
    if *segment.family() == *IndexKind::Piece.layout() { IndexKind::Piece } else { IndexKind::Message }
}

/// The number of a segment among those of its kind.
fn number_of(segment: IndexSegment) -> i64 {
    let layout = segment.family();
    segment.0 - layout.first_row / layout.segment_rows()
}

impl<'s, 'c> PostgresLookup<'s, 'c> {
    pub(super) fn new(source: &'s PostgresSource<'s, 'c>) -> Self {
        Self { source, slices: HashMap::new(), at_once: FIRST_SEGMENTS }
    }

    /// Whether a segment is sealed.
    fn is_sealed(&self, segment: IndexSegment) -> PgResult<bool> {
        Ok(number_of(segment) < self.source.state(kind_of(segment))?.sealed)
    }

    /// Reads the slices of a segment that contain these fingerprints, unless they are in memory.
    fn fetch(&mut self, segment: IndexSegment, wanted: &LookupTerms) -> PgResult<()> {
        let (kind, number) = (kind_of(segment), number_of(segment));
        let slices = slices_of(wanted);
        if self.has(kind, number, &slices) {
            return Ok(());
        }
        let first = (number + 1 - self.at_once).max(0);
        self.at_once = (self.at_once * MORE_SEGMENTS).min(MOST_SEGMENTS);
        self.read(kind, &(first..=number).collect::<Vec<i64>>(), &slices)
    }

    fn has(&self, kind: IndexKind, number: i64, slices: &[i64]) -> bool {
        slices.iter().all(|slice| self.slices.contains_key(&(kind.code(), number, *slice)))
    }

    /// Reads slices of sealed segments.
    fn read(&mut self, kind: IndexKind, numbers: &[i64], slices: &[i64]) -> PgResult<()> {
        if self.slices.len() > MAX_SLICES {
            self.slices.clear();
        }
        let rows = self.source.tx.query(
            "SELECT segment, slice::int8, entries FROM search_slices \
             WHERE owner = $1 AND kind = $2 AND segment = ANY ($3) AND slice = ANY ($4)",
            vec![
                self.source.owner.into(),
                kind.code().into(),
                SqlValue::ints(numbers.iter().copied()),
                SqlValue::ints(slices.iter().copied()),
            ],
        )?;
        for number in numbers {
            slices.iter().for_each(|slice| {
                self.slices.insert((kind.code(), *number, *slice), None);
            });
        }
        for row in &rows {
            let entries = value::bytes(row, 2)?.to_vec();
            self.slices.insert((kind.code(), int(row, 0)?, int(row, 1)?), Some(entries));
        }
        Ok(())
    }

    /// Returns the blocks of a sealed segment that contain a fingerprint. Its slices must have been read.
    fn in_sealed(&self, segment: IndexSegment, fingerprint: u32) -> BlockSet {
        let key = (kind_of(segment).code(), number_of(segment), IndexSegment::slice_of(fingerprint) as i64);
        match self.slices.get(&key) {
            Some(Some(entries)) => {
                // If a slice is damaged, any block may contain the fingerprint; the texts decide.
                BlockSet::holders_of(fingerprint, entries, segment.blocks()).unwrap_or_else(BlockSet::all)
            }
            _ => BlockSet::none(),
        }
    }

    /// The blocks of a segment that is not sealed.
    fn open_blocks(&self, segment: IndexSegment) -> PgResult<Option<&'s OpenBlocks>> {
        Ok(self.source.open_segments(kind_of(segment))?.get(&segment))
    }
}

/// Returns the numbers of the slices that contain these fingerprints.
fn slices_of(wanted: &LookupTerms) -> Vec<i64> {
    let mut slices: Vec<i64> =
        wanted.iter().flatten().map(|fingerprint| IndexSegment::slice_of(*fingerprint) as i64).collect();
    slices.sort_unstable();
    slices.dedup();
    slices
}

/// Whether the rows of a block contain one of these fingerprints. A damaged list may contain any.
fn holds_one(lists: &[Arc<[u8]>], any: &[u32]) -> bool {
    lists.iter().any(|list| match FingerprintList::new(list) {
        Some(list) => any.iter().any(|fingerprint| list.holds(*fingerprint)),
        None => true,
    })
}

impl SegmentLookup for PostgresLookup<'_, '_> {
    type Error = PgError;

    fn read_ahead(&mut self, segments: &[IndexSegment], wanted: &LookupTerms) -> PgResult<()> {
        let slices = slices_of(wanted);
        for kind in IndexKind::ALL {
            let sealed = self.source.state(kind)?.sealed;
            let of_kind = segments.iter().filter(|segment| kind_of(**segment) == kind);
            let mut numbers: Vec<i64> = of_kind.map(|segment| number_of(*segment)).collect();
            numbers.retain(|number| *number < sealed && !self.has(kind, *number, &slices));
            if !numbers.is_empty() && !slices.is_empty() {
                self.read(kind, &numbers, &slices)?;
            }
        }
        Ok(())
    }

    fn of(&mut self, segment: IndexSegment, wanted: &LookupTerms) -> PgResult<BlockSet> {
        if !self.is_sealed(segment)? {
            let mut found = BlockSet::none();
            if let Some(blocks) = self.open_blocks(segment)? {
                for (block, lists) in blocks {
                    if wanted.iter().all(|any| holds_one(lists, any)) {
                        found.add(*block);
                    }
                }
            }
            return Ok(found);
        }
        self.fetch(segment, wanted)?;
        let mut found = BlockSet::all();
        for alternatives in wanted {
            let mut holders = BlockSet::none();
            alternatives.iter().for_each(|fingerprint| holders.join(&self.in_sealed(segment, *fingerprint)));
            found.keep(&holders);
        }
        Ok(found)
    }

    fn by_word(&mut self, segment: IndexSegment, words: &LookupTerms) -> PgResult<Vec<BlockSet>> {
        let mut found = vec![BlockSet::none(); words.len()];
        if !self.is_sealed(segment)? {
            if let Some(blocks) = self.open_blocks(segment)? {
                for (block, lists) in blocks {
                    for (holders, forms) in found.iter_mut().zip(words) {
                        if holds_one(lists, forms) {
                            holders.add(*block);
                        }
                    }
                }
            }
            return Ok(found);
        }
        self.fetch(segment, words)?;
        for (holders, forms) in found.iter_mut().zip(words) {
            forms.iter().for_each(|fingerprint| holders.join(&self.in_sealed(segment, *fingerprint)));
        }
        Ok(found)
    }

    fn knows(&self, _segment: IndexSegment) -> PgResult<bool> {
        // Every row was written together with its message.
        Ok(true)
    }
}
