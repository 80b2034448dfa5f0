//! A message of the record: the bytes in which it arrived, and its metadata.

use std::collections::HashMap;

use throughline_transcript::{ContentHash, Message, Part, Role, SharedText, decode_message};

use crate::ids::{Millis, SessionId};

/// A message to be appended.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// The message.
    pub message: Message,
    /// Its size.
    pub tokens: u64,
    /// When it was said.
    pub at_ms: Millis,
    /// Tools it calls or answers for, so that it can be found by them.
    pub tools: Vec<String>,
    /// What the model is shown in its place, when that is not the message itself. Sent once, it never changes.
    pub rendition: Option<StoredRendition>,
}

/// The bytes that stand for a message in a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRendition {
    /// What was changed: `pruned`, `trimmed`, `image_label`, `noted`, `mended`, or `artifact`.
    pub kinds: Vec<String>,
    /// The JSON that is sent.
    pub json: String,
    /// Its size.
    pub tokens: u64,
}

/// A message as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its place in the order in which messages arrived, over everything.
    pub id: u64,
    /// The session it was appended to.
    pub session: SessionId,
    /// Its place in the conversation.
    pub seq: u64,
    /// Who it speaks for.
    pub role: Role,
    /// When it was said.
    pub at_ms: Millis,
    /// Its size.
    pub tokens: u64,
    /// Hash of its bytes.
    pub hash: ContentHash,
    /// Written by a program in the user's name.
    pub machine_written: bool,
    /// Tools it calls or answers for.
    pub tools: Vec<String>,
    /// The bytes it arrived as.
    pub json: SharedText,
}

/// Who really speaks in a message: some wires send the results of tools in the user's name. A person's words beside
/// results make it the person's.
pub(crate) fn speaks_as(message: &Message) -> Role {
    match message.role() {
        Role::User if message.has_results() && !message.is_human() => Role::Tool,
        role => role,
    }
}

impl StoredMessage {
    /// Who really speaks in it.
    pub(crate) fn speaker(&self) -> Role {
        self.decode().map_or(self.role, |message| speaks_as(&message))
    }

    /// The message, read again from its bytes. `None` only where the bytes are no message, which is damage.
    #[must_use]
    pub fn decode(&self) -> Option<Message> {
        let message = decode_message(self.json.clone())?;
        Some(if self.machine_written { message.marked_machine_written() } else { message })
    }
}

/// A message without its bytes: enough to lay out a conversation and to add up what a call sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHead {
    /// Its place in the conversation.
    pub seq: u64,
    /// Who really speaks in it: results of tools count as the tool's, whatever the wire calls them.
    pub speaker: Role,
    /// Its size.
    pub tokens: u64,
    /// When it was said.
    pub at_ms: Millis,
}

/// Where appended messages went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendRange {
    /// Place of the first.
    pub first_seq: u64,
    /// Place after the last.
    pub next_seq: u64,
}

/// Names of tools by the ids of their calls: results name only the call they answer. Kept beside a conversation while
/// it is appended to.
#[derive(Clone, Debug, Default)]
pub struct CallNames {
    names: HashMap<String, String>,
}

impl CallNames {
    /// The tool that a call used.
    #[must_use]
    pub fn name(&self, call_id: &str) -> Option<&str> {
        self.names.get(call_id).map(String::as_str)
    }

    /// Tools that a message calls or answers for, each once, in order; remembers the calls for the results to come.
    pub fn tools_of(&mut self, message: &Message) -> Vec<String> {
        let json = message.json();
        let mut tools: Vec<String> = Vec::new();
        for part in message.parts() {
            let name = match part {
                Part::ToolCall { id, name, .. } => {
                    let name = name.text(json).into_owned();
                    self.names.insert(id.text(json).into_owned(), name.clone());
                    Some(name)
                }
                Part::ToolResult { call_id, .. } => self.names.get(call_id.text(json).as_ref()).cloned(),
                _ => None,
            };
            if let Some(name) = name.filter(|name| !tools.contains(name)) {
                tools.push(name);
            }
        }
        tools
    }
}
