//! JSON, with the comments and trailing commas that many programs allow in their settings.

use std::ops::Range;

use serde_json::Value;

use super::tree::{
    EditRefusal, MAX_DEPTH, MapLayout, NodeContent, SettingEntry, SettingNode, TextEdit, indentation,
    line_start, newline,
};

/// Parses the outermost object; `None` in a file without a value.
pub(super) fn parse(text: &str) -> Result<Option<SettingNode>, EditRefusal> {
    let mut reader = JsonReader { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } };
    reader.skip()?;
    if reader.peek().is_none() {
        return Ok(None);
    }
    let root = reader.value(0)?;
    reader.skip()?;
    if reader.peek().is_some() {
        return Err(reader.wrong("there is more after the end"));
    }
    if !root.is_map() {
        return Err(EditRefusal::Invalid("it is not an object".to_owned()));
    }
    Ok(Some(root))
}

struct JsonReader<'a> {
    text: &'a str,
    at: usize,
}

impl JsonReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong(&self, what: &str) -> EditRefusal {
        let line = self.text.as_bytes()[..self.at.min(self.text.len())]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1;
        EditRefusal::Invalid(format!("line {line}: {what}"))
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), EditRefusal> {
        loop {
            let rest = &self.text[self.at..];
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'/') if rest.starts_with("//") => self.at += rest.find('\n').unwrap_or(rest.len()),
                Some(b'/') if rest.starts_with("/*") => match rest.find("*/") {
                    Some(end) => self.at += end + 2,
                    None => return Err(self.wrong("a comment has no end")),
                },
                _ => return Ok(()),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<SettingNode, EditRefusal> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("it is nested too deeply"));
        }
        let start = self.at;
        let content = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => NodeContent::Scalar(Value::String(self.string()?)),
            Some(_) => {
                let rest = &self.text[start..];
                let length =
                    rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || "+-.".contains(letter)));
                let word = &rest[..length.unwrap_or(rest.len())];
                let value = serde_json::from_str(word).map_err(|_| self.wrong("a value is missing"))?;
                self.at += word.len();
                NodeContent::Scalar(value)
            }
            None => return Err(self.wrong("it ends too early")),
        };
        Ok(SettingNode { span: start..self.at, content })
    }

    fn string(&mut self) -> Result<String, EditRefusal> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        loop {
            match bytes.get(at) {
                Some(b'\\') => at += 2,
                Some(b'"') => break,
                Some(_) => at += 1,
                None => return Err(self.wrong("a string has no end")),
            }
        }
        let text = self.text.get(start..=at).unwrap_or_default();
        let string = serde_json::from_str(text).map_err(|_| self.wrong("a string is invalid"))?;
        self.at = at + 1;
        Ok(string)
    }

    fn object(&mut self, depth: usize) -> Result<NodeContent, EditRefusal> {
        let mut entries: Vec<SettingEntry> = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            match self.peek() {
                Some(b'}') => break,
                Some(b'"') => {}
                _ => return Err(self.wrong("a key is missing")),
            }
            let start = self.at;
            let key = self.string()?;
            let key_span = start..self.at;
            if entries.iter().any(|entry| entry.key == key) {
                return Err(self.wrong(&format!("the key `{key}` is there twice")));
            }
            self.skip()?;
            if self.peek() != Some(b':') {
                return Err(self.wrong("a colon is missing"));
            }
            self.at += 1;
            self.skip()?;
            let value = self.value(depth + 1)?;
            entries.push(SettingEntry { key, key_span, value });
            self.skip()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.wrong("a comma is missing")),
            }
        }
        self.at += 1;
        Ok(NodeContent::Map { entries, layout: MapLayout::Braces })
    }

    fn array(&mut self, depth: usize) -> Result<NodeContent, EditRefusal> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.peek() == Some(b']') {
                break;
            }
            items.push(self.value(depth + 1)?);
            self.skip()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.wrong("a comma is missing")),
            }
        }
        self.at += 1;
        Ok(NodeContent::List(items))
    }
}

/// The position after white space and comments, and whether there were comments.
fn after_blanks(text: &str, at: usize) -> (usize, bool) {
    let mut reader = JsonReader { text, at };
    let _ = reader.skip();
    (reader.at, text[at..reader.at].contains('/'))
}

/// The candidate edits that write a value at a path.
pub(super) fn set(text: &str, root: Option<&SettingNode>, path: &[String], value: &Value) -> Vec<TextEdit> {
    let writer = JsonWriter { newline: newline(text), step: step(text, root) };
    let Some(root) = root else {
        let object = format!("{{{}{}{}}}", writer.newline, writer.member(path, value, 1), writer.newline);
        // Comments of a file without a value stay above it.
        let before = if text.is_empty() || text.ends_with('\n') { "" } else { writer.newline };
        return vec![TextEdit::insert(text.len(), format!("{before}{object}{}", writer.newline))];
    };
    let (node, missing) = root.deepest(path);
    if missing.is_empty() {
        let indent =
            indentation(text, line_of(text, node.span.start)).map_or(0, |blanks| writer.levels(blanks));
        return vec![TextEdit { range: node.span.clone(), text: writer.value(value, indent) }];
    }
    if !node.is_map() {
        return Vec::new();
    }
    let inside = &text[node.span.clone()];
    match node.entries().last() {
        Some(last) => vec![after(text, node, last, missing, value, &writer)],
        None if inside.contains('\n') => {
            let at = line_start(text, node.span.end - 1);
            let outer = indentation(text, node.span.end - 1).map_or(0, |blanks| writer.levels(blanks));
            let member = writer.member(missing, value, outer + 1);
            vec![TextEdit::insert(at, format!("{member}{}", writer.newline)), in_line(node, missing, value)]
        }
        None if inside == "{}" => {
            let depth = path.len() - missing.len();
            let outer = indentation(text, line_of(text, node.span.start))
                .map_or(depth, |blanks| writer.levels(blanks));
            let member = writer.member(missing, value, outer + 1);
            let lines = format!("{0}{member}{0}{1}", writer.newline, writer.step.repeat(outer));
            vec![TextEdit::insert(node.span.start + 1, lines)]
        }
        None => vec![in_line(node, missing, value)],
    }
}

/// The first non-blank character of a line.
fn line_of(text: &str, at: usize) -> usize {
    let start = line_start(text, at);
    start + (text[start..].len() - text[start..].trim_start_matches([' ', '\t']).len()).min(at - start)
}

fn in_line(node: &SettingNode, missing: &[String], value: &Value) -> TextEdit {
    TextEdit::insert(node.span.end - 1, format!(" {} ", compact(missing, value)))
}

fn compact(missing: &[String], value: &Value) -> String {
    let Some((name, rest)) = missing.split_first() else { return value.to_string() };
    let inner = if rest.is_empty() { value.to_string() } else { format!("{{{}}}", compact(rest, value)) };
    format!("{}: {inner}", Value::from(name.as_str()))
}

/// Inserts after the last member: on a new line if members have separate lines, unless a comment would be separated from its member.
fn after(
    text: &str,
    node: &SettingNode,
    last: &SettingEntry,
    missing: &[String],
    value: &Value,
    writer: &JsonWriter,
) -> TextEdit {
    let end = last.value.span.end;
    let (next, has_comment) = after_blanks(text, end);
    let has_comma = text[next..].starts_with(',');
    let has_comment = has_comment || (has_comma && after_blanks(text, next + 1).1);
    let own_line = indentation(text, last.key_span.start).filter(|_| text[node.span.clone()].contains('\n'));
    let member = match own_line.filter(|_| !has_comment) {
        Some(indent) => format!("{}{}", writer.newline, writer.member(missing, value, writer.levels(indent))),
        None => format!(" {}", compact(missing, value)),
    };
    if has_comma {
        TextEdit::insert(next + 1, format!("{member},"))
    } else {
        TextEdit::insert(end, format!(",{member}"))
    }
}

struct JsonWriter<'a> {
    newline: &'static str,
    step: &'a str,
}

impl JsonWriter<'_> {
    fn levels(&self, blanks: &str) -> usize {
        blanks.len() / self.step.len().max(1)
    }

    fn member(&self, names: &[String], value: &Value, indent: usize) -> String {
        let blanks = self.step.repeat(indent);
        let Some((name, rest)) = names.split_first() else { return String::new() };
        let value = if rest.is_empty() {
            self.value(value, indent)
        } else {
            format!("{{{0}{1}{0}{blanks}}}", self.newline, self.member(rest, value, indent + 1))
        };
        format!("{blanks}{}: {value}", Value::from(name.as_str()))
    }

    fn value(&self, value: &Value, indent: usize) -> String {
        match value {
            Value::Object(map) if !map.is_empty() => {
                let members: Vec<String> = map
                    .iter()
                    .map(|(name, value)| self.member(std::slice::from_ref(name), value, indent + 1))
                    .collect();
                let members = members.join(&format!(",{}", self.newline));
                format!("{{{0}{members}{0}{1}}}", self.newline, self.step.repeat(indent))
            }
            other => other.to_string(),
        }
    }
}

/// The indentation of one level in the text.
fn step<'a>(text: &'a str, root: Option<&SettingNode>) -> &'a str {
    let first = root.and_then(|root| root.entries().first());
    first
        .and_then(|first| indentation(text, first.key_span.start))
        .filter(|blanks| !blanks.is_empty())
        .unwrap_or("  ")
}

/// The candidate edits that remove a member.
pub(super) fn remove(text: &str, root: &SettingNode, path: &[String]) -> Vec<TextEdit> {
    let Some((name, parents)) = path.split_last() else { return Vec::new() };
    let Some(map) = root.at(parents) else { return Vec::new() };
    let Some(at) = map.entries().iter().position(|entry| entry.key == *name) else { return Vec::new() };
    let entry = &map.entries()[at];
    let gone = |range: Range<usize>| TextEdit { range, text: String::new() };
    let end = entry.value.span.end;
    let (next, _) = after_blanks(text, end);
    // Removes the white space before the key, but no comments.
    let before = text[..entry.key_span.start].trim_end_matches([' ', '\t']);
    let before = before.strip_suffix('\n').map_or(before, |text| text.strip_suffix('\r').unwrap_or(text));
    let start = before.len().max(map.span.start + 1);
    if text[next..].starts_with(',') {
        return vec![gone(start..next + 1), gone(entry.key_span.start..next + 1)];
    }
    let Some(previous) = at.checked_sub(1).and_then(|at| map.entries().get(at)) else {
        // The only member: the braces are closed again, if there is nothing else between them.
        let is_bare = text[map.span.start + 1..entry.key_span.start].trim().is_empty()
            && text[end..map.span.end - 1].trim().is_empty();
        let inside = gone(map.span.start + 1..map.span.end - 1);
        return is_bare.then_some(inside).into_iter().chain([gone(start..end)]).collect();
    };
    let (comma, has_comment) = after_blanks(text, previous.value.span.end);
    let between = &text[comma + 1..entry.key_span.start];
    if has_comment || !between.trim().is_empty() {
        // A comment between the two members stays, and the comma with it, if the program allows a trailing comma.
        let kept = text[previous.value.span.end..comma].to_owned()
            + text[comma + 1..start.max(comma + 1)].trim_end();
        return vec![TextEdit { range: previous.value.span.end..end, text: kept }, gone(start..end)];
    }
    vec![gone(comma..end)]
}
