//! The table at the end of an artifact's file: the position of each frame, and its length in bytes and lines of text.
//!
//! It is a zstd skippable frame, which other tools ignore, and ends with its own length, so that it is found from the
//! end of the file.

use std::ops::Range;

/// The magic number of a frame that zstd skips; the last digit can be chosen.
const SKIPPABLE_MAGIC: u32 = 0x184D_2A5B;
/// The end of every table. The last byte is the version of the format.
const SIGNATURE: [u8; 8] = *b"TLarti\x00\x01";
const HEADER_BYTES: usize = 8;
const ENTRY_BYTES: usize = 12;
const CHECK_BYTES: usize = 8;
/// The size of the trailer: number of frames, a checksum of the table, the signature.
pub(crate) const TRAILER_BYTES: usize = 4 + CHECK_BYTES + SIGNATURE.len();

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameEntry {
    /// Size in the file.
    pub(crate) packed_bytes: u32,
    /// Size of its text.
    pub(crate) text_bytes: u32,
    /// Number of line ends in it.
    newlines: u32,
}

/// All frames of a file, with cumulative sums.
#[derive(Debug, Default)]
pub(crate) struct FrameTable {
    frames: Vec<FrameEntry>,
    /// The sums before each frame.
    before: Vec<Sums>,
    total: Sums,
    /// Whether the text ends inside a line.
    open_line: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    packed_bytes: u64,
    text_bytes: u64,
    newlines: u64,
}

impl FrameTable {
    /// Adds a frame that was written.
    pub(crate) fn push(&mut self, packed_bytes: usize, text: &[u8]) {
        let small = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        self.push_entry(FrameEntry {
            packed_bytes: small(packed_bytes),
            text_bytes: small(text.len()),
            newlines: small(memchr::memchr_iter(b'\n', text).count()),
        });
        self.open_line = text.last().is_some_and(|&last| last != b'\n');
    }

    fn push_entry(&mut self, entry: FrameEntry) {
        self.before.push(self.total);
        self.frames.push(entry);
        self.total.packed_bytes += u64::from(entry.packed_bytes);
        self.total.text_bytes += u64::from(entry.text_bytes);
        self.total.newlines += u64::from(entry.newlines);
    }

    pub(crate) fn frames(&self) -> &[FrameEntry] {
        &self.frames
    }

    pub(crate) fn text_bytes(&self) -> u64 {
        self.total.text_bytes
    }

    /// Returns the number of lines; an unterminated one counts too.
    pub(crate) fn lines(&self) -> u64 {
        self.total.newlines + u64::from(self.open_line)
    }

    /// Size of the whole file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.total.packed_bytes + (HEADER_BYTES + self.frames.len() * ENTRY_BYTES + 1 + TRAILER_BYTES) as u64
    }

    /// Returns the offset of a frame in the file.
    pub(crate) fn offset_of(&self, frame: usize) -> u64 {
        self.sums_before(frame).packed_bytes
    }

    /// Text before a frame.
    pub(crate) fn bytes_before(&self, frame: usize) -> u64 {
        self.sums_before(frame).text_bytes
    }

    /// Line ends before a frame.
    pub(crate) fn newlines_before(&self, frame: usize) -> u64 {
        self.sums_before(frame).newlines
    }

    fn sums_before(&self, frame: usize) -> Sums {
        self.before.get(frame).copied().unwrap_or(self.total)
    }

    /// Returns the frames that contain bytes `first..end` of the text.
    pub(crate) fn frames_of_bytes(&self, first: u64, end: u64) -> Range<usize> {
        if first >= end {
            return 0..0;
        }
        let start = self.before.partition_point(|sums| sums.text_bytes <= first).saturating_sub(1);
        let stop = self.before.partition_point(|sums| sums.text_bytes < end);
        start..stop.max(start)
    }

    /// Returns the frames that contain the lines after the first `skip` line ends, up to line end number `end`.
    pub(crate) fn frames_of_lines(&self, skip: u64, end: u64) -> Range<usize> {
        if skip >= end || skip >= self.lines() {
            return 0..0;
        }
        // A line starts after the previous line end, which is at the latest the last byte of a frame.
        let start = self.before.partition_point(|sums| sums.newlines < skip).saturating_sub(1);
        let stop = self.before.partition_point(|sums| sums.newlines < end);
        start..stop.max(start)
    }

    /// Returns the table as it is written at the end of a file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let content_bytes = self.frames.len() * ENTRY_BYTES + 1 + TRAILER_BYTES;
        let mut out = Vec::with_capacity(HEADER_BYTES + content_bytes);
        out.extend_from_slice(&SKIPPABLE_MAGIC.to_le_bytes());
        out.extend_from_slice(&u32::try_from(content_bytes).unwrap_or(u32::MAX).to_le_bytes());
        for frame in &self.frames {
            for number in [frame.packed_bytes, frame.text_bytes, frame.newlines] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        out.push(u8::from(self.open_line));
        out.extend_from_slice(&u32::try_from(self.frames.len()).unwrap_or(u32::MAX).to_le_bytes());
        let check = check_of(&out);
        out.extend_from_slice(&check);
        out.extend_from_slice(&SIGNATURE);
        out
    }

    /// Returns the size of the whole table, from the trailer at its end.
    pub(crate) fn encoded_bytes(trailer: &[u8; TRAILER_BYTES]) -> Option<u64> {
        let (count, rest) = trailer.split_first_chunk::<4>()?;
        let frames = u64::from(u32::from_le_bytes(*count));
        rest.ends_with(&SIGNATURE)
            .then_some((HEADER_BYTES + 1 + TRAILER_BYTES) as u64 + frames * ENTRY_BYTES as u64)
    }

    /// Decodes a table; `None` if it is damaged.
    pub(crate) fn decode(encoded: &[u8]) -> Option<Self> {
        let body = encoded.strip_suffix(&SIGNATURE)?;
        let (body, check) = body.split_last_chunk::<CHECK_BYTES>()?;
        if &check_of(body) != check {
            return None;
        }
        let (body, _count) = body.split_last_chunk::<4>()?;
        let (open_line, body) = body.split_last()?;
        let (entries, rest) = body.get(HEADER_BYTES..)?.as_chunks::<ENTRY_BYTES>();
        if !rest.is_empty() {
            return None;
        }
        let mut table = Self::default();
        for entry in entries {
            let (numbers, _) = entry.as_chunks::<4>();
            let [packed_bytes, text_bytes, newlines] = numbers else { return None };
            let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
            table.push_entry(FrameEntry {
                packed_bytes: number(packed_bytes),
                text_bytes: number(text_bytes),
                newlines: number(newlines),
            });
        }
        table.open_line = *open_line == 1;
        Some(table)
    }
}

fn check_of(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECK_BYTES]);
    check
}
