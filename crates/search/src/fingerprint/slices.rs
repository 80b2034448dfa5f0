//! An inverted segment of blocks: every fingerprint with the blocks that contain it, in slices.
//!
//! Most fingerprints are those of words, beginnings and triples, and most of these are in many blocks. Each has an
//! entry: the distance of its number from the previous one, then two bytes, of which ten bits are the first block and
//! six the form of the others: none, distances in Rice coding with a parameter, or one bit for every block of the
//! segment.
//!
//! Fingerprints of pairs are numerous, and each is in one or two blocks. A slice of them is one sequence of numbers,
//! each combining a fingerprint and a block: a parameter and the distances from one to the next.

use super::rice::{RiceReader, RiceWriter, parameter};
use super::{FIRST_PAIR, PAIR_BITS};
use crate::segments::IndexSegment;

/// Bits that tell fingerprints of one slice apart.
const LOW_BITS: u32 = 11;
const PAIR_LOW_BITS: u32 = 8;
/// Slices of pairs come after the others.
const FIRST_PAIR_SLICE: usize = (FIRST_PAIR >> LOW_BITS) as usize;
/// Bits of the head of an entry that are its first block.
const BLOCK_BITS: u32 = 10;
const _: () =
    assert!(IndexSegment::MAX_BLOCKS == 1 << BLOCK_BITS, "every block fits into the head of an entry");
/// Forms of an entry; those in between are the parameter of its distances, and one.
const ONE_BLOCK: u16 = 0;
const BITMAP: u16 = 63;

/// Some blocks of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSet([u64; IndexSegment::MAX_BLOCKS / 64]);

impl BlockSet {
    /// The blocks that hold a fingerprint, by its slice. `None` where the slice is damaged: then any block may.
    pub fn holders_of(fingerprint: u32, mut slice: &[u8], segment_blocks: usize) -> Option<BlockSet> {
        let wanted = low_bits(fingerprint);
        if is_of_pairs(IndexSegment::slice_of(fingerprint)) {
            let mut blocks = BlockSet::none();
            read_pairs(slice, segment_blocks)?
                .take_while(|(low, _)| *low <= wanted)
                .filter(|(low, _)| *low == wanted)
                .for_each(|(_, block)| blocks.add(block));
            return Some(blocks);
        }
        let mut low = 0;
        while !slice.is_empty() {
            let (distance, holders) = next_entry(&mut slice, segment_blocks)?;
            low += distance;
            if low >= wanted as usize {
                return Some(if low == wanted as usize { holders.read() } else { BlockSet::none() });
            }
        }
        Some(BlockSet::none())
    }

    /// The empty set.
    pub fn none() -> Self {
        Self([0; IndexSegment::MAX_BLOCKS / 64])
    }

    /// Every block there can be.
    pub fn all() -> Self {
        Self([u64::MAX; IndexSegment::MAX_BLOCKS / 64])
    }

    /// Adds a block.
    pub fn add(&mut self, block: usize) {
        if let Some(word) = self.0.get_mut(block / 64) {
            *word |= 1 << (block % 64);
        }
    }

    /// Adds those of another set.
    pub fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    /// Leaves those that are in both.
    pub fn keep(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
    }

    /// Whether it has no block.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// How many blocks it has.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The highest first.
    pub fn descending(&self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().rev().flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let highest = word.checked_ilog2()?;
                word &= !(1 << highest);
                Some(at * 64 + highest as usize)
            })
        })
    }
}

fn is_of_pairs(slice: usize) -> bool {
    slice >= FIRST_PAIR_SLICE
}

/// The bits of a fingerprint that tell it apart from others of its slice.
fn low_bits(fingerprint: u32) -> u32 {
    match fingerprint.checked_sub(FIRST_PAIR) {
        None => fingerprint & ((1 << LOW_BITS) - 1),
        Some(pair) => pair & ((1 << PAIR_LOW_BITS) - 1),
    }
}

/// The first fingerprint of a slice.
fn first_fingerprint(slice: usize) -> u32 {
    match slice.checked_sub(FIRST_PAIR_SLICE) {
        None => (slice as u32) << LOW_BITS,
        Some(of_pairs) => FIRST_PAIR + ((of_pairs as u32) << PAIR_LOW_BITS),
    }
}

impl IndexSegment {
    /// Slices of a segment.
    pub const SLICES: usize = FIRST_PAIR_SLICE + (1 << (PAIR_BITS - PAIR_LOW_BITS));

    /// Blocks a segment may have.
    pub const MAX_BLOCKS: usize = 1024;

    /// The slice that knows a fingerprint.
    pub fn slice_of(fingerprint: u32) -> usize {
        match fingerprint.checked_sub(FIRST_PAIR) {
            None => (fingerprint >> LOW_BITS) as usize,
            Some(pair) => FIRST_PAIR_SLICE + (pair >> PAIR_LOW_BITS) as usize,
        }
    }

    /// Turns a segment around: given the fingerprints of its blocks, in the order of the blocks, what each slice holds.
    pub fn slices(blocks: &[(usize, &[u32])], segment_blocks: usize) -> Vec<Vec<u8>> {
        let mut ends = vec![0_usize; IndexSegment::SLICES];
        for fingerprint in blocks.iter().flat_map(|(_, fingerprints)| fingerprints.iter()) {
            ends[IndexSegment::slice_of(*fingerprint)] += 1;
        }
        let total = starts(&mut ends);
        // As they are filled, starts become ends.
        let mut held = vec![SliceEntry::default(); total];
        for (block, fingerprints) in blocks {
            for fingerprint in *fingerprints {
                let end = &mut ends[IndexSegment::slice_of(*fingerprint)];
                held[*end] = SliceEntry::new(*fingerprint, *block);
                *end += 1;
            }
        }
        let mut slices = Vec::with_capacity(IndexSegment::SLICES);
        let (mut in_order, mut places) = (Vec::new(), vec![0_usize; 1 << LOW_BITS]);
        let mut start = 0;
        for (slice, end) in ends.into_iter().enumerate() {
            by_fingerprint(held.get(start..end).unwrap_or_default(), &mut in_order, &mut places);
            slices.push(match is_of_pairs(slice) {
                true => write_pairs(&in_order, segment_blocks),
                false => write_entries(&in_order, segment_blocks),
            });
            start = end;
        }
        slices
    }

    /// Calls `add` with the blocks and fingerprints of one slice, the lowest fingerprint first. `None` where the slice is damaged.
    pub fn unfold_slice(
        number: usize,
        mut slice: &[u8],
        segment_blocks: usize,
        mut add: impl FnMut(usize, u32),
    ) -> Option<()> {
        let first = first_fingerprint(number);
        if is_of_pairs(number) {
            read_pairs(slice, segment_blocks)?.for_each(|(low, block)| add(block, first.saturating_add(low)));
            return Some(());
        }
        let mut low = 0;
        while !slice.is_empty() {
            let (distance, holders) = next_entry(&mut slice, segment_blocks)?;
            low += distance;
            holders.read().descending().for_each(|block| add(block, first.saturating_add(low as u32)));
        }
        Some(())
    }
}

/// A fingerprint of a slice, by its lower bits, and a block that holds it.
#[derive(Clone, Copy, Default)]
struct SliceEntry(u32);

impl SliceEntry {
    fn new(fingerprint: u32, block: usize) -> Self {
        Self(low_bits(fingerprint) << BLOCK_BITS | block as u32)
    }

    fn low(self) -> usize {
        (self.0 >> BLOCK_BITS) as usize
    }

    fn block(self) -> u16 {
        (self.0 as usize % IndexSegment::MAX_BLOCKS) as u16
    }
}

/// Puts what a slice holds in the order of the fingerprints, and leaves the blocks of a fingerprint in theirs.
fn by_fingerprint(held: &[SliceEntry], in_order: &mut Vec<SliceEntry>, places: &mut [usize]) {
    places.fill(0);
    held.iter().for_each(|held| places[held.low()] += 1);
    starts(places);
    in_order.clear();
    in_order.resize(held.len(), SliceEntry::default());
    for held in held {
        let place = &mut places[held.low()];
        in_order[*place] = *held;
        *place += 1;
    }
}

/// Turns counts into where each of what was counted begins; gives the sum.
fn starts(counts: &mut [usize]) -> usize {
    counts.iter_mut().fold(0, |before, count| before + std::mem::replace(count, before))
}

fn write_entries(held: &[SliceEntry], segment_blocks: usize) -> Vec<u8> {
    let mut slice = Vec::with_capacity(2 * held.len() + 16);
    let mut before = 0;
    for of_fingerprint in held.chunk_by(|one, other| one.low() == other.low()) {
        let low = of_fingerprint.first().map_or(0, |held| held.low());
        write_number(low - before, &mut slice);
        write_blocks(of_fingerprint, segment_blocks, &mut slice);
        before = low;
    }
    slice
}

fn write_blocks(held: &[SliceEntry], segment_blocks: usize, out: &mut Vec<u8>) {
    let (Some(first), Some(last)) = (held.first(), held.last()) else { return };
    let (first, last) = (first.block(), last.block());
    let mut head = |first: u16, form: u16| out.extend((first | form << BLOCK_BITS).to_le_bytes());
    let bitmap_bytes = segment_blocks / 8;
    if held.len() == 1 {
        return head(first, ONE_BLOCK);
    }
    if held.len() < segment_blocks / 2 {
        let parameter = parameter(usize::from(last - first), held.len() - 1);
        let mut distances = RiceWriter::default();
        for (before, next) in held.iter().zip(held.iter().skip(1)) {
            distances.write(u32::from(next.block() - before.block() - 1), parameter);
        }
        let distances = distances.finish();
        if distances.len() < bitmap_bytes {
            head(first, parameter as u16 + 1);
            write_number(distances.len(), out);
            out.extend_from_slice(&distances);
            return;
        }
    }
    head(0, BITMAP);
    let from = out.len();
    out.resize(from + bitmap_bytes, 0);
    for block in held.iter().map(|held| held.block()) {
        if let Some(byte) = out.get_mut(from + usize::from(block / 8)) {
            *byte |= 1 << (block % 8);
        }
    }
}

/// Numbers below 128 are one byte; others two, the lower seven bits first.
fn write_number(number: usize, out: &mut Vec<u8>) {
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
enum BlockEncoding<'a> {
    One(usize),
    Distances { first: usize, parameter: u32, bytes: &'a [u8] },
    Bitmap(&'a [u8]),
}

impl BlockEncoding<'_> {
    fn read(self) -> BlockSet {
        let mut blocks = BlockSet::none();
        match self {
            Self::One(block) => blocks.add(block),
            Self::Distances { first, parameter, bytes } => {
                let mut distances = RiceReader::new(bytes);
                let mut block = first;
                blocks.add(block);
                while let Some(distance) = distances.read(parameter) {
                    block = block.saturating_add(distance).saturating_add(1);
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
        blocks
    }
}

/// The next entry of a slice, and how far its fingerprint is from the one before: `None` where it is damaged.
fn next_entry<'a>(slice: &mut &'a [u8], segment_blocks: usize) -> Option<(usize, BlockEncoding<'a>)> {
    let distance = read_number(slice)?;
    let (head, rest) = slice.split_first_chunk::<2>()?;
    *slice = rest;
    let head = u16::from_le_bytes(*head);
    let first = usize::from(head & (IndexSegment::MAX_BLOCKS as u16 - 1));
    let form = head >> BLOCK_BITS;
    let bytes = match form {
        ONE_BLOCK => 0,
        BITMAP => segment_blocks / 8,
        _ => read_number(slice)?,
    };
    let (bytes, rest) = slice.split_at_checked(bytes)?;
    *slice = rest;
    let holders = match form {
        ONE_BLOCK => BlockEncoding::One(first),
        BITMAP => BlockEncoding::Bitmap(bytes),
        1..=MAX_FORM => BlockEncoding::Distances { first, parameter: u32::from(form) - 1, bytes },
        _ => return None,
    };
    Some((distance, holders))
}

/// Distances are shorter than a segment, and their parameters smaller than its logarithm.
const MAX_FORM: u16 = BLOCK_BITS as u16 + 1;

/// Pairs are written as one number each: the fingerprint's lower bits, then the block.
fn write_pairs(held: &[SliceEntry], segment_blocks: usize) -> Vec<u8> {
    if held.is_empty() {
        return Vec::new();
    }
    let numbers = || held.iter().map(|held| held.low() * segment_blocks + usize::from(held.block()));
    let parameter = parameter(numbers().next_back().unwrap_or_default(), held.len());
    let mut distances = RiceWriter::new(parameter as u8);
    let mut next = 0;
    for number in numbers() {
        distances.write((number - next) as u32, parameter);
        next = number + 1;
    }
    distances.finish()
}

/// The fingerprints of a slice of pairs, by their lower bits, and their blocks, in order. `None` where the slice is damaged.
fn read_pairs(slice: &[u8], segment_blocks: usize) -> Option<impl Iterator<Item = (u32, usize)>> {
    let (&parameter, distances) = slice.split_first().filter(|(parameter, _)| **parameter < 32)?;
    let mut distances = RiceReader::new(distances);
    let mut next = 0_usize;
    Some(std::iter::from_fn(move || {
        let number = next.saturating_add(distances.read(u32::from(parameter))?);
        next = number.saturating_add(1);
        Some(((number / segment_blocks) as u32, number % segment_blocks))
    }))
}

#[cfg(test)]
#[path = "slices_tests.rs"]
mod tests;
