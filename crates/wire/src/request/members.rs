//! The members of a JSON object as pieces of its original text, so that one can be replaced, removed or added and everything else is
//! written back byte for byte.

use throughline_transcript::{RawJson, SharedText};

/// The value of a member.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Raw JSON.
    Json(SharedText),
    /// The list of messages, stored separately.
    Messages,
}

/// One member.
#[derive(Clone, Debug)]
pub(crate) struct RequestMember {
    pub(crate) name: String,
    /// Everything between the previous value (or the brace) and this one: comma, white space, the quoted key, the colon.
    intro: SharedText,
    pub(crate) value: Value,
}

/// All members of an object, in order.
#[derive(Clone, Debug)]
pub(crate) struct RequestMembers {
    /// Up to and including the brace.
    opening: SharedText,
    members: Vec<RequestMember>,
    /// From the end of the last value to the end of the text.
    closing: SharedText,
}

impl RequestMembers {
    /// An object without members.
    pub(crate) fn empty() -> Self {
        let piece = |text: &str| SharedText::new(text.to_owned());
        Self { opening: piece("{"), members: Vec::new(), closing: piece("}") }
    }

    /// Splits a text whose object starts at `object_start`. The positions of values come from `RawJson`; the text must be valid JSON.
    pub(crate) fn of_document(document: &SharedText, object_start: usize) -> Self {
        let text = document.as_str();
        let object = RawJson(text.get(object_start..).unwrap_or_default());
        let mut at = (object_start + 1).min(text.len());
        let opening = document.slice(0..at);
        let mut members = Vec::new();
        for (name, value) in object.members() {
            let start = offset_in(text, value.0).unwrap_or(at).max(at);
            let end = start + value.0.len();
            members.push(RequestMember {
                name: name.into_owned(),
                intro: document.slice(at..start),
                value: Value::Json(document.slice(start..end)),
            });
            at = end;
        }
        Self { opening, members, closing: document.slice(at..text.len()) }
    }

    /// Whether one of them is the list of messages.
    pub(crate) fn hold_messages(&self) -> bool {
        self.members.iter().any(|member| matches!(member.value, Value::Messages))
    }

    /// Marks a member as the list of messages, which is stored separately.
    pub(crate) fn make_hold_messages(&mut self, name: &str) {
        match self.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.value = Value::Messages,
            None => self.push(name, Value::Messages),
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &RequestMember> {
        self.members.iter()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&SharedText> {
        self.members.iter().find(|member| member.name == name).and_then(|member| match &member.value {
            Value::Json(json) => Some(json),
            Value::Messages => None,
        })
    }

    /// Replaces the value of a member, or appends one in the style of those before it.
    pub(crate) fn set(&mut self, name: &str, json: &str) {
        let value = Value::Json(SharedText::new(json.to_owned()));
        match self.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.value = value,
            None => self.push(name, value),
        }
    }

    /// Adds a member at the end.
    pub(crate) fn push(&mut self, name: &str, value: Value) {
        // The second member shows the separators; without one, the simplest style is used.
        let (before_key, after_key) = match (self.members.as_slice(), self.members.get(1)) {
            ([], _) => ("", ":"),
            (_, Some(second)) => around_key(second.intro.as_str()),
            (_, None) => (",", ":"),
        };
        let mut intro = String::from(before_key);
        throughline_transcript::write_json_string(name, &mut intro);
        intro.push_str(after_key);
        self.members.push(RequestMember { name: name.to_owned(), intro: SharedText::new(intro), value });
    }

    /// Removes a member. The list of messages is not removed.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let is_wanted =
            |member: &RequestMember| member.name == name && matches!(member.value, Value::Json(_));
        let Some(at) = self.members.iter().position(is_wanted) else { return false };
        let removed = self.members.remove(at);
        if at == 0
            && let Some(next) = self.members.first_mut()
        {
            let (before_key, _) = around_key(removed.intro.as_str());
            let from_key = next.intro.as_str().find('"').unwrap_or(0);
            let key = next.intro.as_str().get(from_key..).unwrap_or_default();
            next.intro = SharedText::new(format!("{before_key}{key}"));
        }
        true
    }

    /// Returns the size of everything except the messages.
    pub(crate) fn written_bytes(&self) -> usize {
        let members = self.members.iter().map(|member| {
            let value = match &member.value {
                Value::Json(json) => json.len(),
                Value::Messages => 0,
            };
            member.intro.len() + value
        });
        self.opening.len() + members.sum::<usize>() + self.closing.len()
    }

    /// Writes the object; the list of messages is written by the caller.
    pub(crate) fn write(&self, out: &mut Vec<u8>, mut write_messages: impl FnMut(&mut Vec<u8>)) {
        out.extend_from_slice(self.opening.as_str().as_bytes());
        for member in &self.members {
            out.extend_from_slice(member.intro.as_str().as_bytes());
            match &member.value {
                Value::Json(json) => out.extend_from_slice(json.as_str().as_bytes()),
                Value::Messages => write_messages(out),
            }
        }
        out.extend_from_slice(self.closing.as_str().as_bytes());
    }
}

/// Returns the text before the opening quote of a key, and the text after its closing quote.
fn around_key(intro: &str) -> (&str, &str) {
    let before = intro.find('"').and_then(|at| intro.get(..at));
    let after = intro.rfind('"').and_then(|at| intro.get(at + 1..));
    (before.unwrap_or(","), after.unwrap_or(":"))
}

/// Returns the offset of a piece in its text.
pub(crate) fn offset_in(text: &str, piece: &str) -> Option<usize> {
    let at = (piece.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    (at.checked_add(piece.len())? <= text.len()).then_some(at)
}
