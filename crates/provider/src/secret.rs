//! A key that cannot be printed by accident.

use std::collections::HashSet;
use std::fmt;

/// A key to an endpoint. It has no `Display`, is not serialised, and its `Debug` reveals nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(String);

impl SecretKey {
    /// Creates a key without surrounding white space. `None` if the text is blank.
    #[must_use]
    pub fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(key.to_owned()))
    }

    /// Returns the key itself, for sending it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Removes the key and recognisable parts of it from a text: providers repeat keys in their errors, often only the beginning and the
    /// end. Upper and lower case are treated as equal.
    #[must_use]
    pub fn scrub(&self, text: &str) -> String {
        let (lower, key) = (text.to_ascii_lowercase(), self.0.to_ascii_lowercase());
        let masked = masked_bytes(lower.as_bytes(), key.as_bytes());
        if !masked.contains(&true) {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut was_masked = false;
        for (at, character) in text.char_indices() {
            let bytes = masked.get(at..at + character.len_utf8()).unwrap_or_default();
            let is_masked = bytes.contains(&true);
            match (was_masked, is_masked) {
                (false, true) => out.push_str(MASK),
                (_, false) => out.push(character),
                (true, true) => {}
            }
            was_masked = is_masked;
        }
        out
    }
}

/// The replacement for a key.
const MASK: &str = "[key]";
/// The minimum length of a recognised beginning or end of a key, at the boundary of a word. Providers show the last four characters of a
/// key; `sk-`, with which many keys begin, is not secret.
const SHORTEST_END: usize = 4;
/// The minimum length of any other recognised part of a key. Keys have at least 30 bytes, so an ordinary word of that length is rarely part
/// of one, and masking it does no harm.
pub(crate) const SHORTEST_PART: usize = 8;

/// Words of errors that may be at the beginning or end of a key by chance or by choice. They reveal nothing about it.
const ORDINARY_WORDS: &[&str] = &[
    "access", "account", "admin", "auth", "bearer", "client", "default", "demo", "invalid", "keys", "live",
    "local", "main", "model", "prod", "project", "proxy", "secret", "server", "service", "test", "token",
    "user",
];

/// Whether a short fragment of a key, with the signs around it, is a word of a sentence.
fn is_ordinary(fragment: &[u8]) -> bool {
    let bare = fragment.trim_ascii();
    let from = bare.iter().position(u8::is_ascii_alphanumeric).unwrap_or(bare.len());
    let to = bare.iter().rposition(u8::is_ascii_alphanumeric).map_or(from, |last| last + 1);
    let word = bare.get(from..to).unwrap_or_default();
    // `-key` at the end of `own-key` occurs in every `x-api-key`.
    fragment.len() < SHORTEST_PART
        && (word == b"key" || ORDINARY_WORDS.iter().any(|ordinary| ordinary.as_bytes() == word))
}

/// For each byte of a text, whether it belongs to a key or to a part of one.
fn masked_bytes(text: &[u8], key: &[u8]) -> Vec<bool> {
    let mut masked = vec![false; text.len()];
    let mut mask = |from: usize, bytes: usize| {
        masked.iter_mut().skip(from).take(bytes).for_each(|byte| *byte = true);
    };
    let is_word = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let parts: HashSet<&[u8]> = key.windows(SHORTEST_PART).collect();
    for at in 0..text.len() {
        let rest = text.get(at..).unwrap_or_default();
        if !key.is_empty() && rest.starts_with(key) {
            mask(at, key.len());
        }
        if rest.get(..SHORTEST_PART).is_some_and(|part| parts.contains(part)) {
            mask(at, SHORTEST_PART);
        }
        let beginning = rest.iter().zip(key).take_while(|(text, key)| text == key).count();
        let starts_key = beginning >= SHORTEST_END && !is_ordinary(key.get(..beginning).unwrap_or_default());
        if starts_key && (at == 0 || !is_word(at - 1)) {
            mask(at, beginning);
        }
        let before = text.get(..=at).unwrap_or_default();
        let end = before.iter().rev().zip(key.iter().rev()).take_while(|(text, key)| text == key).count();
        let ends_key = end >= SHORTEST_END && !is_ordinary(key.get(key.len() - end..).unwrap_or_default());
        if ends_key && !is_word(at + 1) {
            mask(at + 1 - end, end);
        }
    }
    masked
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
