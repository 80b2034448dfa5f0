//! Documents of one JSON object per line: session logs, messages, and collections of whole conversations.
//!
//! A line that cannot be read is noted with its number and skipped, because logs are often cut off while being written.

use crate::blocks::decode_message;
use crate::check::check_json;
use crate::claude_log;
use crate::codex_log;
use crate::decode::{DecodeError, DecodeOptions, decode_object, finish, holds_conversation, pick};
use crate::detect::{FormatEvidence, WireFormatChoice};
use crate::json::Cursor;
use crate::layout::Layout;
use crate::message::{Form, Role};
use crate::shared_text::SharedText;
use crate::transcript::{Note, Preamble, Source, Transcript};

/// A line's number, counted from one, and its object.
type NumberedLine = (usize, SharedText);

/// Logs start with bookkeeping; within this many lines the kind of log can be recognised.
const LINES_TO_TELL_A_LOG: usize = 50;

/// Whether a text is one JSON object per line: one of its first two lines parses alone.
pub(crate) fn looks_like_lines(text: &str) -> bool {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .take(2)
        .any(|line| line.trim_start().starts_with('{') && check_json(line).is_ok())
}

pub(crate) fn decode(document: &SharedText, options: &DecodeOptions) -> Result<Transcript, DecodeError> {
    let mut objects = Vec::new();
    let mut notes = Vec::new();
    let text = document.as_str();
    let (mut at, mut number) = (0, 0);
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |n| at + n);
        number += 1;
        let line = text.get(at..end).unwrap_or_default();
        let trimmed = line.trim();
        if !trimmed.is_empty() {
            let from = at + (line.len() - line.trim_start().len());
            match check_json(trimmed) {
                Ok(()) if trimmed.starts_with('{') => {
                    objects.push((number, document.slice(from..from + trimmed.len())))
                }
                Ok(()) => notes.push(Note { line: Some(number), text: "not an object, skipped".into() }),
                Err(error) => {
                    let what = error.to_string();
                    let what = what.split(" at line ").next().unwrap_or(&what).to_owned();
                    notes.push(Note { line: Some(number), text: format!("broken JSON ({what}), skipped") });
                }
            }
        }
        at = end + 1;
    }
    decode_objects(document, &objects, notes, options)
}

/// Decodes the objects of a document's lines; `notes` describes the lines that were skipped.
pub(crate) fn decode_objects(
    document: &SharedText,
    objects: &[NumberedLine],
    mut notes: Vec<Note>,
    options: &DecodeOptions,
) -> Result<Transcript, DecodeError> {
    let mut transcript = match kind_of(objects) {
        LineKind::ClaudeLog => as_log(claude_log::decode(objects, options.since_compaction), options)?,
        LineKind::CodexLog => as_log(codex_log::decode(objects, options.since_compaction), options)?,
        LineKind::Conversations => decode_object(&pick(objects, options)?.1, options)?,
        LineKind::Messages => decode_messages(document, objects, &mut notes, options)?,
    };
    transcript.notes.splice(0..0, notes);
    Ok(transcript)
}

/// A log has a fixed wire format; choosing another is reported as an error.
fn as_log(transcript: Transcript, options: &DecodeOptions) -> Result<Transcript, DecodeError> {
    match options.wire_format {
        WireFormatChoice::Forced(forced) if forced != transcript.wire_format => {
            Err(DecodeError::WrongWireFormat {
                forced,
                detail: format!(
                    "it is a session log, whose messages are in the {} form",
                    transcript.wire_format
                ),
            })
        }
        _ => Ok(transcript),
    }
}

fn decode_messages(
    document: &SharedText,
    objects: &[NumberedLine],
    notes: &mut Vec<Note>,
    options: &DecodeOptions,
) -> Result<Transcript, DecodeError> {
    let mut evidence = FormatEvidence::default();
    let mut messages = Vec::with_capacity(objects.len());
    for (number, object) in objects {
        match decode_message(object.clone()).filter(|message| message.form != Form::Neither) {
            Some(message) => {
                evidence.message(&message);
                messages.push(message);
            }
            None => notes.push(Note { line: Some(*number), text: "not a message, skipped".into() }),
        }
    }
    if messages.iter().all(|message| message.role() == Role::Other) {
        return Err(DecodeError::NotAConversation("none of its lines is a message".into()));
    }
    let layout = Some(Layout::of_lines(document));
    finish(messages, evidence, Source::Lines, Preamble::default(), layout, options)
}

enum LineKind {
    ClaudeLog,
    CodexLog,
    Conversations,
    Messages,
}

/// Distinguishes the two logs and collections of conversations from plain lines of messages, by members that only they have.
fn kind_of(objects: &[NumberedLine]) -> LineKind {
    if objects.first().is_some_and(|(_, first)| holds_conversation(first)) {
        return LineKind::Conversations;
    }
    for (_, object) in objects.iter().take(LINES_TO_TELL_A_LOG) {
        let (mut claude, mut codex, mut says_role) = (false, false, false);
        let mut cursor = Cursor::new(object.as_str());
        cursor.enter_object();
        while let Some(key) = cursor.next_key() {
            match key {
                b"parentUuid" | b"sessionId" | b"isSidechain" | b"leafUuid" => claude = true,
                b"payload" | b"record_type" => codex = true,
                // The head of an old Codex log, which has few other members.
                b"instructions" => codex = true,
                b"role" => says_role = true,
                _ => {}
            }
            cursor.skip_value();
        }
        // A recorder may add such members to plain messages; a log wraps or types its messages.
        if claude && !says_role {
            return LineKind::ClaudeLog;
        }
        if codex && !says_role {
            return LineKind::CodexLog;
        }
    }
    LineKind::Messages
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
