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
    /// Its place in the conversation.
    pub seq: u64,
    /// The session it was said in.
    pub session: &'a SessionId,
    /// Who speaks.
    pub role: &'static str,
    /// When it was recorded.
    pub at_ms: Millis,
    /// Its size.
    pub tokens: u64,
    /// Tools it calls or answers for.
    pub tools: &'a [String],
    /// Whether a program wrote it in a person's name.
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
    /// What it is: `verbatim`, `rendition`, `summary` or `synthetic`.
    pub kind: &'static str,
    /// The session its message was said in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<&'a SessionId>,
    /// The place of its message in the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What was changed about its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renditions: Option<&'a [String]>,
    /// The summary it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryId>,
    /// What a message that Throughline inserted is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<&'a str>,
    /// Its size.
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
