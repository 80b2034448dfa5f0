//! Writes a value as YAML that every parser reads as the same value.

use crate::datum::Datum;
use crate::kind::parse_number;
use crate::yaml::{Style, is_null_word};

/// Returns a value as it is written into a file. `typed` is the user's text, which preserves `0.60`; `previous` is the style of the
/// replaced value.
pub(crate) fn scalar(datum: &Datum, typed: &str, previous: Option<Style>) -> String {
    match datum {
        Datum::Absent => "null".to_owned(),
        Datum::Switch(on) => on.to_string(),
        Datum::Whole(number) => number.to_string(),
        Datum::Number(number) => {
            let typed = typed.trim();
            let is_plain = typed.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
                && typed.starts_with(|first: char| first.is_ascii_digit())
                && typed.ends_with(|last: char| last.is_ascii_digit());
            if is_plain { typed.to_owned() } else { number.to_string() }
        }
        Datum::Text(text) => self::text(text, previous),
        Datum::Secret(secret) => self::text(secret.expose(), previous),
    }
}

/// Returns a text in its previous quotes, or in those it needs.
pub(crate) fn text(text: &str, previous: Option<Style>) -> String {
    let can_be_single = !text.chars().any(char::is_control);
    match previous {
        Some(Style::SingleQuoted) if can_be_single => format!("'{}'", text.replace('\'', "''")),
        Some(Style::DoubleQuoted) => double_quoted(text),
        _ if is_safe_plain(text) => text.to_owned(),
        _ => double_quoted(text),
    }
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{feff}' | '\u{2028}' | '\u{2029}' => quoted.push_str(&format!("\\u{:04x}", character as u32)),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a text is valid without quotes, also in lists and braces, and is not parsed as something else in any YAML version.
fn is_safe_plain(text: &str) -> bool {
    const WORDS_WITH_MEANING: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./@+".contains(&byte))
        && !is_null_word(text)
        && !WORDS_WITH_MEANING.iter().any(|word| word.eq_ignore_ascii_case(text))
        && !text.eq_ignore_ascii_case("null")
        && parse_number(text).is_none()
}
