//! A fast check whether a text is valid JSON.
//!
//! A text that is not accepted here goes to `serde_json`, which decides and reports the position of the error. So this check must only be
//! right when it accepts. It is several times as fast, because strings make up nearly all of a conversation and are checked a block at a
//! time.

use serde::de::IgnoredAny;

use crate::quotes::closing_quote_of_valid;

/// The maximum nesting that fits the stack of bits; deeper documents go to `serde_json`.
const MAX_DEPTH: u32 = u128::BITS;

/// Checks that a text is one JSON value.
pub(crate) fn check_json(json: &str) -> Result<(), serde_json::Error> {
    if is_surely_valid(json.as_bytes()) {
        return Ok(());
    }
    serde_json::from_str::<IgnoredAny>(json).map(|_| ())
}

fn is_surely_valid(bytes: &[u8]) -> bool {
    Check { bytes, at: 0, depth: 0, objects: 0 }.document().is_some()
}

/// A position in the text and its enclosing containers.
struct Check<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
    /// The kinds of the enclosing containers, the innermost in the lowest bit: one for an object, zero for an array.
    objects: u128,
}

/// Each step returns `None` if it cannot accept the text.
impl Check<'_> {
    fn document(&mut self) -> Option<()> {
        loop {
            let opened = self.value()?;
            if opened && !self.closes_at_once()? {
                continue;
            }
            if !self.goes_on_after_value()? {
                return (self.peek().is_none()).then_some(());
            }
        }
    }

    /// The next byte that is not white space, not consumed.
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn eat(&mut self, wanted: u8) -> Option<()> {
        (self.peek() == Some(wanted)).then(|| self.at += 1)
    }

    /// Reads a scalar, or opens a container. Returns whether it opened one.
    fn value(&mut self) -> Option<bool> {
        match self.peek()? {
            b'{' => return self.open(1).map(|()| true),
            b'[' => return self.open(0).map(|()| true),
            b'"' => self.string()?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            _ => self.number()?,
        }
        Some(false)
    }

    fn open(&mut self, kind: u128) -> Option<()> {
        self.at += 1;
        self.depth += 1;
        self.objects = self.objects << 1 | kind;
        (self.depth <= MAX_DEPTH).then_some(())
    }

    fn close(&mut self) {
        self.at += 1;
        self.depth -= 1;
        self.objects >>= 1;
    }

    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    /// Reads the start of a container. Returns whether it is empty and closed; otherwise the first key, if it has keys, is read.
    fn closes_at_once(&mut self) -> Option<bool> {
        match (self.peek()?, self.in_object()) {
            (b'}', true) | (b']', false) => {
                self.close();
                Some(true)
            }
            (_, true) => self.key().map(|()| false),
            (_, false) => Some(false),
        }
    }

    /// Closes the containers that end after a value. Returns whether another value must follow.
    fn goes_on_after_value(&mut self) -> Option<bool> {
        while self.depth > 0 {
            match (self.peek()?, self.in_object()) {
                (b',', is_object) => {
                    self.at += 1;
                    if is_object {
                        self.key()?;
                    }
                    return Some(true);
                }
                (b'}', true) | (b']', false) => self.close(),
                _ => return None,
            }
        }
        Some(false)
    }

    fn key(&mut self) -> Option<()> {
        self.peek()?;
        self.string()?;
        self.eat(b':')
    }

    fn string(&mut self) -> Option<()> {
        (self.bytes.get(self.at) == Some(&b'"')).then_some(())?;
        self.at = closing_quote_of_valid(self.bytes, self.at + 1)? + 1;
        Some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
    }

    fn number(&mut self) -> Option<()> {
        self.pass(b"-");
        match self.digits() {
            0 => return None,
            // A number of several digits does not begin with zero.
            count if count > 1 && self.bytes.get(self.at - count) == Some(&b'0') => return None,
            _ => {}
        }
        if self.pass(b".") && self.digits() == 0 {
            return None;
        }
        if self.pass(b"eE") {
            self.pass(b"+-");
            (self.digits() > 0).then_some(())?;
        }
        Some(())
    }

    /// Skips one byte if it is one of these.
    fn pass(&mut self, any_of: &[u8]) -> bool {
        let is_there = self.bytes.get(self.at).is_some_and(|byte| any_of.contains(byte));
        self.at += usize::from(is_there);
        is_there
    }

    /// Skips digits and returns their number.
    fn digits(&mut self) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
