//! A JSON value that grows by deltas.
//!
//! Streams send a value in pieces: strings to append, list elements by index, members of objects. Values remain raw text until a piece has
//! to be inserted, and strings are joined in their escaped form, so that the result is what the provider would have written: an emoji whose
//! surrogates were split between two deltas is whole again.

use throughline_transcript::{RawJson, unescape, write_json_string};

/// Members that identify something. Servers repeat them in every delta, so they must not be appended.
const NAMING: [&str; 9] = ["id", "type", "index", "role", "name", "format", "object", "status", "signature"];

/// A value under construction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonNode {
    /// Raw text.
    Raw(String),
    /// The inside of a string, escaped.
    Text(String),
    /// Elements.
    List(Vec<JsonNode>),
    /// Members in their order.
    Object(Vec<(String, JsonNode)>),
}

impl JsonNode {
    pub(crate) fn raw(value: RawJson<'_>) -> Self {
        Self::Raw(value.0.to_owned())
    }

    pub(crate) fn null() -> Self {
        Self::Raw("null".to_owned())
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Raw(json) if json == "null")
    }

    /// Merges a delta into the member `name`.
    pub(crate) fn merge(&mut self, name: &str, delta: RawJson<'_>) {
        match delta.0.as_bytes().first() {
            None | Some(b'n') => {}
            _ if self.is_null() => *self = Self::raw(delta),
            Some(b'"') if NAMING.contains(&name) => {
                if delta.0 != "\"\"" {
                    *self = Self::raw(delta);
                }
            }
            Some(b'"') => match self.text_mut() {
                Some(text) => text.push_str(inside(delta)),
                None => *self = Self::raw(delta),
            },
            Some(b'[') => match self.list_mut() {
                Some(list) => delta.elements().for_each(|element| merge_element(list, element)),
                None => *self = Self::raw(delta),
            },
            Some(b'{') => match self.object_mut() {
                Some(members) => merge_members(members, delta),
                None => *self = Self::raw(delta),
            },
            Some(_) => *self = Self::raw(delta),
        }
    }

    /// Returns the escaped characters of a string; `None` for other values.
    pub(crate) fn text_mut(&mut self) -> Option<&mut String> {
        if let Self::Raw(json) = self
            && json.starts_with('"')
        {
            *self = Self::Text(inside(RawJson(json)).to_owned());
        }
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the elements of a list; `None` for other values.
    pub(crate) fn list_mut(&mut self) -> Option<&mut Vec<JsonNode>> {
        if let Self::Raw(json) = self
            && json.starts_with('[')
        {
            *self = Self::List(RawJson(json).elements().map(Self::raw).collect());
        }
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// Returns the members of an object; `None` for other values.
    pub(crate) fn object_mut(&mut self) -> Option<&mut Vec<(String, JsonNode)>> {
        if let Self::Raw(json) = self
            && json.starts_with('{')
        {
            *self = Self::Object(members_of(RawJson(json)));
        }
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The list in the member `name` of an object, created when absent.
    pub(crate) fn list_under(&mut self, name: &str) -> Option<&mut Vec<JsonNode>> {
        let slot = slot(self.object_mut()?, name);
        if slot.list_mut().is_none() {
            *slot = Self::List(Vec::new());
        }
        slot.list_mut()
    }

    /// Whether it is a content part with only text. Determined without writing it out, which would copy all text so far for every delta.
    fn is_plain_text(&self) -> bool {
        match self {
            Self::Raw(json) => is_plain_text(RawJson(json)),
            Self::Object(members) => members.iter().all(|(name, value)| match (name.as_str(), value) {
                ("type", Self::Raw(kind)) => kind == "\"text\"",
                ("text", Self::Text(_)) => true,
                ("text", Self::Raw(text)) => text.starts_with('"'),
                _ => false,
            }),
            Self::Text(_) | Self::List(_) => false,
        }
    }

    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Raw(json) => out.push_str(json),
            Self::Text(text) => {
                out.push('"');
                out.push_str(text);
                out.push('"');
            }
            Self::List(list) => {
                out.push('[');
                for (index, element) in list.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => write_object(members, out),
        }
    }

    pub(crate) fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

/// Members of an object, each as it came.
pub(crate) fn members_of(object: RawJson<'_>) -> Vec<(String, JsonNode)> {
    object.members().map(|(name, value)| (name.into_owned(), JsonNode::raw(value))).collect()
}

/// Merges every member of a delta into the member of the same name.
pub(crate) fn merge_members(members: &mut Vec<(String, JsonNode)>, delta: RawJson<'_>) {
    for (name, value) in delta.members() {
        slot(members, &name).merge(&name, value);
    }
}

/// The member of this name, created as `null` when absent.
pub(crate) fn slot<'a>(members: &'a mut Vec<(String, JsonNode)>, name: &str) -> &'a mut JsonNode {
    let at = members.iter().position(|(own, _)| own == name).unwrap_or_else(|| {
        members.push((name.to_owned(), JsonNode::null()));
        members.len() - 1
    });
    &mut members[at].1
}

pub(crate) fn write_object(members: &[(String, JsonNode)], out: &mut String) {
    out.push('{');
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_json_string(name, out);
        out.push(':');
        value.write(out);
    }
    out.push('}');
}

/// Merges an element of a delta into a list: into the element with its index, or into the last if both are plain text, or else at the end.
fn merge_element(list: &mut Vec<JsonNode>, element: RawJson<'_>) {
    if let Some(index) = element.get("index") {
        let known = list.iter_mut().find(|own| index_of(own).as_deref() == Some(index.0));
        if let Some(members) = known.and_then(JsonNode::object_mut) {
            return merge_members(members, element);
        }
    } else if is_plain_text(element)
        && let Some(last) = list.last_mut()
        && last.is_plain_text()
        && let Some(members) = last.object_mut()
    {
        return merge_members(members, element);
    }
    list.push(JsonNode::raw(element));
}

fn index_of(node: &JsonNode) -> Option<String> {
    match node {
        JsonNode::Raw(json) => RawJson(json).get("index").map(|index| index.0.to_owned()),
        JsonNode::Object(members) => {
            members.iter().find(|(name, _)| name == "index").map(|(_, value)| value.to_json())
        }
        _ => None,
    }
}

/// Whether a content part has only text.
fn is_plain_text(element: RawJson<'_>) -> bool {
    element.get("type").is_some_and(|kind| kind.0 == "\"text\"")
        && element.members().all(|(name, value)| match &*name {
            "type" => true,
            "text" => value.0.starts_with('"'),
            _ => false,
        })
}

/// Returns the escaped characters inside a string value.
pub(crate) fn inside(string: RawJson<'_>) -> &str {
    string.0.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default()
}

/// Converts pieces of an escaped string to plain text. Half of a surrogate pair at the end of a piece waits for the other half.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextTap {
    held: String,
}

impl TextTap {
    /// The text that this piece completes.
    pub(crate) fn pass(&mut self, piece: &str) -> String {
        let joined;
        let piece = if self.held.is_empty() {
            piece
        } else {
            joined = std::mem::take(&mut self.held) + piece;
            &joined
        };
        let ready = piece.len() - half_pair_bytes(piece);
        self.held = piece.get(ready..).unwrap_or_default().to_owned();
        unescape(piece.get(..ready).unwrap_or_default())
    }
}

/// Returns the length of a high surrogate's escape at the end of an escaped string, zero if there is none.
fn half_pair_bytes(escaped: &str) -> usize {
    const ESCAPE_BYTES: usize = 6;
    let bytes = escaped.as_bytes();
    let Some(start) = bytes.len().checked_sub(ESCAPE_BYTES) else { return 0 };
    let is_half =
        matches!(&bytes[start..], [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..]);
    // An even number of backslashes before it; otherwise the first of these six is itself escaped.
    let backslashes = bytes[..start].iter().rev().take_while(|byte| **byte == b'\\').count();
    if is_half && backslashes.is_multiple_of(2) { ESCAPE_BYTES } else { 0 }
}

#[cfg(test)]
#[path = "json_tree_tests.rs"]
mod tests;
