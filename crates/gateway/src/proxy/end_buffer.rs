//! Holds back the end of an answer until the answer is in the record.
//!
//! A client with a complete answer continues the conversation, so the answer must not be lost if the gateway crashes at that moment. Of a
//! stream, the final event is held back, which tells the client that the answer is complete; everything before it is sent on arrival. Of
//! an answer that is not streamed, the last piece is held back.

use std::time::Instant;

use bytes::Bytes;
use memchr::memmem;
use throughline_transcript::WireFormat;
use throughline_wire::Streaming;

/// Holds back the end of an answer.
#[derive(Debug)]
pub(crate) struct EndBuffer {
    wire: WireFormat,
    streaming: Streaming,
    /// The first piece that is held back.
    held: Bytes,
    /// The pieces after it.
    behind: Vec<Bytes>,
    since: Option<Instant>,
}

impl EndBuffer {
    pub(crate) fn new(wire: WireFormat, streaming: Streaming) -> Self {
        Self { wire, streaming, held: Bytes::new(), behind: Vec::new(), since: None }
    }

    /// Adds the next piece; of a stream, whole events. Returns the bytes that can be sent now.
    pub(crate) fn take(&mut self, mut piece: Bytes) -> Bytes {
        if piece.is_empty() {
            return piece;
        }
        match self.streaming {
            Streaming::Whole => {
                self.since = Some(Instant::now());
                // Returns every piece but the newest.
                std::mem::replace(&mut self.held, piece)
            }
            Streaming::Streamed if self.since.is_some() => {
                self.behind.push(piece);
                Bytes::new()
            }
            Streaming::Streamed => match start_of_final(self.wire, &piece) {
                None => piece,
                Some(start) => {
                    self.since = Some(Instant::now());
                    self.held = piece.split_off(start);
                    piece
                }
            },
        }
    }

    /// When the final event arrived, if it has.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Returns the pieces that were held back, followed by `behind`.
    pub(crate) fn release(&mut self, behind: Bytes) -> Bytes {
        let held = std::mem::take(&mut self.held);
        let mut all = std::mem::take(&mut self.behind);
        if !behind.is_empty() {
            all.push(behind);
        }
        if all.is_empty() {
            return held;
        }
        all.insert(0, held);
        all.concat().into()
    }
}

/// Returns the start of the first event that tells a client that the answer is complete. Quotes in a model's text are escaped, so a
/// member found by its unescaped name belongs to the event itself.
fn start_of_final(wire: WireFormat, events: &[u8]) -> Option<usize> {
    let at = match wire {
        WireFormat::Chat => {
            let finished = positions(events, b"\"finish_reason\"")
                .find(|after| value_at(events, *after).is_some_and(|value| value.starts_with(b"\"")));
            let done = memmem::find_iter(events, b"[DONE]").find(|at| is_data_line(events, *at));
            finished.into_iter().chain(done).min()
        }
        WireFormat::Anthropic => typed(events, &[b"\"message_stop\""]),
        WireFormat::Responses => {
            typed(events, &[b"\"response.completed\"", b"\"response.incomplete\"", b"\"response.failed\""])
        }
    }?;
    Some(start_of_event(events, at))
}

/// Finds the first member `type` with one of these values. Returns the position after its name.
fn typed(events: &[u8], values: &[&[u8]]) -> Option<usize> {
    positions(events, b"\"type\"").find(|after| {
        let value = value_at(events, *after);
        value.is_some_and(|value| values.iter().any(|wanted| value.starts_with(wanted)))
    })
}

/// The positions after each occurrence of a name.
fn positions<'a>(events: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    memmem::find_iter(events, name).map(move |at| at + name.len())
}

/// The value of the member whose name ends at this position.
fn value_at(events: &[u8], after_name: usize) -> Option<&[u8]> {
    let rest = events.get(after_name..)?.trim_ascii_start();
    Some(rest.strip_prefix(b":")?.trim_ascii_start())
}

/// Whether nothing else precedes this position on its `data:` line.
fn is_data_line(events: &[u8], at: usize) -> bool {
    let before = events.get(..at).unwrap_or_default().trim_ascii_end();
    let line = before.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |end| end + 1);
    before.get(line..) == Some(b"data:")
}

/// The start of the event that contains a position: after the last empty line before it.
fn start_of_event(events: &[u8], at: usize) -> usize {
    let before = events.get(..at).unwrap_or_default();
    let ends = [&b"\n\n"[..], b"\r\n\r\n", b"\n\r\n", b"\r\r"];
    let ends = ends.iter().filter_map(|end| memmem::rfind(before, end).map(|found| found + end.len()));
    ends.max().unwrap_or(0)
}

#[cfg(test)]
#[path = "end_buffer_tests.rs"]
mod tests;
