//! Detects the wire format of a list of messages by members that only one format has.

use crate::json::{JsonStr, Span};
use crate::message::{Arguments, Form, Message, Part, Role};
use crate::write::WireFormat;

/// The user's choice of a wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WireFormatChoice {
    /// Detect it from the document.
    #[default]
    Detect,
    /// Chosen by the user.
    Forced(WireFormat),
}

/// The distance from a text or the edge of a block within which its type is searched.
const NEAR_BYTES: usize = 40;

/// Evidence for each wire format; the strongest is chosen, and chat by default.
#[derive(Default)]
pub(crate) struct FormatEvidence {
    chat: u32,
    responses: u32,
    anthropic: u32,
}

impl FormatEvidence {
    /// Counts a member of the body if only one wire format uses it.
    pub(crate) fn member(&mut self, key: &[u8]) {
        match key {
            b"input" | b"instructions" | b"previous_response_id" | b"prompt_cache_key" => self.responses += 4,
            b"system" | b"anthropic_version" | b"thinking" | b"stop_sequences" | b"top_k" => {
                self.anthropic += 4
            }
            b"max_completion_tokens" | b"frequency_penalty" | b"n" | b"stream_options" => self.chat += 4,
            _ => {}
        }
    }

    /// Adds other evidence.
    pub(crate) fn add(&mut self, other: &Self) {
        self.chat += other.chat;
        self.responses += other.responses;
        self.anthropic += other.anthropic;
    }

    pub(crate) fn message(&mut self, message: &Message) {
        match (message.role(), message.form) {
            (Role::Tool, Form::Item) => self.responses += 8,
            (Role::Tool, _) => self.chat += 8,
            (Role::Assistant, Form::Item) => self.responses += 4,
            // The type alone is weak evidence: Anthropic's answers have it too.
            (_, Form::TypedMessage) => self.responses += 1,
            _ => {}
        }
        for part in message.parts() {
            match part {
                Part::ToolCall { .. } if message.form == Form::Item => self.responses += 8,
                Part::ToolCall { block, arguments, .. } => {
                    let untyped =
                        matches!(arguments, Arguments::Json(_)) && !near_edge(message, *block, "function");
                    if untyped || near_edge(message, *block, "tool_use") {
                        self.anthropic += 8;
                    } else {
                        self.chat += 8;
                    }
                }
                Part::ToolResult { .. } if message.role() == Role::User => self.anthropic += 8,
                Part::Reasoning { block, .. } => {
                    if message.form == Form::Item {
                        self.responses += 4;
                    } else if near_edge(message, *block, "thinking")
                        || near_edge(message, *block, "redacted_thinking")
                    {
                        self.anthropic += 4;
                    }
                }
                Part::Image { block } => {
                    if near_edge(message, *block, "source") {
                        self.anthropic += 2;
                    } else if near_edge(message, *block, "input_image") {
                        self.responses += 2;
                    } else {
                        self.chat += 2;
                    }
                }
                Part::Text(string) => {
                    if names_direction(message.json().as_bytes(), *string) {
                        self.responses += 4;
                    }
                }
                Part::Opaque { .. } | Part::ToolResult { .. } => {}
            }
        }
    }

    /// Returns the wire format with the most evidence; without any, chat.
    pub(crate) fn verdict(&self) -> WireFormat {
        if self.responses > self.chat && self.responses >= self.anthropic {
            WireFormat::Responses
        } else if self.anthropic > self.chat {
            WireFormat::Anthropic
        } else {
            WireFormat::Chat
        }
    }
}

impl FormatEvidence {
    /// Returns the wire format with evidence, if it is not the chosen one and there is no evidence for that.
    pub(crate) fn contradicts(&self, forced: WireFormat) -> Option<WireFormat> {
        let for_forced = match forced {
            WireFormat::Chat => self.chat,
            WireFormat::Responses => self.responses,
            WireFormat::Anthropic => self.anthropic,
        };
        let total = self.chat + self.responses + self.anthropic;
        (for_forced == 0 && total > 0).then(|| self.verdict())
    }
}

/// Whether a quoted word is near the start or the end of a block. Members that name its kind are short and precede or follow the long ones;
/// searching those would cost a pass over the document.
fn near_edge(message: &Message, block: Span, word: &str) -> bool {
    let raw = message.raw(block).as_bytes();
    let head = raw.get(..raw.len().min(NEAR_BYTES * 2)).unwrap_or_default();
    let tail = raw.get(raw.len().saturating_sub(NEAR_BYTES * 2)..).unwrap_or_default();
    [head, tail].into_iter().any(|part| quotes(part, word))
}

fn quotes(bytes: &[u8], word: &str) -> bool {
    memchr::memchr_iter(b'"', bytes).any(|at| {
        bytes
            .get(at + 1..)
            .and_then(|rest| rest.strip_prefix(word.as_bytes()))
            .is_some_and(|rest| rest.first() == Some(&b'"'))
    })
}

/// Whether a text is in a block of type `input_text` or `output_text`, which only the Responses format has. The type directly precedes or
/// follows the text.
fn names_direction(json: &[u8], text: JsonStr) -> bool {
    let (start, end) = (text.span.start as usize, text.span.end as usize);
    let before = json.get(start.saturating_sub(NEAR_BYTES)..start).unwrap_or_default();
    let after = json.get(end..json.len().min(end + NEAR_BYTES)).unwrap_or_default();
    [before, after].into_iter().any(|near| quotes(near, "input_text") || quotes(near, "output_text"))
}
