//! Decodes documents to a [`Transcript`]: lists, request bodies, lines, and session logs.

use std::borrow::Cow;

use crate::blocks::{decode_message, decode_message_at};
use crate::check::check_json;
use crate::detect::{FormatEvidence, WireFormatChoice};
use crate::json::Cursor;
use crate::layout::{DocumentRange, Layout};
use crate::lines;
use crate::members::RawJson;
use crate::message::{Form, Message, Role};
use crate::shared_text::SharedText;
use crate::transcript::{Preamble, Source, Transcript};
use crate::write::WireFormat;

/// Options for decoding a document.
#[derive(Clone, Debug, Default)]
pub struct DecodeOptions {
    /// The wire format to read the document in.
    pub wire_format: WireFormatChoice,
    /// The number of the conversation to read, from one, if a document has several.
    pub pick: Option<usize>,
    /// Read only the part after the last compaction that the log records.
    pub since_compaction: bool,
}

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Invalid UTF-8.
    #[error("not valid UTF-8: byte {offset} (line {line}) is not part of any character")]
    Utf8 {
        /// Offset of the first bad byte.
        offset: usize,
        /// Its line, counted from one.
        line: usize,
    },
    /// The input is empty.
    #[error("the input is empty")]
    Empty,
    /// The JSON ends too early.
    #[error("the JSON ends too early, at line {line}, column {column}: {detail}")]
    Truncated {
        /// Line, from one.
        line: usize,
        /// Column, from one.
        column: usize,
        /// The parser's message.
        detail: String,
    },
    /// Invalid JSON.
    #[error("not valid JSON at line {line}, column {column}: {detail}")]
    Syntax {
        /// Line, from one.
        line: usize,
        /// Column, from one.
        column: usize,
        /// The parser's message.
        detail: String,
    },
    /// JSON, but not a conversation.
    #[error("this is JSON, but not a conversation: {0}")]
    NotAConversation(String),
    /// An element of the list is not a message.
    #[error("element {index} of the list is not a message: {detail}")]
    NotAMessage {
        /// Position, from zero.
        index: usize,
        /// What was found.
        detail: String,
    },
    /// The document has several conversations, and none was chosen.
    #[error("the file holds {count} conversations; choose one by its number, 1 to {count}")]
    Several {
        /// The number of conversations.
        count: usize,
    },
    /// A number out of range.
    #[error("there is no conversation {picked}: the file holds {count}")]
    NoSuchPick {
        /// The number that was requested.
        picked: usize,
        /// How many there are.
        count: usize,
    },
    /// The chosen wire format does not fit.
    #[error("the input does not fit the {forced} dialect: {detail}")]
    WrongWireFormat {
        /// The wire format the user chose.
        forced: WireFormat,
        /// The contradiction.
        detail: String,
    },
    /// The document is too large for its offsets.
    #[error("the input is {bytes} bytes; at most 4 GiB can be read at once")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
}

/// Decodes a document. Nothing is copied: every message points into the text.
pub fn decode(bytes: Vec<u8>, options: &DecodeOptions) -> Result<Transcript, DecodeError> {
    if bytes.len() >= u32::MAX as usize {
        return Err(DecodeError::TooLarge { bytes: bytes.len() });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let line = memchr::memchr_iter(b'\n', &error.as_bytes()[..offset]).count() + 1;
        DecodeError::Utf8 { offset, line }
    })?;
    let whole = SharedText::new(text);
    let Some(without_mark) = whole.as_str().strip_prefix('\u{feff}').map(str::len) else {
        return decode_text(&whole, options);
    };
    let document = whole.slice(whole.len() - without_mark..whole.len());
    let mut transcript = decode_text(&document, options)?;
    transcript.layout = transcript.layout.map(Layout::with_byte_order_mark);
    Ok(transcript)
}

fn decode_text(document: &SharedText, options: &DecodeOptions) -> Result<Transcript, DecodeError> {
    let first = Cursor::new(document.as_str()).peek().ok_or(DecodeError::Empty)?;
    match check_json(document.as_str()) {
        Ok(()) => match first {
            b'[' => decode_array(document, options),
            b'{' => decode_object(document, options),
            _ => Err(DecodeError::NotAConversation(
                "expected a list of messages or an object that holds one".into(),
            )),
        },
        Err(_) if first == b'{' && lines::looks_like_lines(document.as_str()) => {
            lines::decode(document, options)
        }
        Err(error) => Err(syntax_error(&error)),
    }
}

fn syntax_error(error: &serde_json::Error) -> DecodeError {
    let (line, column) = (error.line(), error.column());
    // serde_json appends the position, which is stated separately.
    let full = error.to_string();
    let detail = full.split(" at line ").next().unwrap_or(&full).to_owned();
    if error.is_eof() {
        DecodeError::Truncated { line, column, detail }
    } else {
        DecodeError::Syntax { line, column, detail }
    }
}

fn decode_array(document: &SharedText, options: &DecodeOptions) -> Result<Transcript, DecodeError> {
    if holds_conversations(document) {
        let (_, items) = list_at(document, 0);
        return decode_object(&document.slice(pick(&items, options)?.clone()), options);
    }
    let list = MessageList::read(document, 0)?;
    let layout = Some(Layout::of_array(document, list.range, &list.items));
    finish(list.messages, list.evidence, Source::List, Preamble::default(), layout, options)
}

/// Whether the elements of an array are lists of messages rather than messages, judged by the first one.
fn holds_conversations(document: &SharedText) -> bool {
    let mut cursor = Cursor::new(document.as_str());
    cursor.enter_array() && cursor.next_element() && holds_conversation_at(document, cursor.position())
}

/// Returns the elements of the array that starts at `at`.
fn list_at(document: &SharedText, at: usize) -> (DocumentRange, Vec<DocumentRange>) {
    let mut cursor = Cursor::starting_at(document.as_str(), at);
    let _ = cursor.peek();
    let start = cursor.position();
    let mut items = Vec::new();
    if cursor.enter_array() {
        while cursor.next_element() {
            let from = cursor.position();
            cursor.skip_value();
            items.push(from..cursor.position());
        }
    }
    (start..cursor.position(), items)
}

/// Returns the chosen one of several conversations.
pub(crate) fn pick<'a, T>(conversations: &'a [T], options: &DecodeOptions) -> Result<&'a T, DecodeError> {
    let count = conversations.len();
    let picked = options.pick.ok_or(DecodeError::Several { count })?;
    picked.checked_sub(1).and_then(|i| conversations.get(i)).ok_or(DecodeError::NoSuchPick { picked, count })
}

/// Whether an object is not a message but has a list of them.
pub(crate) fn holds_conversation(object: &SharedText) -> bool {
    holds_conversation_at(object, 0)
}

fn holds_conversation_at(document: &SharedText, from: usize) -> bool {
    let mut cursor = Cursor::starting_at(document.as_str(), from);
    if !cursor.enter_object() {
        return false;
    }
    let mut holds_list = false;
    while let Some(key) = cursor.next_key() {
        match key {
            b"role" | b"type" => return false,
            _ if is_list_member(key) && cursor.peek() == Some(b'[') => holds_list = true,
            _ => {}
        }
        cursor.skip_value();
    }
    holds_list
}

/// Whether a member is known to contain a message list: in request bodies, and in recorded trajectories.
fn is_list_member(key: &[u8]) -> bool {
    matches!(key, b"messages" | b"input" | b"history" | b"traj" | b"conversation")
}

pub(crate) fn decode_object(
    document: &SharedText,
    options: &DecodeOptions,
) -> Result<Transcript, DecodeError> {
    let text = document.as_str();
    let mut cursor = Cursor::new(text);
    cursor.enter_object();
    let mut evidence = FormatEvidence::default();
    let mut preamble = Preamble::default();
    let mut list: Option<Result<MessageList, DecodeError>> = None;
    let (mut log_line, mut has_role) = (false, false);
    let mut input_text = None;
    while let Some(key) = cursor.next_key() {
        let value_starts = cursor.peek();
        let from = cursor.position();
        if key == b"input" && value_starts == Some(b'"') {
            input_text = Some(from);
        }
        if !(key == b"input" && value_starts != Some(b'[')) {
            evidence.member(key);
        }
        // `messages` takes precedence: a body may have both it and an unrelated `input`.
        if value_starts == Some(b'[') && (key == b"messages" || (list.is_none() && is_list_member(key))) {
            let found = MessageList::read(document, from);
            match &found {
                Ok(found) => cursor.jump(found.range.end),
                Err(_) => {
                    cursor.skip_value();
                }
            }
            list = Some(found);
            continue;
        }
        cursor.skip_value();
        let value = from..cursor.position();
        match key {
            b"system" | b"instructions" => preamble.system = non_null(document, &value),
            b"tools" => preamble.tools = non_null(document, &value),
            b"model" => {
                preamble.model = RawJson(text.get(value).unwrap_or_default()).as_text().map(Cow::into_owned)
            }
            b"max_tokens" | b"max_completion_tokens" | b"max_output_tokens" => {
                preamble.max_output_tokens = text.get(value).and_then(|raw| raw.parse().ok());
            }
            b"parentUuid" | b"payload" | b"sessionId" => log_line = true,
            b"role" => has_role = true,
            _ => {}
        }
    }
    let Some(list) = list else {
        let own = trimmed(document);
        if log_line && !has_role {
            return lines::decode_objects(document, &[(1, own)], Vec::new(), options);
        }
        if let Some(from) = input_text {
            return decode_single_input(document, from, preamble, options);
        }
        let message = decode_message(own);
        if let Some(message) = message.filter(|m| m.role() != Role::Other) {
            evidence.message(&message);
            let layout = Some(Layout::of_lines(document));
            return finish(vec![message], evidence, Source::Lines, preamble, layout, options);
        }
        return Err(DecodeError::NotAConversation(
            "the object has no list under messages, input, history or traj".into(),
        ));
    };
    let list = list?;
    evidence.add(&list.evidence);
    let layout = Some(Layout::of_array(document, list.range, &list.items));
    finish(list.messages, evidence, Source::Body, preamble, layout, options)
}

/// A document without the white space around it.
fn trimmed(document: &SharedText) -> SharedText {
    let text = document.as_str();
    let start = text.len() - text.trim_start().len();
    document.slice(start..start + text.trim().len())
}

/// Decodes a Responses body whose `input` is a text, which is one user message.
fn decode_single_input(
    document: &SharedText,
    from: usize,
    preamble: Preamble,
    options: &DecodeOptions,
) -> Result<Transcript, DecodeError> {
    let mut cursor = Cursor::starting_at(document.as_str(), from);
    let string = cursor.string().unwrap_or_default();
    let raw = string.raw(document.as_str());
    let value = from..cursor.position();
    let json = format!(
        "{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{raw}\"}}]}}"
    );
    let message = decode_message(SharedText::new(json)).ok_or(DecodeError::Empty)?;
    let mut evidence = FormatEvidence::default();
    evidence.member(b"input");
    let layout = Some(Layout::of_value(document, value, message.origin().clone()));
    finish(vec![message], evidence, Source::Body, preamble, layout, options)
}

fn non_null(document: &SharedText, value: &DocumentRange) -> Option<SharedText> {
    let slice = document.slice(value.clone());
    (slice.as_str() != "null").then_some(slice)
}

/// The messages of an array, their ranges in the document, and the evidence for their wire format.
struct MessageList {
    range: DocumentRange,
    items: Vec<DocumentRange>,
    messages: Vec<Message>,
    evidence: FormatEvidence,
}

impl MessageList {
    /// Reads the array that begins at `from`.
    fn read(document: &SharedText, from: usize) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::starting_at(document.as_str(), from);
        let _ = cursor.peek();
        let start = cursor.position();
        cursor.enter_array();
        let (mut items, mut messages, mut evidence) = (Vec::new(), Vec::new(), FormatEvidence::default());
        while cursor.next_element() {
            let at = cursor.position();
            let index = items.len();
            let (message, end) = decode_message_at(document, at).ok_or_else(|| DecodeError::NotAMessage {
                index,
                detail: name_of_value(document, at).into(),
            })?;
            if message.form == Form::Neither {
                let detail = "an object with neither role nor type".into();
                return Err(DecodeError::NotAMessage { index, detail });
            }
            evidence.message(&message);
            messages.push(message);
            items.push(at..end);
            cursor.jump(end);
        }
        Ok(Self { range: start..cursor.position(), items, messages, evidence })
    }
}

fn name_of_value(document: &SharedText, at: usize) -> &'static str {
    match document.as_str().as_bytes().get(at) {
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b'n') => "null",
        Some(b't' | b'f') => "true or false",
        _ => "a number",
    }
}

pub(crate) fn finish(
    messages: Vec<Message>,
    evidence: FormatEvidence,
    source: Source,
    preamble: Preamble,
    layout: Option<Layout>,
    options: &DecodeOptions,
) -> Result<Transcript, DecodeError> {
    let wire_format = match options.wire_format {
        WireFormatChoice::Detect => evidence.verdict(),
        WireFormatChoice::Forced(wire_format) => wire_format,
    };
    let transcript =
        Transcript { wire_format, source, messages, preamble, notes: Vec::new(), layout, log: None };
    check_forced(&transcript, options)?;
    Ok(transcript)
}

/// Refuses a chosen wire format that contradicts the document: writing it back would produce an invalid document.
fn check_forced(transcript: &Transcript, options: &DecodeOptions) -> Result<(), DecodeError> {
    let WireFormatChoice::Forced(forced) = options.wire_format else { return Ok(()) };
    let mut evidence = FormatEvidence::default();
    for message in &transcript.messages {
        evidence.message(message);
    }
    if let Some(other) = evidence.contradicts(forced) {
        return Err(DecodeError::WrongWireFormat {
            forced,
            detail: format!("its messages are in the {other} form"),
        });
    }
    Ok(())
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
