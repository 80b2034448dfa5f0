//! The kinds of setting values: their ranges, and parsing a text as one of them.
//!
//! The same kind checks a value from a file, the environment and the command line, formats the error, and is compared with the commented
//! default file, so that the three agree.

use std::fmt;

use crate::datum::{Datum, Secret, without_password};
use crate::yaml::is_null_word;

/// The maximum length of a value, in characters.
const MAX_TEXT_CHARS: usize = 4096;
/// The same in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 4 * MAX_TEXT_CHARS;

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ValueKind {
    pub(crate) form: ValueForm,
    /// Whether null is allowed too.
    pub(crate) optional: bool,
}

/// The form of a value other than null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ValueForm {
    Switch,
    Whole {
        min: u64,
        max: u64,
    },
    Number {
        min: f64,
        max: f64,
    },
    Seconds {
        min: f64,
        max: f64,
    },
    Choice(&'static [&'static str]),
    Text,
    /// A short name without spaces.
    Name,
    /// A web address, or empty.
    Address,
    /// The address of a PostgreSQL database, or empty.
    Database,
    /// The name of an environment variable, or empty. An invalid one is not shown, because users paste the key itself here.
    Variable,
    Secret,
}

/// A value before it is parsed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raw<'a> {
    pub(crate) text: &'a str,
    /// Whether it means "no value".
    pub(crate) is_null: bool,
    /// Whether it was written in quotes, for showing it.
    pub(crate) is_quoted: bool,
}

impl<'a> Raw<'a> {
    /// A value given by a user outside a file: on the command line, in a variable.
    pub(crate) fn typed(text: &'a str) -> Self {
        Self { text, is_null: is_null_word(text.trim()), is_quoted: false }
    }
}

/// Why a text is not a value of the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// The value in a form that can be shown.
    pub(crate) shown: String,
    /// The allowed values.
    pub(crate) allowed: String,
    /// The value the user may have meant.
    pub(crate) hint: Option<String>,
}

impl ValueKind {
    /// Whether a file may take the value from the environment with `${NAME}`.
    pub(crate) fn is_textual(self) -> bool {
        matches!(
            self.form,
            ValueForm::Text
                | ValueForm::Name
                | ValueForm::Address
                | ValueForm::Database
                | ValueForm::Variable
                | ValueForm::Secret
        )
    }

    /// Parses a text as this kind.
    pub(crate) fn read(self, raw: Raw<'_>) -> Result<Datum, Mismatch> {
        let word = raw.text.trim();
        if raw.is_null {
            return match self.form {
                _ if self.optional => Ok(Datum::Absent),
                ValueForm::Text | ValueForm::Address | ValueForm::Database | ValueForm::Variable => {
                    Ok(Datum::Text(String::new()))
                }
                ValueForm::Secret => Ok(Datum::Secret(Secret::default())),
                _ => Err(self.mismatch("empty".to_owned(), self.to_string())),
            };
        }
        let read = match self.form {
            ValueForm::Switch => read_switch(word).map(Datum::Switch),
            ValueForm::Whole { min, max } => return self.read_whole(raw, min, max),
            ValueForm::Number { min, max } | ValueForm::Seconds { min, max } => {
                return self.read_number(raw, min, max);
            }
            ValueForm::Choice(words) => {
                words.iter().find(|known| **known == word).map(|known| Datum::Text((*known).to_owned()))
            }
            ValueForm::Text => one_line(word).map(Datum::Text),
            ValueForm::Secret => one_line(word).map(|text| Datum::Secret(Secret::new(text))),
            ValueForm::Name => one_line(word).filter(|text| is_name(text)).map(Datum::Text),
            ValueForm::Address => {
                one_line(word).filter(|text| text.is_empty() || is_address(text)).map(Datum::Text)
            }
            ValueForm::Database => {
                one_line(word).filter(|text| text.is_empty() || is_database(text)).map(Datum::Text)
            }
            ValueForm::Variable => {
                one_line(word).filter(|text| text.is_empty() || is_variable(text)).map(Datum::Text)
            }
        };
        read.ok_or_else(|| {
            let allowed = match self.form {
                ValueForm::Text | ValueForm::Secret => {
                    format!("one line of at most {MAX_TEXT_CHARS} characters")
                }
                _ => self.to_string(),
            };
            let hint = (self.form == ValueForm::Variable)
                .then(|| "the key itself belongs into the environment".to_owned());
            Mismatch { hint, ..self.mismatch(self.show(raw), allowed) }
        })
    }

    fn mismatch(self, shown: String, allowed: String) -> Mismatch {
        Mismatch { shown, allowed, hint: None }
    }

    fn read_whole(self, raw: Raw<'_>, min: u64, max: u64) -> Result<Datum, Mismatch> {
        match parse_scaled(raw.text.trim()) {
            Some(number) if number.fract() != 0.0 => Err(self.mismatch(self.show(raw), self.to_string())),
            // Beyond 2^53 a float does not represent every whole number; no range reaches that far.
            Some(number) if number >= min as f64 && number <= max as f64 => Ok(Datum::Whole(number as u64)),
            Some(_) => {
                Err(self.mismatch(self.show(raw), format!("between {min} and {max}{}", self.or_null())))
            }
            None => Err(self.mismatch(self.show(raw), self.to_string())),
        }
    }

    fn read_number(self, raw: Raw<'_>, min: f64, max: f64) -> Result<Datum, Mismatch> {
        let word = raw.text.trim();
        let (word, is_percent) = match word.strip_suffix('%') {
            Some(number) => (number.trim_end(), true),
            None => (word, false),
        };
        let parsed = parse_number(word);
        if let Some(number) = parsed
            && !is_percent
            && (min..=max).contains(&number)
        {
            return Ok(Datum::Number(number));
        }
        let allowed = match parsed {
            Some(_) if !is_percent => format!("between {min} and {max}{}", self.or_null()),
            _ => self.to_string(),
        };
        let hint = parsed.and_then(|number| percent_hint(number, min, max));
        Err(Mismatch { hint, ..self.mismatch(self.show(raw), allowed) })
    }

    fn or_null(self) -> &'static str {
        if self.optional { ", or null" } else { "" }
    }

    /// Returns a value as it may be shown in a message: short, on one line, without secrets.
    pub(crate) fn show(self, raw: Raw<'_>) -> String {
        if matches!(self.form, ValueForm::Secret | ValueForm::Variable) {
            return "set to something else (not shown)".to_owned();
        }
        show_scalar(&without_password(raw.text), raw.is_quoted)
    }
}

/// Adds quotes around anything except a number or a plain YAML word, and shortens it.
fn show_scalar(text: &str, is_quoted: bool) -> String {
    const MAX_SHOWN_CHARS: usize = 60;
    let is_bare = !is_quoted && (parse_number(text).is_some() || matches!(text, "true" | "false" | "null"));
    if is_bare && text.len() <= MAX_SHOWN_CHARS {
        return text.to_owned();
    }
    let mut shown: String = text.chars().take(MAX_SHOWN_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

/// Returns the hint for a percentage instead of a share: 50 means 0.50.
fn percent_hint(number: f64, min: f64, max: f64) -> Option<String> {
    let share = number / 100.0;
    let is_share = max <= 1.0 && number >= 2.0 && (min..=max).contains(&share);
    is_share.then(|| format!("write {share} for {number} %"))
}

/// The allowed values, as shown in messages and in the default file.
impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            ValueForm::Switch => f.write_str("true or false"),
            ValueForm::Whole { min, max } => write!(f, "a whole number between {min} and {max}"),
            ValueForm::Number { min, max } => write!(f, "a number between {min} and {max}"),
            ValueForm::Seconds { min, max } => write!(f, "a number of seconds between {min} and {max}"),
            ValueForm::Choice(words) => match words.split_last() {
                Some((last, [])) => f.write_str(last),
                Some((last, others)) => write!(f, "{} or {last}", others.join(", ")),
                None => Ok(()),
            },
            ValueForm::Text | ValueForm::Secret => f.write_str("text"),
            ValueForm::Name => f.write_str("a name of letters, digits, '-', '_' and '.'"),
            ValueForm::Address => f.write_str("an http:// or https:// address, or empty"),
            ValueForm::Database => f.write_str("a postgres:// address, or empty"),
            ValueForm::Variable => f.write_str("the name of a variable, or empty"),
        }?;
        f.write_str(self.or_null())
    }
}

fn read_switch(word: &str) -> Option<bool> {
    const ON: [&str; 4] = ["true", "yes", "on", "1"];
    const OFF: [&str; 4] = ["false", "no", "off", "0"];
    let is_one_of = |words: [&str; 4]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    match (is_one_of(ON), is_one_of(OFF)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Parses a finite decimal number; `_` is allowed between digits, as in 200_000.
pub(crate) fn parse_number(word: &str) -> Option<f64> {
    const MAX_DIGITS: usize = 64;
    if word.len() > MAX_DIGITS || !word.bytes().all(|b| b.is_ascii_digit() || b"+-._eE".contains(&b)) {
        return None;
    }
    let bytes = word.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let separators_stand_between_digits = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'_')
        .all(|(at, _)| is_digit(at.checked_sub(1)) && is_digit(at.checked_add(1)));
    if !separators_stand_between_digits {
        return None;
    }
    word.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Parses a number with `k` for thousands or `m` for millions, as in 200k.
fn parse_scaled(word: &str) -> Option<f64> {
    let scales = [('k', 1e3), ('K', 1e3), ('m', 1e6), ('M', 1e6)];
    let scaled = scales.iter().find_map(|(letter, scale)| Some((word.strip_suffix(*letter)?, scale)));
    match scaled {
        // The product is whole where the decimals allow it: 1.5k is 1500.
        Some((digits, scale)) => parse_number(digits).map(|number| (number * scale * 1e3).round() / 1e3),
        None => parse_number(word),
    }
}

fn one_line(word: &str) -> Option<String> {
    let is_fine = !word.chars().any(char::is_control) && word.chars().count() <= MAX_TEXT_CHARS;
    is_fine.then(|| word.to_owned())
}

fn is_name(text: &str) -> bool {
    const MAX_NAME_BYTES: usize = 64;
    !text.is_empty()
        && text.len() <= MAX_NAME_BYTES
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !text.contains(char::is_whitespace))
}

fn is_database(text: &str) -> bool {
    let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
    rest.is_some_and(|rest| !rest.is_empty() && !text.contains(char::is_whitespace))
}

fn is_variable(text: &str) -> bool {
    !text.starts_with(|character: char| character.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;
