//! The layout of a list in its document, so that a changed list is written back into an otherwise unchanged document in the same style, and
//! an unchanged one byte for byte.

use crate::shared_text::SharedText;

/// A range in a whole document, which may be longer than the limit of a message.
pub(crate) type DocumentRange = std::ops::Range<usize>;

/// What separates the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// `[a, b]`.
    Array,
    /// One element per line.
    Lines,
}

/// The position of a list in its document, and the separators of its elements.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    document: SharedText,
    list: DocumentRange,
    frame: Frame,
    /// The text between elements that were not adjacent before.
    separator: String,
    /// The text around the list when its first or last element is not the original one.
    opening: String,
    closing: String,
    /// The message that represents the value at `list`, if that is a text instead of a list.
    stand_in: Option<SharedText>,
    /// Some editors put a byte order mark before the text; it is not part of the JSON.
    byte_order_mark: bool,
}

impl Layout {
    /// Takes the style of an array from the gaps around and between its elements. Gaps may differ; the first one is used between elements
    /// that were not adjacent.
    pub(crate) fn of_array(document: &SharedText, list: DocumentRange, items: &[DocumentRange]) -> Self {
        let text = document.as_str();
        let gap = |from: usize, to: usize| text.get(from..to).unwrap_or_default().to_owned();
        let opening = items.first().map_or_else(|| "[".to_owned(), |first| gap(list.start, first.start));
        let closing = items.last().map_or_else(|| "]".to_owned(), |last| gap(last.end, list.end));
        let separator = match items {
            [first, second, ..] => gap(first.end, second.start),
            _ => ",".to_owned(),
        };
        Self { list, frame: Frame::Array, separator, opening, closing, ..Self::whole(document) }
    }

    /// Takes the document's kind of line break; the last line ends as the document does.
    pub(crate) fn of_lines(document: &SharedText) -> Self {
        let text = document.as_str();
        let first_break = memchr::memchr(b'\n', text.as_bytes());
        let carriage_return = first_break.is_some_and(|at| text[..at].ends_with('\r'));
        let separator = if carriage_return { "\r\n" } else { "\n" }.to_owned();
        let closing = if text.ends_with('\n') { separator.clone() } else { String::new() };
        Self { separator, closing, ..Self::whole(document) }
    }

    /// A document in which the value at `value` is not a list but stands for one message, `stand_in`.
    pub(crate) fn of_value(document: &SharedText, value: DocumentRange, stand_in: SharedText) -> Self {
        Self {
            list: value,
            frame: Frame::Array,
            separator: ",".into(),
            opening: "[".into(),
            closing: "]".into(),
            stand_in: Some(stand_in),
            ..Self::whole(document)
        }
    }

    fn whole(document: &SharedText) -> Self {
        Self {
            document: document.clone(),
            list: 0..document.len(),
            frame: Frame::Lines,
            separator: String::new(),
            opening: String::new(),
            closing: String::new(),
            stand_in: None,
            byte_order_mark: false,
        }
    }

    pub(crate) fn with_byte_order_mark(self) -> Self {
        Self { byte_order_mark: true, ..self }
    }

    /// Writes the document with `items` in place of its list. The text between two items that were adjacent in the document is unchanged.
    pub(crate) fn write<'a>(&self, items: impl IntoIterator<Item = &'a str>, out: &mut Vec<u8>) {
        let document = self.document.as_str();
        if self.byte_order_mark {
            out.extend_from_slice("\u{feff}".as_bytes());
        }
        out.extend_from_slice(document.get(..self.list.start).unwrap_or_default().as_bytes());
        let mut items = items.into_iter().peekable();
        match items.next() {
            Some(only) if items.peek().is_none() && self.is_stand_in(only) => {
                out.extend_from_slice(document.get(self.list.clone()).unwrap_or_default().as_bytes());
            }
            Some(first) => self.write_items(first, items, out),
            None if self.frame == Frame::Array => out.extend_from_slice(self.empty_array().as_bytes()),
            None => {}
        }
        out.extend_from_slice(document.get(self.list.end..).unwrap_or_default().as_bytes());
    }

    fn write_items<'a>(&self, first: &'a str, rest: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
        let mut place = self.place_of(first);
        let before = place.as_ref().and_then(|at| self.outer_gap(self.list.start, at.start));
        out.extend_from_slice(before.unwrap_or(&self.opening).as_bytes());
        out.extend_from_slice(first.as_bytes());
        for item in rest {
            let next = self.place_of(item);
            let between = match (&place, &next) {
                (Some(left), Some(right)) => self.inner_gap(left.end, right.start),
                _ => None,
            };
            out.extend_from_slice(between.unwrap_or(&self.separator).as_bytes());
            out.extend_from_slice(item.as_bytes());
            place = next;
        }
        let after = place.as_ref().and_then(|at| self.outer_gap(at.end, self.list.end));
        out.extend_from_slice(after.unwrap_or(&self.closing).as_bytes());
    }

    /// Returns the range of an item in the document, if it is a slice of it.
    fn place_of(&self, item: &str) -> Option<DocumentRange> {
        let start = (item.as_ptr() as usize).checked_sub(self.document.as_str().as_ptr() as usize)?;
        let end = start.checked_add(item.len())?;
        (start >= self.list.start && end <= self.list.end).then_some(start..end)
    }

    /// Returns the text between two adjacent elements; `None` if another element is between them.
    fn inner_gap(&self, from: usize, to: usize) -> Option<&str> {
        let gap = self.document.as_str().get(from..to)?;
        let separators = match self.frame {
            Frame::Array => is_blank_but_for(gap, b',')?,
            Frame::Lines => is_blank_but_for(gap, b'\n')?.min(1),
        };
        (separators == 1).then_some(gap)
    }

    /// Returns the text between the edge of the list and its first or last element.
    fn outer_gap(&self, from: usize, to: usize) -> Option<&str> {
        let gap = self.document.as_str().get(from..to)?;
        let inside = match self.frame {
            Frame::Array => gap.strip_prefix('[').or_else(|| gap.strip_suffix(']'))?,
            Frame::Lines => gap,
        };
        is_blank_but_for(inside, b'\n').map(|_| gap)
    }

    fn empty_array(&self) -> &str {
        let own = self.document.as_str().get(self.list.clone()).unwrap_or_default();
        let inside = own.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if inside.is_some_and(|inside| inside.trim().is_empty()) { own } else { "[]" }
    }

    fn is_stand_in(&self, item: &str) -> bool {
        self.stand_in.as_ref().is_some_and(|own| std::ptr::eq(own.as_str(), item))
    }
}

/// Returns how often `wanted` occurs in a text that is otherwise white space; `None` if the text has anything else.
fn is_blank_but_for(text: &str, wanted: u8) -> Option<usize> {
    let mut count = 0;
    for byte in text.bytes() {
        if byte == wanted {
            count += 1;
        } else if !byte.is_ascii_whitespace() {
            return None;
        }
    }
    Some(count)
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
