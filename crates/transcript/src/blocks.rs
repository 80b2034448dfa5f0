//! Decodes one message, item or content block to parts.
//!
//! One reader serves all wire formats: a content block names its kind in `type`, so the reader collects all known members in a single pass
//! (members come in any order) and interprets them at the end.

use crate::check::check_json;
use crate::json::{Cursor, JsonStr, Span};
use crate::message::{Arguments, Form, Message, Part, Role};
use crate::shared_text::SharedText;

/// Content nested deeper than this is opaque: no wire format nests blocks more than a few levels, and a reader without a limit could be
/// made to exhaust the stack.
const MAX_BLOCK_DEPTH: u8 = 6;
/// Inside a tool call only names and arguments are read, not content.
const CALL_DEPTH: u8 = MAX_BLOCK_DEPTH;
/// Inside the `function` member of a tool call nothing deeper is read.
const FUNCTION_DEPTH: u8 = CALL_DEPTH + 1;

/// The value of a `content`-like member.
#[derive(Default)]
enum BlockContent {
    #[default]
    Absent,
    Text(JsonStr, Span),
    Parts(Vec<Part>, Span),
    Other(Span),
}

impl BlockContent {
    fn span(&self) -> Option<Span> {
        match self {
            Self::Absent => None,
            Self::Text(_, span) | Self::Parts(_, span) | Self::Other(span) => Some(*span),
        }
    }

    fn into_parts(self) -> Vec<Part> {
        match self {
            Self::Absent => Vec::new(),
            Self::Text(string, _) => vec![Part::Text(string)],
            Self::Parts(parts, _) => parts,
            Self::Other(span) => vec![Part::Opaque { kind: None, block: span }],
        }
    }
}

/// Every member of an object that has a meaning in any wire format.
#[derive(Default)]
struct BlockMembers {
    kind: Option<JsonStr>,
    role: Option<JsonStr>,
    id: Option<JsonStr>,
    call_id: Option<JsonStr>,
    name: Option<JsonStr>,
    text: Option<JsonStr>,
    thinking: Option<JsonStr>,
    content: BlockContent,
    output: BlockContent,
    arguments: Option<Arguments>,
    calls: Vec<Part>,
    legacy_call: Option<Part>,
    reasoning: Vec<Part>,
    /// The readable part of a reasoning item; ignored on anything else.
    summary: Option<Part>,
    is_error: Option<bool>,
}

/// Decodes one message from its own JSON text, which the caller has checked to be valid JSON.
#[must_use]
pub fn decode_message(origin: SharedText) -> Option<Message> {
    let json = origin.as_str();
    let mut cursor = Cursor::new(json);
    if cursor.peek() != Some(b'{') {
        return None;
    }
    let (members, whole) = read_members(json, &mut cursor, 0);
    Some(message_from(members, whole, origin.clone()))
}

/// Decodes the message that starts at `from` in a document, and returns its end; `None` if no object starts there. One pass finds both, so
/// a list need not be split first.
pub(crate) fn decode_message_at(document: &SharedText, from: usize) -> Option<(Message, usize)> {
    let rest = document.as_str().get(from..)?;
    let mut cursor = Cursor::new(rest);
    if cursor.peek() != Some(b'{') {
        return None;
    }
    let (members, whole) = read_members(rest, &mut cursor, 0);
    let end = from + whole.end as usize;
    Some((message_from(members, whole, document.slice(from..end)), end))
}

/// Like [`decode_message`], for a text that is checked first.
pub fn decode_message_text(json: String) -> Result<Message, serde_json::Error> {
    check_json(&json)?;
    decode_message(SharedText::new(json))
        .ok_or_else(|| serde::de::Error::custom("a message must be a JSON object"))
}

fn message_from(members: BlockMembers, whole: Span, origin: SharedText) -> Message {
    let json = origin.as_str();
    let content = members.content.span();
    let form = match (members.role, members.kind) {
        (Some(_), None) => Form::Spoken,
        (Some(_), Some(_)) => Form::TypedMessage,
        (None, Some(_)) => Form::Item,
        (None, None) => Form::Neither,
    };
    let (role, parts) = match members.role {
        Some(word) => {
            let role = Role::parse(&word.text(json));
            (role, role_message_parts(members, role))
        }
        None => {
            let part = block_part(json, members, whole);
            let role = match &part {
                Part::ToolCall { .. } | Part::Reasoning { .. } => Role::Assistant,
                Part::ToolResult { .. } => Role::Tool,
                Part::Opaque { kind: Some(kind), .. } if is_made_by_model(kind.raw(json)) => Role::Assistant,
                _ => Role::Other,
            };
            (role, vec![part])
        }
    };
    Message { origin, role, parts, content, form, machine_written: false }
}

/// Whether an item of the Responses format, not interpreted here, belongs to a model's answer: tools that the provider runs itself, and
/// their requests.
fn is_made_by_model(kind: &str) -> bool {
    kind.ends_with("_call") || matches!(kind, "mcp_list_tools" | "mcp_approval_request")
}

/// Parts of an object that has a role: a chat or Anthropic message, or a Responses `message` item.
fn role_message_parts(members: BlockMembers, role: Role) -> Vec<Part> {
    if role == Role::Tool {
        let value = members.content.span().unwrap_or_default();
        let call_id = members.call_id.or(members.name).unwrap_or_default();
        let content = members.content.into_parts();
        return vec![Part::ToolResult { call_id, is_error: members.is_error, content, value }];
    }
    let mut parts = members.reasoning;
    parts.append(&mut members.content.into_parts());
    parts.extend(members.calls);
    parts.extend(members.legacy_call);
    parts
}

/// Reads the object at the cursor. Returns its members and its span.
fn read_members(json: &str, cursor: &mut Cursor<'_>, depth: u8) -> (BlockMembers, Span) {
    let mut found = BlockMembers::default();
    let _ = cursor.peek();
    let start = cursor.position();
    if !cursor.enter_object() {
        let span = cursor.skip_value();
        return (found, span);
    }
    while let Some(key) = cursor.next_key() {
        match key {
            b"type" => found.kind = cursor.string_or_skip(),
            b"role" => found.role = cursor.string_or_skip(),
            b"id" => found.id = cursor.string_or_skip(),
            b"call_id" | b"tool_use_id" | b"tool_call_id" => found.call_id = cursor.string_or_skip(),
            b"tool_call_ids" => found.call_id = first_string(cursor).or(found.call_id),
            b"name" => found.name = cursor.string_or_skip(),
            b"text" | b"refusal" => found.text = cursor.string_or_skip().or(found.text),
            b"thinking" => found.thinking = cursor.string_or_skip(),
            b"content" => found.content = read_content(json, cursor, depth),
            b"output" => found.output = read_content(json, cursor, depth),
            b"input" | b"arguments" | b"action" => found.arguments = Some(read_arguments(cursor)),
            b"is_error" => {
                found.is_error = match cursor.skip_value().of(json) {
                    "true" => Some(true),
                    "false" => Some(false),
                    _ => None,
                };
            }
            b"tool_calls" if depth == 0 => found.calls = read_calls(json, cursor),
            b"function_call" if depth == 0 => found.legacy_call = legacy_call(json, cursor),
            b"function" if depth <= CALL_DEPTH => {
                // The inside of a chat tool call: name and arguments are one level deeper.
                let (inner, _) = read_members(json, cursor, FUNCTION_DEPTH);
                found.name = inner.name.or(found.name);
                found.arguments = inner.arguments.or(found.arguments);
            }
            b"reasoning_content" | b"reasoning" | b"reasoning_details" | b"codex_reasoning_items" => {
                found.reasoning.extend(read_reasoning(json, cursor));
            }
            b"summary" => found.summary = read_reasoning(json, cursor),
            _ => {
                cursor.skip_value();
            }
        }
    }
    let span = span_between(start, cursor.position());
    (found, span)
}

/// Returns the first string of an array and skips the rest; some recorders store a result's call id in a list of one.
fn first_string(cursor: &mut Cursor<'_>) -> Option<JsonStr> {
    if !cursor.enter_array() {
        cursor.skip_value();
        return None;
    }
    let mut first = None;
    while cursor.next_element() {
        let string = cursor.string_or_skip();
        first = first.or(string);
    }
    first
}

fn read_content(json: &str, cursor: &mut Cursor<'_>, depth: u8) -> BlockContent {
    match cursor.peek() {
        Some(b'"') => {
            let start = cursor.position();
            match cursor.string() {
                Some(string) => BlockContent::Text(string, span_between(start, cursor.position())),
                None => BlockContent::Absent,
            }
        }
        Some(b'[') if depth < MAX_BLOCK_DEPTH => {
            let start = cursor.position();
            let mut parts = Vec::new();
            cursor.enter_array();
            while cursor.next_element() {
                parts.push(read_block(json, cursor, depth + 1));
            }
            BlockContent::Parts(parts, span_between(start, cursor.position()))
        }
        // Some results are one block without a list around it, such as the screenshot of a computer call.
        Some(b'{') if depth < MAX_BLOCK_DEPTH => {
            let start = cursor.position();
            let block = read_block(json, cursor, depth + 1);
            BlockContent::Parts(vec![block], span_between(start, cursor.position()))
        }
        _ => {
            let span = cursor.skip_value();
            if span.of(json) == "null" { BlockContent::Absent } else { BlockContent::Other(span) }
        }
    }
}

/// Reads an element of a content list: a block, or (in some recordings) a bare string.
fn read_block(json: &str, cursor: &mut Cursor<'_>, depth: u8) -> Part {
    match cursor.peek() {
        Some(b'{') => {
            let (members, span) = read_members(json, cursor, depth);
            block_part(json, members, span)
        }
        Some(b'"') => match cursor.string() {
            Some(string) => Part::Text(string),
            None => Part::Opaque { kind: None, block: Span::default() },
        },
        _ => Part::Opaque { kind: None, block: cursor.skip_value() },
    }
}

/// Returns the part for a block, by its `type`.
fn block_part(json: &str, members: BlockMembers, block: Span) -> Part {
    let kind = members.kind;
    let kind_text = kind.map(|k| k.raw(json)).unwrap_or_default();
    match kind_text {
        "text" | "input_text" | "output_text" | "refusal" | "summary_text" | "reasoning_text" => {
            match members.text {
                Some(text) => Part::Text(text),
                None => Part::Opaque { kind, block },
            }
        }
        "thinking" => Part::Reasoning { text: members.thinking, block },
        "redacted_thinking" => Part::Reasoning { text: None, block },
        "reasoning" => {
            // Readable in the summary, or (open-weight models) in the content.
            let beside = members.summary.into_iter().chain(members.reasoning);
            let text = beside.chain(members.content.into_parts()).find_map(|part| match part {
                Part::Reasoning { text, .. } => text,
                Part::Text(text) => Some(text),
                _ => None,
            });
            Part::Reasoning { text, block }
        }
        "tool_use" => call_part(members.id, members.name, members.arguments, block, kind),
        "function_call" | "custom_tool_call" | "local_shell_call" | "computer_call" | "shell_call"
        | "apply_patch_call" | "tool_search_call" => {
            let id = members.call_id.or(members.id);
            call_part(id, members.name.or(kind), members.arguments, block, kind)
        }
        "tool_result" => {
            let value = members.content.span().unwrap_or_default();
            let content = members.content.into_parts();
            let call_id = members.call_id.unwrap_or_default();
            Part::ToolResult { call_id, is_error: members.is_error, content, value }
        }
        "function_call_output"
        | "custom_tool_call_output"
        | "local_shell_call_output"
        | "computer_call_output"
        | "shell_call_output"
        | "apply_patch_call_output"
        | "tool_search_output" => {
            let value = members.output.span().unwrap_or_default();
            let content = members.output.into_parts();
            let call_id = members.call_id.or(members.id).unwrap_or_default();
            Part::ToolResult { call_id, is_error: members.is_error, content, value }
        }
        "image" | "image_url" | "input_image" | "computer_screenshot" => Part::Image { block },
        "" => match members.text {
            Some(text) => Part::Text(text),
            None => Part::Opaque { kind, block },
        },
        _ => Part::Opaque { kind, block },
    }
}

fn call_part(
    id: Option<JsonStr>,
    name: Option<JsonStr>,
    arguments: Option<Arguments>,
    block: Span,
    kind: Option<JsonStr>,
) -> Part {
    match (id, name) {
        (Some(id), Some(name)) => {
            Part::ToolCall { id, name, arguments: arguments.unwrap_or(Arguments::Absent), block }
        }
        _ => Part::Opaque { kind, block },
    }
}

/// The `tool_calls` member of a chat assistant message.
fn read_calls(json: &str, cursor: &mut Cursor<'_>) -> Vec<Part> {
    let mut calls = Vec::new();
    if !cursor.enter_array() {
        cursor.skip_value();
        return calls;
    }
    while cursor.next_element() {
        let (members, block) = read_members(json, cursor, CALL_DEPTH);
        let id = members.call_id.or(members.id);
        let name = members.name.or(members.kind);
        calls.push(call_part(id, name, members.arguments, block, members.kind));
    }
    calls
}

/// Reads the pre-2023 single `function_call` member; its result names the function instead of an id.
fn legacy_call(json: &str, cursor: &mut Cursor<'_>) -> Option<Part> {
    if cursor.peek() != Some(b'{') {
        cursor.skip_value();
        return None;
    }
    let (members, block) = read_members(json, cursor, CALL_DEPTH);
    Some(call_part(members.name, members.name, members.arguments, block, None))
}

fn read_arguments(cursor: &mut Cursor<'_>) -> Arguments {
    match cursor.peek() {
        Some(b'"') => cursor.string().map_or(Arguments::Absent, Arguments::Text),
        _ => Arguments::Json(cursor.skip_value()),
    }
}

/// Reads reasoning beside the content: a string, or a list whose first text is readable. Providers send an empty member if there was none.
fn read_reasoning(json: &str, cursor: &mut Cursor<'_>) -> Option<Part> {
    let first = cursor.peek()?;
    let start = cursor.position();
    let text = match first {
        b'"' => cursor.string(),
        b'[' => {
            let mut text = None;
            cursor.enter_array();
            while cursor.next_element() {
                if cursor.enter_object() {
                    while let Some(key) = cursor.next_key() {
                        let value = cursor.string_or_skip();
                        if matches!(key, b"text" | b"summary") {
                            text = text.or(value);
                        }
                    }
                } else {
                    cursor.skip_value();
                }
            }
            text
        }
        _ => {
            cursor.skip_value();
            None
        }
    };
    let block = span_between(start, cursor.position());
    let empty = matches!(block.of(json), "null" | "\"\"" | "[]" | "{}" | "false");
    (!empty).then_some(Part::Reasoning { text, block })
}

fn span_between(start: usize, end: usize) -> Span {
    Span { start: u32::try_from(start).unwrap_or(u32::MAX), end: u32::try_from(end).unwrap_or(u32::MAX) }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
