//! A message: the JSON it arrived as, and what we know about it.

use std::borrow::Cow;
use std::fmt;

use crate::human;
use crate::json::{JsonStr, Span};
use crate::shared_text::SharedText;

/// Who a message speaks for on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Standing instructions.
    System,
    /// Standing instructions in newer OpenAI wires.
    Developer,
    /// A person, or (on the Anthropic wire) the carrier of tool results.
    User,
    /// The model.
    Assistant,
    /// A tool result on the OpenAI wires.
    Tool,
    /// A role or item we do not know; carried through.
    Other,
}

impl Role {
    /// The word used in reports.
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

    /// Whether this role gives standing instructions rather than taking part in the talk.
    #[must_use]
    pub fn is_instructions(self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}

/// How a tool call carries its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// A JSON value in place (Anthropic `input`).
    Json(Span),
    /// Text, on the OpenAI wires usually JSON inside a JSON string.
    Text(JsonStr),
    /// None given.
    Absent,
}

/// A piece of a message, by position in its JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text of the author.
    Text(JsonStr),
    /// The model's reasoning: visible text where there is any, and the whole block, which must go back unmodified.
    Reasoning {
        /// Readable reasoning.
        text: Option<JsonStr>,
        /// The block or member as it stands.
        block: Span,
    },
    /// A request to run a tool.
    ToolCall {
        /// The id its result will name.
        id: JsonStr,
        /// The tool.
        name: JsonStr,
        /// What it is called with.
        arguments: Arguments,
        /// The block or array element as it stands.
        block: Span,
    },
    /// What a tool answered.
    ToolResult {
        /// The call it answers.
        call_id: JsonStr,
        /// Whether the wire marks it as failed; `None` where it carries no mark, which says nothing about success.
        is_error: Option<bool>,
        /// Text, images and unknown pieces of the answer.
        content: Vec<Part>,
        /// The JSON value that holds the answer (a string or a list), the place a rendition replaces.
        value: Span,
    },
    /// A picture.
    Image {
        /// The block as it stands.
        block: Span,
    },
    /// Something we carry without understanding it.
    Opaque {
        /// Its `type`, where it has one.
        kind: Option<JsonStr>,
        /// The block as it stands.
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

/// Which of the members that say what a message is stood in its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A role and no type: the chat and Anthropic wires.
    Spoken,
    /// A role and a type: a `message` item of the Responses wire.
    TypedMessage,
    /// A type and no role: any other item of the Responses wire.
    Item,
    /// Neither: not a message on any wire.
    Neither,
}

impl Form {
    /// Whether it is an item of the Responses wire, which splits one answer into several.
    pub(crate) fn is_item(self) -> bool {
        matches!(self, Self::TypedMessage | Self::Item)
    }

    /// Whether a role was given.
    pub(crate) fn has_role(self) -> bool {
        matches!(self, Self::Spoken | Self::TypedMessage)
    }
}

/// One message (on the Responses wire: one input item) of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub(crate) origin: SharedText,
    pub(crate) role: Role,
    pub(crate) parts: Vec<Part>,
    /// Where the value of the `content` member lies, when there is one: the place a rendition replaces.
    pub(crate) content: Option<Span>,
    pub(crate) form: Form,
    /// Set by a log that says so: written by a program in the user's name.
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

    /// Who it speaks for.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// What it consists of.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Where the `content` member's value lies in [`json`](Self::json).
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

    /// Ids of the calls whose results this message carries.
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

    /// Arguments as JSON text, unescaped where the wire wraps them in a string.
    #[must_use]
    pub fn arguments_text(&self, arguments: Arguments) -> Cow<'_, str> {
        match arguments {
            Arguments::Json(span) => Cow::Borrowed(self.raw(span)),
            Arguments::Text(string) => self.str(string),
            Arguments::Absent => Cow::Borrowed(""),
        }
    }

    /// Whether a person said it: a user message with words or a picture that no program put there.
    #[must_use]
    pub fn is_human(&self) -> bool {
        self.role == Role::User && !self.machine_written && human::has_human_part(self)
    }

    /// Whether it is written by a program in the user's name (reminders, command output, notifications).
    #[must_use]
    pub fn is_machine_written(&self) -> bool {
        self.machine_written
            || (self.role == Role::User && !self.has_results() && !human::has_human_part(self))
    }

    /// The same message, known to be written by a program in the user's name, as a log or a record said.
    #[must_use]
    pub fn marked_machine_written(mut self) -> Self {
        self.machine_written = true;
        self
    }

    /// Whether it shows a picture, in its own content or in a tool result.
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
