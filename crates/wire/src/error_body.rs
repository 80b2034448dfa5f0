//! Provider errors, in every shape in which they occur.
//!
//! The shapes differ (an `error` object, a bare string, a flat object, a list, a page of HTML); the contents are the same few things.
//! [`ErrorBody::raw`] has the whole body for a more detailed analysis.
//!
//! Not for: what an error means and what to do about it.

use std::borrow::Cow;
use std::fmt;

use throughline_transcript::RawJson;

use crate::json_value::{is_absent, is_json, non_empty_text, number_or_text, pick};

/// A plain-text or HTML body is cut to this many characters for its message; `raw` keeps all of it.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// An error as a provider stated it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorBody {
    /// The provider's message; may be empty.
    pub message: String,
    /// The kind of error (`type` on most wires).
    pub kind: Option<String>,
    /// The code. Some providers write a number.
    pub code: Option<String>,
    /// The request member it is about.
    pub param: Option<String>,
    /// The whole body or event, unchanged.
    pub raw: String,
}

impl ErrorBody {
    /// Recognises an error in a body or event that should have been an answer: only if it cannot be anything else.
    #[must_use]
    pub fn recognise(json: &str) -> Option<Self> {
        if !is_json(json) {
            return None;
        }
        Self::in_object(RawJson(json), json)
    }

    /// Parses the body of a response whose status is an error. Never fails: returns the fields if there are any, or else the text (of a
    /// page, without its markup).
    #[must_use]
    pub fn of_failed_response(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        if is_json(&text) {
            let value = RawJson(text.trim());
            let holder = value.elements().next().unwrap_or(value);
            let found = Self::in_object(holder, &text).or_else(|| Self::flat(holder, &text));
            return found.unwrap_or_else(|| Self::plain(value.as_text().unwrap_or(Cow::Borrowed("")), &text));
        }
        Self::plain(without_markup(&text), &text)
    }

    /// Returns the error in the `error` member of an object, or in an object that is itself an error.
    pub(crate) fn in_object(object: RawJson<'_>, raw: &str) -> Option<Self> {
        let [error, kind, class] = pick(object, ["error", "type", "object"]);
        if let Some(error) = error {
            // `"error": false` means that there was none.
            return (error.0 != "false").then(|| Self::of_value(error, object, raw));
        }
        if [kind, class].contains(&Some(RawJson("\"error\""))) {
            return Self::flat(object, raw).or_else(|| Some(Self::plain(Cow::Borrowed(""), raw)));
        }
        None
    }

    /// The value of an `error` member: an object, or a bare message.
    fn of_value(error: RawJson<'_>, holder: RawJson<'_>, raw: &str) -> Self {
        let mut found = match error.as_text() {
            Some(message) => Self { message: message.into_owned(), ..Self::default() },
            None => Self {
                message: message_of(error).unwrap_or_default(),
                kind: error.get("type").or_else(|| error.get("status")).and_then(number_or_text),
                code: error.get("code").and_then(number_or_text),
                param: error.get("param").and_then(non_empty_text),
                raw: String::new(),
            },
        };
        if found.message.is_empty() {
            found.message = message_of(holder).unwrap_or_default();
        }
        found.raw = raw.to_owned();
        found
    }

    /// An object whose own members are the error.
    fn flat(object: RawJson<'_>, raw: &str) -> Option<Self> {
        let message = message_of(object)?;
        let kind = object.get("type").and_then(non_empty_text).filter(|kind| kind != "error");
        Some(Self {
            message,
            kind: kind.or_else(|| object.get("__type").and_then(non_empty_text)),
            code: object.get("code").and_then(number_or_text),
            param: object.get("param").and_then(non_empty_text),
            raw: raw.to_owned(),
        })
    }

    fn plain(message: Cow<'_, str>, raw: &str) -> Self {
        let message = message.trim().chars().take(MAX_MESSAGE_CHARS).collect();
        Self { message, raw: raw.to_owned(), ..Self::default() }
    }
}

impl fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kind.as_deref().or(self.code.as_deref());
        match (self.message.as_str(), name) {
            ("", None) => f.write_str("the provider reported an error without saying which"),
            ("", Some(name)) => f.write_str(name),
            (message, None) => f.write_str(message),
            (message, Some(name)) => write!(f, "{name}: {message}"),
        }
    }
}

/// The message of an error object, under any of its usual names.
fn message_of(object: RawJson<'_>) -> Option<String> {
    for name in ["message", "Message", "detail", "error_description", "msg"] {
        let Some(value) = object.get(name).filter(|value| !is_absent(*value)) else { continue };
        if let Some(text) = value.as_text() {
            return Some(text.into_owned());
        }
        // Frameworks that validate requests answer with a list of problems, or an object.
        let first = value.elements().next().unwrap_or(value);
        return Some(message_of(first).unwrap_or_else(|| value.0.to_owned()));
    }
    None
}

/// The readable text of a page: without tags, scripts and styles, white space collapsed.
fn without_markup(text: &str) -> Cow<'_, str> {
    if !text.trim_start().starts_with('<') {
        return Cow::Borrowed(text);
    }
    let mut words = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        push_words(rest.get(..open).unwrap_or_default(), &mut words);
        let tag = rest.get(open..).unwrap_or_default();
        let hidden = ["script", "style"].into_iter().find(|name| is_tag(tag, name));
        let closing = hidden.and_then(|name| tag.find(&format!("</{name}")));
        let from = tag.get(closing.unwrap_or(0)..).unwrap_or_default();
        rest = from.find('>').and_then(|end| from.get(end + 1..)).unwrap_or_default();
    }
    push_words(rest, &mut words);
    Cow::Owned(words)
}

fn is_tag(text: &str, name: &str) -> bool {
    text.get(1..=name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name))
}

fn push_words(text: &str, words: &mut String) {
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
}

#[cfg(test)]
#[path = "error_body_tests.rs"]
mod tests;
