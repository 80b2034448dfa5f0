//! Writes JSON in the styles of real clients: compact, or with blanks like Python's encoder, and with non-ASCII characters unchanged or
//! escaped.

use throughline_transcript::escape_into;

/// The style of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Style {
    /// Whether a blank follows each colon and comma.
    pub(crate) spaced: bool,
    /// Whether non-ASCII characters are written as `\uXXXX`.
    pub(crate) ascii: bool,
}

impl Style {
    /// The separator between two elements.
    pub(crate) fn comma(self) -> &'static str {
        if self.spaced { ", " } else { "," }
    }

    /// Appends a string with its quotes.
    pub(crate) fn string(self, text: &str, out: &mut String) {
        out.push('"');
        if self.ascii && !text.is_ascii() {
            self.escape_all(text, out);
        } else {
            escape_into(text, out);
        }
        out.push('"');
    }

    fn escape_all(self, text: &str, out: &mut String) {
        let mut plain_from = 0;
        for (at, character) in text.char_indices().filter(|(_, c)| !c.is_ascii()) {
            escape_into(text.get(plain_from..at).unwrap_or_default(), out);
            plain_from = at + character.len_utf8();
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str("\\u");
                for shift in [12, 8, 4, 0] {
                    let nibble = u32::from(*unit >> shift & 15);
                    out.push(char::from_digit(nibble, 16).unwrap_or('0'));
                }
            }
        }
        escape_into(text.get(plain_from..).unwrap_or_default(), out);
    }
}

/// Writes one object, member by member.
pub(crate) struct Object {
    out: String,
    style: Style,
}

impl Object {
    pub(crate) fn new(style: Style) -> Self {
        Self { out: String::from("{"), style }
    }

    fn key(&mut self, key: &str) {
        if self.out.len() > 1 {
            self.out.push_str(self.style.comma());
        }
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str(if self.style.spaced { "\": " } else { "\":" });
    }

    /// Adds a member with a text.
    pub(crate) fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        self.style.string(value, &mut self.out);
        self
    }

    /// Adds a member with a JSON value.
    pub(crate) fn raw(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        self.out.push_str(value);
        self
    }

    /// Adds a member with a list of JSON values.
    pub(crate) fn list(mut self, key: &str, values: &[String]) -> Self {
        self.key(key);
        self.out.push('[');
        self.out.push_str(&values.join(self.style.comma()));
        self.out.push(']');
        self
    }

    /// Adds a member with a JSON value if a condition holds.
    pub(crate) fn raw_if(self, condition: bool, key: &str, value: &str) -> Self {
        if condition { self.raw(key, value) } else { self }
    }

    pub(crate) fn end(mut self) -> String {
        self.out.push('}');
        self.out
    }
}
