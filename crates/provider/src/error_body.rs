//! Extracts texts, codes and figures from the body of an error response, whatever its shape.
//!
//! Errors come as `{"error":{...}}`, `{"error":"..."}`, `{"detail":...}`, `{"message":...}`, lists of those, JSON inside a string inside
//! JSON (gateways that pass on what their upstream said), plain text, and web pages. Only members with text of the provider are read: a
//! body may echo the request, and a user's text must not be taken for an error. Not for: classification.

use std::time::Duration;

use serde_json::{Map, Value};

/// Bodies longer than this are not parsed; an error is never that long.
const MOST_BODY_BYTES: usize = 2_000_000;
/// The longest part of a text that is read.
const MOST_TEXT_BYTES: usize = 8_000;
/// Gateways wrap an error in two or three others, each with a few texts. Further texts are ignored.
const MOST_TEXTS: usize = 24;
const MOST_DEPTH: u8 = 8;

/// The form of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BodyForm {
    #[default]
    Empty,
    /// JSON that states an error.
    Error,
    /// JSON that does not.
    OtherJson,
    Html,
    Text,
}

/// The contents of an error body.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ErrorContents {
    pub(crate) form: BodyForm,
    /// Sentences for people, outermost first.
    pub(crate) texts: Vec<String>,
    /// Codes, types and reasons in small letters, in the order found.
    pub(crate) codes: Vec<String>,
    /// The parameter that the error names.
    pub(crate) parameter: Option<String>,
    pub(crate) window_tokens: Option<u64>,
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) request_id: Option<String>,
}

impl ErrorContents {
    /// Reads a body.
    pub(crate) fn read(body: &[u8]) -> Self {
        let mut said = Self::default();
        let text = String::from_utf8_lossy(body.get(..MOST_BODY_BYTES).unwrap_or(body));
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return said;
        }
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            let before = (said.texts.len(), said.codes.len());
            said.value(&value, 0);
            let speaks = (said.texts.len(), said.codes.len()) != before && is_error(&value);
            said.form = if speaks { BodyForm::Error } else { BodyForm::OtherJson };
            return said;
        }
        let head = head(text, 512).to_ascii_lowercase();
        if ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| head.contains(tag)) {
            said.form = BodyForm::Html;
            said.texts.push(page_text(text));
            return said;
        }
        said.form = BodyForm::Text;
        said.text(text, 0);
        said
    }

    /// Returns all sentences, joined.
    pub(crate) fn words(&self) -> String {
        self.texts.join(" . ")
    }

    /// Returns the most specific sentence. Gateways wrap it in a general one.
    pub(crate) fn best_text(&self) -> &str {
        const HOLLOW: [&str; 4] =
            ["provider returned error", "bad request", "error", "internal server error"];
        let telling = self.texts.iter().find(|text| {
            let plain = text.trim().trim_end_matches('.').to_ascii_lowercase();
            !HOLLOW.contains(&plain.as_str())
        });
        telling.or(self.texts.first()).map_or("", String::as_str)
    }

    pub(crate) fn has_code(&self, wanted: &[&str]) -> bool {
        self.codes.iter().any(|code| wanted.contains(&code.as_str()))
    }

    fn value(&mut self, value: &Value, depth: u8) {
        if depth > MOST_DEPTH {
            return;
        }
        match value {
            Value::Object(members) => self.object(members, depth),
            Value::Array(elements) => {
                for element in elements.iter().take(MOST_TEXTS) {
                    self.value(element, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, members: &Map<String, Value>, depth: u8) {
        for (name, value) in members {
            match name.as_str() {
                // The provider's text; a user's text never has these names.
                "error" | "errors" | "message" | "msg" | "detail" | "details" | "error_description"
                | "status_msg" | "raw" | "title" | "Message" | "error_message" | "errorMessage"
                | "description" | "cause" => match value {
                    Value::String(text) => self.text(text, depth),
                    _ => self.value(value, depth + 1),
                },
                "code" | "type" | "status" | "error_code" | "error_type" | "reason" | "__type"
                | "status_code" | "errorCode" | "blockReason" | "block_reason" | "object" => self.code(value),
                "response" | "metadata" | "innererror" | "inner_error" | "base_resp" | "promptFeedback"
                | "incomplete_details" | "error_details" => self.value(value, depth + 1),
                "param" | "parameter" => {
                    self.parameter = self.parameter.take().or_else(|| value.as_str().map(str::to_owned));
                }
                "n_ctx" | "max_model_len" | "max_context_length" | "context_length" | "context_window" => {
                    self.window_tokens = self.window_tokens.or(value.as_u64());
                }
                "n_prompt_tokens" | "prompt_tokens" | "input_tokens" => {
                    self.prompt_tokens = self.prompt_tokens.or(value.as_u64());
                }
                "retry_after" | "retry_after_seconds" | "resets_in_seconds" | "estimated_time" => {
                    self.retry_after = self.retry_after.or_else(|| seconds(value));
                }
                "retryDelay" | "retry_delay" => {
                    let delay =
                        value.as_str().and_then(|text| text.strip_suffix('s')).and_then(parse_seconds);
                    self.retry_after = self.retry_after.or(delay).or_else(|| seconds(value));
                }
                "request_id" | "requestId" => {
                    self.request_id = self.request_id.take().or_else(|| value.as_str().map(str::to_owned));
                }
                _ => {}
            }
        }
    }

    fn code(&mut self, value: &Value) {
        let code = match value {
            Value::String(text) => text.trim().to_ascii_lowercase(),
            Value::Number(number) => number.to_string(),
            _ => return,
        };
        if !code.is_empty() && code.len() <= 200 && self.codes.len() < MOST_TEXTS {
            self.codes.push(code);
        }
    }

    /// Reads a sentence, and the error inside it if a gateway quotes a whole response.
    fn text(&mut self, text: &str, depth: u8) {
        let mut text = text.trim();
        let mut inner = None;
        if depth < MOST_DEPTH
            && let Some(at) = text.find('{')
            && let Some(Ok(value)) =
                serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next()
        {
            text = text[..at].trim();
            inner = Some(value);
        }
        let kept = head(text, MOST_TEXT_BYTES);
        let fresh = !self.texts.iter().any(|known| known == kept);
        if !kept.is_empty() && fresh && self.texts.len() < MOST_TEXTS {
            self.texts.push(kept.to_owned());
        }
        if let Some(value) = inner {
            self.value(&value, depth + 2);
        }
    }
}

/// Whether JSON describes an error.
fn is_error(value: &Value) -> bool {
    let members = match value {
        Value::Array(elements) => return elements.first().is_some_and(is_error),
        Value::Object(members) => members,
        _ => return false,
    };
    // An answer in any wire format, even one that carries `"error": null`.
    let is_answer =
        ["choices", "content", "output", "candidates"].iter().any(|name| members.contains_key(*name));
    let failed =
        members.get("response").is_some_and(|response| response.get("error").is_some_and(|e| !e.is_null()));
    let names =
        ["error", "errors", "detail", "message", "Message", "msg", "base_resp", "error_message", "code"];
    failed
        || (!is_answer && names.iter().any(|name| members.get(*name).is_some_and(|value| !value.is_null())))
}

fn seconds(value: &Value) -> Option<Duration> {
    match value {
        Value::Number(number) => number.as_f64().and_then(duration),
        Value::String(text) => parse_seconds(text),
        _ => None,
    }
}

fn parse_seconds(text: &str) -> Option<Duration> {
    text.trim().parse().ok().and_then(duration)
}

/// Converts seconds to a wait, if plausible.
pub(crate) fn duration(seconds: f64) -> Option<Duration> {
    // Longer than any billing period: a larger value is a date or an error.
    const LONGEST_SECS: f64 = 90.0 * 86_400.0;
    (0.0..=LONGEST_SECS).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// Returns the beginning of a text, cut between characters.
pub(crate) fn head(text: &str, most_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(most_bytes)).unwrap_or(text)
}

/// Returns the text of a web page, without tags and invisible parts.
fn page_text(html: &str) -> String {
    let html = head(html, MOST_TEXT_BYTES);
    let mut words = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        words.push_str(&rest[..at]);
        words.push(' ');
        let tag = &rest[at..];
        let hidden = ["script", "style"]
            .iter()
            .find(|name| tag.get(1..=name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)));
        let end = match hidden {
            Some(name) => tag.to_ascii_lowercase().find(&format!("</{name}")).unwrap_or(tag.len()),
            None => tag.find('>').map_or(tag.len(), |end| end + 1),
        };
        rest = tag.get(end.max(1)..).unwrap_or_default();
    }
    words.push_str(rest);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "error_body_tests.rs"]
mod tests;
