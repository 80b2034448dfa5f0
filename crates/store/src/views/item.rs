//! The items of a view: what the model is shown, as references into the record.
//!
//! Every session has one view. It begins as it was created (by a compaction, an undo, or empty) and grows with the
//! messages appended to the session; so a session and a position in it identify exactly one request.

use crate::ids::SessionId;
use crate::message::{StoredMessage, StoredRendition};
use crate::views::summary::SummaryId;

/// One item of a view as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewItem {
    /// A run of messages as they are.
    Range {
        /// The session they were appended to.
        session: SessionId,
        /// The first.
        first_seq: u64,
        /// After the last; `None` for a run that grows with its session.
        end_seq: Option<u64>,
    },
    /// A message in other words.
    Rendition {
        /// The session it was appended to.
        session: SessionId,
        /// Its place.
        seq: u64,
        /// The bytes.
        rendition: StoredRendition,
    },
    /// A summary.
    Summary {
        /// The summary the message shows.
        summary: SummaryId,
        /// The message as sent.
        json: String,
        /// Its size.
        tokens: u64,
    },
    /// A message that Throughline inserts.
    Synthetic {
        /// What for: `acknowledgement` or `stub_result`.
        kind: String,
        /// The message as sent.
        json: String,
        /// Its size.
        tokens: u64,
    },
}

/// One message of a view, with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewMessage {
    /// A message as it is.
    Verbatim(StoredMessage),
    /// A message in other words.
    Rendition(StoredMessage, StoredRendition),
    /// A summary.
    Summary {
        /// The summary the message shows.
        summary: SummaryId,
        /// The message as sent.
        json: String,
        /// Its size.
        tokens: u64,
    },
    /// A message of ours.
    Synthetic {
        /// Its purpose: `acknowledgement` or `stub_result`.
        kind: String,
        /// The message as sent.
        json: String,
        /// Its size.
        tokens: u64,
    },
}

impl ViewMessage {
    /// The bytes the model is sent.
    #[must_use]
    pub fn json(&self) -> &str {
        match self {
            Self::Verbatim(message) => message.json.as_str(),
            Self::Rendition(_, rendition) => &rendition.json,
            Self::Summary { json, .. } | Self::Synthetic { json, .. } => json,
        }
    }

    /// Their size.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        match self {
            Self::Verbatim(message) => message.tokens,
            Self::Rendition(_, rendition) => rendition.tokens,
            Self::Summary { tokens, .. } | Self::Synthetic { tokens, .. } => *tokens,
        }
    }

    /// The message of the record it shows.
    #[must_use]
    pub fn message(&self) -> Option<&StoredMessage> {
        match self {
            Self::Verbatim(message) | Self::Rendition(message, _) => Some(message),
            Self::Summary { .. } | Self::Synthetic { .. } => None,
        }
    }
}

/// An item of a view that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewViewItem {
    /// The summary of the continuation that is being opened.
    Summary {
        /// The message as sent.
        json: String,
        /// Its size.
        tokens: u64,
    },
    /// Anything else; a summary here is one of an earlier compaction that is kept.
    Kept(ViewItem),
}
