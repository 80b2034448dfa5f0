//! Splits a range of messages into chunks. Pure: computes ranges from sizes.
//!
//! A chunk ends at the end of a group, so a call is never separated from its result. Chunks are filled from the oldest message on, and only
//! the last may be small. The same messages always give the same chunks, so a leaf that was prepared earlier, or before a crash, is found
//! again.

use std::ops::Range;

use throughline_transcript::Groups;

/// A range that a leaf covers already.
pub(crate) type CoveredRange = Range<usize>;

/// Splits the messages to compact, given as contiguous ranges in order, into chunks. A covered range is a chunk unchanged.
pub(crate) fn chunks(
    ranges: &[Range<usize>],
    taken: &[CoveredRange],
    groups: &Groups,
    sizes: &[u64],
    chunk_tokens: u64,
) -> Vec<Range<usize>> {
    let mut chunks = Vec::new();
    for stretch in ranges {
        let mut at = stretch.start;
        while at < stretch.end {
            if let Some(known) = taken.iter().find(|known| known.start == at && known.end <= stretch.end) {
                chunks.push(known.clone());
                at = known.end;
                continue;
            }
            let next_taken = taken.iter().map(|known| known.start).filter(|start| *start > at).min();
            let limit = next_taken.map_or(stretch.end, |start| start.min(stretch.end));
            let end = chunk_end(at, limit, groups, sizes, chunk_tokens);
            chunks.push(at..end);
            at = end;
        }
    }
    chunks
}

/// Returns the end of the chunk that starts at `from`: before the group that would make it too large, after at least one.
fn chunk_end(from: usize, limit: usize, groups: &Groups, sizes: &[u64], chunk_tokens: u64) -> usize {
    let mut used = 0u64;
    let mut at = from;
    while at < limit {
        let end = groups.containing(at).map_or(at + 1, |group| group.end).clamp(at + 1, limit);
        let size: u64 = sizes.get(at..end).unwrap_or_default().iter().sum();
        if at > from && used.saturating_add(size) > chunk_tokens {
            break;
        }
        used = used.saturating_add(size);
        at = end;
    }
    at
}

#[cfg(test)]
#[path = "chunks_tests.rs"]
mod tests;
