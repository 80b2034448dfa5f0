//! Writing JSON in the styles that clients really send: compact, or with blanks as Python's encoder puts them, and with
//! non-ASCII characters as they are or escaped.

use throughline_transcript::JsonStr;

/// How the JSON of a list is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Style {
    /// A blank after each colon and comma.
    pub(crate) spaced: bool,
    /// Everything beyond ASCII as `\uXXXX`.
    pub(crate) ascii: bool,
}

impl Style {
    /// What stands between two elements.
    pub(crate) fn comma(self) -> &'static str {
        if self.spaced { ", " } else { "," }
    }

    /// Appends a string with its quotes.
    pub(crate) fn string(self, text: &str, out: &mut String) {
        out.push('"');
        if self.ascii && !text.is_ascii() {
            self.escape_all(text, out);
        } else {
            JsonStr::escape_into(text, out);
        }
        out.push('"');
    }

    fn escape_all(self, text: &str, out: &mut String) {
        let mut plain_from = 0;
        for (at, character) in text.char_indices().filter(|(_, c)| !c.is_ascii()) {
            JsonStr::escape_into(text.get(plain_from..at).unwrap_or_default(), out);
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
        JsonStr::escape_into(text.get(plain_from..).unwrap_or_default(), out);
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

    /// A member whose value is a text.
    pub(crate) fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        self.style.string(value, &mut self.out);
        self
    }

    /// A member whose value is JSON already.
    pub(crate) fn raw(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        self.out.push_str(value);
        self
    }

    /// A member whose value is a list of JSON values.
    pub(crate) fn list(mut self, key: &str, values: &[String]) -> Self {
        self.key(key);
        self.out.push('[');
        self.out.push_str(&values.join(self.style.comma()));
        self.out.push(']');
        self
    }

    /// A raw member when a condition holds.
    pub(crate) fn raw_if(self, condition: bool, key: &str, value: &str) -> Self {
        if condition { self.raw(key, value) } else { self }
    }

    pub(crate) fn end(mut self) -> String {
        self.out.push('}');
        self.out
    }
}
