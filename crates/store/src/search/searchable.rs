//! The searchable text of a message: text, reasoning, calls with their arguments, results. Images, encrypted blocks and artifacts are not
//! in it; artifacts are searched separately.

use throughline_transcript::{Arguments, Message, Part, unescape_into};

use crate::artifacts::extract::artifact_texts;

/// Longer strings without a space are data, not words.
const MAX_OPAQUE_STRING_BYTES: usize = 256;

/// Appends the searchable text of a message.
pub(crate) fn searchable_text(message: &Message, out: &mut String) {
    let artifacts: Vec<u32> = artifact_texts(message).iter().map(|text| text.string.span.start).collect();
    add_parts(message, message.parts(), &artifacts, out);
}

fn add_parts(message: &Message, parts: &[Part], artifacts: &[u32], out: &mut String) {
    for part in parts {
        match part {
            Part::Text(string) if artifacts.contains(&string.span.start) => {}
            Part::Text(string) | Part::Reasoning { text: Some(string), .. } => {
                begin_line(out);
                unescape_into(string.raw(message.json()), out);
            }
            Part::ToolCall { name, arguments, .. } => {
                begin_line(out);
                unescape_into(name.raw(message.json()), out);
                match arguments {
                    Arguments::Absent => {}
                    // JSON as text: its escapes would merge with the words after them.
                    Arguments::Json(span) => {
                        out.push(' ');
                        unescape_into(message.raw(*span), out);
                    }
                    Arguments::Text(string) => {
                        out.push(' ');
                        unescape_into(&message.str(*string), out);
                    }
                }
            }
            Part::ToolResult { content, .. } => add_parts(message, content, artifacts, out),
            Part::Opaque { block, .. } => add_opaque(message.raw(*block), out),
            Part::Reasoning { text: None, .. } | Part::Image { .. } => {}
        }
    }
}

/// Appends the text of unknown blocks, without data.
fn add_opaque(raw: &str, out: &mut String) {
    begin_line(out);
    for piece in raw.split('"') {
        if piece.len() <= MAX_OPAQUE_STRING_BYTES || piece.contains(' ') {
            unescape_into(piece, out);
            out.push('"');
        }
    }
}

fn begin_line(out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
}

#[cfg(test)]
#[path = "searchable_tests.rs"]
mod tests;
