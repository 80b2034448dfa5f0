//! The items of a view: what the model is shown, as references into the record.
//!
//! Every session has one view. It starts as it was created (by a compaction, an undo, or empty) and grows with the messages appended to the
//! session; so a session and a position in it identify exactly one request.

use crate::ids::SessionId;
use crate::message::{StoredMessage, StoredRendition};
use crate::views::summary::SummaryId;

/// A stored item of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewItem {
    /// A run of unchanged messages.
    Range {
        /// The session they were appended to.
        session: SessionId,
        /// The position of the first message.
        first_seq: u64,
        /// The position after the last; `None` for a run that grows with its session.
        end_seq: Option<u64>,
    },
    /// A changed message.
    Rendition {
        /// The session it was appended to.
        session: SessionId,
        /// Its position.
        seq: u64,
        /// The bytes.
        rendition: StoredRendition,
    },
    /// A summary.
    Summary {
        /// The summary in the message.
        summary: SummaryId,
        /// The message as sent.
        json: String,
        /// Its tokens.
        tokens: u64,
    },
    /// A message that Throughline inserts.
    Synthetic {
        /// Its purpose: `acknowledgement` or `stub_result`.
        kind: String,
        /// The message as sent.
        json: String,
        /// Its tokens.
        tokens: u64,
    },
}

/// A message of a view, with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewMessage {
    /// An unchanged message.
    Verbatim(StoredMessage),
    /// A changed message.
    Rendition(StoredMessage, StoredRendition),
    /// A summary.
    Summary {
        /// The summary in the message.
        summary: SummaryId,
        /// The message as sent.
        json: String,
        /// Its tokens.
        tokens: u64,
    },
    /// A message that Throughline inserted.
    Synthetic {
        /// Its purpose: `acknowledgement` or `stub_result`.
        kind: String,
        /// The message as sent.
        json: String,
        /// Its tokens.
        tokens: u64,
    },
}

impl ViewMessage {
    /// Returns the bytes as sent.
    #[must_use]
    pub fn json(&self) -> &str {
        match self {
            Self::Verbatim(message) => message.json.as_str(),
            Self::Rendition(_, rendition) => &rendition.json,
            Self::Summary { json, .. } | Self::Synthetic { json, .. } => json,
        }
    }

    /// Returns their tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        match self {
            Self::Verbatim(message) => message.tokens,
            Self::Rendition(_, rendition) => rendition.tokens,
            Self::Summary { tokens, .. } | Self::Synthetic { tokens, .. } => *tokens,
        }
    }

    /// Returns the message of the record that it shows, if any.
    #[must_use]
    pub fn message(&self) -> Option<&StoredMessage> {
        match self {
            Self::Verbatim(message) | Self::Rendition(message, _) => Some(message),
            Self::Summary { .. } | Self::Synthetic { .. } => None,
        }
    }
}

/// An item of a new view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewViewItem {
    /// The summary of the continuation that is being opened.
    Summary {
        /// The message as sent.
        json: String,
        /// Its tokens.
        tokens: u64,
    },
    /// Any other item; a summary here is one of an earlier compaction.
    Kept(ViewItem),
}
