//! Packs a text into frames with their table, and reads pieces of it: the format of an artifact, independent of its place.
//!
//! Not for: files or requests. Readers pass a function that fetches the bytes of some frames.

use std::io::{self, Write};
use std::ops::Range;

use crate::artifacts::artifact::ArtifactRange;
use crate::artifacts::frame_table::{FrameEntry, FrameTable};

/// The text in one frame, unless a line is longer.
pub(crate) const FRAME_TEXT_BYTES: usize = 256 * 1024;
/// Compresses much better than the fastest level, and is still faster than the disk.
const COMPRESSION_LEVEL: i32 = 3;

/// Writes a text as frames followed by the table.
pub(crate) fn write_frames(text: &str, out: &mut impl Write) -> io::Result<FrameTable> {
    let mut compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL)?;
    compressor.set_parameter(zstd::zstd_safe::CParameter::ChecksumFlag(true))?;
    let mut table = FrameTable::default();
    let mut rest = text;
    while !rest.is_empty() {
        let (frame, after) = rest.split_at(frame_end(rest));
        let packed = compressor.compress(frame.as_bytes())?;
        out.write_all(&packed)?;
        table.push(packed.len(), frame.as_bytes());
        rest = after;
    }
    out.write_all(&table.encode())?;
    Ok(table)
}

/// Reads a piece of a text, as far as the text has it; `read` returns the text of some frames.
pub(crate) fn read_piece<E>(
    table: &FrameTable,
    range: ArtifactRange,
    read: impl FnOnce(Range<usize>) -> Result<String, E>,
) -> Result<String, E> {
    match range {
        ArtifactRange::All => read(0..table.frames().len()),
        ArtifactRange::Bytes { first, count } => {
            let end = first.saturating_add(count).min(table.text_bytes());
            let frames = table.frames_of_bytes(first, end);
            let offset = table.bytes_before(frames.start);
            let text = read(frames)?;
            let first = first.saturating_sub(offset);
            let piece = ArtifactRange::Bytes { first, count: end.saturating_sub(offset + first) };
            Ok(piece.of(&text).to_owned())
        }
        ArtifactRange::Lines { first, count } => {
            let skip = first.saturating_sub(1);
            let frames = table.frames_of_lines(skip, skip.saturating_add(count));
            let skip_here = skip - table.newlines_before(frames.start).min(skip);
            let text = read(frames)?;
            Ok(ArtifactRange::Lines { first: skip_here + 1, count }.of(&text).to_owned())
        }
    }
}

/// Decompresses frames; `None` if they are damaged.
pub(crate) fn unpack_frames(mut packed: &[u8], frames: &[FrameEntry]) -> Option<String> {
    let mut decompressor = zstd::bulk::Decompressor::new().ok()?;
    let text_bytes = frames.iter().map(|frame| frame.text_bytes as usize).sum::<usize>();
    let mut text = Vec::with_capacity(text_bytes);
    for frame in frames {
        let (this, rest) = packed.split_at_checked(frame.packed_bytes as usize)?;
        packed = rest;
        let piece = decompressor.decompress(this, frame.text_bytes as usize).ok()?;
        if piece.len() != frame.text_bytes as usize {
            return None;
        }
        text.extend_from_slice(&piece);
    }
    String::from_utf8(text).ok()
}

/// Returns the end of the next frame of a text: at a line end if one is near, or else between two characters.
fn frame_end(text: &str) -> usize {
    if text.len() <= FRAME_TEXT_BYTES {
        return text.len();
    }
    let limit = text.floor_char_boundary(FRAME_TEXT_BYTES);
    memchr::memrchr(b'\n', &text.as_bytes()[..limit]).map_or(limit, |newline| newline + 1)
}
