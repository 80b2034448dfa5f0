//! Places in a text where a value can be written or removed: candidate changes, best place first.
//!
//! The editor parses the result of each candidate and uses the first that does what was requested, so a candidate may be a guess.

use std::ops::Range;

use crate::render;
use crate::yaml::{Comment, Data, Document, Style, YamlEntry, YamlNode};

/// Commented-out lines that are tried as a place.
const MAX_COMMENTED_OUT: usize = 4;
/// Spaces per level if the text shows none.
const DEFAULT_STEP: usize = 2;

/// One replacement in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    range: Range<usize>,
    text: String,
}

impl Change {
    fn insert(at: usize, text: String) -> Self {
        Self { range: at..at, text }
    }

    /// The whole text after it.
    pub(crate) fn apply(&self, text: &str) -> Option<String> {
        let before = text.get(..self.range.start)?;
        let after = text.get(self.range.end..)?;
        Some([before, &self.text, after].concat())
    }
}

/// Why a key cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    Alias { line: usize },
    Anchor { line: usize },
    NoSection { line: usize },
    Collection { line: usize },
    Style,
}

/// How far a path leads into a document.
#[derive(Debug)]
pub(crate) struct PathMatch<'a> {
    /// The mappings on the path, each with the entry that leads on.
    chain: Vec<(&'a YamlNode, &'a YamlEntry)>,
    /// How many names of the path are missing.
    pub(crate) rest: usize,
}

/// Follows a path as far as it goes.
pub(crate) fn locate<'a>(document: &'a Document, path: &[String]) -> Result<PathMatch<'a>, Obstacle> {
    let mut chain = Vec::new();
    let mut node = document.root();
    for (passed, name) in path.iter().enumerate() {
        let rest = path.len() - passed;
        let Some(mapping) = node.filter(|node| !node.is_null()) else { return Ok(PathMatch { chain, rest }) };
        if document.is_referenced(mapping) {
            return Err(Obstacle::Anchor { line: mapping.line });
        }
        let entries = match &mapping.data {
            Data::Mapping { entries, .. } => entries,
            Data::Alias { .. } => return Err(Obstacle::Alias { line: mapping.line }),
            _ => return Err(Obstacle::NoSection { line: mapping.line }),
        };
        let Some(entry) = entries.iter().find(|entry| entry.key == *name) else {
            return Ok(PathMatch { chain, rest });
        };
        chain.push((mapping, entry));
        node = document.node(entry.value);
    }
    match node {
        Some(node) if document.is_referenced(node) => Err(Obstacle::Anchor { line: node.line }),
        _ => Ok(PathMatch { chain, rest: 0 }),
    }
}

/// Returns ways to write a value at a place.
pub(crate) fn write(
    text: &str,
    document: &Document,
    place: &PathMatch<'_>,
    path: &[String],
    rendered: &dyn Fn(Option<Style>) -> String,
) -> Result<Vec<Change>, Obstacle> {
    let writer = Writer { text, document };
    let missing = &path[path.len() - place.rest..];
    let Some((mapping, entry)) = place.chain.last() else {
        return Ok(match document.root() {
            Some(root) if !root.is_null() => writer.insert(root, None, missing, &rendered(None)),
            _ => {
                let mut changes = writer.beside_commented_out(0, missing, &rendered(None), 0);
                changes.push(writer.lines_at(text.len(), missing, &rendered(None), 0));
                changes
            }
        });
    };
    let node = document.node(entry.value).ok_or(Obstacle::Style)?;
    match &node.data {
        _ if place.rest > 0 && node.is_null() => {
            Ok(writer.fill(mapping, entry, node, missing, &rendered(None)))
        }
        _ if place.rest > 0 => Ok(writer.insert(node, Some(entry), missing, &rendered(None))),
        Data::Scalar { style, .. } => {
            let style = Some(*style).filter(|_| !node.is_null() && !node.has_properties);
            Ok(writer.replace(entry, node, &rendered(style)))
        }
        Data::Alias { .. } => Ok(vec![Change { range: node.span.clone(), text: rendered(None) }]),
        Data::Mapping { .. } | Data::Sequence { .. } => Err(Obstacle::Collection { line: node.line }),
    }
}

/// Returns ways to remove the value at a place.
pub(crate) fn remove(text: &str, document: &Document, place: &PathMatch<'_>) -> Vec<Change> {
    let Some((mapping, entry)) = place.chain.last() else { return Vec::new() };
    let Data::Mapping { flow, entries } = &mapping.data else { return Vec::new() };
    let writer = Writer { text, document };
    if *flow { writer.remove_from_flow(entries, entry) } else { writer.remove_lines(entry) }
}

struct Writer<'a> {
    text: &'a str,
    document: &'a Document,
}

impl Writer<'_> {
    /// Replaces a value.
    fn replace(&self, entry: &YamlEntry, node: &YamlNode, value: &str) -> Vec<Change> {
        let after_colon = self.after_colon(entry);
        let is_block = matches!(node.data, Data::Scalar { style: Style::Block, .. });
        if !is_block && !node.has_properties {
            return if node.is_left_out() {
                after_colon.map(|at| Change::insert(at, format!(" {value}"))).into_iter().collect()
            } else {
                vec![Change { range: node.span.clone(), text: value.to_owned() }]
            };
        }
        // With an anchor, a tag or a block header, the value begins before its first character.
        let Some(after_colon) = after_colon else { return Vec::new() };
        let range = after_colon..self.trimmed_end(node).max(after_colon);
        let inside: Vec<&str> = self.comments_in(&range).map(|comment| comment.text.as_str()).collect();
        let text = [&[value], &inside[..]].concat().join(" ");
        if inside.len() > 1 {
            return Vec::new();
        }
        vec![Change { range, text: format!(" {text}") }]
    }

    /// Fills a section without keys: `compression:` alone, or with null.
    fn fill(
        &self,
        mapping: &YamlNode,
        entry: &YamlEntry,
        node: &YamlNode,
        missing: &[String],
        value: &str,
    ) -> Vec<Change> {
        let in_braces = format!("{{{}}}", flow_entry(missing, value));
        let is_flow = matches!(mapping.data, Data::Mapping { flow: true, .. });
        let Some(after_colon) = self.after_colon(entry) else { return Vec::new() };
        if !node.is_left_out() {
            return vec![Change { range: node.span.clone(), text: in_braces }];
        }
        if is_flow {
            return vec![Change::insert(after_colon, format!(" {in_braces}"))];
        }
        let indent = entry.key_column + self.step();
        let mut changes = self.beside_commented_out(entry.key_span.end, missing, value, indent);
        changes.push(self.lines_at(self.line_end(after_colon), missing, value, indent));
        changes
    }

    /// Adds a key to a section with keys.
    fn insert(
        &self,
        section: &YamlNode,
        name: Option<&YamlEntry>,
        missing: &[String],
        value: &str,
    ) -> Vec<Change> {
        let Data::Mapping { flow, entries } = &section.data else { return Vec::new() };
        let last = entries.last();
        if *flow {
            let entry = flow_entry(missing, value);
            return vec![match last {
                Some(last) => Change::insert(self.entry_end(last), format!(", {entry}")),
                None => Change::insert(section.span.start + 1, entry),
            }];
        }
        let (Some(first), Some(last)) = (entries.first(), last) else { return Vec::new() };
        let indent = first.key_column;
        let start = name.map_or(0, |entry| entry.key_span.end);
        let mut changes = self.beside_commented_out(start, missing, value, indent);
        let after_last = self.lines_at(self.line_end(self.entry_end(last)), missing, value, indent);
        let after_block_text = self.lines_at(self.line_start(self.raw_end(last)), missing, value, indent);
        if name.is_none() {
            changes.push(self.lines_at(self.text.len(), missing, value, indent));
        }
        changes.extend([after_last, after_block_text]);
        changes
    }

    /// Returns places below `# key: ...`, where a reader would look for the key.
    fn beside_commented_out(
        &self,
        start: usize,
        missing: &[String],
        value: &str,
        indent: usize,
    ) -> Vec<Change> {
        let Some(name) = missing.first() else { return Vec::new() };
        self.document
            .comments
            .iter()
            .filter(|comment| comment.span.start >= start && self.is_alone(comment))
            .filter(|comment| {
                let words = comment.text.trim_start_matches('#').trim_start();
                words.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(':'))
            })
            .take(MAX_COMMENTED_OUT)
            .map(|comment| {
                // A section is commented out together with its keys.
                let last = if missing.len() > 1 { self.last_of_run(comment) } else { comment };
                self.lines_at(self.line_end(last.span.end), missing, value, indent)
            })
            .collect()
    }

    /// The last comment of those on the lines right below.
    fn last_of_run<'a>(&'a self, comment: &'a Comment) -> &'a Comment {
        let mut last = comment;
        for next in self.document.comments.iter().filter(|next| next.span.start > comment.span.start) {
            if next.line != last.line + 1 || !self.is_alone(next) {
                break;
            }
            last = next;
        }
        last
    }

    fn remove_lines(&self, entry: &YamlEntry) -> Vec<Change> {
        let start = self.line_start(entry.key_span.start);
        let to_end_of = |end: usize| {
            let range = start..end.max(start);
            let mut text = String::new();
            for comment in self.comments_in(&range) {
                text.push_str(&" ".repeat(entry.key_column));
                text.push_str(&comment.text);
                text.push_str(self.newline());
            }
            Change { range, text }
        };
        vec![to_end_of(self.line_end(self.entry_end(entry))), to_end_of(self.line_start(self.raw_end(entry)))]
    }

    fn remove_from_flow(&self, entries: &[YamlEntry], entry: &YamlEntry) -> Vec<Change> {
        let end = self.entry_end(entry);
        let at = entries.iter().position(|other| other.key == entry.key).unwrap_or(0);
        let gone = |range: Range<usize>| Change { range, text: String::new() };
        if let Some(next) = entries.get(at + 1) {
            return vec![gone(entry.key_span.start..next.key_span.start)];
        }
        if let Some(previous) = at.checked_sub(1).and_then(|at| entries.get(at)) {
            return vec![gone(self.entry_end(previous)..end)];
        }
        let comma = self.text[end..].find(|c: char| !c.is_whitespace()).map(|skipped| end + skipped);
        let with_comma =
            comma.filter(|&at| self.text[at..].starts_with(',')).map(|at| gone(entry.key_span.start..at + 1));
        with_comma.into_iter().chain([gone(entry.key_span.start..end)]).collect()
    }

    /// Returns whole lines for the missing names, inserted at the start of a line or at the end of the text.
    fn lines_at(&self, at: usize, missing: &[String], value: &str, indent: usize) -> Change {
        let newline = self.newline();
        let before = &self.text[..at];
        let mut inserted = String::new();
        if !before.is_empty() && !before.ends_with('\n') {
            inserted.push_str(newline);
        }
        let is_new_section = indent == 0 && missing.len() > 1;
        let last_line = before.trim_end_matches(['\n', '\r']);
        let is_after_blank = before[last_line.len()..].matches('\n').count() > 1;
        if is_new_section && !last_line.trim().is_empty() && !is_after_blank {
            inserted.push_str(newline);
        }
        for (level, name) in missing.iter().enumerate() {
            inserted.push_str(&" ".repeat(indent + level * self.step()));
            inserted.push_str(&render::text(name, None));
            inserted.push(':');
            if level + 1 == missing.len() {
                inserted.push(' ');
                inserted.push_str(value);
            }
            inserted.push_str(newline);
        }
        Change::insert(at, inserted)
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// Returns the indentation per level.
    fn step(&self) -> usize {
        let blocks = self.document.nodes().iter().filter_map(|node| match &node.data {
            Data::Mapping { flow: false, entries } => Some(entries),
            _ => None,
        });
        blocks
            .flatten()
            .find_map(|entry| match self.document.node(entry.value).map(|node| &node.data) {
                Some(Data::Mapping { flow: false, entries }) => {
                    entries.first().and_then(|inner| inner.key_column.checked_sub(entry.key_column))
                }
                _ => None,
            })
            .filter(|step| *step > 0)
            .unwrap_or(DEFAULT_STEP)
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The start of the next line, or the end of the text.
    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |newline| at + newline + 1)
    }

    /// The place right behind the colon of a key.
    fn after_colon(&self, entry: &YamlEntry) -> Option<usize> {
        let rest = &self.text[entry.key_span.end..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        rest[blanks..].starts_with(':').then_some(entry.key_span.end + blanks + 1)
    }

    fn is_alone(&self, comment: &Comment) -> bool {
        self.text[self.line_start(comment.span.start)..comment.span.start].trim().is_empty()
    }

    fn comments_in(&self, range: &Range<usize>) -> impl Iterator<Item = &Comment> {
        self.document.comments.iter().filter(|comment| range.contains(&comment.span.start))
    }

    /// The offset of an entry's last character.
    fn entry_end(&self, entry: &YamlEntry) -> usize {
        let behind_key = self.after_colon(entry).unwrap_or(entry.key_span.end);
        self.document.node(entry.value).map_or(behind_key, |node| self.node_end(node)).max(behind_key)
    }

    fn node_end(&self, node: &YamlNode) -> usize {
        match &node.data {
            Data::Mapping { flow: false, entries } => {
                entries.last().map_or(node.span.end, |entry| self.entry_end(entry))
            }
            Data::Sequence { items } if node.span.is_empty() => {
                let last = items.last().and_then(|item| self.document.node(*item));
                last.map_or(node.span.end, |item| self.node_end(item))
            }
            _ => self.trimmed_end(node),
        }
    }

    /// The same including the blank lines that a block of text may end in.
    fn raw_end(&self, entry: &YamlEntry) -> usize {
        let Some(node) = self.document.node(entry.value) else { return entry.key_span.end };
        match &node.data {
            Data::Mapping { flow: false, entries } => {
                entries.last().map_or(node.span.end, |entry| self.raw_end(entry))
            }
            _ => node.span.end,
        }
    }

    /// The end of a node without the white space that belongs to the span of a block of text.
    fn trimmed_end(&self, node: &YamlNode) -> usize {
        let source = &self.text[node.span.clone()];
        node.span.start + source.trim_end().len()
    }
}

/// `name: value`, or `outer: {name: value}`.
fn flow_entry(names: &[String], value: &str) -> String {
    match names.split_first() {
        Some((name, [])) => format!("{}: {value}", render::text(name, None)),
        Some((name, rest)) => format!("{}: {{{}}}", render::text(name, None), flow_entry(rest, value)),
        None => value.to_owned(),
    }
}
