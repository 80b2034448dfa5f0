//! The table of secret formats as data: parsed once, each pattern compiled when its word first occurs.
//!
//! There are two forms. A *prefix* rule is tried where one of its literal words occurs in the text. A *named* rule refines an assignment:
//! it applies if the name contains one of its words and the whole value matches its pattern.

use std::ops::Range;
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

use crate::boundary;

/// The table; its syntax is described in its own header.
const TABLE: &str = include_str!("rules.txt");

/// The default window of a pattern. A secret that extends beyond it is still masked as a whole: the match is extended to the end of its
/// token.
const DEFAULT_REACH_BYTES: usize = 1024;

/// How far back on a line the program name is searched.
const LINE_REACH_BYTES: usize = 400;

/// A character class that the table names with one letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CharClass {
    Digit,
    LowerHex,
    Alphanumeric,
    Word,
}

impl CharClass {
    fn from_letter(letter: &str) -> Option<Self> {
        match letter {
            "d" => Some(Self::Digit),
            "h" => Some(Self::LowerHex),
            "n" => Some(Self::Alphanumeric),
            "w" => Some(Self::Word),
            _ => None,
        }
    }

    fn contains(self, byte: u8) -> bool {
        match self {
            Self::Digit => byte.is_ascii_digit(),
            Self::LowerHex => byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'),
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
        }
    }
}

/// One format of the table.
#[derive(Debug)]
pub(crate) struct SecretRule {
    pub(crate) id: &'static str,
    pub(crate) kind: &'static str,
    /// Literals that trigger a prefix rule; empty for a named rule.
    pub(crate) words: Vec<String>,
    /// Words of the assignment's name that trigger a named rule; empty for a prefix rule.
    pub(crate) names: Vec<&'static str>,
    /// Whether the secret must also look random.
    pub(crate) needs_random: bool,
    /// The shape from which tests generate secrets.
    pub(crate) sample: &'static str,
    back: Option<(CharClass, usize)>,
    lines: Vec<String>,
    pattern: &'static str,
    starts_inside: bool,
    reach_bytes: usize,
    compiled: OnceLock<Option<Regex>>,
}

/// A match of a prefix rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RuleMatch {
    /// The secret.
    pub(crate) secret: Range<usize>,
    /// Length of the fixed prefix of the secret.
    pub(crate) fixed_bytes: usize,
    /// Whether the pattern describes the context of the secret rather than its own form.
    pub(crate) is_beside_name: bool,
    /// Whether the secret may extend beyond the window of the pattern.
    may_go_on: bool,
}

impl RuleMatch {
    /// Returns the whole secret, even beyond the window. The cost is proportional to the rest, so it is computed only for an accepted
    /// match.
    pub(crate) fn whole_secret(&self, bytes: &[u8]) -> Range<usize> {
        let rest = &bytes[self.secret.end..];
        let more =
            if self.may_go_on { rest.iter().take_while(|byte| continues_token(**byte)).count() } else { 0 };
        self.secret.start..self.secret.end + more
    }
}

impl SecretRule {
    fn new(id: &'static str) -> Self {
        Self {
            id,
            kind: id,
            words: Vec::new(),
            names: Vec::new(),
            needs_random: false,
            sample: "",
            back: None,
            lines: Vec::new(),
            pattern: "",
            starts_inside: false,
            reach_bytes: DEFAULT_REACH_BYTES,
            compiled: OnceLock::new(),
        }
    }

    fn set(&mut self, field: &str, value: &'static str) {
        match field {
            "kind" => self.kind = value,
            "word" => self.words = value.split_whitespace().map(|word| word.replace("\\s", " ")).collect(),
            "name" => self.names = value.split_whitespace().collect(),
            "line" => self.lines = value.split_whitespace().map(|word| word.replace("\\s", " ")).collect(),
            "find" | "value" => self.pattern = value,
            "sample" => self.sample = value,
            "reach" => self.reach_bytes = value.parse().unwrap_or(DEFAULT_REACH_BYTES),
            "test" => match value {
                "random" => self.needs_random = true,
                "inside" => self.starts_inside = true,
                _ => {}
            },
            "back" => {
                self.back = value.split_once(' ').and_then(|(letter, count)| {
                    Some((CharClass::from_letter(letter)?, count.trim().parse().ok()?))
                });
            }
            _ => {}
        }
    }

    /// Returns the compiled pattern; `None` only for a pattern that does not compile, which a test rules out.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        self.compiled
            .get_or_init(|| {
                let tail = if self.names.is_empty() { "" } else { "$" };
                RegexBuilder::new(&format!("^(?:{}){tail}", self.pattern)).unicode(false).build().ok()
            })
            .as_ref()
    }

    /// Whether the whole `value` has the format of this named rule.
    pub(crate) fn accepts_value(&self, value: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(value))
    }

    /// Tries a prefix rule whose `word` is at `word_at`.
    pub(crate) fn match_at(&self, text: &str, word_at: usize, word: &str) -> Option<RuleMatch> {
        let bytes = text.as_bytes();
        if !bytes[word_at..].starts_with(word.as_bytes()) {
            return None;
        }
        let start = self.back.map_or(word_at, |(class, most)| {
            let run =
                bytes[..word_at].iter().rev().take(most).take_while(|byte| class.contains(**byte)).count();
            let start = word_at - run;
            // The letter of an escape (`\n`) is not part of the token.
            let after_escape = run > 0
                && start > 0
                && bytes[start - 1] == b'\\'
                && matches!(bytes[start], b'n' | b'r' | b't');
            start + usize::from(after_escape)
        });
        if !self.starts_inside && !boundary::token_may_start(bytes, start) {
            return None;
        }
        if !self.lines.is_empty() {
            let before = &text
                [text.ceil_char_boundary(boundary::line_start(bytes, word_at, LINE_REACH_BYTES))..word_at];
            if !self.lines.iter().any(|program| before.contains(program.as_str())) {
                return None;
            }
        }
        let regex = self.regex()?;
        let window = &text[start..text.floor_char_boundary(start + self.reach_bytes)];
        let secret = if regex.captures_len() > 1 {
            regex.captures(window)?.get(1)?.range()
        } else {
            regex.find(window)?.range()
        };
        let fixed_bytes = if secret.start == 0 && start == word_at { word.len() } else { 0 };
        let end = start + secret.end;
        let may_go_on = secret.end == window.len() && end < bytes.len();
        let ends_cleanly =
            may_go_on || !bytes[end - 1].is_ascii_alphanumeric() || boundary::token_may_end(bytes, end);
        let is_beside_name = secret.start > 0;
        let secret = start + secret.start..end;
        ends_cleanly.then_some(RuleMatch { secret, fixed_bytes, is_beside_name, may_go_on })
    }
}

/// Whether `byte` continues a token beyond its window.
fn continues_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'%' | b'~')
}

/// Reads the table.
pub(crate) fn load() -> Vec<SecretRule> {
    let mut rules: Vec<SecretRule> = Vec::with_capacity(256);
    for line in TABLE.lines() {
        if line.starts_with('#') {
            continue;
        }
        if let Some(id) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            rules.push(SecretRule::new(id));
        } else if let (Some(rule), Some((field, value))) = (rules.last_mut(), line.split_once(": ")) {
            rule.set(field, value);
        }
    }
    rules
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
