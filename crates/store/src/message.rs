//! A message of the record: its original bytes and its metadata.

use std::collections::HashMap;

use throughline_transcript::{ContentHash, Message, Part, Role, SharedText, decode_message};

use crate::ids::{Millis, SessionId};

/// A message to append.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// The message.
    pub message: Message,
    /// Its tokens.
    pub tokens: u64,
    /// Its time.
    pub at_ms: Millis,
    /// The tools it calls or whose results it has, for searching.
    pub tools: Vec<String>,
    /// The form in which the model is shown it, if different. It never changes once it was sent.
    pub rendition: Option<StoredRendition>,
}

/// The bytes that represent a message in a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRendition {
    /// What was changed: `pruned`, `trimmed`, `image_label`, `noted`, `mended`, or `artifact`.
    pub kinds: Vec<String>,
    /// The JSON as sent.
    pub json: String,
    /// Its tokens.
    pub tokens: u64,
}

/// A recorded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its position in the order of arrival of all messages.
    pub id: u64,
    /// The session it was appended to.
    pub session: SessionId,
    /// Its position in the conversation.
    pub seq: u64,
    /// The role.
    pub role: Role,
    /// Its time.
    pub at_ms: Millis,
    /// Its tokens.
    pub tokens: u64,
    /// Hash of its bytes.
    pub hash: ContentHash,
    /// Whether a program wrote it with the user's role.
    pub machine_written: bool,
    /// The tools it calls or whose results it has.
    pub tools: Vec<String>,
    /// The original bytes.
    pub json: SharedText,
}

/// Returns the actual author of a message: some wire formats send tool results with the user's role. A person's text beside results makes
/// it the person's.
pub(crate) fn speaks_as(message: &Message) -> Role {
    match message.role() {
        Role::User if message.has_results() && !message.is_human() => Role::Tool,
        role => role,
    }
}

impl StoredMessage {
    /// Returns its actual author.
    pub(crate) fn speaker(&self) -> Role {
        self.decode().map_or(self.role, |message| speaks_as(&message))
    }

    /// Decodes the message from its bytes. `None` only if the bytes are damaged.
    #[must_use]
    pub fn decode(&self) -> Option<Message> {
        let message = decode_message(self.json.clone())?;
        Some(if self.machine_written { message.marked_machine_written() } else { message })
    }
}

/// A message without its bytes: enough for the structure of a conversation and the size of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHead {
    /// Its position in the conversation.
    pub seq: u64,
    /// Its actual author: tool results count as the tool's, whatever their role in the wire format.
    pub speaker: Role,
    /// Its tokens.
    pub tokens: u64,
    /// Its time.
    pub at_ms: Millis,
}

/// The positions of appended messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendRange {
    /// The position of the first.
    pub first_seq: u64,
    /// The position after the last.
    pub next_seq: u64,
}

/// The names of tools by the ids of their calls, because results name only the call. Held while a conversation is appended to.
#[derive(Clone, Debug, Default)]
pub struct CallNames {
    names: HashMap<String, String>,
}

impl CallNames {
    /// Returns the tool of a call.
    #[must_use]
    pub fn name(&self, call_id: &str) -> Option<&str> {
        self.names.get(call_id).map(String::as_str)
    }

    /// Returns the tools that a message calls or whose results it has, each once, in order; stores the calls for later results.
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
