//! Windows of a text: runs of about eighty words, from which passages are made.
//!
//! Sizes are counted in words. A long string without spaces counts as several, and two characters of a script without
//! spaces as one, so that a window is never much longer than a paragraph.

use std::ops::Range;

use crate::terms::is_glyph;

/// The words of a text. Its ranges are bytes of that text.
#[derive(Clone, Copy, Debug)]
pub struct TextWords<'t>(pub &'t str);

impl TextWords<'_> {
    /// Words of a passage. `throughline-bench recall` with 60 finds 2 to 4 % less, and an answer of twenty passages of this size is
    /// what an agent can read at once.
    pub const PER_PASSAGE: usize = 80;

    /// How many words a text has; counting ends at `limit`.
    pub fn count(self, limit: usize) -> usize {
        words(self.0).take(limit).count()
    }

    /// Windows of equal size that together are the text, each of at most [`Self::PER_PASSAGE`].
    pub fn windows(self) -> Vec<Range<usize>> {
        let words: Vec<Range<usize>> = words(self.0).collect();
        let parts = words.len().div_ceil(Self::PER_PASSAGE).max(1);
        let size = words.len().div_ceil(parts).max(1);
        words.chunks(size).filter_map(|window| Some(window.first()?.start..window.last()?.end)).collect()
    }

    /// The first so many words of a text.
    pub fn first(self, count: usize) -> Range<usize> {
        let mut range = 0..0;
        for (at, word) in words(self.0).take(count).enumerate() {
            range = if at == 0 { word } else { range.start..word.end };
        }
        range
    }

    /// The last so many words of a text.
    pub fn last(self, count: usize) -> Range<usize> {
        let words: Vec<Range<usize>> = words(self.0).collect();
        let last = words.get(words.len().saturating_sub(count)..).unwrap_or_default();
        match (last.first(), last.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }
}

/// Characters of a string without spaces that count as one word.
const WORD_CHARACTERS: usize = 24;

/// The next run of characters without spaces, at most one word's worth, from a place on.
fn next_word(text: &str, from: usize) -> Option<Range<usize>> {
    let rest = text.get(from..)?;
    let (skipped, _) = rest.char_indices().find(|(_, c)| !c.is_whitespace())?;
    let start = from + skipped;
    let mut cost = 0;
    let mut end = start;
    for (offset, c) in text.get(start..)?.char_indices() {
        // In halves of a word.
        cost += if is_glyph(c) { WORD_CHARACTERS / 2 } else { 1 };
        if c.is_whitespace() || cost > WORD_CHARACTERS {
            break;
        }
        end = start + offset + c.len_utf8();
    }
    Some(start..end)
}

/// The words of a text.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let word = next_word(text, at)?;
        at = word.end;
        Some(word)
    })
}

#[cfg(test)]
#[path = "windows_tests.rs"]
mod tests;
