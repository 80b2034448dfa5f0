//! A snapshot of a conversation for an engine, shared by reference count, and its JSON form.

use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use throughline_store::SessionId;
use throughline_transcript::{Message, SharedText, WireFormat, decode_message};

use crate::prompt::cached_prompt::CachedPrompt;

/// The content of a request at one moment.
///
/// Within one session a conversation only grows: of two snapshots of the same session, the longer starts with the shorter.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The session whose view it is.
    pub session: SessionId,
    /// The wire format of its messages.
    pub wire_format: WireFormat,
    /// The messages as they would be sent.
    pub messages: Arc<Vec<Message>>,
    /// Tokens of each message, estimated for the current model.
    pub sizes: Arc<Vec<u64>>,
    /// Tokens of system prompt and tools, which are outside the list.
    pub fixed_tokens: u64,
    /// Tokens of the whole prompt: measured where possible, otherwise an estimate corrected by past calls of the model.
    pub prompt_tokens: u64,
    /// How its beginning was last sent, if that was in this process. Not sent to an engine in another process.
    pub cached_prompt: Option<CachedPrompt>,
}

impl Snapshot {
    /// Returns the estimated tokens of the whole prompt: `prompt_tokens` in the unit of `sizes`.
    #[must_use]
    pub fn estimated_tokens(&self) -> u64 {
        self.sizes.iter().sum::<u64>().saturating_add(self.fixed_tokens)
    }
}

/// A message as it is sent to an engine in another process.
#[derive(Serialize, Deserialize)]
struct MessageForm<'a> {
    #[serde(borrow)]
    json: &'a RawValue,
    tokens: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    machine_written: bool,
}

struct MessageListForm<'a>(&'a Snapshot);

impl Serialize for MessageListForm<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        let messages = self.0.messages.iter().enumerate().map(|(index, message)| {
            let json = serde_json::from_str::<&RawValue>(message.json()).map_err(S::Error::custom)?;
            let tokens = self.0.sizes.get(index).copied().unwrap_or(0);
            Ok(MessageForm { json, tokens, machine_written: message.is_machine_written() })
        });
        let messages = messages.collect::<Result<Vec<_>, S::Error>>()?;
        to.collect_seq(messages)
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut object = to.serialize_struct("Snapshot", 5)?;
        object.serialize_field("session", &self.session)?;
        object.serialize_field("dialect", &self.wire_format)?;
        object.serialize_field("messages", &MessageListForm(self))?;
        object.serialize_field("fixed_tokens", &self.fixed_tokens)?;
        object.serialize_field("prompt_tokens", &self.prompt_tokens)?;
        object.end()
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct ContentForm<'a> {
            session: SessionId,
            #[serde(rename = "dialect")]
            wire_format: WireFormat,
            #[serde(borrow)]
            messages: Vec<MessageForm<'a>>,
            fixed_tokens: u64,
            prompt_tokens: u64,
        }
        let form = ContentForm::deserialize(from)?;
        let sizes = form.messages.iter().map(|carried| carried.tokens).collect();
        let read = |(index, carried): (usize, &MessageForm<'_>)| {
            let message = decode_message(SharedText::new(carried.json.get().to_owned()));
            let message = message.ok_or_else(|| D::Error::custom(format!("item {index} is no message")))?;
            Ok(if carried.machine_written { message.marked_machine_written() } else { message })
        };
        let messages = form.messages.iter().enumerate().map(read).collect::<Result<_, D::Error>>()?;
        Ok(Self {
            session: form.session,
            wire_format: form.wire_format,
            messages: Arc::new(messages),
            sizes: Arc::new(sizes),
            fixed_tokens: form.fixed_tokens,
            prompt_tokens: form.prompt_tokens,
            cached_prompt: None,
        })
    }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
