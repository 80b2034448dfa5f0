//! Messages and items of a view for programs: JSON with the original message, byte for byte.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::{Result, StoreError};
use crate::ids::{Millis, SessionId};
use crate::message::StoredMessage;
use crate::views::item::ViewMessage;
use crate::views::summary::SummaryId;

/// A message of a transcript.
#[derive(Debug, Serialize)]
pub struct MessageEntry<'a> {
    /// Its position in the conversation.
    pub seq: u64,
    /// The session it was appended to.
    pub session: &'a SessionId,
    /// The author.
    pub role: &'static str,
    /// When it was recorded.
    pub at_ms: Millis,
    /// Its tokens.
    pub tokens: u64,
    /// The tools that it calls or whose results it has.
    pub tools: &'a [String],
    /// Whether a program wrote it with the user's role.
    pub machine_written: bool,
    /// The message.
    pub message: &'a RawValue,
}

impl<'a> MessageEntry<'a> {
    /// A message as pages show it.
    pub fn of(message: &'a StoredMessage) -> Result<Self> {
        Ok(Self {
            seq: message.seq,
            session: &message.session,
            role: message.role.name(),
            at_ms: message.at_ms,
            tokens: message.tokens,
            tools: &message.tools,
            machine_written: message.machine_written,
            message: raw(message.json.as_str())?,
        })
    }
}

/// An item of a view.
#[derive(Debug, Serialize)]
pub struct ItemEntry<'a> {
    /// Its kind: `verbatim`, `rendition`, `summary` or `synthetic`.
    pub kind: &'static str,
    /// The session of its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<&'a SessionId>,
    /// The position of its message in the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The changes to its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renditions: Option<&'a [String]>,
    /// The id of its summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryId>,
    /// The purpose of a message that Throughline inserted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<&'a str>,
    /// Its tokens.
    pub tokens: u64,
    /// The message as it is sent.
    pub message: &'a RawValue,
}

impl<'a> ItemEntry<'a> {
    /// An item as pages show it.
    pub fn of(item: &'a ViewMessage) -> Result<Self> {
        let mut entry = Self {
            kind: "verbatim",
            session: item.message().map(|message| &message.session),
            seq: item.message().map(|message| message.seq),
            renditions: None,
            summary: None,
            synthetic: None,
            tokens: item.tokens(),
            message: raw(item.json())?,
        };
        match item {
            ViewMessage::Verbatim(_) => {}
            ViewMessage::Rendition(_, rendition) => {
                entry.kind = "rendition";
                entry.renditions = Some(&rendition.kinds);
            }
            ViewMessage::Summary { summary, .. } => {
                entry.kind = "summary";
                entry.summary = Some(*summary);
            }
            ViewMessage::Synthetic { kind, .. } => {
                entry.kind = "synthetic";
                entry.synthetic = Some(kind);
            }
        }
        Ok(entry)
    }
}

fn raw(json: &str) -> Result<&RawValue> {
    serde_json::from_str(json).map_err(|error| StoreError::Database {
        what: "a message that is not valid JSON",
        source: error.into(),
    })
}
