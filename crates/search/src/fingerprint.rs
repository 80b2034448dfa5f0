//! Fingerprints: the hashes by which texts are found, and the two forms in which the fingerprints of blocks are stored.
//!
//! A fingerprint is a small number: a hash of a word, of the beginning of one, of three consecutive characters (a
//! triple), of two consecutive words, or of a name like that of a tool. A text with a word has the word's fingerprint,
//! and one with a substring has the fingerprints of all its triples; the text itself decides whether it matches. So
//! fingerprints need not be exact, and need not be stored for every text: some texts form a block, which has the
//! fingerprints of all of them.
//!
//! While a block may still grow, it has a sorted list of its fingerprints (`list`), which is searched by bisection. Once
//! a whole segment of blocks is complete, it is inverted (`slices`): every fingerprint has the blocks that contain it,
//! and a segment is cut into slices, so that a query reads a few hundred bytes of each segment for each of its
//! fingerprints.
//!
//! Not for: which texts form a block, and where this is stored.

mod list;
mod rice;
mod slices;

use crate::case_fold::fold_text;
use crate::query::IndexTerm;
use crate::terms::{TextTerm, each_term, is_one_glyph};

pub use list::FingerprintList;
pub use slices::BlockSet;

/// Bits of a fingerprint other than that of a pair. Many texts share such fingerprints, so that a few more bits cost little; with these
/// one of six thousand blocks is proposed for a fingerprint that it does not hold.
const FINGERPRINT_BITS: u32 = 22;
/// Bits of the fingerprint of a pair. Hardly two texts share one, and each bit costs one a pair. One block of two thousand is
/// proposed for a pair that it does not hold.
const PAIR_BITS: u32 = 18;
/// Fingerprints of pairs are numbered after all others.
const FIRST_PAIR: u32 = 1 << FINGERPRINT_BITS;
/// How many fingerprints there are.
const FINGERPRINTS: u32 = FIRST_PAIR + (1 << PAIR_BITS);

/// What a fingerprint other than that of a triple is made of. The same letters have different fingerprints as different things. These
/// numbers, and how fingerprints are made of them, are part of the stored format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FingerprintKind {
    /// A whole term.
    Term = 1,
    /// The first two or six characters of a term, or the only one where it is a word by itself.
    Beginning = 2,
    /// An owner.
    Owner = 3,
    /// The chain of a session.
    Chain = 4,
    /// A role.
    Role = 5,
    /// A tool.
    Tool = 6,
}

/// Mixes well, and is odd.
const MIXER: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(MIXER)
}

fn hash(of: FingerprintKind, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let hash = words.iter().fold(of as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    mix(mix(hash, u64::from_le_bytes(last)), bytes.len() as u64)
}

fn fingerprint_of_hash(hash: u64) -> u32 {
    (hash >> (u64::BITS - FINGERPRINT_BITS)) as u32
}

/// The fingerprint of something.
pub(crate) fn fingerprint(of: FingerprintKind, bytes: &[u8]) -> u32 {
    fingerprint_of_hash(hash(of, bytes))
}

/// The fingerprint of two terms side by side, from their hashes.
fn fingerprint_of_pair(first: u64, second: u64) -> u32 {
    FIRST_PAIR + (mix(first, second) >> (u64::BITS - PAIR_BITS)) as u32
}

/// Calls `each` with the fingerprints of the triples of a folded text, in order, repeated ones too.
pub(crate) fn each_triple(folded: &str, mut each: impl FnMut(u32)) {
    const CHARACTER_BITS: u32 = 21;
    let mut window = 0_u64;
    for (at, c) in folded.chars().enumerate() {
        window = (window >> CHARACTER_BITS) | (u64::from(u32::from(c)) << (2 * CHARACTER_BITS));
        if at >= 2 {
            each((window.wrapping_mul(MIXER) >> (u64::BITS - FINGERPRINT_BITS)) as u32);
        }
    }
}

/// Characters of beginnings that have fingerprints, longest first.
const BEGINNINGS: [usize; 2] = [6, 2];

/// The beginnings of a term that have fingerprints.
fn beginnings(term: &str) -> impl Iterator<Item = &str> {
    BEGINNINGS.into_iter().filter_map(move |characters| {
        let (at, last) = term.char_indices().nth(characters - 1)?;
        term.get(..at + last.len_utf8())
    })
}

/// The fingerprints by which a term is looked up: every text has them that holds the term. The first tells most.
fn lookup_fingerprints(wanted: &IndexTerm) -> Vec<u32> {
    let stem = match wanted {
        IndexTerm::Whole(term) => return vec![fingerprint(FingerprintKind::Term, term.as_bytes())],
        IndexTerm::Pair(first, second) => {
            let hash_of = |term: &str| hash(FingerprintKind::Term, term.as_bytes());
            return vec![fingerprint_of_pair(hash_of(first), hash_of(second))];
        }
        IndexTerm::Beginning(stem) => stem,
    };
    // One character has a fingerprint where it is a word by itself.
    let beginning = beginnings(stem).next().or_else(|| is_one_glyph(stem).then_some(stem));
    let mut fingerprints: Vec<u32> = beginning
        .map(|beginning| fingerprint(FingerprintKind::Beginning, beginning.as_bytes()))
        .into_iter()
        .collect();
    fingerprints.extend(FingerprintSet::rarest_triples(stem));
    fingerprints
}

impl IndexTerm {
    /// What every text has that holds one of these terms: of each of the sets of fingerprints one.
    pub fn fingerprints_of_any(terms: &[Self]) -> Vec<Vec<u32>> {
        if let [term] = terms {
            return lookup_fingerprints(term).into_iter().map(|fingerprint| vec![fingerprint]).collect();
        }
        // The first of each is enough; a term that has none may be anywhere.
        let first_of_each: Option<Vec<u32>> =
            terms.iter().map(|term| lookup_fingerprints(term).first().copied()).collect();
        first_of_each.into_iter().collect()
    }
}

/// Triples that are looked up of one thing: these narrow it down enough, and each costs a slice to read.
const MAX_TRIPLES: usize = 8;

/// How often a character is met, roughly, on a scale of doublings.
fn commonness(c: char) -> u32 {
    match c {
        ' ' => 9,
        'e' | 't' | 'a' => 8,
        'o' | 'i' | 'n' | 's' | 'r' => 7,
        'd' | 'h' | 'l' | 'u' | 'c' | 'm' => 6,
        'p' | 'f' | 'g' | 'b' | 'y' | 'w' | '.' => 5,
        'v' | 'k' | '0' | '1' | '2' | '/' | '_' | '-' | ',' | '"' => 4,
        'x' | 'j' | 'q' | 'z' | '3'..='9' | '!'..='~' => 3,
        _ => 1,
    }
}

/// A set of fingerprints that is filled, read out in order and used again.
pub struct FingerprintSet {
    /// As they came, some repeated.
    fingerprints: Vec<u32>,
    /// Where they are put in order.
    scratch: Vec<u32>,
    /// Fingerprints that came of late, each at a place that follows from it: most that are repeated are passed over by these.
    recent: Box<[u32; RECENT]>,
    folded: String,
}

const RECENT: usize = 4096;

impl Default for FingerprintSet {
    fn default() -> Self {
        Self {
            fingerprints: Vec::new(),
            scratch: Vec::new(),
            recent: Box::new([u32::MAX; RECENT]),
            folded: String::new(),
        }
    }
}

impl FingerprintSet {
    /// The fingerprints of triples of a folded text by which to look it up: of a long one those that are rarest, by their look.
    pub fn rarest_triples(folded: &str) -> Vec<u32> {
        let starts: Vec<usize> = folded.char_indices().map(|(at, _)| at).chain([folded.len()]).collect();
        let mut triples: Vec<&str> =
            starts.windows(4).filter_map(|ends| folded.get(*ends.first()?..*ends.last()?)).collect();
        triples.sort_unstable();
        triples.dedup();
        triples.sort_by_key(|triple| triple.chars().map(commonness).sum::<u32>());
        triples.truncate(MAX_TRIPLES);
        let mut fingerprints = Vec::with_capacity(triples.len());
        triples
            .into_iter()
            .for_each(|triple| each_triple(triple, |fingerprint| fingerprints.push(fingerprint)));
        fingerprints
    }

    /// Adds the fingerprints of a text: of its triples, its terms and its pairs of terms. White space around it does not count:
    /// no question has any.
    pub fn add_text(&mut self, text: &str) {
        let mut folded = std::mem::take(&mut self.folded);
        folded.clear();
        fold_text(text, &mut folded);
        each_triple(folded.trim(), |fingerprint| self.add(fingerprint));
        self.folded = folded;
        let mut before = 0;
        each_term(text, |term| match term {
            TextTerm::Atom { term, follows } => {
                let hash = self.add_word(term);
                if follows {
                    self.add(fingerprint_of_pair(before, hash));
                }
                before = hash;
            }
            TextTerm::Word(word) => {
                self.add_word(word);
            }
            // In the text it is written with hyphens; the query may leave them out.
            TextTerm::Compound(compound) => {
                self.add_word(compound);
                each_triple(compound, |fingerprint| self.add(fingerprint));
            }
            TextTerm::Glyphs(glyphs) => {
                self.add_term(glyphs);
            }
            TextTerm::Glyph(glyph) => self.add(fingerprint(FingerprintKind::Beginning, glyph.as_bytes())),
        });
    }

    fn add_word(&mut self, word: &str) -> u64 {
        for beginning in beginnings(word) {
            self.add(fingerprint(FingerprintKind::Beginning, beginning.as_bytes()));
        }
        self.add_term(word)
    }

    fn add_term(&mut self, term: &str) -> u64 {
        let hash = hash(FingerprintKind::Term, term.as_bytes());
        self.add(fingerprint_of_hash(hash));
        hash
    }

    /// Adds a fingerprint.
    pub fn add(&mut self, fingerprint: u32) {
        let recent = &mut self.recent[fingerprint as usize % RECENT];
        if *recent != fingerprint {
            *recent = fingerprint;
            self.fingerprints.push(fingerprint);
        }
    }

    /// Everything in it, in order, each once. It is empty afterwards.
    pub fn take(&mut self) -> Vec<u32> {
        sort(&mut self.fingerprints, &mut self.scratch);
        self.fingerprints.dedup();
        let taken = self.fingerprints.as_slice().to_vec();
        self.fingerprints.clear();
        self.recent.fill(u32::MAX);
        taken
    }
}

/// Puts fingerprints in order. Comparing a block's many fingerprints with one another would cost more than everything else about it.
fn sort(fingerprints: &mut Vec<u32>, scratch: &mut Vec<u32>) {
    const FEW: usize = 256;
    const DIGIT_BITS: u32 = 12;
    const DIGITS: usize = 1 << DIGIT_BITS;
    const { assert!(FINGERPRINTS <= 1 << (2 * DIGIT_BITS), "two digits tell fingerprints apart") };
    if fingerprints.len() < FEW {
        fingerprints.sort_unstable();
        return;
    }
    for shift in [0, DIGIT_BITS] {
        let digit = |fingerprint: u32| (fingerprint >> shift) as usize % DIGITS;
        let mut starts = [0_u32; DIGITS];
        for fingerprint in fingerprints.iter() {
            starts[digit(*fingerprint)] += 1;
        }
        let mut before = 0;
        for start in &mut starts {
            before += std::mem::replace(start, before);
        }
        scratch.clear();
        scratch.resize(fingerprints.len(), 0);
        for fingerprint in fingerprints.iter() {
            let start = &mut starts[digit(*fingerprint)];
            scratch[*start as usize] = *fingerprint;
            *start += 1;
        }
        std::mem::swap(fingerprints, scratch);
    }
}

#[cfg(test)]
#[path = "fingerprint_tests.rs"]
mod tests;
