//! A view: what the model is shown, item by item, with the exact bytes that are sent.

use throughline_transcript::Message;

use crate::rendition::{Rendition, RenditionKind};

/// A message that Throughline inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Synthetic {
    /// The one-line reply to a summary.
    Acknowledgement,
    /// A result in place of one that is missing.
    StubResult,
}

/// One item of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewItem {
    /// A message of the record as it is.
    Verbatim(usize),
    /// A message of the record, changed once and for good.
    Rendition {
        /// The message.
        message: usize,
        /// Its bytes.
        rendition: Rendition,
    },
    /// The summary.
    Summary(String),
    /// A message of ours.
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

    /// The message of the record it shows, if it shows one.
    #[must_use]
    pub fn message(&self) -> Option<usize> {
        match self {
            Self::Verbatim(index) | Self::Rendition { message: index, .. } => Some(*index),
            Self::Summary(_) | Self::Synthetic(..) => None,
        }
    }

    /// What was changed about it.
    #[must_use]
    pub fn renditions(&self) -> &[RenditionKind] {
        match self {
            Self::Rendition { rendition, .. } => &rendition.kinds,
            _ => &[],
        }
    }
}
