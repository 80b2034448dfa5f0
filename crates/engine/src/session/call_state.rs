//! A call in progress: what was sent, and the recovery steps tried so far.

use std::time::Instant;

use throughline_store::{Millis, SessionId};
use tokio::sync::oneshot;

use super::call_input::CacheMarking;
use crate::context_engine::status::PendingRequest;
use crate::decide::recovery::{RecoveryAction, WaitPolicy};
use crate::prompt::encode::{CallOverrides, EncodedRequest};
use crate::prompt::request_extras::RequestExtras;

/// A call in progress: the steps tried so far, and its deviations from the defaults.
#[derive(Debug, Default)]
pub(super) struct CallState {
    pub(super) tried: Vec<RecoveryAction>,
    pub(super) for_this_call: CallOverrides,
    /// The alternative that is called instead of the model.
    pub(super) alternative: Option<usize>,
    pub(super) waiting: WaitPolicy,
    pub(super) marking: CacheMarking,
    /// Notified when the answer is in the record.
    pub(super) on_recorded: Option<oneshot::Sender<()>>,
}

/// The request that was sent, with its time.
#[derive(Debug)]
pub(super) struct SentRequest {
    /// The request. Its body was moved into the call.
    pub(super) encoded: EncodedRequest,
    pub(super) body_bytes: u64,
    pub(super) extras: RequestExtras,
    pub(super) pending: PendingRequest,
    pub(super) output_cap_tokens: Option<u64>,
    pub(super) at_ms: Millis,
    pub(super) began: Instant,
    /// The session whose view it is.
    pub(super) session: SessionId,
    /// The end of that view, as a position in the session.
    pub(super) to_seq: u64,
}

impl SentRequest {
    pub(super) fn latency_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The whole prompt by the estimate alone.
    pub(super) fn estimated_tokens(&self) -> u64 {
        self.pending.fixed_tokens.saturating_add(self.pending.message_tokens)
    }
}
