//! Codex rollout logs: one event per line; those of type `response_item` are the items of the Responses format.
//!
//! In older logs the lines are the items themselves. Items are used unchanged and without a copy.

use crate::blocks::decode_message;
use crate::json::Cursor;
use crate::log_trace::LogTrace;
use crate::message::{Message, Part, Role};
use crate::shared_text::SharedText;
use crate::transcript::{Note, Preamble, Source, Transcript};
use crate::write::{WireFormat, text_message};

#[derive(Default)]
struct CodexLine {
    kind: String,
    payload: Option<std::ops::Range<usize>>,
    has_role: bool,
    /// Whether the line is bookkeeping of an old log (`record_type`) and not an item.
    is_bookkeeping: bool,
    instructions: Option<std::ops::Range<usize>>,
}

pub(crate) fn decode(lines: &[(usize, SharedText)], since_compaction: bool) -> Transcript {
    let mut messages: Vec<Message> = Vec::new();
    let mut notes = Vec::new();
    let mut preamble = Preamble::default();
    let mut trace = LogTrace::new(lines);
    for (index, (number, text)) in lines.iter().enumerate() {
        let line = read_line(text.as_str());
        match (line.kind.as_str(), &line.payload) {
            ("response_item", Some(payload)) => push_item(&text.slice(payload.clone()), &mut messages),
            ("session_meta" | "turn_context", Some(payload)) => {
                read_context(&text.slice(payload.clone()), &mut preamble);
            }
            ("compacted", Some(payload)) => {
                let (summary, replacement) = read_compacted(&text.slice(payload.clone()));
                if since_compaction {
                    messages = shown_after(summary.as_deref(), replacement);
                    trace.clear();
                } else {
                    notes.push(Note { line: Some(*number), text: Note::COMPACTION.into() });
                }
            }
            (kind, None) if !line.is_bookkeeping && (line.has_role || !kind.is_empty()) => {
                push_item(text, &mut messages);
            }
            (_, None) => {
                if let Some(range) = line.instructions {
                    preamble.system = Some(text.slice(range));
                }
            }
            _ => {}
        }
        let source = u32::try_from(index).unwrap_or(u32::MAX);
        for _ in trace.messages()..messages.len() {
            trace.push(&[source]);
        }
    }
    Transcript {
        wire_format: WireFormat::Responses,
        source: Source::CodexLog,
        messages,
        preamble,
        notes,
        layout: None,
        log: Some(trace),
    }
}

/// Returns the view after a compaction: the items of a `compacted` line, or only the summary in older logs.
pub(crate) fn compacted_view(line: &SharedText) -> Option<(Option<String>, Vec<Message>)> {
    let payload = read_line(line.as_str()).payload?;
    let (summary, replacement) = read_compacted(&line.slice(payload));
    let shown = shown_after(summary.as_deref(), replacement);
    Some((summary, shown))
}

fn shown_after(summary: Option<&str>, replacement: Vec<Message>) -> Vec<Message> {
    if !replacement.is_empty() {
        return replacement;
    }
    let json = summary.map(|text| text_message(WireFormat::Responses, Role::User, text));
    json.and_then(|json| decode_message(SharedText::new(json))).map(machine_written).into_iter().collect()
}

fn machine_written(mut message: Message) -> Message {
    message.machine_written = true;
    message
}

/// Adds an item, unless it occurs only in logs (snapshots of the work tree).
fn push_item(item: &SharedText, messages: &mut Vec<Message>) {
    let is_snapshot = |message: &Message| match message.parts() {
        [Part::Opaque { kind: Some(kind), .. }] => kind.raw(message.json()) == "ghost_snapshot",
        _ => false,
    };
    messages.extend(decode_message(item.clone()).filter(|message| !is_snapshot(message)));
}

fn read_line(json: &str) -> CodexLine {
    let mut line = CodexLine::default();
    let mut cursor = Cursor::new(json);
    cursor.enter_object();
    while let Some(key) = cursor.next_key() {
        match key {
            b"type" => {
                line.kind = cursor.string_or_skip().map(|s| s.raw(json).to_owned()).unwrap_or_default()
            }
            b"payload" => line.payload = Some(value_range(&mut cursor)),
            b"role" | b"record_type" => {
                line.has_role |= key == b"role";
                line.is_bookkeeping |= key == b"record_type";
                cursor.skip_value();
            }
            b"instructions" => line.instructions = Some(value_range(&mut cursor)),
            _ => {
                cursor.skip_value();
            }
        }
    }
    line
}

fn value_range(cursor: &mut Cursor<'_>) -> std::ops::Range<usize> {
    let _ = cursor.peek();
    let from = cursor.position();
    cursor.skip_value();
    from..cursor.position()
}

/// Reads model and instructions from a session's head or a turn's context.
fn read_context(payload: &SharedText, preamble: &mut Preamble) {
    let json = payload.as_str();
    let mut cursor = Cursor::new(json);
    if !cursor.enter_object() {
        return;
    }
    while let Some(key) = cursor.next_key() {
        match key {
            b"model" => {
                if let Some(model) = cursor.string_or_skip() {
                    preamble.model = Some(model.text(json).into_owned());
                }
            }
            b"instructions" | b"base_instructions" => {
                let slice = payload.slice(value_range(&mut cursor));
                if slice.as_str() != "null" {
                    preamble.system = Some(slice);
                }
            }
            _ => {
                cursor.skip_value();
            }
        }
    }
}

/// Returns the summary text and, in newer logs, the items that replaced the history.
fn read_compacted(payload: &SharedText) -> (Option<String>, Vec<Message>) {
    let json = payload.as_str();
    let mut cursor = Cursor::new(json);
    let (mut summary, mut replacement) = (None, Vec::new());
    if !cursor.enter_object() {
        return (summary, replacement);
    }
    while let Some(key) = cursor.next_key() {
        match key {
            b"message" => summary = cursor.string_or_skip().map(|s| s.text(json).into_owned()),
            b"replacement_history" if cursor.peek() == Some(b'[') => {
                cursor.enter_array();
                while cursor.next_element() {
                    push_item(&payload.slice(value_range(&mut cursor)), &mut replacement);
                }
            }
            _ => {
                cursor.skip_value();
            }
        }
    }
    (summary, replacement)
}

#[cfg(test)]
#[path = "codex_log_tests.rs"]
mod tests;
