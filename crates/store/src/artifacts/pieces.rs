//! Splits an artifact into pieces for search: all words of a query must be in one piece. The same for every implementation of the record.

/// The approximate size of a piece: pieces end at line ends.
const PIECE_BYTES: usize = 64 * 1024;

/// A piece of the text of an artifact.
pub(crate) struct TextPiece<'a> {
    /// The text.
    pub(crate) text: &'a str,
    /// Its offset.
    pub(crate) first_byte: usize,
    /// The number of its first line, from one.
    pub(crate) first_line: u64,
}

/// Splits the text of an artifact into pieces of whole lines, as far as possible.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = TextPiece<'_>> {
    let mut first_byte = 0;
    let mut first_line = 1;
    std::iter::from_fn(move || {
        let rest = text.get(first_byte..).filter(|rest| !rest.is_empty())?;
        let limit = rest.floor_char_boundary(PIECE_BYTES);
        let end = if limit == rest.len() {
            limit
        } else {
            memchr::memrchr(b'\n', &rest.as_bytes()[..limit]).map_or(limit, |newline| newline + 1)
        };
        let piece = TextPiece { text: &rest[..end], first_byte, first_line };
        first_byte += end;
        first_line += memchr::memchr_iter(b'\n', piece.text.as_bytes()).count() as u64;
        Some(piece)
    })
}
