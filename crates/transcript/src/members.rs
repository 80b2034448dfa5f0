//! Access to the members of a JSON object as raw slices, without building a tree.

use std::borrow::Cow;

use crate::json::{Cursor, unescape};

/// A raw JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawJson<'a>(pub &'a str);

impl<'a> RawJson<'a> {
    /// Returns the text of a string.
    #[must_use]
    pub fn as_text(self) -> Option<Cow<'a, str>> {
        let mut cursor = Cursor::new(self.0);
        cursor.string().map(|string| string.text(self.0))
    }

    /// Returns the members of an object; empty for other values.
    pub fn members(self) -> impl Iterator<Item = (Cow<'a, str>, RawJson<'a>)> {
        let mut cursor = Cursor::new(self.0);
        let inside = cursor.enter_object();
        std::iter::from_fn(move || {
            if !inside {
                return None;
            }
            let key = cursor.next_key()?;
            let key = std::str::from_utf8(key).unwrap_or_default();
            let value = cursor.skip_value().of(self.0);
            let key = if key.contains('\\') { Cow::Owned(unescape(key)) } else { Cow::Borrowed(key) };
            Some((key, RawJson(value)))
        })
    }

    /// Returns the elements of an array; empty for other values.
    pub fn elements(self) -> impl Iterator<Item = RawJson<'a>> {
        let mut cursor = Cursor::new(self.0);
        let inside = cursor.enter_array();
        std::iter::from_fn(move || {
            (inside && cursor.next_element()).then(|| RawJson(cursor.skip_value().of(self.0)))
        })
    }

    /// Returns the first member of that name.
    #[must_use]
    pub fn get(self, name: &str) -> Option<RawJson<'a>> {
        self.members().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
#[path = "members_tests.rs"]
mod tests;
