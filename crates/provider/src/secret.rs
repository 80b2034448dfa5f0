//! A key that cannot be printed by accident.

use std::fmt;

/// A key to an endpoint. It has no `Display`, is not serialised, and its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(String);

impl SecretKey {
    /// Takes a key; `None` when there is nothing in it. White space around it is never part of a key.
    #[must_use]
    pub fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(key.to_owned()))
    }

    /// The key itself, for the one place that sends it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// A text in which the key no longer stands. Providers repeat keys in their errors.
    #[must_use]
    pub fn scrub(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
