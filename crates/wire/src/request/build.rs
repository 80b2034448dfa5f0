//! Builds a request from parts: equal parts give equal bytes.
//!
//! The messages are last, so that the body of each call extends the one before.

use throughline_transcript::{Message, RawJson, SharedText, WireFormat, compact_json_string};

use crate::request::error::RequestError;
use crate::request::list::RequestMessages;
use crate::request::members::{RequestMembers, Value};
use crate::request::{CapMember, Request, Streaming, list_name, system_name};

/// A system prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System<'a> {
    /// Plain text.
    Text(&'a str),
    /// A list of text blocks as raw JSON, for providers whose caches are marked on blocks. The Responses format accepts text only.
    Blocks(RawJson<'a>),
}

/// The parts of a request, apart from its messages.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// The model to call.
    pub model: &'a str,
    /// The system prompt. In the chat format it becomes the first message.
    pub system: Option<System<'a>>,
    /// Tool definitions in the wire format, as raw JSON.
    pub tools: Option<RawJson<'a>>,
    /// Stream or not.
    pub streaming: Streaming,
    /// The output limit and the name of its member.
    pub output_cap: Option<(CapMember, u64)>,
    /// Further members, in this order: name and raw JSON.
    pub parameters: &'a [(&'a str, &'a str)],
}

impl<'a> RequestParts<'a> {
    /// Returns the parts of a request for this model with nothing else set, not streamed.
    #[must_use]
    pub fn new(model: &'a str) -> Self {
        Self {
            model,
            system: None,
            tools: None,
            streaming: Streaming::Whole,
            output_cap: None,
            parameters: &[],
        }
    }
}

impl Request {
    /// Builds a request. `messages` may be empty if every body is written with its own messages: a system prompt of the chat format
    /// precedes them.
    pub fn build(
        wire_format: WireFormat,
        parts: &RequestParts<'_>,
        messages: Vec<Message>,
    ) -> Result<Self, RequestError> {
        let mut members = RequestMembers::empty();
        let mut add = |name: &str, json: &str| {
            if members.all().any(|member| member.name == name) || name == list_name(wire_format) {
                return Err(RequestError::Duplicate { member: name.to_owned() });
            }
            members.push(name, Value::Json(SharedText::new(json.to_owned())));
            Ok(())
        };
        add("model", &compact_json_string(parts.model))?;
        if let Some((cap, tokens)) = parts.output_cap {
            add(cap.name(), &tokens.to_string())?;
        }
        if parts.streaming == Streaming::Streamed {
            add("stream", "true")?;
            if wire_format == WireFormat::Chat {
                add("stream_options", "{\"include_usage\":true}")?;
            }
        }
        for (name, json) in parts.parameters {
            RequestError::check_json(name, json)?;
            add(name, json)?;
        }
        let mut leading = Vec::new();
        if let Some(system) = parts.system {
            let json = system_json(wire_format, system)?;
            match system_name(wire_format) {
                Some(name) => add(name, &json)?,
                None => leading.push(format!("{{\"role\":\"system\",\"content\":{json}}}")),
            }
        }
        if let Some(tools) = parts.tools {
            RequestError::check_json("tools", tools.0)?;
            add("tools", tools.0)?;
        }
        members.push(list_name(wire_format), Value::Messages);
        Ok(Self { wire_format, members, list: RequestMessages::Own(messages), leading })
    }
}

fn system_json(wire_format: WireFormat, system: System<'_>) -> Result<String, RequestError> {
    match system {
        System::Text(text) => Ok(compact_json_string(text)),
        System::Blocks(blocks) => {
            RequestError::check_json("system", blocks.0)?;
            if wire_format == WireFormat::Responses {
                let (member, expected) = ("instructions", "a string");
                return Err(RequestError::WrongType { member, expected, found: "a list of blocks" });
            }
            Ok(blocks.0.to_owned())
        }
    }
}
