//! Passes a stream on in whole events, so that an error can still be appended if the stream breaks off within an event.
//!
//! This delays nothing: a client cannot parse half an event. Pieces that end with an event, as nearly all do, are not
//! copied.

use bytes::{Bytes, BytesMut};

/// The most bytes of an incomplete event; more are sent although the event is incomplete.
const MOST_HELD_BYTES: usize = 1 << 20;

/// Holds back the beginning of an event until the rest has arrived.
#[derive(Debug, Default)]
pub(crate) struct WholeEvents {
    held: BytesMut,
}

impl WholeEvents {
    /// Adds the next bytes. Returns those that can be sent now.
    pub(crate) fn take(&mut self, bytes: Bytes) -> Bytes {
        if self.held.is_empty() {
            let mut bytes = bytes;
            let end = end_of_last(&bytes, 0);
            let rest = bytes.split_off(end);
            self.held.extend_from_slice(&rest);
            return match self.overflowing() {
                None => bytes,
                Some(held) => [bytes, held].concat().into(),
            };
        }
        // The separator may be split between two pieces.
        let from = self.held.len().saturating_sub(3);
        self.held.extend_from_slice(&bytes);
        match end_of_last(&self.held, from) {
            0 => self.overflowing().unwrap_or_default(),
            end => self.held.split_to(end).freeze(),
        }
    }

    /// Returns the rest at the end of the stream.
    pub(crate) fn take_rest(&mut self) -> Bytes {
        if self.held.is_empty() { Bytes::new() } else { self.held.split().freeze() }
    }

    fn overflowing(&mut self) -> Option<Bytes> {
        (self.held.len() > MOST_HELD_BYTES).then(|| self.held.split().freeze())
    }
}

/// The end of the last event that ends after `from`. 0 if none does.
fn end_of_last(bytes: &[u8], from: usize) -> usize {
    let within = bytes.get(from..).unwrap_or_default();
    let ends = [&b"\n\n"[..], b"\r\n\r\n", b"\n\r\n", b"\r\r"];
    let ends =
        ends.iter().filter_map(|end| memchr::memmem::rfind(within, end).map(|at| from + at + end.len()));
    ends.max().unwrap_or(0)
}

#[cfg(test)]
#[path = "whole_events_tests.rs"]
mod tests;
