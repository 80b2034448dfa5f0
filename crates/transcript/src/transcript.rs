//! A decoded document: its messages, what stands around them, and how to write it back.

use crate::message::Message;
use crate::shared_text::SharedText;
use crate::write::Dialect;

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

/// Where the list lies in its document and how its elements are set apart, so that a changed list is written back into
/// an otherwise untouched document in the same style.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) document: SharedText,
    pub(crate) list: std::ops::Range<usize>,
    pub(crate) opening: String,
    pub(crate) separator: String,
    pub(crate) closing: String,
}

/// A conversation as decoded from a document.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The wire its messages are in.
    pub dialect: Dialect,
    /// What it was read from.
    pub source: Source,
    /// The messages in order.
    pub messages: Vec<Message>,
    /// System prompt, tools and parameters.
    pub preamble: Preamble,
    /// What the reader should know.
    pub notes: Vec<Note>,
    pub(crate) layout: Option<Layout>,
}

impl Transcript {
    /// A conversation of messages that came from no document.
    #[must_use]
    pub fn from_messages(dialect: Dialect, messages: Vec<Message>) -> Self {
        Self {
            dialect,
            source: Source::List,
            messages,
            preamble: Preamble::default(),
            notes: Vec::new(),
            layout: None,
        }
    }

    /// Writes `items` (JSON of one message each) as a JSON list.
    pub fn write_list<'a>(items: impl IntoIterator<Item = &'a str>, out: &mut Vec<u8>) {
        write_separated(items, "[", ",", "]", out);
    }

    /// Writes a document like the one this came from, with `items` in place of its messages. Lists and bodies keep
    /// everything around the list byte for byte; a log yields the message list of its wire.
    pub fn write_document<'a>(&self, items: impl IntoIterator<Item = &'a str>, out: &mut Vec<u8>) {
        let Some(layout) = &self.layout else {
            Self::write_list(items, out);
            out.push(b'\n');
            return;
        };
        let document = layout.document.as_str();
        out.extend_from_slice(document.get(..layout.list.start).unwrap_or_default().as_bytes());
        write_separated(items, &layout.opening, &layout.separator, &layout.closing, out);
        out.extend_from_slice(document.get(layout.list.end..).unwrap_or_default().as_bytes());
    }

    /// The document with its own messages: byte for byte what was read, for lists, bodies and lines.
    pub fn write_unchanged(&self, out: &mut Vec<u8>) {
        self.write_document(self.messages.iter().map(Message::json), out);
    }
}

fn write_separated<'a>(
    items: impl IntoIterator<Item = &'a str>,
    opening: &str,
    separator: &str,
    closing: &str,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(opening.as_bytes());
    let mut first = true;
    for item in items {
        if !first {
            out.extend_from_slice(separator.as_bytes());
        }
        first = false;
        out.extend_from_slice(item.as_bytes());
    }
    out.extend_from_slice(closing.as_bytes());
}

impl Layout {
    /// Takes the style of a list from the gaps around and between its elements. Gaps may differ from one another; the
    /// first one stands for all when the list is changed.
    pub(crate) fn of_list(document: &SharedText, list: std::ops::Range<usize>, items: &[Span64]) -> Self {
        let text = document.as_str();
        let gap = |from: usize, to: usize| text.get(from..to).unwrap_or_default().to_owned();
        let opening = items.first().map_or_else(|| "[".to_owned(), |first| gap(list.start, first.start));
        let closing = items.last().map_or_else(|| "]".to_owned(), |last| gap(last.end, list.end));
        let separator = match items {
            [first, second, ..] => gap(first.end, second.start),
            _ => ",".to_owned(),
        };
        Self { document: document.clone(), list, opening, separator, closing }
    }
}

/// A range in a whole document, which may be longer than one message may be.
pub(crate) type Span64 = std::ops::Range<usize>;

/// Spans are 32-bit inside a message; this is where a document range becomes one message's origin.
pub(crate) fn slice_of(document: &SharedText, range: &Span64) -> SharedText {
    document.slice(range.clone())
}
