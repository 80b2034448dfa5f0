//! Decides which texts of a message are stored as artifacts, and restores them.
//!
//! A tool result of more than [`ARTIFACT_CHARACTERS`] is stored in the artifact folder and cut out of the message's JSON, but only if
//! encoding it again gives exactly the bytes that were cut out. Results in an unusual encoding remain in the message.
//!
//! Not for: storing anything. These are decisions only, the same for every implementation of the record.

use std::borrow::Cow;

use throughline_transcript::{JsonStr, Message, Part, escape_into};

/// Texts of tool results longer than this become artifacts.
pub(crate) const ARTIFACT_CHARACTERS: usize = 100_000;

/// How a text was escaped in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EscapeStyle {
    /// Only what JSON demands is escaped.
    Minimal,
    /// Everything beyond ASCII is escaped too.
    AsciiOnly,
}

impl EscapeStyle {
    /// Appends a text, escaped.
    pub(crate) fn write(self, text: &str, out: &mut String) {
        match self {
            Self::Minimal => escape_into(text, out),
            Self::AsciiOnly => escape_to_ascii(text, out),
        }
    }

    /// Returns its code in the record.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Minimal => 0,
            Self::AsciiOnly => 1,
        }
    }

    /// Returns the style for a code.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Minimal, Self::AsciiOnly].into_iter().find(|style| style.code() == code)
    }
}

/// A text of a message that is stored as an artifact.
#[derive(Debug)]
pub(crate) struct ArtifactText<'a> {
    /// Its position.
    pub(crate) string: JsonStr,
    /// The text.
    pub(crate) text: Cow<'a, str>,
    /// How it was escaped.
    pub(crate) style: EscapeStyle,
}

/// Returns the texts of a message that are stored as artifacts, in the order of its JSON.
pub(crate) fn artifact_texts(message: &Message) -> Vec<ArtifactText<'_>> {
    // A text is never longer than its JSON, so most messages end here.
    if message.json().len() <= ARTIFACT_CHARACTERS {
        return Vec::new();
    }
    let mut found: Vec<ArtifactText<'_>> = message
        .parts()
        .iter()
        .filter_map(|part| match part {
            Part::ToolResult { content, .. } => Some(content),
            _ => None,
        })
        .flatten()
        .filter_map(|piece| match piece {
            Part::Text(string) => artifact_text(message, *string),
            _ => None,
        })
        .collect();
    found.sort_by_key(|artifact| artifact.string.span.start);
    found.dedup_by_key(|artifact| artifact.string.span.start);
    found
}

fn artifact_text(message: &Message, string: JsonStr) -> Option<ArtifactText<'_>> {
    let raw = string.raw(message.json());
    if raw.len() <= ARTIFACT_CHARACTERS {
        return None;
    }
    let text = message.str(string);
    text.chars().nth(ARTIFACT_CHARACTERS)?;
    let mut rewritten = String::with_capacity(raw.len());
    let style = [EscapeStyle::Minimal, EscapeStyle::AsciiOnly].into_iter().find(|style| {
        rewritten.clear();
        style.write(&text, &mut rewritten);
        rewritten == raw
    })?;
    Some(ArtifactText { string, text, style })
}

/// Like [`escape_into`], with everything beyond ASCII as `\u` and four lower-case digits.
fn escape_to_ascii(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| !byte.is_ascii()) {
        let (plain, after) = rest.split_at(at);
        escape_into(plain, out);
        let mut characters = after.chars();
        let mut units = [0u16; 2];
        if let Some(character) = characters.next() {
            for unit in character.encode_utf16(&mut units) {
                out.push_str("\\u");
                for shift in [12, 8, 4, 0] {
                    out.push(char::from_digit(u32::from(*unit) >> shift & 15, 16).unwrap_or('0'));
                }
            }
        }
        rest = characters.as_str();
    }
    escape_into(rest, out);
}
