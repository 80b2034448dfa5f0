//! Settings files of other programs: trees that remember where each value stands, and edits that change nothing else.
//!
//! An edit is one replacement in the text. It is only taken if the file then says what was asked for, and the same as before
//! everywhere else; a file that is written in a way for which this fails is not edited at all.

mod json;
mod toml;
mod yaml;

use std::ops::Range;

use serde_json::{Map, Value};

/// How deep settings may be nested.
const MAX_DEPTH: usize = 64;

/// How a settings file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// JSON, with comments and trailing commas where the program allows them.
    Json,
    Toml,
    Yaml,
}

/// A value and its place in the text.
#[derive(Clone, Debug, PartialEq)]
struct SettingNode {
    /// Its bytes; for a block of YAML and a table of TOML, from its first entry to the end of its last.
    span: Range<usize>,
    content: NodeContent,
}

#[derive(Clone, Debug, PartialEq)]
enum NodeContent {
    Map { entries: Vec<SettingEntry>, layout: MapLayout },
    List(Vec<SettingNode>),
    Scalar(Value),
}

/// Whether a map has a text of its own, from brace to brace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapLayout {
    Braces,
    Block,
}

#[derive(Clone, Debug, PartialEq)]
struct SettingEntry {
    key: String,
    key_span: Range<usize>,
    value: SettingNode,
}

/// Why a file was not edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EditRefusal {
    /// The text is not of its format.
    Invalid(String),
    /// It is, but no change of one place does what was asked for.
    Unusual,
}

/// One replacement in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextEdit {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

impl TextEdit {
    fn insert(at: usize, text: String) -> Self {
        Self { range: at..at, text }
    }

    pub(crate) fn apply(&self, text: &str) -> Option<String> {
        Some([text.get(..self.range.start)?, &self.text, text.get(self.range.end..)?].concat())
    }
}

impl FileFormat {
    /// What a file says; an empty file says nothing.
    pub(crate) fn data(self, text: &str) -> Result<Value, EditRefusal> {
        Ok(self.parse(text)?.map_or_else(|| Value::Object(Map::new()), |root| root.data()))
    }

    /// What a file says at a path.
    pub(crate) fn value(self, text: &str, path: &[String]) -> Result<Option<Value>, EditRefusal> {
        Ok(self.parse(text)?.and_then(|root| root.at(path).map(SettingNode::data)))
    }

    /// A value as `data` and `value` give it.
    pub(crate) fn as_data(self, value: &Value) -> Value {
        match self {
            Self::Json | Self::Toml => value.clone(),
            Self::Yaml => yaml::as_data(value),
        }
    }

    /// Whether the section that holds a value holds nothing else.
    pub(crate) fn is_only_entry(self, text: &str, path: &[String]) -> Result<bool, EditRefusal> {
        let root = self.parse(text)?;
        let parents = path.split_last().map_or(path, |(_, parents)| parents);
        Ok(root.and_then(|root| Some(root.at(parents)?.entries().len())) == Some(1))
    }

    /// The text without a passage, if the file then lacks the value at a path and nothing else.
    pub(crate) fn without(self, text: &str, passage: &str, path: &[String]) -> Option<String> {
        let (before, after) = text.split_once(passage).filter(|(_, after)| !after.contains(passage))?;
        let mut wanted = self.data(text).ok()?;
        take(&mut wanted, path)?;
        let rest = [before, after].concat();
        (self.data(&rest).ok()? == wanted).then_some(rest)
    }

    /// The text of the value at a path.
    pub(crate) fn raw(self, text: &str, path: &[String]) -> Result<Option<String>, EditRefusal> {
        let root = self.parse(text)?;
        Ok(root.and_then(|root| Some(text.get(root.at(path)?.span.clone())?.to_owned())))
    }

    /// How many names of a path are there.
    pub(crate) fn depth(self, text: &str, path: &[String]) -> Result<usize, EditRefusal> {
        let root = self.parse(text)?;
        Ok(root.map_or(0, |root| {
            (0..=path.len()).rev().find(|depth| root.at(&path[..*depth]).is_some()).unwrap_or(0)
        }))
    }

    /// Writes a value at a path, with the sections that lead there.
    pub(crate) fn set(self, text: &str, path: &[String], value: &Value) -> Result<TextEdit, EditRefusal> {
        let root = self.parse(text)?;
        let mut wanted = root.as_ref().map_or_else(|| Value::Object(Map::new()), SettingNode::data);
        let is_there = root.as_ref().and_then(|root| root.at(path)).is_some();
        put(&mut wanted, path, &self.as_data(value)).ok_or(EditRefusal::Unusual)?;
        let splices = match self {
            Self::Json => json::set(text, root.as_ref(), path, value),
            Self::Toml => toml::set(text, root.as_ref(), path, value),
            Self::Yaml => yaml::set(text, root.as_ref(), path, value),
        };
        // A value that is replaced keeps its place; one that is new does not touch a comment.
        self.first_that(text, splices, &wanted)
            .filter(|splice| is_there || splice.range.is_empty())
            .ok_or(EditRefusal::Unusual)
    }

    /// Puts a text in the place of a value.
    pub(crate) fn set_raw(self, text: &str, path: &[String], raw: &str) -> Result<TextEdit, EditRefusal> {
        let root = self.parse(text)?.ok_or(EditRefusal::Unusual)?;
        let node = root.at(path).ok_or(EditRefusal::Unusual)?;
        let splice = TextEdit { range: node.span.clone(), text: raw.to_owned() };
        let after = splice.apply(text).ok_or(EditRefusal::Unusual)?;
        let (mut before, mut after) = (root.data(), self.data(&after)?);
        // Whatever the value is now, everything else is as it was.
        (take(&mut before, path).is_some() && take(&mut after, path).is_some() && before == after)
            .then_some(splice)
            .ok_or(EditRefusal::Unusual)
    }

    /// Removes a value and its key.
    pub(crate) fn remove(self, text: &str, path: &[String]) -> Result<TextEdit, EditRefusal> {
        let root = self.parse(text)?.ok_or(EditRefusal::Unusual)?;
        let mut wanted = root.data();
        take(&mut wanted, path).ok_or(EditRefusal::Unusual)?;
        let splices = match self {
            Self::Json => json::remove(text, &root, path),
            Self::Toml => toml::remove(text, &root, path),
            Self::Yaml => yaml::remove(text, &root, path),
        };
        self.first_that(text, splices, &wanted).ok_or(EditRefusal::Unusual)
    }

    /// The first replacement after which the file says this.
    fn first_that(self, text: &str, splices: Vec<TextEdit>, wanted: &Value) -> Option<TextEdit> {
        splices.into_iter().find(|splice| {
            splice.apply(text).is_some_and(|after| self.data(&after).is_ok_and(|data| data == *wanted))
        })
    }

    fn parse(self, text: &str) -> Result<Option<SettingNode>, EditRefusal> {
        match self {
            Self::Json => json::parse(text),
            Self::Toml => toml::parse(text),
            Self::Yaml => yaml::parse(text),
        }
    }
}

impl SettingNode {
    fn data(&self) -> Value {
        match &self.content {
            NodeContent::Scalar(value) => value.clone(),
            NodeContent::List(items) => Value::Array(items.iter().map(Self::data).collect()),
            NodeContent::Map { entries, .. } => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.data())).collect())
            }
        }
    }

    fn at(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| Some(&node.entry(name)?.value))
    }

    fn entries(&self) -> &[SettingEntry] {
        match &self.content {
            NodeContent::Map { entries, .. } => entries,
            _ => &[],
        }
    }

    fn entry(&self, name: &str) -> Option<&SettingEntry> {
        self.entries().iter().find(|entry| entry.key == name)
    }

    /// The deepest map on a path, and the names that it lacks.
    fn deepest<'a>(&self, path: &'a [String]) -> (&Self, &'a [String]) {
        let mut node = self;
        for (passed, name) in path.iter().enumerate() {
            match node.entry(name) {
                Some(entry) => node = &entry.value,
                None => return (node, &path[passed..]),
            }
        }
        (node, &[])
    }

    fn is_map(&self) -> bool {
        matches!(self.content, NodeContent::Map { .. })
    }
}

/// Puts a value at a path; `None` where something else than a map is on the way.
fn put(data: &mut Value, path: &[String], value: &Value) -> Option<()> {
    let Some((name, rest)) = path.split_first() else {
        *data = value.clone();
        return Some(());
    };
    put(data.as_object_mut()?.entry(name.clone()).or_insert_with(|| Value::Object(Map::new())), rest, value)
}

/// Takes a value out.
fn take(data: &mut Value, path: &[String]) -> Option<Value> {
    let (name, rest) = path.split_first()?;
    let map = data.as_object_mut()?;
    if rest.is_empty() { map.remove(name) } else { take(map.get_mut(name)?, rest) }
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The start of the line that a place is in.
fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// The start of the next line, or the end of the text.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// Blanks in front of a place on its line, if there is nothing else.
fn indentation(text: &str, at: usize) -> Option<&str> {
    let before = &text[line_start(text, at)..at];
    before.chars().all(|letter| letter == ' ' || letter == '\t').then_some(before)
}
