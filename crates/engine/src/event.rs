//! Events for users and programs while a conversation is managed. None of them is written into the model's context.

use serde::{Deserialize, Serialize};
use throughline_compaction::{AbortReason, NoOpReason, Quality};
use throughline_store::{ArtifactId, Holder, Millis, SessionId};

use crate::context_engine::outcome::CompressReport;
use crate::context_engine::status::{Pressure, SizeBasis};
use crate::decide::guard::BlockCause;
use crate::decide::recovery::RecoveryAction;
use crate::decide::trigger::Trigger;

/// An event in a managed conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EngineEvent {
    /// The size of the conversation relative to its limits, before a call.
    Pressure {
        /// The figures.
        pressure: Pressure,
        /// Whether the figures are measured or estimated.
        basis: SizeBasis,
    },
    /// A long tool result was stored as an artifact; the model is shown its beginning and end.
    OutputSetAside {
        /// The name of the tool, if known.
        tool: Option<String>,
        /// Characters of the result.
        chars: u64,
        /// Characters that are shown.
        shown_chars: u64,
        /// The id of the artifact.
        artifact: ArtifactId,
    },
    /// A summary is being prepared while the conversation goes on.
    PreparationStarted,
    /// A summary is ready for when the threshold is reached.
    PreparationReady {
        /// Number of messages it covers.
        messages: usize,
    },
    /// The preparation of a summary was cancelled because its server was needed for a request with a waiting caller.
    PreparationPostponed,
    /// A summary could not be prepared; the compaction will try again.
    PreparationFailed {
        /// A sentence for the user.
        detail: String,
    },
    /// A compaction started.
    CompactionStarted {
        /// What started it.
        trigger: Trigger,
    },
    /// A compaction was completed and committed.
    CompactionCompleted {
        /// What started it.
        trigger: Trigger,
        /// How good the summary is.
        quality: Quality,
        /// Its figures.
        report: Box<CompressReport>,
        /// The session before the compaction.
        old: SessionId,
        /// The session after it.
        new: SessionId,
    },
    /// A compaction had nothing to do.
    CompactionNoOp {
        /// What started it.
        trigger: Trigger,
        /// Why nothing was compacted.
        reason: NoOpReason,
        /// A sentence for the user.
        detail: String,
    },
    /// A compaction was aborted; the conversation is unchanged.
    CompactionAborted {
        /// What started it.
        trigger: Trigger,
        /// The reason; `None` if neither the summary nor the view was the cause.
        reason: Option<AbortReason>,
        /// A sentence for the user.
        detail: String,
    },
    /// A compaction was postponed.
    CompactionBlocked {
        /// What would have started it.
        trigger: Trigger,
        /// What blocks compactions.
        cause: BlockCause,
        /// A sentence for the user.
        detail: String,
        /// The block ends at this time, ...
        until_ms: Millis,
        /// ... or when the prompt reaches this many tokens.
        released_at_tokens: u64,
    },
    /// Another process is working on the conversation.
    CompactionLocked {
        /// What would have started it.
        trigger: Trigger,
        /// The program that has the conversation open.
        holder: Holder,
        /// When the lock expires at the latest.
        until_ms: Millis,
    },
    /// A provider reported a smaller window than configured; it applies from now on.
    WindowLearnt {
        /// The model.
        model: String,
        /// The reported window.
        window_tokens: u64,
        /// The window assumed before.
        was_tokens: u64,
    },
    /// The output limit was lowered for one call.
    CapLowered {
        /// The new limit.
        tokens: u64,
        /// The limit before, if there was one.
        was_tokens: Option<u64>,
    },
    /// A fallback model was called.
    FallbackUsed {
        /// The fallback model.
        model: String,
        /// The model that it replaces.
        instead_of: String,
        /// The error that caused it.
        trouble: String,
    },
    /// A call is repeated after a recovery step.
    Retrying {
        /// The recovery step.
        after: RecoveryAction,
        /// The error that caused it.
        trouble: String,
    },
    /// A message for the user without an event of its own.
    Notice {
        /// A sentence for the user.
        text: String,
    },
}

/// Receives events.
pub trait EventSink: Send + Sync {
    /// Receives an event. Must not block.
    fn tell(&self, event: EngineEvent);
}

impl<F: Fn(EngineEvent) + Send + Sync> EventSink for F {
    fn tell(&self, event: EngineEvent) {
        self(event);
    }
}
