//! Reads Server-Sent Events from chunks of bytes that may be split anywhere.
//!
//! The bytes are split into frames: everything up to and including a blank line. A frame has its original bytes, so that a proxy can
//! forward, hold back or replace single events and leave the rest untouched; the bytes of all frames and what [`SseReader::finish`] returns
//! are together exactly what was read. A frame that lies within one chunk is borrowed from it; only one that crosses chunks is put together
//! in a buffer, whose size is limited.
//!
//! Where a frame ends never depends on how the bytes were chunked. After a line that ended in a bare carriage return a second one ends the
//! frame at once, and a line feed behind it belongs to the next frame; after any other line a carriage return waits for its line feed.

use std::borrow::Cow;

/// The default limit of the size of one event.
pub(crate) const DEFAULT_MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a stream of events cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event exceeds the limit.
    #[error("an event of the stream is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
}

/// Everything between two blank lines of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseFrame<'a> {
    /// The original bytes, including the closing blank line.
    pub raw: &'a [u8],
    /// The `event` field, if present and not empty.
    pub name: Option<Cow<'a, str>>,
    /// The `data` fields, joined by line feeds; `None` if there is none, so that the frame is not an event: a comment, a blank line, or
    /// settings of the stream.
    pub data: Option<Cow<'a, str>>,
    /// The `id` field.
    pub id: Option<Cow<'a, str>>,
    /// The `retry` field.
    pub retry_millis: Option<u64>,
}

impl SseFrame<'_> {
    /// Whether it is the marker that ends a stream in the OpenAI formats.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.data.as_deref().is_some_and(|data| data.trim() == crate::sse_writer::DONE)
    }
}

/// Splits a stream of bytes into frames.
#[derive(Debug)]
pub struct SseReader {
    /// The beginning of an incomplete frame.
    buffer: Vec<u8>,
    /// Whether the buffer has a frame that was returned, to be cleared in the next step.
    is_handed_out: bool,
    scan: LineScan,
    max_event_bytes: usize,
    /// Whether no frame is complete yet, so that the text may start with a byte order mark.
    is_first: bool,
    /// Whether the last frame ended in a bare carriage return, so that a following line feed is not a line of its own.
    after_return: bool,
    failure: Option<SseError>,
}

impl Default for SseReader {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_EVENT_BYTES)
    }
}

impl SseReader {
    /// Creates a reader at the beginning of a stream.
    #[must_use]
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            is_handed_out: false,
            scan: LineScan::Mark { seen: 0 },
            max_event_bytes,
            is_first: true,
            after_return: false,
            failure: None,
        }
    }

    /// Reads the next chunk. An incomplete frame is buffered when the returned value is dropped, whether or not all frames were taken from
    /// it.
    pub fn read<'a>(&'a mut self, chunk: &'a [u8]) -> SseFrames<'a> {
        SseFrames { reader: self, chunk }
    }

    /// Ends the stream and returns the bytes after the last blank line, if any. The specification discards them, but
    /// many servers omit the last blank line, so the caller should examine them.
    pub fn finish(&mut self) -> Option<SseFrame<'_>> {
        self.clear_handed_out();
        if self.buffer.is_empty() {
            return None;
        }
        self.is_handed_out = true;
        let leads = self.take_leads();
        self.scan = LineScan::LineStart { after: Break::None };
        Some(parse_frame(&self.buffer, leads))
    }

    /// The number of buffered bytes of an unfinished frame.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        if self.is_handed_out { 0 } else { self.buffer.len() }
    }

    fn clear_handed_out(&mut self) {
        if self.is_handed_out {
            self.buffer.clear();
            self.is_handed_out = false;
        }
    }

    /// Returns what may precede the first line of the current frame.
    fn take_leads(&mut self) -> Leads {
        let leads = Leads { may_have_mark: self.is_first, may_have_line_feed: self.after_return };
        self.is_first = false;
        self.after_return = false;
        leads
    }

    /// Returns the end of the current frame in `bytes`, and prepares the scan for the next frame if there is one.
    fn find_end(&mut self, bytes: &[u8]) -> Option<(usize, Leads)> {
        let end = self.scan.find_end(bytes)?;
        let leads = self.take_leads();
        self.after_return = end.in_bare_return;
        self.scan =
            LineScan::LineStart { after: if end.in_bare_return { Break::FrameReturn } else { Break::None } };
        Some((end.at, leads))
    }

    fn check_size(&mut self, frame_bytes: usize) -> Result<(), SseError> {
        if frame_bytes > self.max_event_bytes {
            let failure = SseError::TooLarge { limit_bytes: self.max_event_bytes };
            self.failure = Some(failure);
            self.buffer = Vec::new();
            return Err(failure);
        }
        Ok(())
    }
}

/// The frames that a chunk completes.
#[derive(Debug)]
pub struct SseFrames<'a> {
    reader: &'a mut SseReader,
    chunk: &'a [u8],
}

impl SseFrames<'_> {
    /// Returns the next complete frame; `None` if the rest of the chunk is incomplete. After an event that is too large, every further call
    /// fails.
    pub fn next(&mut self) -> Result<Option<SseFrame<'_>>, SseError> {
        if let Some(failure) = self.reader.failure {
            return Err(failure);
        }
        self.reader.clear_handed_out();
        let chunk = self.chunk;
        let held = self.reader.buffer.len();
        let Some((end, leads)) = self.reader.find_end(chunk) else {
            self.chunk = &[];
            self.reader.check_size(held.saturating_add(chunk.len()))?;
            self.reader.buffer.extend_from_slice(chunk);
            return Ok(None);
        };
        self.reader.check_size(held.saturating_add(end))?;
        let (own, rest) = chunk.split_at(end.min(chunk.len()));
        self.chunk = rest;
        if held == 0 {
            return Ok(Some(parse_frame(own, leads)));
        }
        self.reader.buffer.extend_from_slice(own);
        self.reader.is_handed_out = true;
        Ok(Some(parse_frame(&self.reader.buffer, leads)))
    }
}

impl Drop for SseFrames<'_> {
    fn drop(&mut self) {
        // Frames that were not taken are lost to the caller, but the reader must stay in step with the stream.
        while !self.chunk.is_empty() && matches!(self.next(), Ok(Some(_))) {}
    }
}

/// The end of the previous line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// None: the frame begins.
    None,
    /// A line feed, alone or after a carriage return.
    Feed,
    /// A bare carriage return.
    Return,
    /// A bare carriage return that ended the frame before this one.
    FrameReturn,
}

/// The position of the scan in the structure of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineScan {
    /// At the beginning of the stream, inside what may be a byte order mark.
    Mark { seen: usize },
    /// At the beginning of a line.
    LineStart { after: Break },
    /// Inside a line that is not blank.
    InLine,
    /// After the carriage return of a line that is not blank.
    AfterReturn,
    /// After a carriage return on a line of its own: the frame ends here, or after the line feed that follows.
    BlankReturn,
}

struct FrameEnd {
    at: usize,
    in_bare_return: bool,
}

impl LineScan {
    /// Scans `bytes` and returns the end of the frame, if found. The end may be at 0, if the bytes before were the whole frame.
    fn find_end(&mut self, bytes: &[u8]) -> Option<FrameEnd> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match *self {
                Self::Mark { seen } if BYTE_ORDER_MARK.get(seen) == Some(&byte) => {
                    *self = match seen {
                        2 => Self::LineStart { after: Break::None },
                        _ => Self::Mark { seen: seen + 1 },
                    };
                    at += 1;
                }
                // A part of a byte order mark is the beginning of an ordinary line.
                Self::Mark { seen: 0 } => *self = Self::LineStart { after: Break::None },
                Self::Mark { .. } => *self = Self::InLine,
                Self::LineStart { after: Break::FrameReturn } if byte == b'\n' => {
                    *self = Self::LineStart { after: Break::None };
                    at += 1;
                }
                Self::LineStart { after } => match byte {
                    b'\n' => return Some(FrameEnd { at: at + 1, in_bare_return: false }),
                    b'\r' if matches!(after, Break::Return | Break::FrameReturn) => {
                        return Some(FrameEnd { at: at + 1, in_bare_return: true });
                    }
                    b'\r' => {
                        *self = Self::BlankReturn;
                        at += 1;
                    }
                    _ => *self = Self::InLine,
                },
                Self::InLine => {
                    let rest = bytes.get(at..)?;
                    let found = memchr::memchr2(b'\n', b'\r', rest)?;
                    *self = match rest.get(found) {
                        Some(b'\r') => Self::AfterReturn,
                        _ => Self::LineStart { after: Break::Feed },
                    };
                    at += found + 1;
                }
                Self::AfterReturn if byte == b'\n' => {
                    *self = Self::LineStart { after: Break::Feed };
                    at += 1;
                }
                Self::AfterReturn => *self = Self::LineStart { after: Break::Return },
                Self::BlankReturn => {
                    let at = at + usize::from(byte == b'\n');
                    return Some(FrameEnd { at, in_bare_return: false });
                }
            }
        }
        None
    }
}

/// What may precede the first line of a frame.
#[derive(Clone, Copy, Debug)]
struct Leads {
    may_have_mark: bool,
    may_have_line_feed: bool,
}

fn parse_frame(raw: &[u8], leads: Leads) -> SseFrame<'_> {
    let mut rest = raw;
    if leads.may_have_mark {
        rest = rest.strip_prefix(BYTE_ORDER_MARK).unwrap_or(rest);
    }
    if leads.may_have_line_feed {
        rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    }
    let mut frame = SseFrame { raw, name: None, data: None, id: None, retry_millis: None };
    while let Some((line, after)) = split_line(rest) {
        rest = after;
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], value_after(&line[colon + 1..])),
            None => (line, [].as_slice()),
        };
        match field {
            b"data" => {
                let value = text_of(value);
                frame.data = Some(match frame.data.take() {
                    None => value,
                    Some(before) => {
                        let mut joined = before.into_owned();
                        joined.push('\n');
                        joined.push_str(&value);
                        Cow::Owned(joined)
                    }
                });
            }
            b"event" => frame.name = Some(text_of(value)).filter(|name| !name.is_empty()),
            b"id" if !value.contains(&0) => frame.id = Some(text_of(value)),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                frame.retry_millis = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
            }
            // Comments have an empty field name; unknown fields are ignored.
            _ => {}
        }
    }
    frame
}

/// Converts bytes to text and replaces invalid ones. Nearly all text is valid, and checking that first is much faster.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// A value without the one space that may precede it.
fn value_after(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b" ").unwrap_or(bytes)
}

/// Splits off the first line of the rest of a frame, without its line break.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if bytes.is_empty() {
        return None;
    }
    let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else { return Some((bytes, &[])) };
    let (line, rest) = bytes.split_at(end);
    let after = rest.strip_prefix(b"\r\n").or_else(|| rest.get(1..)).unwrap_or_default();
    Some((line, after))
}

#[cfg(test)]
#[path = "sse_reader_tests.rs"]
mod tests;
