//! How rows are numbered for the index, gathered in blocks, and blocks in segments. The same in every engine.
//!
//! Two messages make a block, and a piece of an artifact, which is longer than many messages, is one by itself. Which block a row
//! belongs to follows from its number.

use std::ops::Range;

/// How rows are numbered, gathered in blocks, and blocks in segments. All are powers of two.
#[derive(Debug, PartialEq, Eq)]
pub struct SegmentLayout {
    /// What its numbers are given out as.
    pub numbers: &'static str,
    /// The first row of the family.
    pub first_row: i64,
    /// Rows of a block.
    pub block_rows: i64,
    /// Blocks of a segment.
    pub segment_blocks: i64,
}

impl SegmentLayout {
    /// Rows of pieces of artifacts begin here; no message ever gets so large an id.
    pub const ARTIFACT_ROWS: i64 = 1 << 40;

    /// Rows of messages.
    pub const MESSAGES: Self = Self { numbers: "message", first_row: 0, block_rows: 2, segment_blocks: 1024 };

    /// Pieces of artifacts.
    pub const PIECES: Self =
        Self { numbers: "piece", first_row: Self::ARTIFACT_ROWS, block_rows: 1, segment_blocks: 128 };

    fn of_row(row: i64) -> &'static Self {
        if row < Self::ARTIFACT_ROWS { &Self::MESSAGES } else { &Self::PIECES }
    }

    /// Rows of a segment.
    pub fn segment_rows(&self) -> i64 {
        self.block_rows * self.segment_blocks
    }
}

/// A segment, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexSegment(
    /// Counted over both families: rows of pieces follow those of messages.
    pub i64,
);

impl IndexSegment {
    /// The segment a row belongs to.
    pub fn of_row(row: i64) -> Self {
        Self(row / SegmentLayout::of_row(row).segment_rows())
    }

    /// The layout of the family it belongs to.
    pub fn family(self) -> &'static SegmentLayout {
        // Numbers of segments of pieces are larger than any of messages: their rows are so much larger.
        let pieces = &SegmentLayout::PIECES;
        if self.0 < pieces.first_row / pieces.segment_rows() { &SegmentLayout::MESSAGES } else { pieces }
    }

    /// It and those after it up to another.
    pub fn through(self, last: Self) -> impl Iterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }

    /// Rows that belong to it.
    pub fn rows(self) -> Range<i64> {
        let rows = self.family().segment_rows();
        self.0 * rows..(self.0 + 1) * rows
    }

    /// Rows of one of its blocks.
    pub fn rows_of(self, block: usize) -> Range<i64> {
        let rows = self.family().block_rows;
        let first = self.rows().start + block as i64 * rows;
        first..first + rows
    }

    /// How many blocks it has when it is complete.
    pub fn blocks(self) -> usize {
        self.family().segment_blocks as usize
    }
}
