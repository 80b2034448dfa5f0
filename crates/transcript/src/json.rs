//! Traverses valid JSON without building a tree.
//!
//! `serde_json` checks a document once; after that a [`Cursor`] finds the spans of the required values in a single pass. Numbers, escapes,
//! key order and unknown members are never changed, because nothing is re-written. Every step is bounds-checked: on invalid JSON a
//! traversal ends early, it does not panic.

use std::borrow::Cow;

use crate::quotes::closing_quote;

/// A byte range inside one message's JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Length in bytes.
    #[must_use]
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Whether it covers nothing.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// The inside of a JSON string (without its quotes), and whether it has escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct JsonStr {
    /// The span of the characters between the quotes.
    pub span: Span,
    /// Whether it contains a backslash, so that reading it as text needs unescaping.
    pub escaped: bool,
}

impl JsonStr {
    /// The characters as they are in the JSON, escapes included.
    #[must_use]
    pub fn raw(self, json: &str) -> &str {
        self.span.of(json)
    }

    /// Returns the text of the string; borrowed if it has no escapes.
    #[must_use]
    pub fn text(self, json: &str) -> Cow<'_, str> {
        if self.escaped { Cow::Owned(unescape(self.raw(json))) } else { Cow::Borrowed(self.raw(json)) }
    }
}

/// Unescapes the inside of a JSON string. A lone surrogate becomes U+FFFD, because text cannot contain it.
#[must_use]
pub fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    unescape_into(raw, &mut out);
    out
}

/// Like [`unescape`], but appends to a buffer of the caller.
pub fn unescape_into(raw: &str, out: &mut String) {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'\\', &bytes[at.min(bytes.len())..]) {
        let slash = at + offset;
        out.push_str(raw.get(at..slash).unwrap_or_default());
        let (decoded, used) = match bytes.get(slash + 1) {
            Some(b'n') => ('\n', 2),
            Some(b't') => ('\t', 2),
            Some(b'r') => ('\r', 2),
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'u') => unicode_escape(&bytes[slash..]),
            Some(&b @ (b'"' | b'\\' | b'/')) => (char::from(b), 2),
            _ => ('\\', 1),
        };
        out.push(decoded);
        at = slash + used;
    }
    out.push_str(raw.get(at..).unwrap_or_default());
}

/// Decodes `\uXXXX` or a surrogate pair at the start of `bytes`; returns the character and the bytes used.
fn unicode_escape(bytes: &[u8]) -> (char, usize) {
    let unit = |from: usize| -> Option<u32> {
        let hex = bytes.get(from..from + 4)?;
        hex.iter().try_fold(0u32, |value, &b| Some(value << 4 | char::from(b).to_digit(16)?))
    };
    let Some(first) = unit(2) else { return ('\u{fffd}', 2) };
    if (0xD800..0xDC00).contains(&first)
        && bytes.get(6..8) == Some(b"\\u")
        && let Some(second) = unit(8).filter(|low| (0xDC00..0xE000).contains(low))
    {
        let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return (char::from_u32(code).unwrap_or('\u{fffd}'), 12);
    }
    (char::from_u32(first).unwrap_or('\u{fffd}'), 6)
}

/// Appends `text` as a JSON string with quotes.
pub fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    escape_into(text, out);
    out.push('"');
}

/// `text` as a JSON string with quotes.
#[must_use]
pub fn compact_json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_json_string(text, &mut out);
    out
}

/// Appends `text` escaped for the inside of a JSON string; only what JSON demands is escaped.
pub fn escape_into(text: &str, out: &mut String) {
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(text.get(plain_from..at).unwrap_or_default());
        plain_from = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            other => {
                let hex = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
                out.push_str("\\u00");
                out.push(hex(other >> 4));
                out.push(hex(other & 15));
            }
        }
    }
    out.push_str(text.get(plain_from..).unwrap_or_default());
}

/// A position in valid JSON.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(json: &'a str) -> Self {
        Self { bytes: json.as_bytes(), at: 0 }
    }

    pub(crate) fn starting_at(json: &'a str, at: usize) -> Self {
        Self { bytes: json.as_bytes(), at }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Moves to `at`, the position another cursor has reached.
    pub(crate) fn jump(&mut self, at: usize) {
        self.at = at;
    }

    /// The next byte that is not white space, not consumed.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(&b) = self.bytes.get(self.at) {
            if !matches!(b, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(b);
            }
            self.at += 1;
        }
        None
    }

    fn eat(&mut self, wanted: u8) -> bool {
        let hit = self.peek() == Some(wanted);
        self.at += usize::from(hit);
        hit
    }

    /// Enters an object; returns `false` if the next value is not one.
    pub(crate) fn enter_object(&mut self) -> bool {
        self.eat(b'{')
    }

    /// Enters an array; returns `false` if the next value is not one.
    pub(crate) fn enter_array(&mut self) -> bool {
        self.eat(b'[')
    }

    /// Returns the next key of the current object, positioned at its value; `None` at the closing brace, which is consumed.
    pub(crate) fn next_key(&mut self) -> Option<&'a [u8]> {
        self.eat(b',');
        if self.peek() != Some(b'"') {
            self.eat(b'}');
            return None;
        }
        let key = self.string()?;
        self.eat(b':');
        self.bytes.get(key.span.start as usize..key.span.end as usize)
    }

    /// Whether the current array has another element, positioned at it; the closing bracket is consumed.
    pub(crate) fn next_element(&mut self) -> bool {
        self.eat(b',');
        match self.peek() {
            None => false,
            Some(b']') => {
                self.at += 1;
                false
            }
            Some(_) => true,
        }
    }

    /// Reads a string value; returns `None` without consuming anything if the next value is not a string.
    pub(crate) fn string(&mut self) -> Option<JsonStr> {
        if self.peek() != Some(b'"') {
            return None;
        }
        let start = self.at + 1;
        let Some((end, escaped)) = closing_quote(self.bytes, start) else {
            // An unclosed string consumes the rest, so that a scan of invalid text ends.
            self.at = self.bytes.len();
            return None;
        };
        self.at = end + 1;
        Some(JsonStr { span: Span { start: to_u32(start), end: to_u32(end) }, escaped })
    }

    /// Reads a string, or skips any other value.
    pub(crate) fn string_or_skip(&mut self) -> Option<JsonStr> {
        let found = self.string();
        if found.is_none() {
            self.skip_value();
        }
        found
    }

    /// Skips a value and returns it unescaped if it is a string; empty otherwise.
    pub(crate) fn raw_string<'j>(&mut self, json: &'j str) -> &'j str {
        self.string_or_skip().map(|string| string.raw(json)).unwrap_or_default()
    }

    /// Skips a value and returns whether it is `true`.
    pub(crate) fn is_true(&mut self, json: &str) -> bool {
        self.skip_value().of(json) == "true"
    }

    /// Skips one value and returns its span. If no value can start here, the traversal ends: every call either advances or leaves nothing
    /// to read, so loops over invalid text are bounded by its length.
    pub(crate) fn skip_value(&mut self) -> Span {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => {
                self.string();
            }
            Some(b'{' | b'[') => self.skip_container(),
            Some(b',' | b'}' | b']' | b':') => {
                self.at = self.bytes.len();
                return Span { start: to_u32(start), end: to_u32(start) };
            }
            Some(_) => {
                while let Some(&b) = self.bytes.get(self.at) {
                    if matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') {
                        break;
                    }
                    self.at += 1;
                }
            }
            None => {}
        }
        Span { start: to_u32(start), end: to_u32(self.at) }
    }

    /// Skips an object or array of any depth without recursion.
    fn skip_container(&mut self) {
        let mut depth = 0usize;
        while let Some(&b) = self.bytes.get(self.at) {
            match b {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.at += 1;
                        return;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }
}

/// Offsets inside one message fit in 32 bits: larger messages are refused before.
fn to_u32(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
