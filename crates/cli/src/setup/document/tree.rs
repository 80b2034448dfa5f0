//! A settings file as a tree of values with their positions, and edits of the text.

use std::ops::Range;

use serde_json::Value;

/// The deepest nesting that is parsed.
pub(super) const MAX_DEPTH: usize = 64;

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SettingNode {
    /// The byte range; for a YAML block or a TOML table, from its first entry to the end of its last.
    pub(super) span: Range<usize>,
    pub(super) content: NodeContent,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeContent {
    Map { entries: Vec<SettingEntry>, layout: MapLayout },
    List(Vec<SettingNode>),
    Scalar(Value),
}

/// Whether a map is delimited by braces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapLayout {
    Braces,
    Block,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct SettingEntry {
    pub(super) key: String,
    pub(super) key_span: Range<usize>,
    pub(super) value: SettingNode,
}

/// Why a file was not edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EditRefusal {
    /// The text is invalid in its format.
    Invalid(String),
    /// No single edit has the intended effect.
    Unusual,
}

/// A replacement in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextEdit {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

impl TextEdit {
    pub(super) fn insert(at: usize, text: String) -> Self {
        Self { range: at..at, text }
    }

    pub(crate) fn apply(&self, text: &str) -> Option<String> {
        Some([text.get(..self.range.start)?, &self.text, text.get(self.range.end..)?].concat())
    }
}

impl SettingNode {
    pub(super) fn data(&self) -> Value {
        match &self.content {
            NodeContent::Scalar(value) => value.clone(),
            NodeContent::List(items) => Value::Array(items.iter().map(Self::data).collect()),
            NodeContent::Map { entries, .. } => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.data())).collect())
            }
        }
    }

    pub(super) fn at(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| Some(&node.entry(name)?.value))
    }

    pub(super) fn entries(&self) -> &[SettingEntry] {
        match &self.content {
            NodeContent::Map { entries, .. } => entries,
            _ => &[],
        }
    }

    pub(super) fn entry(&self, name: &str) -> Option<&SettingEntry> {
        self.entries().iter().find(|entry| entry.key == name)
    }

    /// The deepest existing map on a path, and the names that it lacks.
    pub(super) fn deepest<'a>(&self, path: &'a [String]) -> (&Self, &'a [String]) {
        let mut node = self;
        for (passed, name) in path.iter().enumerate() {
            match node.entry(name) {
                Some(entry) => node = &entry.value,
                None => return (node, &path[passed..]),
            }
        }
        (node, &[])
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self.content, NodeContent::Map { .. })
    }
}

pub(super) fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The start of the line that contains a position.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// The start of the next line, or the end of the text.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// The white space before a position on its line; `None` if there is other text.
pub(super) fn indentation(text: &str, at: usize) -> Option<&str> {
    let before = &text[line_start(text, at)..at];
    before.chars().all(|letter| letter == ' ' || letter == '\t').then_some(before)
}
