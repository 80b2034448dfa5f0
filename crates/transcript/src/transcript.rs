//! A decoded document: its messages, everything around them, and how to write it back.

use crate::layout::Layout;
use crate::log_trace::LogTrace;
use crate::message::Message;
use crate::shared_text::SharedText;
use crate::write::WireFormat;

/// The kind of document that the messages came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An array of messages or items.
    List,
    /// An object that contains the list: a request body, or `{"messages": ...}`.
    Body,
    /// One message per line.
    Lines,
    /// A Claude Code session log.
    ClaudeCodeLog,
    /// A Codex rollout log.
    CodexLog,
}

/// A message about a document: a line that could not be read, a branch that was left out.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Note {
    /// Line of the document, from one, if the note concerns one.
    pub line: Option<usize>,
    /// What happened.
    pub text: String,
}

impl Note {
    /// The text of a note on a compaction by the client that wrote the log. Messages before it are read too.
    pub const COMPACTION: &str = "the client's own compaction; everything before it is read too";

    /// The beginning of the note on messages of sub-agents.
    pub const SUB_AGENTS: &str = "messages of sub-agents, left out";
}

/// The parts of a request before its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preamble {
    /// The system prompt or instructions as raw JSON (a string or a list of blocks).
    pub system: Option<SharedText>,
    /// Tool definitions as raw JSON.
    pub tools: Option<SharedText>,
    /// The model the request names.
    pub model: Option<String>,
    /// The request's output limit.
    pub max_output_tokens: Option<u64>,
}

/// A conversation as decoded from a document.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The wire format of its messages.
    pub wire_format: WireFormat,
    /// The kind of document it was read from.
    pub source: Source,
    /// The messages in order.
    pub messages: Vec<Message>,
    /// System prompt, tools and parameters.
    pub preamble: Preamble,
    /// Notes about the document.
    pub notes: Vec<Note>,
    pub(crate) layout: Option<Layout>,
    pub(crate) log: Option<LogTrace>,
}

impl Transcript {
    /// Creates a conversation without a document.
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

    /// Writes a document like the original, with `items` in place of its messages. Lists and bodies are unchanged around the list; a log
    /// yields the message list in its wire format.
    pub fn write_document<'a>(&self, items: impl IntoIterator<Item = &'a str>, out: &mut Vec<u8>) {
        match &self.layout {
            Some(layout) => layout.write(items, out),
            None => {
                Self::write_list(items, out);
                out.push(b'\n');
            }
        }
    }

    /// Writes the document with its own messages: for lists, bodies and lines byte for byte what was read, except lines that could not be
    /// read.
    pub fn write_unchanged(&self, out: &mut Vec<u8>) {
        self.write_document(self.messages.iter().map(Message::json), out);
    }
}
