//! Describes the content of an unexpected body or event, to distinguish an endpoint with another wire format from a broken one.

use std::fmt;

use throughline_transcript::{RawJson, WireFormat};

use crate::json_value::{member, name_of, text_member};

/// The kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A whole answer in a wire format.
    Answer(WireFormat),
    /// An event of a stream in a wire format.
    Event(WireFormat),
    /// A stream of events where a whole answer was expected.
    EventStream,
    /// An HTML page.
    Html,
    /// Any other object.
    OtherObject,
    /// JSON, but not an object.
    OtherJson(&'static str),
}

impl Shape {
    /// Returns the kind of a text that is not JSON, if it can be determined.
    pub(crate) fn of_non_json(text: &str) -> Option<Self> {
        let starts = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
        if starts(&["data:", "event:", "id:", "retry:", ":"]) {
            return Some(Self::EventStream);
        }
        text.starts_with('<').then_some(Self::Html)
    }

    /// Returns the kind of an object.
    pub(crate) fn of_json(value: RawJson<'_>) -> Self {
        if !value.0.starts_with('{') {
            return Self::OtherJson(name_of(value));
        }
        let kind = text_member(value, "type").unwrap_or_default();
        let object = text_member(value, "object").unwrap_or_default();
        let has_list = |name| member(value, name).is_some_and(|list| list.0.starts_with('['));
        if has_list("choices") {
            let is_chunk = object == "chat.completion.chunk";
            return if is_chunk { Self::Event(WireFormat::Chat) } else { Self::Answer(WireFormat::Chat) };
        }
        if kind.starts_with("response.") {
            return Self::Event(WireFormat::Responses);
        }
        if matches!(kind.as_str(), "message_start" | "message_delta" | "message_stop")
            || kind.starts_with("content_block_")
        {
            return Self::Event(WireFormat::Anthropic);
        }
        if object == "response" || has_list("output") {
            return Self::Answer(WireFormat::Responses);
        }
        if kind == "message" || (has_list("content") && value.get("role").is_some()) {
            return Self::Answer(WireFormat::Anthropic);
        }
        Self::OtherObject
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(wire_format) => write!(f, "a whole answer of the {wire_format} wire"),
            Self::Event(wire_format) => write!(f, "an event of the {wire_format} wire"),
            Self::EventStream => f.write_str("a stream of events"),
            Self::Html => f.write_str("a page of HTML"),
            Self::OtherObject => f.write_str("an object that is no answer of any wire"),
            Self::OtherJson(what) => f.write_str(what),
        }
    }
}
