//! A message: its original JSON and its parts.

use std::borrow::Cow;
use std::fmt;

use crate::human;
use crate::json::{JsonStr, Span};
use crate::shared_text::SharedText;

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Instructions.
    System,
    /// Instructions in newer OpenAI formats.
    Developer,
    /// A person, or (in the Anthropic format) the carrier of tool results.
    User,
    /// The model.
    Assistant,
    /// A tool result in the OpenAI formats.
    Tool,
    /// An unknown role or item, which is preserved.
    Other,
}

impl Role {
    /// Returns the name used in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other => "other",
        }
    }

    pub(crate) fn parse(word: &str) -> Self {
        match word {
            "system" => Self::System,
            "developer" => Self::Developer,
            "user" => Self::User,
            "assistant" | "model" => Self::Assistant,
            "tool" | "function" => Self::Tool,
            _ => Self::Other,
        }
    }

    /// Whether messages of this role are instructions rather than a part of the dialogue.
    #[must_use]
    pub fn is_instructions(self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}

/// The arguments of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// A JSON value (Anthropic `input`).
    Json(Span),
    /// Text; in the OpenAI formats usually JSON inside a JSON string.
    Text(JsonStr),
    /// No arguments.
    Absent,
}

/// A part of a message, by position in its JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text of the message's author.
    Text(JsonStr),
    /// The model's reasoning: its readable text, if any, and the whole block, which must be sent back unchanged.
    Reasoning {
        /// Readable reasoning.
        text: Option<JsonStr>,
        /// The block or member, unchanged.
        block: Span,
    },
    /// A request to run a tool.
    ToolCall {
        /// The id that its result names.
        id: JsonStr,
        /// The tool.
        name: JsonStr,
        /// The arguments.
        arguments: Arguments,
        /// The block or array element, unchanged.
        block: Span,
    },
    /// A tool result.
    ToolResult {
        /// The id of the call.
        call_id: JsonStr,
        /// Whether the wire format marks it as failed; `None` without a mark, which does not mean success.
        is_error: Option<bool>,
        /// The texts, images and unknown parts of the result.
        content: Vec<Part>,
        /// The span of the result's value (a string or a list), which a rendition replaces.
        value: Span,
    },
    /// An image.
    Image {
        /// The block, unchanged.
        block: Span,
    },
    /// A block of unknown type.
    Opaque {
        /// Its `type`, if it has one.
        kind: Option<JsonStr>,
        /// The block, unchanged.
        block: Span,
    },
}

/// A 256-bit hash of a message's JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// Hashes any text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(*blake3::hash(text.as_bytes()).as_bytes())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which members that identify a message are in its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A role and no type: the chat and Anthropic formats.
    Spoken,
    /// A role and a type: a `message` item of the Responses format.
    TypedMessage,
    /// A type and no role: any other item of the Responses format.
    Item,
    /// Neither: not a message in any wire format.
    Neither,
}

impl Form {
    /// Whether it is an item of the Responses format, which splits an answer into several.
    pub(crate) fn is_item(self) -> bool {
        matches!(self, Self::TypedMessage | Self::Item)
    }

    /// Whether a role was given.
    pub(crate) fn has_role(self) -> bool {
        matches!(self, Self::Spoken | Self::TypedMessage)
    }
}

/// A message of a conversation; in the Responses format, an input item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub(crate) origin: SharedText,
    pub(crate) role: Role,
    pub(crate) parts: Vec<Part>,
    /// The span of the value of the `content` member, if there is one; a rendition replaces it.
    pub(crate) content: Option<Span>,
    pub(crate) form: Form,
    /// Whether a log marks the message as written by a program with the user's role.
    pub(crate) machine_written: bool,
}

impl Message {
    /// The JSON object as it arrived, byte for byte.
    #[must_use]
    pub fn json(&self) -> &str {
        self.origin.as_str()
    }

    /// The same bytes, shared.
    #[must_use]
    pub fn origin(&self) -> &SharedText {
        &self.origin
    }

    /// Returns the role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the parts of the message.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the span of the `content` member's value in [`json`](Self::json).
    #[must_use]
    pub fn content_span(&self) -> Option<Span> {
        self.content
    }

    /// The raw JSON at a span of this message.
    #[must_use]
    pub fn raw(&self, span: Span) -> &str {
        span.of(self.json())
    }

    /// The text of a string of this message.
    #[must_use]
    pub fn str(&self, string: JsonStr) -> Cow<'_, str> {
        string.text(self.json())
    }

    /// Hash of the JSON as it arrived.
    #[must_use]
    pub fn content_hash(&self) -> ContentHash {
        ContentHash::of(self.json())
    }

    /// All readable text parts (not reasoning, not tool results), joined by line breaks.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        join(self.parts.iter().filter_map(|part| match part {
            Part::Text(string) => Some(self.str(*string)),
            _ => None,
        }))
    }

    /// Tool calls this message makes: id, name, arguments.
    pub fn calls(&self) -> impl Iterator<Item = (JsonStr, JsonStr, Arguments)> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall { id, name, arguments, .. } => Some((*id, *name, *arguments)),
            _ => None,
        })
    }

    /// Returns the ids of the calls whose results this message has.
    pub fn answered(&self) -> impl Iterator<Item = JsonStr> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult { call_id, .. } => Some(*call_id),
            _ => None,
        })
    }

    /// Whether it makes any tool call.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// Whether it carries any tool result.
    #[must_use]
    pub fn has_results(&self) -> bool {
        self.answered().next().is_some()
    }

    /// The readable text of a tool result's pieces.
    #[must_use]
    pub fn result_text<'a>(&'a self, content: &'a [Part]) -> Cow<'a, str> {
        join(content.iter().filter_map(|part| match part {
            Part::Text(string) => Some(self.str(*string)),
            _ => None,
        }))
    }

    /// Returns arguments as JSON text, unescaped if the wire format puts them in a string.
    #[must_use]
    pub fn arguments_text(&self, arguments: Arguments) -> Cow<'_, str> {
        match arguments {
            Arguments::Json(span) => Cow::Borrowed(self.raw(span)),
            Arguments::Text(string) => self.str(string),
            Arguments::Absent => Cow::Borrowed(""),
        }
    }

    /// Whether a person wrote it: a user message with text or an image that no program added.
    #[must_use]
    pub fn is_human(&self) -> bool {
        self.role == Role::User && !self.machine_written && human::has_human_part(self)
    }

    /// Whether a program wrote it with the user's role (reminders, command output, notifications).
    #[must_use]
    pub fn is_machine_written(&self) -> bool {
        self.machine_written
            || (self.role == Role::User && !self.has_results() && !human::has_human_part(self))
    }

    /// Returns the message marked as written by a program with the user's role, according to a log or a record.
    #[must_use]
    pub fn marked_machine_written(mut self) -> Self {
        self.machine_written = true;
        self
    }

    /// Whether it has an image, in its own content or in a tool result.
    #[must_use]
    pub fn has_image(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Image { .. } => true,
            Part::ToolResult { content, .. } => content.iter().any(|p| matches!(p, Part::Image { .. })),
            _ => false,
        })
    }
}

/// Joins texts with line breaks, borrowing when there is only one.
fn join<'a>(mut texts: impl Iterator<Item = Cow<'a, str>>) -> Cow<'a, str> {
    let Some(first) = texts.next() else { return Cow::Borrowed("") };
    let Some(second) = texts.next() else { return first };
    let mut all = first.into_owned();
    for text in std::iter::once(second).chain(texts) {
        all.push('\n');
        all.push_str(&text);
    }
    Cow::Owned(all)
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
