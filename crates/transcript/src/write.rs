//! The three wire formats, and the messages that Throughline writes in them.

use std::fmt;

use crate::json::write_json_string;
use crate::message::Role;

/// A wire format of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireFormat {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
}

impl WireFormat {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Responses, Self::Anthropic];

    /// Returns the name used in options and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
        }
    }
}

impl fmt::Display for WireFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Returns a plain text message in a wire format.
///
/// ```
/// use throughline_transcript::{Role, WireFormat, text_message};
///
/// let json = text_message(WireFormat::Chat, Role::User, "Say \"hi\"");
/// assert_eq!(json, r#"{"role":"user","content":"Say \"hi\""}"#);
/// ```
#[must_use]
pub fn text_message(wire_format: WireFormat, role: Role, text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16 + 64);
    match wire_format {
        WireFormat::Chat | WireFormat::Anthropic => {
            out.push_str("{\"role\":\"");
            out.push_str(role.name());
            out.push_str("\",\"content\":");
            write_json_string(text, &mut out);
            out.push('}');
        }
        WireFormat::Responses => {
            let kind = if role == Role::Assistant { "output_text" } else { "input_text" };
            out.push_str("{\"type\":\"message\",\"role\":\"");
            out.push_str(role.name());
            out.push_str("\",\"content\":[{\"type\":\"");
            out.push_str(kind);
            out.push_str("\",\"text\":");
            write_json_string(text, &mut out);
            out.push_str("}]}");
        }
    }
    out
}

/// Returns a stub for a missing result: a tool message, an output item, or a `tool_result` block (which the caller puts into a user
/// message).
#[must_use]
pub fn tool_result_stub(wire_format: WireFormat, call_id: &str, text: &str) -> String {
    let (open, middle) = match wire_format {
        WireFormat::Chat => ("{\"role\":\"tool\",\"tool_call_id\":", ",\"content\":"),
        WireFormat::Responses => ("{\"type\":\"function_call_output\",\"call_id\":", ",\"output\":"),
        WireFormat::Anthropic => ("{\"type\":\"tool_result\",\"tool_use_id\":", ",\"content\":"),
    };
    let mut out = String::from(open);
    write_json_string(call_id, &mut out);
    out.push_str(middle);
    write_json_string(text, &mut out);
    out.push('}');
    out
}
