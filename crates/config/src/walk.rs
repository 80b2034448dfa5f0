//! Reads a YAML tree by the schema: every value is checked, every problem recorded with its line.
//!
//! The schema leads, not the text: unknown sections are reported and not entered. Visits are counted, because aliases can expand a small
//! text to very many values.

use std::collections::HashMap;
use std::sync::Arc;

use crate::datum::Datum;
use crate::keys;
use crate::kind::{MAX_TEXT_BYTES, Mismatch, Raw, ValueKind};
use crate::problem::{ConfigError, ConfigErrorKind, ValueOrigin, Warning, WarningKind, show_key};
use crate::schema::{KeyShape, SchemaMember, join};
use crate::yaml::{Data, Document, Style, YamlEntry, YamlNode};

/// The maximum number of values visited in one text.
const MAX_VISITS: usize = 100_000;
/// The maximum number of misspelt keys with a suggestion; comparing is the most expensive part of reading an invalid file.
const MAX_SUGGESTIONS: usize = 200;

/// A value for a key.
#[derive(Debug, Clone)]
pub(crate) struct SettingAssignment {
    pub(crate) key: String,
    pub(crate) datum: Datum,
    pub(crate) origin: ValueOrigin,
    /// The old name under which it was given.
    pub(crate) old_name: Option<String>,
}

/// The values of one source of settings.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    pub(crate) assignments: Vec<SettingAssignment>,
    pub(crate) errors: Vec<ConfigError>,
    pub(crate) warnings: Vec<Warning>,
}

/// The origin of the text.
pub(crate) enum TextSource<'a> {
    /// A file: lines are reported, and text may name variables.
    File { name: Arc<str>, variables: &'a HashMap<String, String> },
    /// A value from elsewhere in YAML syntax.
    Inline(ValueOrigin),
}

pub(crate) struct Walker<'a> {
    document: &'a Document,
    source: TextSource<'a>,
    layer: Layer,
    visits: usize,
    suggestions: usize,
}

/// Reads a whole file.
pub(crate) fn walk_file(document: &Document, source: TextSource<'_>) -> Layer {
    let mut walker = Walker::new(document, source);
    if let Some(root) = document.root()
        && !root.is_null()
    {
        match &root.data {
            Data::Mapping { entries, .. } => walker.entries("", entries, keys::members()),
            _ => {
                let kind = ConfigErrorKind::NotAMapping { found: root.describe().to_owned() };
                walker.fail(root.line, kind);
            }
        }
    }
    walker.layer
}

/// Reads a text such as `{gpt-5: {threshold: 0.6}}` as the entries of a table.
pub(crate) fn walk_table(
    document: &Document,
    source: TextSource<'_>,
    key: &str,
    members: &[SchemaMember],
) -> Layer {
    let mut walker = Walker::new(document, source);
    if let Some(root) = document.root() {
        walker.table(key, root, members);
    }
    walker.layer
}

impl<'a> Walker<'a> {
    fn new(document: &'a Document, source: TextSource<'a>) -> Self {
        Self { document, source, layer: Layer::default(), visits: 0, suggestions: 0 }
    }

    fn origin(&self, line: usize) -> ValueOrigin {
        match &self.source {
            TextSource::File { name, .. } => ValueOrigin::File { name: Arc::clone(name), line: Some(line) },
            TextSource::Inline(origin) => origin.clone(),
        }
    }

    fn fail(&mut self, line: usize, kind: ConfigErrorKind) {
        let origin = self.origin(line);
        self.layer.errors.push(ConfigError::new(origin, kind));
    }

    fn warn(&mut self, line: usize, kind: WarningKind) {
        let origin = self.origin(line);
        self.layer.warnings.push(Warning { origin, kind });
    }

    /// Counts a visit; returns `false` if there have been too many.
    fn may_visit(&mut self, line: usize) -> bool {
        self.visits += 1;
        if self.visits == MAX_VISITS + 1 {
            self.fail(line, ConfigErrorKind::TooManyValues { limit: MAX_VISITS });
        }
        self.visits <= MAX_VISITS
    }

    fn entries(&mut self, path: &str, entries: &'a [YamlEntry], members: &[SchemaMember]) {
        for entry in entries {
            if !self.may_visit(entry.key_line) {
                return;
            }
            let Some(node) = self.document.resolve(entry.value) else { continue };
            let key = join(path, &entry.key);
            match members.iter().find(|member| member.name == entry.key) {
                Some(member) => self.member(&key, entry.key_line, node, &member.shape),
                None => self.stranger(path, &key, entry, node, members),
            }
        }
    }

    fn member(&mut self, key: &str, key_line: usize, node: &'a YamlNode, shape: &KeyShape) {
        match shape {
            KeyShape::Leaf(kind) => self.leaf(key, key_line, node, *kind, None),
            KeyShape::Entries(members) => self.table(key, node, members),
            KeyShape::Section(members) => match &node.data {
                Data::Mapping { entries, .. } => self.entries(key, entries, members),
                // A section whose keys are all commented out.
                Data::Scalar { .. } if node.is_null() => {}
                Data::Scalar { .. } if keys::section_as_value(key).is_some() => {
                    self.old_name(key, key_line, node, keys::section_as_value(key).unwrap_or_default());
                }
                _ => self.not_a_section(key, node, members),
            },
        }
    }

    fn not_a_section(&mut self, key: &str, node: &YamlNode, members: &[SchemaMember]) {
        const MAX_NAMED: usize = 4;
        let mut names: Vec<&str> = members.iter().take(MAX_NAMED).map(|member| member.name).collect();
        if members.len() > MAX_NAMED {
            names.push("...");
        }
        let allowed = format!("a section with keys of its own ({})", names.join(", "));
        let shown = node.describe().to_owned();
        let mismatch = Mismatch { shown, allowed, hint: None };
        self.fail(node.line, ConfigErrorKind::bad_value(key, mismatch));
    }

    fn table(&mut self, key: &str, node: &'a YamlNode, members: &[SchemaMember]) {
        let Data::Mapping { entries, .. } = &node.data else {
            if !node.is_null() {
                let names: Vec<&str> = members.iter().map(|member| member.name).collect();
                let allowed = format!("names, each with keys of its own ({})", names.join(", "));
                let mismatch = Mismatch { shown: node.describe().to_owned(), allowed, hint: None };
                self.fail(node.line, ConfigErrorKind::bad_value(key, mismatch));
            }
            return;
        };
        for entry in entries {
            if !self.may_visit(entry.key_line) {
                return;
            }
            let Some(node) = self.document.resolve(entry.value) else { continue };
            if !self.is_entry_name(key, entry) {
                continue;
            }
            let key = join(key, &entry.key);
            match &node.data {
                Data::Mapping { entries, .. } => self.entries(&key, entries, members),
                _ if node.is_null() => {}
                _ => self.not_a_section(&key, node, members),
            }
        }
    }

    /// Whether a name can be shown in messages.
    fn is_entry_name(&mut self, key: &str, entry: &YamlEntry) -> bool {
        const MAX_NAME_CHARS: usize = 200;
        let is_fine = !entry.key.trim().is_empty()
            && entry.key.chars().count() <= MAX_NAME_CHARS
            && !entry.key.chars().any(char::is_control);
        if !is_fine {
            let mismatch = Mismatch {
                shown: format!("given an entry named \"{}\"", show_key(&entry.key)),
                allowed: format!("given names of 1 to {MAX_NAME_CHARS} printable characters"),
                hint: None,
            };
            self.fail(entry.key_line, ConfigErrorKind::bad_value(key, mismatch));
        }
        is_fine
    }

    /// Reports an unknown key.
    fn stranger(
        &mut self,
        path: &str,
        key: &str,
        entry: &'a YamlEntry,
        node: &'a YamlNode,
        members: &[SchemaMember],
    ) {
        if let Some(new) = keys::renamed(key) {
            self.old_name(key, entry.key_line, node, &new);
        } else if keys::is_renamed_table(key)
            && let Data::Mapping { entries, .. } = &node.data
        {
            for entry in entries {
                if self.may_visit(entry.key_line)
                    && self.is_entry_name(key, entry)
                    && let Some(node) = self.document.resolve(entry.value)
                    && let Some(new) = keys::renamed(&join(key, &entry.key))
                {
                    self.old_name(&join(key, &entry.key), entry.key_line, node, &new);
                }
            }
        } else if keys::is_not_used_here(key) {
            self.warn(entry.key_line, WarningKind::NotUsedHere { key: key.to_owned() });
        } else if let Some((section, name)) = entry.key.rsplit_once('.')
            && keys::find(key).is_some()
        {
            let (section, name) = (join(path, section), name.to_owned());
            self.warn(entry.key_line, WarningKind::DottedKey { section, name });
        } else {
            self.suggestions += 1;
            let nearest = if self.suggestions <= MAX_SUGGESTIONS {
                keys::nearest_member(path, &entry.key, members).or_else(|| keys::nearest(key))
            } else {
                None
            };
            self.warn(entry.key_line, WarningKind::UnknownKey { key: show_key(key), nearest });
        }
    }

    fn old_name(&mut self, old: &str, key_line: usize, node: &'a YamlNode, new: &str) {
        if let Some(keys::Found::Value { kind, .. }) = keys::find(new) {
            self.leaf(new, key_line, node, kind, Some(old));
        }
    }

    fn leaf(
        &mut self,
        key: &str,
        key_line: usize,
        node: &'a YamlNode,
        kind: ValueKind,
        old_name: Option<&str>,
    ) {
        // Messages show the key as written, so that it can be found.
        let written = old_name.unwrap_or(key);
        let Data::Scalar { text, style } = &node.data else {
            let mismatch =
                Mismatch { shown: node.describe().to_owned(), allowed: kind.to_string(), hint: None };
            self.fail(node.line, ConfigErrorKind::bad_value(written, mismatch));
            return;
        };
        let line = if node.is_left_out() { key_line } else { node.line };
        let expanded = match &self.source {
            TextSource::File { variables, .. } if kind.is_textual() && text.contains("${") => {
                let (expanded, missing) = expand(text, variables);
                for variable in missing {
                    self.warn(line, WarningKind::UndefinedVariable { key: written.to_owned(), variable });
                }
                expanded
            }
            _ => text.clone(),
        };
        let raw = Raw { text: &expanded, is_null: node.is_null(), is_quoted: *style != Style::Plain };
        match kind.read(raw) {
            Ok(datum) => {
                let origin = self.origin(line);
                let old_name = old_name.map(str::to_owned);
                self.layer.assignments.push(SettingAssignment {
                    key: key.to_owned(),
                    datum,
                    origin,
                    old_name,
                });
            }
            Err(mismatch) => self.fail(line, ConfigErrorKind::bad_value(written, mismatch)),
        }
    }
}

/// Replaces every `${NAME}` by that variable; also returns the names that are not set. Stops at the maximum length of a value, so that
/// repeated variables cannot fill the memory.
fn expand(text: &str, variables: &HashMap<String, String>) -> (String, Vec<String>) {
    let mut expanded = String::new();
    let mut missing = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${")
        && expanded.len() <= MAX_TEXT_BYTES
    {
        expanded.push_str(before);
        let name_end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let (name, end) = after.split_at(name_end);
        match end.strip_prefix('}') {
            Some(after) if !name.is_empty() => {
                match variables.get(name) {
                    Some(value) => expanded.push_str(value),
                    None => missing.push(name.to_owned()),
                }
                rest = after;
            }
            _ => {
                expanded.push_str("${");
                rest = after;
            }
        }
    }
    expanded.push_str(rest);
    missing.sort();
    missing.dedup();
    (expanded, missing)
}
