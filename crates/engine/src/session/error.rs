//! The errors of a call, and of opening a session.

use throughline_store::{Holder, Millis, StoreError};
use throughline_tokens::LimitError;
use throughline_transcript::WireFormat;
use throughline_wire::RequestError;

use crate::decide::recovery::RecoveryFailure;

/// Why a call could not be made, or a session not be opened. The conversation is intact.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The record could not be read or written.
    #[error(transparent)]
    Record(#[from] StoreError),
    /// The window or a setting makes no limits.
    #[error(
        "{source} ({model}): its real window goes into `model.context_length`, the limits are those under `compression`"
    )]
    Limits {
        /// The model.
        model: String,
        /// The limit that cannot be met.
        source: LimitError,
    },
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(#[from] RequestError),
    /// The request speaks another wire than the conversation.
    #[error("the conversation is on the {conversation} wire, the request on the {request} wire")]
    OtherWire {
        /// The wire of the conversation.
        conversation: WireFormat,
        /// The wire of the request.
        request: WireFormat,
    },
    /// System prompt and tools alone do not fit.
    #[error(
        "system prompt and tools take {fixed_tokens} tokens, but a prompt to {model} may have {room_tokens}: give its real window (`model.context_length`), shorten them, or choose a model with a larger window"
    )]
    FixedTooLarge {
        /// The model.
        model: String,
        /// What they take.
        fixed_tokens: u64,
        /// What there is.
        room_tokens: u64,
    },
    /// Another process works on the conversation.
    #[error("the conversation is open elsewhere: {holder}")]
    Locked {
        /// The program that has the conversation open.
        holder: Holder,
        /// Until when at most.
        until_ms: Millis,
    },
    /// Nothing helped.
    #[error(transparent)]
    Exhausted(Box<RecoveryFailure>),
    /// The caller no longer wants the answer.
    #[error("the call was cancelled")]
    Cancelled,
}
