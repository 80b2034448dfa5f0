//! The single pass over the bytes that fills a [`TextProfile`].
//!
//! Text passes through a window of a few hundred bytes on the stack, either directly or from the inside of a JSON string, whose escapes are
//! decoded. Shapes look back a few bytes and never ahead, so the result does not depend on where a window ends or in how many pieces a text
//! is pushed.

use crate::ascii;
use crate::lanes::{FILLER, HISTORY, Lane, SPAN, STRETCH};
use crate::profile::{Counts, Feature, TextProfile};
use crate::wide;

/// Reads text in pieces and computes its profile.
pub(crate) struct Scanner {
    pub(crate) window: Lane,
    /// Bytes in the window beyond the history; fewer than a stretch.
    pub(crate) filled: usize,
    /// Fillers in the window that separate texts and belong to none.
    seams: usize,
    counts: Counts,
}

impl Scanner {
    pub(crate) fn new() -> Self {
        Self { window: [FILLER; SPAN], filled: 0, seams: 0, counts: Counts::default() }
    }

    /// Reads the next bytes of the text.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = STRETCH - self.filled;
            let (now, later) = bytes.split_at(bytes.len().min(room));
            let at = HISTORY + self.filled;
            self.window[at..at + now.len()].copy_from_slice(now);
            bytes = later;
            self.advance(now.len());
        }
    }

    /// Reads one byte.
    pub(crate) fn push_byte(&mut self, byte: u8) {
        self.window[HISTORY + self.filled] = byte;
        self.advance(1);
    }

    /// Counts bytes that were written into the window as text.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.filled += bytes;
        if self.filled >= STRETCH {
            self.count_window();
        }
    }

    /// Ends one text and starts another in the same profile. Shapes do not cross the border, so the result is the sum of both profiles.
    pub(crate) fn next_text(&mut self) {
        self.seams += 1;
        self.push(&[FILLER]);
    }

    /// Returns the profile of everything pushed.
    pub(crate) fn finish(mut self) -> TextProfile {
        if self.filled > 0 {
            self.count_window();
        }
        TextProfile::from_counts(self.counts)
    }

    fn count_window(&mut self) {
        self.window[HISTORY + self.filled..].fill(FILLER);
        let bytes = self.filled.saturating_sub(self.seams);
        self.counts.add(Feature::Bytes, u32::try_from(bytes).unwrap_or(u32::MAX));
        let letters =
            if self.window.is_ascii() { None } else { wide::count_scripts(&self.window, &mut self.counts) };
        ascii::count_shapes(&self.window, letters.as_ref(), &mut self.counts);
        self.window.copy_within(STRETCH.., 0);
        self.filled = 0;
        self.seams = 0;
    }
}

impl TextProfile {
    /// Counts the shapes of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut scanner = Scanner::new();
        scanner.push(text.as_bytes());
        scanner.finish()
    }
}
