//! Decodes the bytes of a body to a [`Request`].
//!
//! The list of messages, by far the largest part, is checked and parsed where it is decoded; the rest is checked with `null` in its place.
//! If both are valid, the whole is valid, and nothing is parsed twice. Only after an error is the body checked as a whole, to find the
//! position.

use throughline_transcript::{RawJson, SharedText, WireFormat};

use crate::json_value::{check_json, is_absent, is_json, name_of, too_deep_at};
use crate::request::error::RequestError;
use crate::request::list::RequestMessages;
use crate::request::members::{RequestMembers, offset_in};
use crate::request::{CapMember, Request, list_name, system_name};

impl Request {
    /// Decodes a body. Unknown members are preserved like all others; nesting is limited to 128 levels.
    ///
    /// ```
    /// use throughline_transcript::WireFormat;
    /// use throughline_wire::Request;
    ///
    /// let body = r#"{"model":"gpt-5","max_completion_tokens":500,"messages":[{"role":"user","content":"Hi"}]}"#;
    /// let request = Request::decode(WireFormat::Chat, body)?;
    /// assert_eq!(request.output_cap_tokens(), Some(500));
    /// assert_eq!(request.messages()[0].text(), "Hi");
    /// # Ok::<(), throughline_wire::RequestError>(())
    /// ```
    pub fn decode(wire_format: WireFormat, body: impl AsRef<[u8]>) -> Result<Self, RequestError> {
        let body = body.as_ref();
        if body.len() >= u32::MAX as usize {
            return Err(RequestError::TooLarge { bytes: body.len() });
        }
        let text = std::str::from_utf8(body).map_err(|error| {
            let offset = error.valid_up_to();
            let line = memchr::memchr_iter(b'\n', body.get(..offset).unwrap_or_default()).count() + 1;
            RequestError::Utf8 { offset, line }
        })?;
        let mark_bytes = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let json = text.get(mark_bytes..).unwrap_or_default();
        let trimmed = json.trim_start_matches([' ', '\n', '\r', '\t']);
        if trimmed.is_empty() {
            return Err(RequestError::Empty);
        }
        if !trimmed.starts_with('{') {
            check(json)?;
            return Err(RequestError::NotAnObject { found: name_of(RawJson(trimmed)) });
        }
        let object_start = text.len() - trimmed.len();
        match Self::of_object(wire_format, text, mark_bytes, object_start)? {
            Some(request) => Ok(request),
            // A piece was invalid, so the whole body is. If it is valid after all, the split was wrong.
            None => {
                check(json)?;
                Err(RequestError::Syntax { line: 1, column: 1, detail: "the body cannot be parted".into() })
            }
        }
    }

    /// Decodes the object that starts at `object_start`; `None` if any part of it is invalid JSON.
    fn of_object(
        wire_format: WireFormat,
        text: &str,
        mark_bytes: usize,
        object_start: usize,
    ) -> Result<Option<Self>, RequestError> {
        let member = list_name(wire_format);
        let value = RawJson(text.get(object_start..).unwrap_or_default()).get(member);
        let Some(value) = value.filter(|value| !is_absent(*value)) else {
            return Self::without_list(wire_format, text, mark_bytes, object_start);
        };
        let start = offset_in(text, value.0).unwrap_or_default();
        let around = [text.get(..start), text.get(start + value.0.len()..)];
        let frame = around.map(Option::unwrap_or_default).join("null");
        if !is_json(frame.get(mark_bytes..).unwrap_or_default()) {
            return Ok(None);
        }
        let mut members = RequestMembers::of_document(&SharedText::new(frame), object_start);
        check_members(wire_format, &members)?;
        let list = match value.0.as_bytes().first() {
            _ if too_deep_at(value.0.as_bytes(), 1).is_some() => None,
            Some(b'[') => RequestMessages::read(value.0, member)?,
            Some(b'"') if wire_format == WireFormat::Responses => {
                RequestMessages::read_text(value.0, member)?
            }
            _ if !is_json(value.0) => None,
            _ => {
                let expected =
                    if wire_format == WireFormat::Responses { "a list or a string" } else { "a list" };
                return Err(RequestError::WrongType { member, expected, found: name_of(value) });
            }
        };
        let Some(list) = list else { return Ok(None) };
        members.make_hold_messages(member);
        Ok(Some(Self { wire_format, members, list, leading: Vec::new() }))
    }

    /// Decodes a body without messages: the Responses format allows it (the provider may have stored them), the others do not.
    fn without_list(
        wire_format: WireFormat,
        text: &str,
        mark_bytes: usize,
        object_start: usize,
    ) -> Result<Option<Self>, RequestError> {
        if !is_json(text.get(mark_bytes..).unwrap_or_default()) {
            return Ok(None);
        }
        let members = RequestMembers::of_document(&SharedText::new(text.to_owned()), object_start);
        check_members(wire_format, &members)?;
        if wire_format != WireFormat::Responses {
            return Err(RequestError::Missing { member: list_name(wire_format) });
        }
        let list = RequestMessages::Own(Vec::new());
        Ok(Some(Self { wire_format, members, list, leading: Vec::new() }))
    }
}

/// Refuses members that this crate interprets if they are duplicated or of the wrong type.
fn check_members(wire_format: WireFormat, members: &RequestMembers) -> Result<(), RequestError> {
    let caps = [CapMember::MaxTokens, CapMember::MaxCompletionTokens, CapMember::MaxOutputTokens];
    let caps = caps.map(CapMember::name);
    let ours = ["model", "stream", "tools", "stream_options", list_name(wire_format)];
    let ours = ours.into_iter().chain(caps).chain(system_name(wire_format));
    for name in ours {
        if members.all().filter(|member| member.name == name).count() > 1 {
            return Err(RequestError::Duplicate { member: name.to_owned() });
        }
    }
    let check_type = |member: &'static str, expected: &'static str, fits: fn(&str) -> bool| {
        let Some(json) = members.get(member).map(SharedText::as_str) else { return Ok(()) };
        if json == "null" || fits(json) {
            return Ok(());
        }
        Err(RequestError::WrongType { member, expected, found: name_of(RawJson(json)) })
    };
    check_type("model", "a string", |json| json.starts_with('"'))?;
    check_type("stream", "true or false", |json| matches!(json, "true" | "false"))?;
    check_type("tools", "a list", |json| json.starts_with('['))
}

fn check(json: &str) -> Result<(), RequestError> {
    check_json(json).map_err(RequestError::of_fault)
}
