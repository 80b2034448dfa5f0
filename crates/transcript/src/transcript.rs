//! A decoded document: its messages, what stands around them, and how to write it back.

use crate::layout::Layout;
use crate::log_trace::LogTrace;
use crate::message::Message;
use crate::shared_text::SharedText;
use crate::write::WireFormat;

/// What kind of document the messages came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An array of messages or items.
    List,
    /// An object that holds the list: a request body, or `{"messages": ...}`.
    Body,
    /// One message a line.
    Lines,
    /// A Claude Code session log.
    ClaudeCodeLog,
    /// A Codex rollout log.
    CodexLog,
}

/// Something the reader of a document should know: a line that could not be read, a branch that was left out.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Note {
    /// Line of the document, counted from one, where the note has a place.
    pub line: Option<usize>,
    /// What happened.
    pub text: String,
}

impl Note {
    /// The text of a note on a compaction by the client that wrote the log. Messages before it are read too.
    pub const COMPACTION: &str = "the client's own compaction; everything before it is read too";

    /// The first words of the note on messages of sub-agents.
    pub const SUB_AGENTS: &str = "messages of sub-agents, left out";
}

/// What stands before the messages in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preamble {
    /// The system prompt or instructions as raw JSON (a string or a list of blocks).
    pub system: Option<SharedText>,
    /// Tool definitions as raw JSON.
    pub tools: Option<SharedText>,
    /// The model the request names.
    pub model: Option<String>,
    /// The request's own cap on output.
    pub max_output_tokens: Option<u64>,
}

/// A conversation as decoded from a document.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The wire its messages are in.
    pub wire_format: WireFormat,
    /// What it was read from.
    pub source: Source,
    /// The messages in order.
    pub messages: Vec<Message>,
    /// System prompt, tools and parameters.
    pub preamble: Preamble,
    /// What the reader should know.
    pub notes: Vec<Note>,
    pub(crate) layout: Option<Layout>,
    pub(crate) log: Option<LogTrace>,
}

impl Transcript {
    /// A conversation of messages that came from no document.
    #[must_use]
    pub fn from_messages(wire_format: WireFormat, messages: Vec<Message>) -> Self {
        Self {
            wire_format,
            source: Source::List,
            messages,
            preamble: Preamble::default(),
            notes: Vec::new(),
            layout: None,
            log: None,
        }
    }

    /// Writes `items` (JSON of one message each) as a JSON list.
    pub fn write_list<'a>(items: impl IntoIterator<Item = &'a str>, out: &mut Vec<u8>) {
        out.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(item.as_bytes());
        }
        out.push(b']');
    }

    /// Writes a document like the one this came from, with `items` in place of its messages. Lists and bodies keep
    /// everything around the list byte for byte; a log yields the message list of its wire.
    pub fn write_document<'a>(&self, items: impl IntoIterator<Item = &'a str>, out: &mut Vec<u8>) {
        match &self.layout {
            Some(layout) => layout.write(items, out),
            None => {
                Self::write_list(items, out);
                out.push(b'\n');
            }
        }
    }

    /// The document with its own messages: byte for byte what was read, for lists, bodies and lines (lines that could
    /// not be read are not among the messages and stay out).
    pub fn write_unchanged(&self, out: &mut Vec<u8>) {
        self.write_document(self.messages.iter().map(Message::json), out);
    }
}
