//! Where keywords occur in a text: one pass, a few hundred keywords, a nanosecond a byte.
//!
//! Every keyword has at least three bytes, and the three of them that are rarest in text decide. Bytes are put into 32
//! classes (letters without their case, digits, what names are joined with), so three in a row make a number of 15 bits
//! that is updated byte by byte, and a table of 32768 bits says whether any keyword waits for it. The table fits the
//! fastest cache, which an automaton for as many keywords does not. Only where it says yes are keywords compared.

use crate::randomness;

/// How many bytes of a keyword decide whether it is compared.
const DECIDING_BYTES: usize = 3;
const CLASS_BITS: u32 = 5;
/// How many different triples of classes there are.
const TRIPLES: usize = 1 << (CLASS_BITS as usize * DECIDING_BYTES);

/// Whether upper and lower case are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Counts,
    Ignored,
}

#[derive(Debug)]
struct Keyword {
    bytes: Box<[u8]>,
    case: Case,
    /// Where in the keyword its rarest three bytes end.
    decided_at: usize,
}

/// A set of keywords to search for.
#[derive(Debug)]
pub(crate) struct Keywords {
    classes: [u8; 256],
    /// For each triple, whether a keyword waits for it.
    awaited: Box<[u64; TRIPLES / 64]>,
    /// For each triple, the index of its list in `lists` plus one, or 0.
    list_of_triple: Box<[u16]>,
    /// Keywords that wait for the same triple.
    lists: Vec<Vec<usize>>,
    keywords: Vec<Keyword>,
}

impl Keywords {
    /// Builds the tables for `words`. Words of fewer than three bytes are never found.
    pub(crate) fn new<'w>(words: impl IntoIterator<Item = (&'w str, Case)>) -> Self {
        let classes = classes();
        let mut awaited = Box::new([0u64; TRIPLES / 64]);
        let mut list_of_triple = vec![0u16; TRIPLES].into_boxed_slice();
        let mut lists: Vec<Vec<usize>> = Vec::new();
        let mut keywords = Vec::new();
        for (word, case) in words {
            let index = keywords.len();
            let bytes = word.as_bytes();
            let rarest = (DECIDING_BYTES..=bytes.len())
                .min_by_key(|end| frequency(&bytes[end - DECIDING_BYTES..*end]));
            keywords.push(Keyword { bytes: Box::from(bytes), case, decided_at: rarest.unwrap_or(0) });
            let Some(end) = rarest else {
                continue;
            };
            let triple = index_of(
                bytes[end - DECIDING_BYTES..end]
                    .iter()
                    .fold(0, |triple, byte| advance(triple, classes[usize::from(*byte)])),
            );
            awaited[triple / 64] |= 1 << (triple % 64);
            if list_of_triple[triple] == 0 {
                lists.push(Vec::new());
                list_of_triple[triple] = u16::try_from(lists.len()).unwrap_or(0);
            }
            if let Some(list) =
                usize::from(list_of_triple[triple]).checked_sub(1).and_then(|list| lists.get_mut(list))
            {
                list.push(index);
            }
        }
        Self { classes, awaited, list_of_triple, lists, keywords }
    }

    /// Calls `hit` with the index of each keyword that occurs in `text` and where it starts.
    pub(crate) fn for_each_hit(&self, text: &[u8], mut hit: impl FnMut(usize, usize)) {
        let mut triple = 0u32;
        for (at, byte) in text.iter().enumerate() {
            triple = advance(triple, self.classes[usize::from(*byte)]);
            let index = index_of(triple);
            if self.awaited[index / 64] >> (index % 64) & 1 != 0 {
                self.compare(text, at + 1, index, &mut hit);
            }
        }
    }

    /// Compares the keywords that wait for `triple`, which ends at `end`.
    #[inline(never)]
    fn compare(&self, text: &[u8], end: usize, triple: usize, hit: &mut impl FnMut(usize, usize)) {
        let Some(list) = usize::from(self.list_of_triple[triple]).checked_sub(1) else {
            return;
        };
        for index in &self.lists[list] {
            let keyword = &self.keywords[*index];
            let found = end.checked_sub(keyword.decided_at).is_some_and(|start| {
                text.get(start..start + keyword.bytes.len()).is_some_and(|candidate| match keyword.case {
                    // The last byte is compared first: most keywords that do not occur end differently.
                    Case::Counts => candidate.last() == keyword.bytes.last() && candidate == &*keyword.bytes,
                    Case::Ignored => candidate.eq_ignore_ascii_case(&keyword.bytes),
                })
            });
            if found {
                hit(*index, end - keyword.decided_at);
            }
        }
    }
}

/// The classes of the last bytes, after one more of `class`; what is shifted out of sight does not matter.
fn advance(triple: u32, class: u8) -> u32 {
    triple << CLASS_BITS | u32::from(class)
}

/// The last three classes as an index.
fn index_of(triple: u32) -> usize {
    triple as usize & (TRIPLES - 1)
}

/// Roughly how frequent three bytes are in text, on no particular scale.
fn frequency(bytes: &[u8]) -> u32 {
    bytes.windows(2).map(|pair| randomness::pair_frequency(pair[0], pair[1])).sum()
}

/// Letters without case are classes 0 to 25; what else keywords start with shares the rest.
fn classes() -> [u8; 256] {
    std::array::from_fn(|byte| {
        let byte = u8::try_from(byte).unwrap_or(0);
        match byte {
            b'a'..=b'z' => byte - b'a',
            b'A'..=b'Z' => byte - b'A',
            b'0'..=b'9' => 26,
            b'_' => 27,
            b'-' => 28,
            b'.' => 29,
            b':' | b'/' | b'=' => 30,
            // Other scripts spread over all classes, or every three bytes of them would look like a keyword.
            0x80.. => byte & 31,
            _ => 31,
        }
    })
}

#[cfg(test)]
#[path = "keywords_tests.rs"]
mod tests;
