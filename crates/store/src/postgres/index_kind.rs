//! What rows of the index belong to: messages, or pieces of large texts.

use throughline_search::segments::SegmentLayout;

/// The message or piece that a row of the index belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum IndexKind {
    Message,
    Piece,
}

impl IndexKind {
    pub(super) const ALL: [Self; 2] = [Self::Message, Self::Piece];

    /// Its number in the tables.
    pub(super) fn code(self) -> i64 {
        match self {
            Self::Message => 0,
            Self::Piece => 1,
        }
    }

    pub(super) fn layout(self) -> &'static SegmentLayout {
        match self {
            Self::Message => &SegmentLayout::MESSAGES,
            Self::Piece => &SegmentLayout::PIECES,
        }
    }

    /// The place within its segment of the first row that belongs to a message. The very first row does not: in every engine
    /// messages and pieces are numbered from 1.
    pub(super) fn first_place(self, segment: i64) -> usize {
        usize::from(segment == 0)
    }

    /// Rows of a segment that belong to messages or pieces.
    pub(super) fn rows_of_segment(self, segment: i64) -> usize {
        self.layout().segment_rows() as usize - self.first_place(segment)
    }
}
