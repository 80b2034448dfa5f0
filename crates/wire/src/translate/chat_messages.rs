//! Messages of a chat request, as written by translations.

use throughline_transcript::RawJson;

use crate::json_object::{ObjectWriter, list};
use crate::json_value::text_member;

/// The content of a message: its text, and all other parts.
#[derive(Default)]
pub(super) struct ChatContent {
    parts: Vec<String>,
    texts: Vec<String>,
}

impl ChatContent {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds text, unless it is empty.
    pub(super) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.parts.push(ObjectWriter::new().text("type", "text").text("text", text).finish());
            self.texts.push(text.to_owned());
        }
    }

    /// Adds an image by its address.
    pub(super) fn image(&mut self, address: &str, detail: Option<&str>) {
        let mut image = ObjectWriter::new().text("url", address);
        if let Some(detail) = detail {
            image = image.text("detail", detail);
        }
        let part = ObjectWriter::new().text("type", "image_url").raw("image_url", &image.finish());
        self.parts.push(part.finish());
    }

    /// Adds a file.
    pub(super) fn file(&mut self, name: &str, data: &str) {
        let file = ObjectWriter::new().text("filename", name).text("file_data", data).finish();
        self.parts.push(ObjectWriter::new().text("type", "file").raw("file", &file).finish());
    }

    /// Returns all text, each piece on its own lines.
    pub(super) fn words(&self) -> String {
        self.texts.join("\n\n")
    }

    /// Returns the content of a user message: a plain string if it is only text, which every server accepts.
    pub(super) fn to_json(&self) -> String {
        match (self.texts.as_slice(), self.parts.len()) {
            ([text], 1) => throughline_transcript::compact_json_string(text),
            _ => list(&self.parts),
        }
    }
}

/// Returns a message with text only.
pub(super) fn words_message(role: &str, text: &str) -> String {
    ObjectWriter::new().text("role", role).text("content", text).finish()
}

/// A user's message.
pub(super) fn user_message(content: &ChatContent) -> Option<String> {
    let message = || ObjectWriter::new().text("role", "user").raw("content", &content.to_json()).finish();
    (!content.is_empty()).then(message)
}

/// A tool's answer.
pub(super) fn tool_message(call_id: &str, text: &str) -> String {
    ObjectWriter::new().text("role", "tool").text("tool_call_id", call_id).text("content", text).finish()
}

/// A model's message.
pub(super) fn assistant_message(text: &str, calls: &[String]) -> Option<String> {
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let content = (!text.is_empty()).then_some(text);
    let message = ObjectWriter::new().text("role", "assistant").text_or_null("content", content);
    let calls = (!calls.is_empty()).then(|| list(calls));
    Some(message.maybe("tool_calls", calls.as_deref()).finish())
}

/// A call of a tool.
pub(super) fn call(id: &str, name: &str, arguments: &str) -> String {
    let function = ObjectWriter::new().text("name", name).text("arguments", arguments).finish();
    ObjectWriter::new().text("id", id).text("type", "function").raw("function", &function).finish()
}

/// A tool.
pub(super) fn tool(name: &str, description: Option<&str>, parameters: &str, strict: Option<&str>) -> String {
    let mut function = ObjectWriter::new().text("name", name);
    if let Some(description) = description {
        function = function.text("description", description);
    }
    let function = function.raw("parameters", parameters).maybe("strict", strict).finish();
    ObjectWriter::new().text("type", "function").raw("function", &function).finish()
}

/// The tool that must be called.
pub(super) fn named_choice(name: &str) -> String {
    let function = ObjectWriter::new().text("name", name).finish();
    ObjectWriter::new().text("type", "function").raw("function", &function).finish()
}

/// An object's `type`.
pub(super) fn kind_of(value: RawJson<'_>) -> String {
    text_member(value, "type").unwrap_or_default()
}
