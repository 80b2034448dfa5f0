//! YAML: one document of block mappings, the usual form of settings. Other constructs are not edited.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};
use serde_json::{Value, json};

use super::tree::{
    EditRefusal, MAX_DEPTH, MapLayout, NodeContent, SettingEntry, SettingNode, TextEdit, indentation,
    line_end, line_start, newline,
};

/// Parses the outermost mapping; `None` in a file without a value.
pub(super) fn parse(text: &str) -> Result<Option<SettingNode>, EditRefusal> {
    let options = granit_parser::options! { flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
    let mut open: Vec<OpenNode> = Vec::new();
    let (mut root, mut documents) = (None, 0);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| {
            EditRefusal::Invalid(format!("line {}: {}", error.marker().line(), error.info()))
        })?;
        let bytes = span.byte_range().unwrap_or(0..0);
        let tag = event.tag().map(|tag| tag.original());
        let node = match event {
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    return Err(EditRefusal::Invalid("it has more than one document".to_owned()));
                }
                continue;
            }
            Event::Scalar(text, style, ..) => {
                let value = match tag {
                    None if style != ScalarStyle::Plain || is_plain(&text) => json!(text),
                    // A number or a boolean, which is compared in its written form.
                    None => json!({ "plain": text }),
                    Some(tag) => json!({ "tag": tag, "value": text }),
                };
                SettingNode { span: bytes, content: NodeContent::Scalar(value) }
            }
            Event::Alias(_) => {
                let name = text.get(bytes.clone()).unwrap_or_default();
                SettingNode { span: bytes, content: NodeContent::Scalar(json!({ "alias": name })) }
            }
            Event::SequenceStart(style, ..) => {
                open.push(OpenNode {
                    is_map: false,
                    is_flow: style == StructureStyle::Flow,
                    start: bytes.start,
                    items: Vec::new(),
                });
                continue;
            }
            Event::MappingStart(style, ..) => {
                open.push(OpenNode {
                    is_map: true,
                    is_flow: style == StructureStyle::Flow,
                    start: bytes.start,
                    items: Vec::new(),
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(closed) => closed.node(bytes.end)?,
                None => continue,
            },
            _ => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.items.push(node),
            None => root = Some(node),
        }
    }
    match root {
        Some(root) if root.is_map() => Ok(Some(root)),
        Some(SettingNode { content: NodeContent::Scalar(value), .. }) if value == json!({ "plain": "" }) => {
            Ok(None)
        }
        None => Ok(None),
        Some(_) => Err(EditRefusal::Invalid("it is not a mapping".to_owned())),
    }
}

/// A mapping or list whose end has not been reached.
struct OpenNode {
    is_map: bool,
    is_flow: bool,
    start: usize,
    items: Vec<SettingNode>,
}

impl OpenNode {
    fn node(self, end: usize) -> Result<SettingNode, EditRefusal> {
        let last = self.items.iter().map(|item| item.span.end).max().unwrap_or(self.start);
        // The parser reports the end of a block where the next one begins.
        let span = self.start..if self.is_flow { end } else { last.max(self.start) };
        if !self.is_map {
            return Ok(SettingNode { span, content: NodeContent::List(self.items) });
        }
        let mut entries: Vec<SettingEntry> = Vec::new();
        let mut items = self.items.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            let name = match &key.content {
                NodeContent::Scalar(Value::String(name)) => name.clone(),
                NodeContent::Scalar(Value::Object(map)) => {
                    map.get("plain").and_then(Value::as_str).map(str::to_owned).ok_or(EditRefusal::Unusual)?
                }
                _ => return Err(EditRefusal::Unusual),
            };
            if entries.iter().any(|entry| entry.key == name) {
                return Err(EditRefusal::Invalid(format!("the key `{name}` is there twice")));
            }
            entries.push(SettingEntry { key: name, key_span: key.span, value });
        }
        let layout = if self.is_flow { MapLayout::Braces } else { MapLayout::Block };
        Ok(SettingNode { span, content: NodeContent::Map { entries, layout } })
    }
}

/// Converts a value to the form of `parse`, where anything but text is its plain word.
pub(super) fn as_data(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        Value::Array(items) => Value::Array(items.iter().map(as_data).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(name, value)| (name.clone(), as_data(value))).collect())
        }
        other => json!({ "plain": other.to_string() }),
    }
}

/// Whether a text can be written without quotes: addresses, paths and names.
fn is_plain(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./:".contains(letter))
        && !text.ends_with(':')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str())
}

fn written(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// The candidate edits that write a value at a path.
pub(super) fn set(text: &str, root: Option<&SettingNode>, path: &[String], value: &Value) -> Vec<TextEdit> {
    let newline = newline(text);
    let Some(root) = root else {
        return vec![TextEdit::insert(text.len(), lines(text, path, value, 0, newline))];
    };
    let (node, missing) = root.deepest(path);
    if missing.is_empty() {
        return match node.content {
            NodeContent::Scalar(_) if !node.span.is_empty() => {
                vec![TextEdit { range: node.span.clone(), text: written(value) }]
            }
            _ => Vec::new(),
        };
    }
    let NodeContent::Map { entries, layout: MapLayout::Block } = &node.content else { return Vec::new() };
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Vec::new() };
    let Some(indent) = indentation(text, first.key_span.start) else { return Vec::new() };
    let end = last.value.span.end.max(last.key_span.end + 1).min(text.len());
    // The text of a block ends with its last line, its span on the next line.
    let mut places = vec![line_end(text, end)];
    if text[..end].ends_with('\n') {
        places.insert(0, end);
    }
    if std::ptr::eq(node, root) {
        places.push(text.len());
    }
    places
        .into_iter()
        .map(|at| TextEdit::insert(at, lines(&text[..at], missing, value, indent.len(), newline)))
        .collect()
}

/// Formats lines for the missing names, after a text.
fn lines(before: &str, missing: &[String], value: &Value, indent: usize, newline: &str) -> String {
    let mut out = String::new();
    if !before.is_empty() && !before.ends_with('\n') {
        out.push_str(newline);
    }
    push(&mut out, missing, value, indent, newline);
    if !before.is_empty() && !before.ends_with('\n') {
        // A file without a final line break stays without one.
        out.truncate(out.trim_end().len());
    }
    out
}

fn push(out: &mut String, names: &[String], value: &Value, indent: usize, newline: &str) {
    let Some((name, rest)) = names.split_first() else { return };
    out.push_str(&" ".repeat(indent));
    out.push_str(&written(&json!(name)));
    out.push(':');
    match value {
        _ if !rest.is_empty() => {
            out.push_str(newline);
            push(out, rest, value, indent + 2, newline);
        }
        Value::Object(map) => {
            out.push_str(newline);
            for (name, value) in map {
                push(out, std::slice::from_ref(name), value, indent + 2, newline);
            }
        }
        value => {
            out.push(' ');
            out.push_str(&written(value));
            out.push_str(newline);
        }
    }
}

/// The candidate edits that remove the lines of an entry.
pub(super) fn remove(text: &str, root: &SettingNode, path: &[String]) -> Vec<TextEdit> {
    let Some((name, parents)) = path.split_last() else { return Vec::new() };
    let Some(parent) = root.at(parents) else { return Vec::new() };
    let (Some(entry), NodeContent::Map { layout: MapLayout::Block, entries }) =
        (parent.entry(name), &parent.content)
    else {
        return Vec::new();
    };
    let gone = |range: Range<usize>| TextEdit { range, text: String::new() };
    let start = line_start(text, entry.key_span.start);
    let end = entry.value.span.end.max(entry.key_span.end);
    if let [_] = entries.as_slice()
        && !parents.is_empty()
    {
        // A section without entries would be null; the caller removes the whole section by its path instead.
        return Vec::new();
    }
    let mut ways = vec![gone(start..line_end(text, end))];
    if text[..end].ends_with('\n') {
        ways.insert(0, gone(start..end));
    }
    ways
}
