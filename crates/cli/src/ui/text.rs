//! Makes external text safe and fit for a terminal: without control characters, and no wider than the terminal.
//!
//! Transcripts are full of tool output with colour codes and cursor movements, which must not reach the screen.

use throughline_transcript::noun;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The mark where text was cut off.
const ELLIPSIS: char = '…';

/// The width of a text in columns.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// A name or path on one line, with control characters written out.
pub(crate) fn on_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unprintable(c) { out.extend(c.escape_debug()) } else { out.push(c) }
    }
    out
}

/// Makes a multi-line text safe for a terminal: removes colour codes and cursor movements, keeps line breaks, turns tabs into spaces.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            '\u{1b}' => skip_escape_sequence(&mut chars),
            c if is_unprintable(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Makes a part of a streamed answer safe for a terminal, independent of other parts: an escape sequence without its first character is
/// plain text. Characters that reverse the text direction are written out; marks that right-to-left scripts use between words are
/// removed.
pub(crate) fn streamed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.extend(c.escape_unicode()),
            c if is_unprintable(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Skips the rest of an escape sequence whose escape character was already taken.
fn skip_escape_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            // Parameters and intermediates, then one final character between @ and ~.
            while let Some(c) = chars.peek().copied() {
                if !(' '..='~').contains(&c) {
                    return;
                }
                chars.next();
                if ('@'..='~').contains(&c) {
                    return;
                }
            }
        }
        Some(']') => {
            // An operating system command ends with a bell or with escape and backslash, at the latest at the end of the line.
            while let Some(c) = chars.peek().copied() {
                if c == '\n' {
                    return;
                }
                chars.next();
                if c == '\u{7}' {
                    return;
                }
                if c == '\u{1b}' {
                    if chars.peek() == Some(&'\\') {
                        chars.next();
                    }
                    return;
                }
            }
        }
        _ => {
            // Two-character sequences, with intermediates before the last character.
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next_if(|c| ('0'..='~').contains(c));
        }
    }
}

/// Whether a character is a control character, invisible, or changes the display of others. Characters that join emoji, or the letters of
/// some scripts, are allowed: text would fall apart without them.
fn is_unprintable(c: char) -> bool {
    let joins = matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{ad}');
    // White space of other widths is allowed.
    let is_space = c.is_whitespace() && !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}');
    throughline_transcript::is_hidden(c) && !joins && !is_space
}

/// Shortens a text to one line of at most `max_columns` columns: runs of white space become one space, and the rest is replaced by an
/// ellipsis. Reads only the start of the text.
pub(crate) fn glimpse(text: &str, max_columns: usize) -> String {
    // A column has at least one character, and few characters have no width, so this start is always long enough.
    let start_bytes = max_columns.saturating_mul(8).saturating_add(512);
    let mut end = start_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let words = printable(text.get(..end).unwrap_or_default());
    let joined = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if end < text.len() {
        shorten(&format!("{joined}{ELLIPSIS}"), max_columns)
    } else {
        shorten(&joined, max_columns)
    }
}

/// Cuts a line to `max_columns` columns, including an ellipsis if something was cut off.
pub(crate) fn shorten(line: &str, max_columns: usize) -> String {
    if columns(line) <= max_columns {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in line.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > max_columns {
            break;
        }
        used += wide;
        out.push(c);
    }
    let mut out = out.trim_end().to_owned();
    if max_columns > 0 {
        out.push(ELLIPSIS);
    }
    out
}

/// Wraps a text at spaces into lines of at most `max_columns` columns; a longer word gets its own line. Continuation lines are indented
/// like the line they continue, plus `hang` columns.
pub(crate) fn wrap(text: &str, max_columns: usize, hang: usize) -> String {
    text.lines().map(|line| wrap_styled(line.trim_end(), max_columns, hang) + "\n").collect()
}

/// Does the same for lines with colours. Runs of spaces inside a line that is too long are not kept: they only aligned it.
pub(crate) fn wrap_styled(text: &str, max_columns: usize, hang: usize) -> String {
    let visible = |piece: &str| columns(&anstream::adapter::strip_str(piece).to_string());
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, ends) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        if visible(line) <= max_columns {
            out.push_str(line);
            out.push_str(ends);
            continue;
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        out.push_str(&" ".repeat(indent));
        let mut used = indent;
        for (at, word) in line.split(' ').filter(|word| !word.is_empty()).enumerate() {
            let wide = visible(word);
            if at > 0 && used + 1 + wide > max_columns {
                out.push('\n');
                out.push_str(&" ".repeat(indent + hang));
                used = indent + hang;
            } else if at > 0 {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += wide;
        }
        out.push_str(ends);
    }
    out
}

/// Formats a text after a label of `label_columns` columns; further lines are aligned with the text. The label may have colours.
pub(crate) fn labelled(label: &str, label_columns: usize, text: &str, max_columns: usize) -> String {
    let shown = columns(&anstream::adapter::strip_str(label).to_string());
    let gap = " ".repeat(label_columns.saturating_sub(shown));
    let mut out = String::new();
    for (at, line) in wrap(text, max_columns.saturating_sub(label_columns).max(8), 0).lines().enumerate() {
        match at {
            0 => out.push_str(&format!("{label}{gap}{line}\n")),
            _ => out.push_str(&format!("{}{line}\n", " ".repeat(label_columns))),
        }
    }
    out
}

/// Formats a whole number with commas between thousands.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a size in bytes.
pub(crate) fn bytes_words(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KB", "MB", "GB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let unit_word = UNITS.get(unit).copied().unwrap_or("bytes");
    if unit == 0 {
        format!("{bytes} {unit_word}")
    } else if value < 9.95 {
        format!("{value:.1} {unit_word}")
    } else {
        format!("{value:.0} {unit_word}")
    }
}

/// Formats a number and its noun in the right form.
pub(crate) fn counted(count: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", thousands(count), noun(count, singular, plural))
}

/// Formats a share in per cent: with one decimal below ten, so that small shares do not all read 0 %.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let share = part as f64 * 100.0 / whole as f64;
    if share > 0.0 && share < 0.05 {
        "<0.1 %".to_owned()
    } else if share < 9.95 {
        format!("{share:.1} %")
    } else {
        format!("{share:.0} %")
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
