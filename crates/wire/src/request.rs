//! A request as an envelope around a list of messages: its members in order, with their original bytes.
//!
//! Decoding checks the whole body once and copies the list of messages once; every message then points into that copy. Encoding writes the
//! pieces back: everything unchanged is written byte for byte, including white space, and messages can be replaced while writing without a
//! copy.
//!
//! Not for: deciding what to send, such as cache marks, budgets and views.

mod build;
mod decode;
mod error;
mod list;
pub(crate) mod members;

use std::borrow::Cow;

use throughline_transcript::{Message, Preamble, RawJson, WireFormat};

use crate::json_value::{as_count, is_absent, text_member};
use list::RequestMessages;
use members::{RequestMembers, Value};

pub use build::{RequestParts, System};
pub use error::RequestError;

/// The minimum thinking budget: providers refuse a smaller one.
const LEAST_THINKING_TOKENS: u64 = 1_024;

/// Whether a request asks for a stream of events or for one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    /// As events.
    Streamed,
    /// In one piece.
    Whole,
}

/// The names of the output limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapMember {
    /// In the Anthropic format, and in the older chat format, which most local servers use.
    MaxTokens,
    /// In OpenAI's chat format, whose newer models refuse the old name.
    MaxCompletionTokens,
    /// In the Responses format.
    MaxOutputTokens,
}

impl CapMember {
    /// Returns the current name in a wire format.
    #[must_use]
    pub fn usual(wire_format: WireFormat) -> Self {
        match wire_format {
            WireFormat::Chat => Self::MaxCompletionTokens,
            WireFormat::Responses => Self::MaxOutputTokens,
            WireFormat::Anthropic => Self::MaxTokens,
        }
    }

    /// Returns the name of the member.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxOutputTokens => "max_output_tokens",
        }
    }

    /// Returns the names in a wire format. The first one takes effect.
    fn known(wire_format: WireFormat) -> &'static [Self] {
        match wire_format {
            WireFormat::Chat => &[Self::MaxCompletionTokens, Self::MaxTokens],
            WireFormat::Responses => &[Self::MaxOutputTokens],
            WireFormat::Anthropic => &[Self::MaxTokens],
        }
    }
}

/// A request in one wire format.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) wire_format: WireFormat,
    pub(crate) members: RequestMembers,
    pub(crate) list: RequestMessages,
    /// Messages before the list: the system prompt of a chat request that was built from parts.
    pub(crate) leading: Vec<String>,
}

/// Returns the name of the member with the messages.
pub(crate) fn list_name(wire_format: WireFormat) -> &'static str {
    match wire_format {
        WireFormat::Chat | WireFormat::Anthropic => "messages",
        WireFormat::Responses => "input",
    }
}

/// Returns the name of the member with the system prompt. The chat format has it among the messages.
pub(crate) fn system_name(wire_format: WireFormat) -> Option<&'static str> {
    match wire_format {
        WireFormat::Chat => None,
        WireFormat::Responses => Some("instructions"),
        WireFormat::Anthropic => Some("system"),
    }
}

impl Request {
    /// Returns its wire format.
    #[must_use]
    pub fn wire_format(&self) -> WireFormat {
        self.wire_format
    }

    /// Returns the messages it was decoded with.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        self.list.messages()
    }

    /// Returns the model it names.
    #[must_use]
    pub fn model(&self) -> Option<Cow<'_, str>> {
        self.member("model").and_then(RawJson::as_text)
    }

    /// Returns whether it asks for a stream.
    #[must_use]
    pub fn streaming(&self) -> Streaming {
        match self.member("stream") {
            Some(RawJson("true")) => Streaming::Streamed,
            _ => Streaming::Whole,
        }
    }

    /// Returns its output limit.
    #[must_use]
    pub fn output_cap_tokens(&self) -> Option<u64> {
        let known = CapMember::known(self.wire_format).iter();
        known.filter_map(|cap| self.member(cap.name())).find_map(as_count)
    }

    /// Returns the system prompt as raw JSON: a string or a list of blocks.
    #[must_use]
    pub fn system(&self) -> Option<RawJson<'_>> {
        self.member(system_name(self.wire_format)?).filter(|value| !is_absent(*value))
    }

    /// Returns the tool definitions as raw JSON.
    #[must_use]
    pub fn tools(&self) -> Option<RawJson<'_>> {
        self.member("tools").filter(|value| !is_absent(*value))
    }

    /// Returns any member except the list of messages.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<RawJson<'_>> {
        self.members.get(name).map(|json| RawJson(json.as_str()))
    }

    /// Returns all members except the list of messages, in order.
    pub fn members(&self) -> impl Iterator<Item = (&str, RawJson<'_>)> {
        self.members.all().filter_map(|member| match &member.value {
            Value::Json(json) => Some((member.name.as_str(), RawJson(json.as_str()))),
            Value::Messages => None,
        })
    }

    /// Returns the preamble in the form for size estimators.
    #[must_use]
    pub fn preamble(&self) -> Preamble {
        let shared = |name| self.members.get(name).filter(|json| json.as_str() != "null").cloned();
        Preamble {
            system: system_name(self.wire_format).and_then(shared),
            tools: shared("tools"),
            model: self.model().map(Cow::into_owned),
            max_output_tokens: self.output_cap_tokens(),
        }
    }

    /// Returns everything except instructions, tools and messages as one JSON object, with its members in order.
    #[must_use]
    pub fn parameters_json(&self) -> String {
        let apart = [system_name(self.wire_format), Some("tools")];
        let mut out = String::from("{");
        for (name, value) in self.members().filter(|(name, _)| !apart.contains(&Some(*name))) {
            if out.len() > 1 {
                out.push(',');
            }
            throughline_transcript::write_json_string(name, &mut out);
            out.push(':');
            out.push_str(value.0);
        }
        out.push('}');
        out
    }

    /// Sets a member: replaces the one of that name, or appends it.
    pub fn set_member(&mut self, name: &str, json: &str) -> Result<(), RequestError> {
        if name == list_name(self.wire_format) {
            return Err(RequestError::HoldsMessages { member: list_name(self.wire_format) });
        }
        RequestError::check_json(name, json)?;
        self.members.set(name, json);
        Ok(())
    }

    /// Removes a member. Returns `false` if there was none. The list of messages cannot be removed.
    pub fn remove_member(&mut self, name: &str) -> bool {
        self.members.remove(name)
    }

    /// Sets the model.
    pub fn set_model(&mut self, model: &str) {
        self.members.set("model", &throughline_transcript::compact_json_string(model));
    }

    /// Sets whether to stream. Options of streams are removed with the stream, because providers refuse them alone.
    pub fn set_streaming(&mut self, streaming: Streaming) {
        match streaming {
            Streaming::Streamed => self.members.set("stream", "true"),
            Streaming::Whole => {
                if self.member("stream").is_some() {
                    self.members.set("stream", "false");
                }
                self.members.remove("stream_options");
            }
        }
    }

    /// Asks a chat stream to report usage at its end; streams of the other formats always do.
    pub fn ask_for_stream_usage(&mut self) {
        if self.wire_format != WireFormat::Chat {
            return;
        }
        let options = self.member("stream_options").filter(|options| options.0.starts_with('{'));
        let others =
            options.into_iter().flat_map(RawJson::members).filter(|(name, _)| name != "include_usage");
        let mut json = String::from("{\"include_usage\":true");
        for (name, value) in others {
            json.push(',');
            throughline_transcript::write_json_string(&name, &mut json);
            json.push(':');
            json.push_str(value.0);
        }
        json.push('}');
        self.members.set("stream_options", &json);
    }

    /// Whether a chat stream was asked to report usage.
    #[must_use]
    pub fn asks_for_stream_usage(&self) -> bool {
        let options = self.member("stream_options");
        options.and_then(|options| options.get("include_usage")) == Some(RawJson("true"))
    }

    /// Sets the output limit under the name that the request already uses, or else under the default name of its wire format.
    pub fn set_output_cap(&mut self, tokens: u64) {
        let known = CapMember::known(self.wire_format);
        let present =
            known.iter().copied().filter(|cap| self.member(cap.name()).is_some()).collect::<Vec<_>>();
        if present.is_empty() {
            return self.set_output_cap_as(CapMember::usual(self.wire_format), tokens);
        }
        for cap in present {
            self.members.set(cap.name(), &tokens.to_string());
        }
        self.keep_thinking_below(tokens);
    }

    /// Thinking counts towards the output limit and is refused unless it leaves space for text.
    fn keep_thinking_below(&mut self, cap_tokens: u64) {
        let Some(thinking) = self.member("thinking").filter(|_| self.wire_format == WireFormat::Anthropic)
        else {
            return;
        };
        let budget = thinking.get("budget_tokens").and_then(|tokens| tokens.0.parse::<u64>().ok());
        let lower = cap_tokens - cap_tokens / 4;
        if budget.is_none_or(|tokens| tokens < cap_tokens) || lower < LEAST_THINKING_TOKENS {
            return;
        }
        let mut json = format!("{{\"budget_tokens\":{lower}");
        for (name, value) in thinking.members().filter(|(name, _)| name != "budget_tokens") {
            json.push(',');
            throughline_transcript::write_json_string(&name, &mut json);
            json.push(':');
            json.push_str(value.0);
        }
        json.push('}');
        self.members.set("thinking", &json);
    }

    /// Sets the output limit under one name and removes the other names.
    pub fn set_output_cap_as(&mut self, name: CapMember, tokens: u64) {
        for other in CapMember::known(self.wire_format).iter().filter(|other| **other != name) {
            self.members.remove(other.name());
        }
        self.members.set(name.name(), &tokens.to_string());
    }

    /// Whether it relies on state at the provider, so that its messages are not the whole conversation.
    #[must_use]
    pub fn leans_on_provider_state(&self) -> bool {
        if self.wire_format != WireFormat::Responses {
            return false;
        }
        let named = ["previous_response_id", "conversation"].into_iter();
        let mut named = named.filter_map(|name| self.member(name)).filter(|value| !is_absent(*value));
        let is_reference = |message: &Message| {
            text_member(RawJson(message.json()), "type").is_some_and(|kind| kind == "item_reference")
        };
        named.next().is_some() || self.messages().iter().any(is_reference)
    }

    /// Returns the body with its own messages: byte for byte what was decoded, if nothing was set.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.with_messages(self.messages().iter().map(Message::json))
    }

    /// Returns the body with `items` in place of its messages. Each must be the JSON of one message, which is not checked.
    #[must_use]
    pub fn with_messages<'a, I>(&self, items: I) -> Vec<u8>
    where
        I: IntoIterator<Item = &'a str> + Clone,
    {
        let (mut item_bytes, mut gap_bytes) = (0, 0);
        for item in items.clone() {
            item_bytes += item.len();
            gap_bytes += 2;
        }
        let own = self.leading.iter().map(|item| item.len() + 2).sum::<usize>();
        let mut out = Vec::with_capacity(self.members.written_bytes() + item_bytes + gap_bytes + own + 16);
        self.write_with_messages(items, &mut out);
        out
    }

    /// Like [`with_messages`](Self::with_messages), but appends to a buffer of the caller.
    pub fn write_with_messages<'s, 'a: 's>(
        &'s self,
        items: impl IntoIterator<Item = &'a str>,
        out: &mut Vec<u8>,
    ) {
        let leading = self.leading.iter().map(String::as_str);
        let items = items.into_iter().map(|item| -> &'s str { item });
        let mut items = leading.chain(items).peekable();
        // A list is added to a body without messages only if there are any to write.
        let mut members = Cow::Borrowed(&self.members);
        if !members.hold_messages() && items.peek().is_some() {
            members.to_mut().make_hold_messages(list_name(self.wire_format));
        }
        let mut items = Some(items);
        members.write(out, |out| {
            if let Some(items) = items.take() {
                self.list.write(items, out);
            }
        });
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
