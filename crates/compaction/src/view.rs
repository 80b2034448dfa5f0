//! A view: the messages shown to the model, item by item, with the exact bytes that are sent.

use throughline_transcript::Message;

use crate::rendition::{Rendition, RenditionKind};

/// A message that Throughline inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Synthetic {
    /// The one-line reply to a summary.
    Acknowledgement,
    /// A stub for a missing result.
    StubResult,
}

/// One item of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewItem {
    /// An unchanged message of the record.
    Verbatim(usize),
    /// A message of the record with a change, which stays the same in later views.
    Rendition {
        /// The message.
        message: usize,
        /// Its bytes.
        rendition: Rendition,
    },
    /// The summary.
    Summary(String),
    /// A message inserted by Throughline.
    Synthetic(Synthetic, String),
}

impl ViewItem {
    /// The bytes of this item.
    #[must_use]
    pub fn json<'a>(&'a self, messages: &'a [Message]) -> &'a str {
        match self {
            Self::Verbatim(index) => messages.get(*index).map(Message::json).unwrap_or_default(),
            Self::Rendition { rendition, .. } => &rendition.json,
            Self::Summary(json) | Self::Synthetic(_, json) => json,
        }
    }

    /// Returns the message of the record that it shows, if any.
    #[must_use]
    pub fn message(&self) -> Option<usize> {
        match self {
            Self::Verbatim(index) | Self::Rendition { message: index, .. } => Some(*index),
            Self::Summary(_) | Self::Synthetic(..) => None,
        }
    }

    /// Returns the changes to it.
    #[must_use]
    pub fn renditions(&self) -> &[RenditionKind] {
        match self {
            Self::Rendition { rendition, .. } => &rendition.kinds,
            _ => &[],
        }
    }
}
