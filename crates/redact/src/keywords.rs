//! Finds keywords in a text: one pass, a few hundred keywords, less than a nanosecond per byte.
//!
//! Every keyword has at least three bytes, and is looked up by the three consecutive bytes of it that are rarest in text. Three bytes,
//! letters without their case, are hashed to one of 65536 slots, and a table of bits tells whether any keyword is in that slot. The table
//! fits the fastest cache, which an automaton for as many keywords does not. Keywords are compared only if the bit is set.

use crate::randomness;

/// Number of bytes by which a keyword is looked up.
const DECIDING_BYTES: usize = 3;
/// Number of bytes read at once: the lookup bytes and one more, because four bytes are as cheap as one.
const WINDOW_BYTES: usize = 4;
/// The bits of a window that are used: all except those for the case of letters.
const DECIDING_BITS: u32 = 0x005f_5f5f;
const SLOT_BITS: u32 = 16;
const SLOTS: usize = 1 << SLOT_BITS;

/// The most frequent three-byte sequences in conversations of agents, most frequent first: prose, code, paths and program output. Letters
/// without their case; a line break is written `*`, a tab `)`; a bar ends each line.
const COMMON_TRIPLES: &str = include_str!("common_triples.txt");

/// Whether case matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeywordCase {
    Counts,
    Ignored,
}

#[derive(Debug)]
struct Keyword {
    bytes: Box<[u8]>,
    case: KeywordCase,
    /// The end of the keyword's rarest three bytes.
    decided_at: usize,
}

/// A set of keywords to search for.
#[derive(Debug)]
pub(crate) struct Keywords {
    /// For each slot, whether it has a keyword.
    awaited: Box<[u64; SLOTS / 64]>,
    /// For each slot, the index of its list in `lists` plus one, or 0.
    list_of_slot: Box<[u16]>,
    /// Keywords in the same slot.
    lists: Vec<Vec<usize>>,
    keywords: Vec<Keyword>,
}

impl Keywords {
    /// Builds the tables for `words`. Words of fewer than three bytes are never found.
    pub(crate) fn new<'w>(words: impl IntoIterator<Item = (&'w str, KeywordCase)>) -> Self {
        let mut awaited = Box::new([0u64; SLOTS / 64]);
        let mut list_of_slot = vec![0u16; SLOTS].into_boxed_slice();
        let mut lists: Vec<Vec<usize>> = Vec::new();
        let mut keywords = Vec::new();
        let common = common_slots();
        for (word, case) in words {
            let index = keywords.len();
            let bytes = word.as_bytes();
            let rarest = (DECIDING_BYTES..=bytes.len()).min_by_key(|end| {
                let start = end - DECIDING_BYTES;
                (common[slot_of(window_at(bytes, start))], frequency(&bytes[start..*end]))
            });
            keywords.push(Keyword { bytes: Box::from(bytes), case, decided_at: rarest.unwrap_or(0) });
            let Some(end) = rarest else {
                continue;
            };
            let slot = slot_of(window_at(bytes, end - DECIDING_BYTES));
            awaited[slot / 64] |= 1 << (slot % 64);
            if list_of_slot[slot] == 0 {
                lists.push(Vec::new());
                list_of_slot[slot] = u16::try_from(lists.len()).unwrap_or(0);
            }
            if let Some(list) =
                usize::from(list_of_slot[slot]).checked_sub(1).and_then(|list| lists.get_mut(list))
            {
                list.push(index);
            }
        }
        Self { awaited, list_of_slot, lists, keywords }
    }

    /// Calls `hit` with the index and start of each keyword that occurs in `text`.
    pub(crate) fn for_each_hit(&self, text: &[u8], mut hit: impl FnMut(usize, usize)) {
        for (at, window) in text.windows(WINDOW_BYTES).enumerate() {
            let slot = slot_of(<[u8; WINDOW_BYTES]>::try_from(window).unwrap_or_default());
            if self.awaited[slot / 64] >> (slot % 64) & 1 != 0 {
                self.compare(text, at + DECIDING_BYTES, slot, &mut hit);
            }
        }
        // The last three bytes have no byte after them, and it is not used.
        if let Some(at) = text.len().checked_sub(DECIDING_BYTES) {
            self.compare(text, text.len(), slot_of(window_at(text, at)), &mut hit);
        }
    }

    /// Compares the keywords in `slot` at the three bytes that end at `end`.
    #[inline(never)]
    fn compare(&self, text: &[u8], end: usize, slot: usize, hit: &mut impl FnMut(usize, usize)) {
        let Some(list) = usize::from(self.list_of_slot[slot]).checked_sub(1) else {
            return;
        };
        for index in &self.lists[list] {
            let keyword = &self.keywords[*index];
            let found = end.checked_sub(keyword.decided_at).is_some_and(|start| {
                text.get(start..start + keyword.bytes.len()).is_some_and(|candidate| match keyword.case {
                    // The last byte is compared first: most keywords that do not match differ in it.
                    KeywordCase::Counts => {
                        candidate.last() == keyword.bytes.last() && candidate == &*keyword.bytes
                    }
                    KeywordCase::Ignored => candidate.eq_ignore_ascii_case(&keyword.bytes),
                })
            });
            if found {
                hit(*index, end - keyword.decided_at);
            }
        }
    }
}

/// Returns the lookup bytes that start at `at`, and the byte after them.
fn window_at(bytes: &[u8], at: usize) -> [u8; WINDOW_BYTES] {
    std::array::from_fn(|beside| bytes.get(at + beside).copied().unwrap_or_default())
}

/// Returns the slot of keywords with these lookup bytes.
fn slot_of(window: [u8; WINDOW_BYTES]) -> usize {
    let deciding = u32::from_le_bytes(window) & DECIDING_BITS;
    (deciding.wrapping_mul(0x9e37_79b1) >> (u32::BITS - SLOT_BITS)) as usize
}

/// Returns how often each slot is hit by frequent bytes; 0 if by none.
fn common_slots() -> Vec<u16> {
    let triples = || COMMON_TRIPLES.lines().flat_map(|line| line.as_bytes().chunks_exact(DECIDING_BYTES));
    let mut common = vec![0; SLOTS];
    let mut rank = u16::try_from(triples().count()).unwrap_or(u16::MAX);
    for triple in triples() {
        let slot = &mut common[slot_of(window_at(triple, 0))];
        *slot = rank.max(*slot);
        rank = rank.saturating_sub(1);
    }
    common
}

/// Returns the approximate frequency of three bytes in text, without a unit.
fn frequency(bytes: &[u8]) -> u32 {
    bytes.windows(2).map(|pair| randomness::pair_frequency(pair[0], pair[1])).sum()
}

#[cfg(test)]
#[path = "keywords_tests.rs"]
mod tests;
