//! TOML: single values at the top of the file, and tables at its end.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Value, json};
use toml_edit::{Document, Item, Table, Value as TomlValue};

use super::tree::{
    EditRefusal, MapLayout, NodeContent, SettingEntry, SettingNode, TextEdit, line_end, line_start, newline,
};

/// Parses the file as a table; `None` in a file without a value.
pub(super) fn parse(text: &str) -> Result<Option<SettingNode>, EditRefusal> {
    let document = Document::parse(text).map_err(|error| EditRefusal::Invalid(error.message().to_owned()))?;
    let root = table(document.as_table());
    Ok(Some(root).filter(|root| !root.entries().is_empty()))
}

fn table(found: &Table) -> SettingNode {
    let entries: Vec<SettingEntry> =
        found.iter().filter_map(|(name, item)| entry(name, found.key(name)?.span(), item)).collect();
    block(entries)
}

/// A table with a header, from its first entry to the end of its last.
fn block(entries: Vec<SettingEntry>) -> SettingNode {
    let start = entries.iter().map(|entry| entry.key_span.start).min().unwrap_or(0);
    let end = entries.iter().map(|entry| entry.value.span.end).max().unwrap_or(0);
    SettingNode {
        span: start..end.max(start),
        content: NodeContent::Map { entries, layout: MapLayout::Block },
    }
}

fn entry(name: &str, key: Option<Range<usize>>, item: &Item) -> Option<SettingEntry> {
    let value = match item {
        Item::None => return None,
        Item::Value(value) => self::value(value),
        Item::Table(found) => {
            let mut node = table(found);
            if let Some(header) = found.span() {
                node.span = header.start..node.span.end.max(header.end);
            }
            node
        }
        Item::ArrayOfTables(tables) => {
            let items: Vec<SettingNode> = tables.iter().map(table).collect();
            let start = items.first().map_or(0, |item| item.span.start);
            let end = items.last().map_or(start, |item| item.span.end);
            SettingNode { span: start..end.max(start), content: NodeContent::List(items) }
        }
    };
    let start = value.span.start;
    Some(SettingEntry { key: name.to_owned(), key_span: key.unwrap_or(start..start), value })
}

fn value(found: &TomlValue) -> SettingNode {
    let content = match found {
        TomlValue::String(text) => NodeContent::Scalar(json!(text.value())),
        TomlValue::Integer(number) => NodeContent::Scalar(json!(number.value())),
        TomlValue::Float(number) => NodeContent::Scalar(json!(number.value().to_string())),
        TomlValue::Boolean(answer) => NodeContent::Scalar(json!(answer.value())),
        TomlValue::Datetime(time) => NodeContent::Scalar(json!({ "time": time.value().to_string() })),
        TomlValue::Array(items) => NodeContent::List(items.iter().map(value).collect()),
        TomlValue::InlineTable(table) => {
            let entries = table.iter().map(|(name, item)| {
                let key = table.key(name).and_then(toml_edit::Key::span).unwrap_or(0..0);
                SettingEntry { key: name.to_owned(), key_span: key, value: value(item) }
            });
            NodeContent::Map { entries: entries.collect(), layout: MapLayout::Braces }
        }
    };
    SettingNode { span: found.span().unwrap_or(0..0), content }
}

/// The candidate edits that write a value at a path: over the existing one, as a line at the top, or as a table at the end.
pub(super) fn set(text: &str, root: Option<&SettingNode>, path: &[String], value: &Value) -> Vec<TextEdit> {
    let newline = newline(text);
    if let Some(node) = root.and_then(|root| root.at(path)) {
        return inline(value).map(|text| TextEdit { range: node.span.clone(), text }).into_iter().collect();
    }
    if let Value::Object(map) = value {
        let mut lines = String::new();
        if !text.is_empty() {
            lines.push_str(if text.ends_with('\n') { newline } else { "" });
            if !text.ends_with('\n') {
                lines.push_str(newline);
                lines.push_str(newline);
            }
        }
        let names: Vec<String> = path.iter().map(|name| key(name)).collect();
        let _ = write!(lines, "[{}]{newline}", names.join("."));
        for (name, value) in map {
            let Some(value) = inline(value) else { return Vec::new() };
            let _ = write!(lines, "{} = {value}{newline}", key(name));
        }
        return vec![TextEdit::insert(text.len(), lines)];
    }
    let (Some(value), [name]) = (inline(value), path) else { return Vec::new() };
    let line = format!("{} = {value}{newline}", key(name));
    // After the values at the top, or at the start of the file.
    let last = root.and_then(|root| {
        let values = root.entries().iter().filter(|entry| {
            !matches!(entry.value.content, NodeContent::Map { layout: MapLayout::Block, .. })
        });
        values.map(|entry| entry.value.span.end).max()
    });
    let top = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let below = last.map(|last| {
        let at = line_end(text, last);
        if text[..at].ends_with('\n') {
            TextEdit::insert(at, line.clone())
        } else {
            TextEdit::insert(at, format!("{newline}{}", line.trim_end()))
        }
    });
    below.into_iter().chain([TextEdit::insert(top, line)]).collect()
}

/// Formats a value on one line.
fn inline(value: &Value) -> Option<String> {
    match value {
        Value::String(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Number(number) if number.is_i64() => Some(number.to_string()),
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(inline).collect();
            Some(format!("[{}]", items?.join(", ")))
        }
        _ => None,
    }
}

fn key(name: &str) -> String {
    let is_bare = !name.is_empty()
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_');
    if is_bare { name.to_owned() } else { Value::from(name).to_string() }
}

/// The candidate edits that remove a value with its line, or a table with its lines.
pub(super) fn remove(text: &str, root: &SettingNode, path: &[String]) -> Vec<TextEdit> {
    let Some(node) = root.at(path) else { return Vec::new() };
    let gone = |range: Range<usize>| TextEdit { range, text: String::new() };
    let end = line_end(text, node.span.end);
    let start = match &node.content {
        NodeContent::Map { layout: MapLayout::Block, .. } => line_start(text, node.span.start),
        _ => {
            let Some((name, parents)) = path.split_last() else { return Vec::new() };
            let key = root
                .at(parents)
                .and_then(|parent| parent.entry(name))
                .map_or(0, |entry| entry.key_span.start);
            line_start(text, key)
        }
    };
    // A blank line above a table was written with the table.
    let above = text[..start].strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text));
    let with_blank =
        above.filter(|above| above.is_empty() || above.ends_with('\n')).map(|above| gone(above.len()..end));
    let is_table = matches!(node.content, NodeContent::Map { layout: MapLayout::Block, .. });
    with_blank.filter(|_| is_table).into_iter().chain([gone(start..end)]).collect()
}
