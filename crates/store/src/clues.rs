//! Clues: what texts are found by, and the two forms in which blocks of texts are known by theirs.
//!
//! A clue is a small number, a hash: of a word, of the beginning of one, of three characters that follow one another, of
//! a name like that of a tool. A text that holds a word has the word's clue, one that holds a substring the clues of all
//! its triples; whether it holds them is for the text to say. So clues need not be exact, and neither must they be kept
//! for every text: some texts make a block, which has the clues of all of them.
//!
//! While a block may still grow it has a list of its clues, sorted, in which one is found by halving. Once a whole
//! segment of blocks is complete, it is turned around: every clue has the blocks that hold it, and a segment is cut into
//! slices, so that a question reads a few hundred bytes of each segment for each of its clues.
//!
//! Not for: which texts make a block, and where any of this is kept.

use crate::fold::fold_text;
use crate::query::IndexTerm;
use crate::terms::{TextTerm, each_term, is_one_glyph};

/// Bits of a clue. With six hundred clues to a block, one of 400 blocks is proposed for a clue that it does not hold.
const CLUE_BITS: u32 = 18;
/// Slices of a segment.
pub(crate) const SLICES: usize = 1 << (CLUE_BITS - 8);
/// Blocks a segment may have.
pub(crate) const MAX_BLOCKS: usize = 1024;

/// What a clue other than that of a triple is made of. The same letters have different clues as different things. These
/// numbers, and how clues are made of them, are part of the stored format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClueOf {
    /// A whole term.
    Term = 1,
    /// The first two or five characters of a term, or the only one where it stands for a word.
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

/// The clue of something.
pub(crate) fn clue(of: ClueOf, bytes: &[u8]) -> u32 {
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(MIXER);
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let hash = words.iter().fold(of as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let hash = mix(mix(hash, u64::from_le_bytes(last)), bytes.len() as u64);
    (hash >> (u64::BITS - CLUE_BITS)) as u32
}

/// Calls `each` with the clues of the triples of a folded text, in order, repeated ones too.
pub(crate) fn each_triple(folded: &str, mut each: impl FnMut(u32)) {
    const CHARACTER_BITS: u32 = 21;
    let mut window = 0_u64;
    for (at, c) in folded.chars().enumerate() {
        window = (window >> CHARACTER_BITS) | (u64::from(u32::from(c)) << (2 * CHARACTER_BITS));
        if at >= 2 {
            each((window.wrapping_mul(MIXER) >> (u64::BITS - CLUE_BITS)) as u32);
        }
    }
}

/// Characters of beginnings that have clues, longest first.
const BEGINNINGS: [usize; 2] = [5, 2];

/// The beginnings of a term that have clues.
fn beginnings(term: &str) -> impl Iterator<Item = &str> {
    BEGINNINGS.into_iter().filter_map(move |characters| {
        let (at, last) = term.char_indices().nth(characters - 1)?;
        term.get(..at + last.len_utf8())
    })
}

/// The clues by which a term is looked up: every text has them that holds the term.
pub(crate) fn clues_to_look_up(wanted: &IndexTerm) -> Vec<u32> {
    let term = wanted.term.as_str();
    if !wanted.as_prefix {
        return vec![clue(ClueOf::Term, term.as_bytes())];
    }
    // One character has a clue where it stands for a word.
    let beginning = beginnings(term).next().or_else(|| is_one_glyph(term).then_some(term));
    let mut clues: Vec<u32> =
        beginning.map(|beginning| clue(ClueOf::Beginning, beginning.as_bytes())).into_iter().collect();
    clues.extend(rarest_triples(term));
    clues
}

/// Triples that are looked up of one thing: these narrow it down enough, and each costs a slice to read.
const MAX_TRIPLES: usize = 8;

/// The clues of triples of a folded text by which to look it up: of a long one those that are rarest, by their look.
pub(crate) fn rarest_triples(folded: &str) -> Vec<u32> {
    let starts: Vec<usize> = folded.char_indices().map(|(at, _)| at).chain([folded.len()]).collect();
    let mut triples: Vec<&str> =
        starts.windows(4).filter_map(|ends| folded.get(*ends.first()?..*ends.last()?)).collect();
    triples.sort_unstable();
    triples.dedup();
    triples.sort_by_key(|triple| triple.chars().map(commonness).sum::<u32>());
    triples.truncate(MAX_TRIPLES);
    let mut clues = Vec::with_capacity(triples.len());
    triples.into_iter().for_each(|triple| each_triple(triple, |clue| clues.push(clue)));
    clues
}

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

/// A set of clues that is filled, read out in order and used again.
pub(crate) struct ClueSet {
    /// One bit a clue.
    clues: Box<[u64]>,
    /// One bit for each of these that is not zero, so that reading out a few clues does not look at all of them.
    used: Box<[u64]>,
    folded: String,
}

impl Default for ClueSet {
    fn default() -> Self {
        let words = 1 << (CLUE_BITS - 6);
        Self { clues: vec![0; words].into(), used: vec![0; words / 64].into(), folded: String::new() }
    }
}

impl ClueSet {
    /// Adds the clues of a text: of its triples and of its terms. White space around it does not count: no question
    /// has any.
    pub(crate) fn add_text(&mut self, text: &str) {
        let mut folded = std::mem::take(&mut self.folded);
        folded.clear();
        fold_text(text, &mut folded);
        each_triple(folded.trim(), |clue| self.add(clue));
        self.folded = folded;
        each_term(text, |term| match term {
            TextTerm::Word(word) => self.add_word(word),
            // In the text it is written with hyphens; whoever asks for it need not.
            TextTerm::Compound(compound) => {
                self.add_word(compound);
                each_triple(compound, |clue| self.add(clue));
            }
            TextTerm::Glyphs(glyphs) => self.add_term(glyphs),
            TextTerm::Glyph(glyph) => self.add(clue(ClueOf::Beginning, glyph.as_bytes())),
        });
    }

    fn add_word(&mut self, word: &str) {
        self.add_term(word);
        for beginning in beginnings(word) {
            self.add(clue(ClueOf::Beginning, beginning.as_bytes()));
        }
    }

    fn add_term(&mut self, term: &str) {
        self.add(clue(ClueOf::Term, term.as_bytes()));
    }

    /// Adds a clue.
    pub(crate) fn add(&mut self, clue: u32) {
        let word = (clue >> 6) as usize;
        if let (Some(clues), Some(used)) = (self.clues.get_mut(word), self.used.get_mut(word / 64)) {
            *clues |= 1 << (clue % 64);
            *used |= 1 << (word % 64);
        }
    }

    /// Everything in it, in order. It is empty afterwards.
    pub(crate) fn take(&mut self) -> Vec<u32> {
        let mut taken = Vec::with_capacity(1024);
        for (at, used) in self.used.iter_mut().enumerate() {
            for word in bits(std::mem::take(used)).map(|bit| at * 64 + bit as usize) {
                let clues = self.clues.get_mut(word).map(std::mem::take).unwrap_or_default();
                taken.extend(bits(clues).map(|bit| word as u32 * 64 + bit));
            }
        }
        taken
    }
}

/// The bits of a number that are set, lowest first.
fn bits(mut number: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (number != 0).then(|| number.trailing_zeros())?;
        number &= number - 1;
        Some(lowest)
    })
}

/// Parts of the list of a block: clues of a part share all but their lower 16 bits.
const PARTS: usize = 1 << (CLUE_BITS - 16);
/// The list begins with how many clues each part has.
const HEAD_BYTES: usize = PARTS * 4;

/// The list of a block as it is kept.
pub(crate) fn encode_list(clues: &[u32]) -> Vec<u8> {
    let mut counts = [0_u32; PARTS];
    for clue in clues {
        if let Some(count) = counts.get_mut((clue >> 16) as usize) {
            *count += 1;
        }
    }
    let mut out = Vec::with_capacity(HEAD_BYTES + 2 * clues.len());
    out.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
    out.extend(clues.iter().flat_map(|clue| (*clue as u16).to_le_bytes()));
    out
}

/// The list of a block, read where it lies.
pub(crate) struct ClueList<'a> {
    parts: [&'a [[u8; 2]]; PARTS],
}

impl<'a> ClueList<'a> {
    /// `None` if these bytes are no list.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let (mut rest, odd) = rest.as_chunks::<2>();
        let mut parts = [rest; PARTS];
        for (part, count) in parts.iter_mut().zip(head.as_chunks::<4>().0) {
            (*part, rest) = rest.split_at_checked(u32::from_le_bytes(*count) as usize)?;
        }
        (rest.is_empty() && odd.is_empty()).then_some(Self { parts })
    }

    /// Whether a clue is in it.
    pub(crate) fn holds(&self, clue: u32) -> bool {
        let part = self.parts.get((clue >> 16) as usize).copied().unwrap_or_default();
        part.binary_search_by_key(&(clue as u16), |low| u16::from_le_bytes(*low)).is_ok()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).zip(self.parts).flat_map(|(high, part)| {
            part.iter().map(move |low| high << 16 | u32::from(u16::from_le_bytes(*low)))
        })
    }
}

/// Some blocks of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockSet([u64; MAX_BLOCKS / 64]);

impl BlockSet {
    /// None.
    pub(crate) fn none() -> Self {
        Self([0; MAX_BLOCKS / 64])
    }

    /// Every block there can be.
    pub(crate) fn all() -> Self {
        Self([u64::MAX; MAX_BLOCKS / 64])
    }

    pub(crate) fn add(&mut self, block: usize) {
        if let Some(word) = self.0.get_mut(block / 64) {
            *word |= 1 << (block % 64);
        }
    }

    /// Adds those of another set.
    pub(crate) fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    /// Leaves those that are in both.
    pub(crate) fn keep(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The highest first.
    pub(crate) fn descending(&self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().rev().flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let highest = word.checked_ilog2()?;
                word &= !(1 << highest);
                Some(at * 64 + highest as usize)
            })
        })
    }
}

/// The slice that knows a clue.
pub(crate) fn slice_of(clue: u32) -> usize {
    (clue >> 8) as usize
}

/// Turns a segment around: given the clues of its blocks, in the order of the blocks, what each slice holds.
///
/// An entry is the lower byte of a clue and its blocks: the bytes of a list of distances, after how many there are, or
/// zero and a bit for every block, whichever is shorter.
pub(crate) fn slices(blocks: &[(usize, &[u32])], segment_blocks: usize) -> Vec<Vec<u8>> {
    let mut holders: Vec<Vec<(u8, u16)>> = vec![Vec::new(); SLICES];
    for (block, clues) in blocks {
        for clue in *clues {
            if let Some(holders) = holders.get_mut(slice_of(*clue)) {
                holders.push((*clue as u8, *block as u16));
            }
        }
    }
    let mut by_gram: [Vec<u16>; 256] = std::array::from_fn(|_| Vec::new());
    holders
        .into_iter()
        .map(|holders| {
            for (clue, block) in holders {
                by_gram[usize::from(clue)].push(block);
            }
            let mut slice = Vec::new();
            for (clue, blocks) in (0..=u8::MAX).zip(&mut by_gram) {
                if !blocks.is_empty() {
                    write_entry(clue, blocks, segment_blocks, &mut slice);
                    blocks.clear();
                }
            }
            slice
        })
        .collect()
}

fn write_entry(clue: u8, blocks: &[u16], segment_blocks: usize, out: &mut Vec<u8>) {
    let bitmap_bytes = segment_blocks / 8;
    out.push(clue);
    if blocks.len() < bitmap_bytes {
        let mut distances = Vec::with_capacity(blocks.len() + 8);
        let mut before = 0;
        for block in blocks {
            write_number(block - before, &mut distances);
            before = *block;
        }
        if distances.len() < bitmap_bytes {
            write_number(distances.len() as u16, out);
            out.extend_from_slice(&distances);
            return;
        }
    }
    write_number(0, out);
    let from = out.len();
    out.resize(from + bitmap_bytes, 0);
    for block in blocks {
        if let Some(byte) = out.get_mut(from + usize::from(block / 8)) {
            *byte |= 1 << (block % 8);
        }
    }
}

/// Numbers below 128 are one byte; others two, the lower seven bits first.
fn write_number(number: u16, out: &mut Vec<u8>) {
    match number {
        0..128 => out.push(number as u8),
        _ => out.extend([number as u8 | 0x80, (number >> 7) as u8]),
    }
}

fn read_number(bytes: &mut &[u8]) -> Option<usize> {
    let (&low, rest) = bytes.split_first()?;
    *bytes = rest;
    if low < 0x80 {
        return Some(usize::from(low));
    }
    let (&high, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(usize::from(high) << 7 | usize::from(low & 0x7f))
}

/// The blocks of an entry as they are kept.
#[derive(Clone, Copy)]
enum Holders<'a> {
    Distances(&'a [u8]),
    Bitmap(&'a [u8]),
}

impl Holders<'_> {
    /// `None` where they are damaged.
    fn read(self) -> Option<BlockSet> {
        let mut blocks = BlockSet::none();
        match self {
            Self::Distances(mut bytes) => {
                let mut block = 0;
                while !bytes.is_empty() {
                    block += read_number(&mut bytes)?;
                    blocks.add(block);
                }
            }
            Self::Bitmap(bytes) => {
                for (word, bytes) in blocks.0.iter_mut().zip(bytes.chunks(8)) {
                    let mut whole = [0; 8];
                    whole.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                    *word = u64::from_le_bytes(whole);
                }
            }
        }
        Some(blocks)
    }
}

/// The next entry of a slice: `None` where it is damaged.
fn next_entry<'a>(slice: &mut &'a [u8], segment_blocks: usize) -> Option<(u8, Holders<'a>)> {
    let (&clue, rest) = slice.split_first()?;
    *slice = rest;
    let listed = read_number(slice)?;
    let bytes = if listed == 0 { segment_blocks / 8 } else { listed };
    let (holders, rest) = slice.split_at_checked(bytes)?;
    *slice = rest;
    Some((clue, if listed == 0 { Holders::Bitmap(holders) } else { Holders::Distances(holders) }))
}

/// The blocks that hold a clue, by its slice. `None` where the slice is damaged: then any block may.
pub(crate) fn holders_of(clue: u32, mut slice: &[u8], segment_blocks: usize) -> Option<BlockSet> {
    while !slice.is_empty() {
        let (low, holders) = next_entry(&mut slice, segment_blocks)?;
        if low == clue as u8 {
            return holders.read();
        }
    }
    Some(BlockSet::none())
}

/// Adds the clues of one slice to the blocks that hold them. `None` where the slice is damaged.
pub(crate) fn unfold_slice(
    number: usize,
    mut slice: &[u8],
    segment_blocks: usize,
    mut add: impl FnMut(usize, u32),
) -> Option<()> {
    while !slice.is_empty() {
        let (low, holders) = next_entry(&mut slice, segment_blocks)?;
        for block in holders.read()?.descending() {
            add(block, (number as u32) << 8 | u32::from(low));
        }
    }
    Some(())
}

#[cfg(test)]
#[path = "clues_tests.rs"]
mod tests;
