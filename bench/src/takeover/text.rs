//! Text functions for comparisons with the marks: normalised white space, words, lines, and JSON in Python's format.
//!
//! The definitions are those of `score.py`, which is stored with the marks. Lengths are counted in characters.

use std::fmt::Write;

use serde_json::Value;

/// Whether Python treats a character as white space: Unicode's, and the four separators of ASCII.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Removes white space at both ends.
pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Replaces each run of white space with one space and converts to lower case.
pub(super) fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out.to_lowercase()
}

/// The first characters of a text.
pub(super) fn first_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

/// The number of characters of a text.
pub(super) fn chars(text: &str) -> usize {
    text.chars().count()
}

/// The number of tokens as the marks count them: a quarter of the characters.
pub(super) fn tokens(text: &str) -> usize {
    chars(text) / 4
}

/// The words of at least three characters, in lower case.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let belongs = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_./-".contains(c);
    text.split(|c| !belongs(c)).filter(|word| word.len() >= 3).map(str::to_owned).collect()
}

/// Splits a text at every line break that Python recognises.
pub(super) fn lines(text: &str) -> Vec<&str> {
    let ends = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut lines: Vec<&str> = text.split(ends).collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

/// Formats JSON like `json.dumps`, so that sizes are equal in both programs.
pub(super) fn python_json(value: &Value) -> String {
    let mut out = String::new();
    write_value(value, &mut out);
    out
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_string(name, out);
                out.push_str(": ");
                write_value(member, out);
            }
            out.push('}');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_takes_case_and_white_space() {
        assert_eq!(fold("  Two\n\tWords\u{a0}More "), "two words more");
        assert_eq!(fold(""), "");
    }

    #[test]
    fn words_have_three_characters_at_least() {
        assert_eq!(words("Fix a/b.rs, or it"), ["fix", "a/b.rs"]);
    }

    #[test]
    fn json_is_printed_as_python_prints_it() {
        let value: Value = serde_json::from_str(r#"{"b":[1,2.5,null,true],"a":"é\n😀\u007f"}"#).unwrap();
        let expected = r#"{"b": [1, 2.5, null, true], "a": "\u00e9\n\ud83d\ude00\u007f"}"#;
        assert_eq!(python_json(&value), expected);
    }

    #[test]
    fn the_last_line_end_opens_no_line() {
        assert_eq!(lines("a\nb\n"), ["a", "b"]);
        assert_eq!(lines("a\n\nb"), ["a", "", "b"]);
        assert!(lines("").is_empty());
    }
}
