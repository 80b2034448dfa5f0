//! JSON: of long lists, the first elements, the last, the errors, those of another shape, and the first with each value
//! of a field with few values; of long texts, the beginning and end. The result is valid JSON.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use throughline_transcript::{RawJson, compact_json_string};

use super::draft::{Draft, MARK};
use super::lines::{counted, tells_of_error};

/// Lists of up to this many elements are not shortened.
const SHORT_LIST: usize = 8;
const FIRST_ELEMENTS: usize = 3;
/// The maximum number of values of a field with few values.
const FEW_VALUES: usize = 8;
/// The maximum number of fields compared, and the maximum length of a value in bytes.
const MOST_FIELDS: usize = 12;
const SHORT_VALUE_BYTES: usize = 40;
/// The maximum number of elements of a list that remain because their structure or a value differs.
const MOST_OUTLIERS: usize = 24;
/// Longer texts are reduced to their beginning and end.
const LONG_TEXT_BYTES: usize = 800;
const TEXT_FIRST: usize = 400;
const TEXT_LAST: usize = 150;
/// Objects of up to this many members keep all of them; of a larger one, the first half as many, the last and errors remain.
const SHORT_OBJECT: usize = 60;
/// Deeper values are copied unchanged.
const MOST_DEPTH: usize = 32;

/// Shortens a text that is one JSON list or object; `None` for other texts.
pub(super) fn shrink(text: &str) -> Option<Draft> {
    let trimmed = text.trim();
    if !matches!(trimmed.as_bytes().first(), Some(b'[' | b'{')) {
        return None;
    }
    serde_json::from_str::<&RawValue>(trimmed).ok()?;
    let mut out = ShortenedJson::default();
    out.value(RawJson(trimmed), 0);
    let left_out = format!("{}, {}", counted(out.elements, "element"), counted(out.bytes, "byte of texts"));
    Some(Draft { text: out.text, left_out })
}

#[derive(Default)]
struct ShortenedJson {
    text: String,
    /// Number of elements and members left out.
    elements: usize,
    /// Bytes left out of texts.
    bytes: usize,
}

impl ShortenedJson {
    fn value(&mut self, value: RawJson<'_>, depth: usize) {
        let json = value.0.trim();
        let is_short = json.len() <= LONG_TEXT_BYTES / 4;
        match json.as_bytes().first() {
            _ if is_short || depth >= MOST_DEPTH => self.text.push_str(json),
            Some(b'"') => self.string(json),
            Some(b'[') => self.list(value, depth),
            Some(b'{') => self.object(value, depth),
            _ => self.text.push_str(json),
        }
    }

    fn string(&mut self, json: &str) {
        let text = match RawJson(json).as_text() {
            Some(text) if text.len() > LONG_TEXT_BYTES && !tells_of_error(&text) => text,
            _ => return self.text.push_str(json),
        };
        let first = text.floor_char_boundary(TEXT_FIRST);
        let last = text.ceil_char_boundary(text.len() - TEXT_LAST);
        self.bytes += last - first;
        let (first_part, last_part) =
            (text.get(..first).unwrap_or_default(), text.get(last..).unwrap_or_default());
        let short = format!("{first_part}{MARK}{} bytes]{last_part}", last - first);
        self.text.push_str(&compact_json_string(&short));
    }

    fn list(&mut self, value: RawJson<'_>, depth: usize) {
        let elements: Vec<RawJson<'_>> = value.elements().collect();
        let keep = chosen(&elements);
        self.text.push('[');
        let mut at = 0;
        while at < elements.len() {
            if at > 0 {
                self.text.push(',');
            }
            if keep.contains(&at) {
                if let Some(element) = elements.get(at) {
                    self.value(*element, depth + 1);
                }
                at += 1;
                continue;
            }
            let end = (at..elements.len()).find(|index| keep.contains(index)).unwrap_or(elements.len());
            self.elements += end - at;
            self.text.push_str(&compact_json_string(&format!("{MARK}{}]", counted(end - at, "element"))));
            at = end;
        }
        self.text.push(']');
    }

    fn object(&mut self, value: RawJson<'_>, depth: usize) {
        let count = value.members().count();
        let mut left_out = 0;
        self.text.push('{');
        let mut is_first = true;
        for (index, (name, member)) in value.members().enumerate() {
            let is_kept = count <= SHORT_OBJECT
                || index < SHORT_OBJECT / 2
                || index + 1 == count
                || (is_error(member.0) || tells_of_error(&name) && !is_nothing(member.0));
            if !is_kept {
                left_out += 1;
                continue;
            }
            if !std::mem::take(&mut is_first) {
                self.text.push(',');
            }
            self.text.push_str(&compact_json_string(&name));
            self.text.push(':');
            self.value(member, depth + 1);
        }
        if left_out > 0 {
            self.elements += left_out;
            let mark = compact_json_string(&format!("{MARK}{}]", counted(left_out, "member")));
            self.text.push_str(&format!(",{mark}:null"));
        }
        self.text.push('}');
    }
}

/// Returns the positions of the remaining elements.
fn chosen(elements: &[RawJson<'_>]) -> HashSet<usize> {
    let count = elements.len();
    if count <= SHORT_LIST {
        return (0..count).collect();
    }
    let mut keep: HashSet<usize> = (0..FIRST_ELEMENTS).chain([count - 1]).collect();
    let (mut shapes, mut values) = (HashSet::new(), HashMap::<String, HashSet<String>>::new());
    let mut outliers = 0;
    let mut extremes: Option<((f64, usize), (f64, usize))> = None;
    for (index, element) in elements.iter().enumerate() {
        if is_error(element.0) {
            keep.insert(index);
        }
        if let Ok(number) = element.0.trim().parse::<f64>() {
            let now = (number, index);
            let (low, high) = extremes.unwrap_or((now, now));
            extremes =
                Some((if number < low.0 { now } else { low }, if number > high.0 { now } else { high }));
            continue;
        }
        if outliers >= MOST_OUTLIERS || !element.0.trim_start().starts_with('{') {
            continue;
        }
        let mut shape = String::new();
        let mut is_new = false;
        for (name, member) in element.members().take(MOST_FIELDS) {
            shape.push_str(&name);
            shape.push(',');
            if member.0.len() > SHORT_VALUE_BYTES {
                continue;
            }
            let seen = values.entry(name.into_owned()).or_default();
            // A field with many values identifies elements, not kinds of elements.
            if seen.len() <= FEW_VALUES && seen.insert(member.0.to_owned()) && seen.len() <= FEW_VALUES {
                is_new = true;
            }
        }
        if shapes.insert(shape) || is_new {
            outliers += 1;
            keep.insert(index);
        }
    }
    if let Some((low, high)) = extremes {
        keep.extend([low.1, high.1]);
    }
    keep
}

/// Whether a value reports an error: an empty member of such a name does not.
fn is_error(json: &str) -> bool {
    let mut rest = json;
    while let Some(at) = super::lines::error_at(rest) {
        let behind = rest.get(at..).unwrap_or_default();
        let word =
            behind.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ' ')).unwrap_or(behind.len());
        let (_, after) = behind.split_at(word.max(1).min(behind.len()));
        let Some(value) =
            after.strip_prefix('"').map(str::trim_start).and_then(|rest| rest.strip_prefix(':'))
        else {
            return true;
        };
        if !is_nothing(value) {
            return true;
        }
        rest = after;
    }
    false
}

/// Whether a value is empty.
fn is_nothing(json: &str) -> bool {
    let value = json.trim_start();
    let ends = |rest: &str| rest.is_empty() || rest.starts_with([',', '}', ']', ' ', '\n', '\r']);
    ["null", "false", "0", "\"\"", "[]", "{}"].iter().any(|word| value.strip_prefix(word).is_some_and(ends))
}
