//! A slice of a text that many messages share: cloning costs a reference count, never a copy of the text.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A range of a shared, immutable text.
///
/// Messages decoded from one document all point into it, so a 400 MB transcript is in memory once.
#[derive(Clone)]
pub struct SharedText {
    whole: Arc<String>,
    range: Range<usize>,
}

impl SharedText {
    /// Takes ownership of a text without copying it.
    #[must_use]
    pub fn new(text: String) -> Self {
        let range = 0..text.len();
        Self { whole: Arc::new(text), range }
    }

    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.whole.get(self.range.clone()).unwrap_or_default()
    }

    /// A part of this text that shares its memory. Out-of-range or split-character bounds yield an empty slice.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let start = self.range.start.saturating_add(range.start);
        let end = self.range.start.saturating_add(range.end);
        let inside = end <= self.range.end && self.whole.get(start..end).is_some();
        Self { whole: Arc::clone(&self.whole), range: if inside { start..end } else { 0..0 } }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for SharedText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for SharedText {}
