//! Makes external text fully visible for approval: every character is shown, and the terminal interprets none.
//!
//! Characters that a terminal interprets or hides are escaped: `\x1b`, `\u{202e}`. A backslash before such a sequence is written as
//! `\x5c`, so that the shown text is unambiguous.
//!
//! Not for: output of tools and answers of models, from which colour codes are simply removed.

use std::borrow::Cow;
use std::fmt::Write as _;

use throughline_transcript::is_hidden;

/// How strictly invisible characters are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// For commands, names and paths: each one is escaped.
    Exact,
    /// For text of files: those that are part of an emoji are kept.
    Prose,
}

/// The white space that is not escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Line breaks and tabs.
    Lines,
    /// Spaces only.
    OneLine,
}

/// Escapes everything that a terminal would interpret or hide.
pub(crate) fn visible(text: &str, layout: Layout, strictness: Strictness) -> Cow<'_, str> {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'\\';
    let stays = |byte: u8| is_plain(byte) || (layout == Layout::Lines && matches!(byte, b'\n' | b'\t'));
    if text.bytes().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, previous, c) in with_previous(text) {
        let rest = text.get(at..).unwrap_or_default();
        let is_layout = matches!(c, '\n' | '\t');
        if is_layout && layout == Layout::Lines {
            out.push(c);
        } else if is_layout || is_hidden_at(previous, rest, strictness) || looks_escaped(rest) {
            write_out(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether a text contains characters that are invisible or change the display of others.
pub(crate) fn has_hidden(text: &str, strictness: Strictness) -> bool {
    with_previous(text).any(|(at, previous, c)| {
        !c.is_ascii_graphic()
            && !matches!(c, ' ' | '\n' | '\t')
            && is_hidden_at(previous, text.get(at..).unwrap_or_default(), strictness)
    })
}

/// Whether the first character of `rest` is invisible at its position.
fn is_hidden_at(previous: Option<char>, rest: &str, strictness: Strictness) -> bool {
    let mut rest = rest.chars();
    let Some(c) = rest.next() else { return false };
    if !is_hidden(c) {
        return false;
    }
    let is_picture =
        |c: char| matches!(c, '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}') && !is_hidden(c);
    let follows_picture = previous.is_some_and(is_picture);
    let belongs_to_picture = match c {
        '\u{fe0f}' => follows_picture,
        '\u{200d}' => {
            (follows_picture || previous == Some('\u{fe0f}')) && rest.next().is_some_and(is_picture)
        }
        _ => false,
    };
    strictness == Strictness::Exact || !belongs_to_picture
}

/// Whether a text begins with something that looks like an escaped character.
fn looks_escaped(text: &str) -> bool {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(rest) = text.strip_prefix("\\x") {
        return rest.get(..2).is_some_and(is_hex);
    }
    let braced = text.strip_prefix("\\u{").and_then(|rest| rest.split_once('}'));
    braced.is_some_and(|(digits, _)| is_hex(digits))
}

fn write_out(c: char, out: &mut String) {
    let code = u32::from(c);
    // Writing to a string cannot fail.
    let _ = if code < 0x100 { write!(out, "\\x{code:02x}") } else { write!(out, "\\u{{{code:x}}}") };
}

fn with_previous(text: &str) -> impl Iterator<Item = (usize, Option<char>, char)> + '_ {
    let mut previous = None;
    text.char_indices().map(move |(at, c)| (at, previous.replace(c), c))
}

#[cfg(test)]
#[path = "visible_tests.rs"]
mod tests;
