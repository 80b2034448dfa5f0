//! The errors of a call, and of opening a session.

use throughline_store::{Holder, Millis, StoreError};
use throughline_tokens::LimitError;
use throughline_transcript::WireFormat;
use throughline_wire::RequestError;

use crate::decide::recovery::RecoveryFailure;

/// Why a call could not be made or a session could not be opened. The conversation is intact.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The record could not be read or written.
    #[error(transparent)]
    Record(#[from] StoreError),
    /// No valid limits follow from the window and the settings.
    #[error(
        "{source} ({model}): its real window goes into `model.context_length`, the limits are those under `compression`"
    )]
    Limits {
        /// The name of the model.
        model: String,
        /// The limit that cannot be met.
        source: LimitError,
    },
    /// The request cannot be encoded.
    #[error("the request cannot be written: {0}")]
    Request(#[from] RequestError),
    /// The request and the conversation have different wire formats.
    #[error("the conversation is on the {conversation} wire, the request on the {request} wire")]
    OtherWire {
        /// The wire format of the conversation.
        conversation: WireFormat,
        /// The wire format of the request.
        request: WireFormat,
    },
    /// The system prompt and tools alone exceed the window.
    #[error(
        "system prompt and tools take {fixed_tokens} tokens, but a prompt to {model} may have {room_tokens}: give its real window (`model.context_length`), shorten them, or choose a model with a larger window"
    )]
    FixedTooLarge {
        /// The name of the model.
        model: String,
        /// Tokens of the system prompt and tools.
        fixed_tokens: u64,
        /// Tokens that a prompt may have.
        room_tokens: u64,
    },
    /// Another process has locked the conversation.
    #[error("the conversation is open elsewhere: {holder}")]
    Locked {
        /// The program that has the conversation open.
        holder: Holder,
        /// When the lock expires at the latest.
        until_ms: Millis,
    },
    /// No recovery step succeeded.
    #[error(transparent)]
    Exhausted(Box<RecoveryFailure>),
    /// The caller cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
}
