//! Events for users and programs while a conversation is managed. None of them is written into the model's context.

use serde::{Deserialize, Serialize};
use throughline_compaction::{AbortReason, NoOpReason, Quality};
use throughline_store::{ArtifactId, Holder, Millis, SessionId};

use crate::context_engine::outcome::CompressReport;
use crate::context_engine::status::{Pressure, SizeBasis};
use crate::decide::guard::BlockCause;
use crate::decide::recovery::RecoveryAction;
use crate::decide::trigger::Trigger;

/// Something happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EngineEvent {
    /// How full the conversation is, before a call.
    Pressure {
        /// In figures.
        pressure: Pressure,
        /// How well they are known.
        basis: SizeBasis,
    },
    /// A long tool result was set aside: the model is shown how it begins and ends.
    OutputSetAside {
        /// The tool, where that is known.
        tool: Option<String>,
        /// Characters of the result.
        chars: u64,
        /// Characters that are shown.
        shown_chars: u64,
        /// What it is kept as.
        artifact: ArtifactId,
    },
    /// A summary is being prepared while the conversation goes on.
    PreparationStarted,
    /// A summary is ready for when the threshold is reached.
    PreparationReady {
        /// Messages it covers.
        messages: usize,
    },
    /// A summary that was being prepared was cancelled: its server was needed for a request with a waiting caller.
    PreparationPostponed,
    /// A summary could not be prepared; the compaction will try again.
    PreparationFailed {
        /// A sentence for the user.
        detail: String,
    },
    /// A compaction began.
    CompactionStarted {
        /// What brought it about.
        trigger: Trigger,
    },
    /// A compaction was completed and committed.
    CompactionCompleted {
        /// What brought it about.
        trigger: Trigger,
        /// How good the summary is.
        quality: Quality,
        /// In figures.
        report: Box<CompressReport>,
        /// The session that was.
        old: SessionId,
        /// The session that is.
        new: SessionId,
    },
    /// There was nothing to be done.
    CompactionNoOp {
        /// What brought it about.
        trigger: Trigger,
        /// Why nothing was compacted.
        reason: NoOpReason,
        /// A sentence for the user.
        detail: String,
    },
    /// A compaction was given up; the conversation is as it was.
    CompactionAborted {
        /// What brought it about.
        trigger: Trigger,
        /// Why; `None` when it was neither the summary nor the view.
        reason: Option<AbortReason>,
        /// A sentence for the user.
        detail: String,
    },
    /// A compaction was put off.
    CompactionBlocked {
        /// What would have brought it about.
        trigger: Trigger,
        /// What blocks compactions.
        cause: BlockCause,
        /// A sentence for the user.
        detail: String,
        /// Until then, ...
        until_ms: Millis,
        /// ... or until the prompt has so many tokens.
        released_at_tokens: u64,
    },
    /// Another process works on the conversation.
    CompactionLocked {
        /// What would have brought it about.
        trigger: Trigger,
        /// The program that has the conversation open.
        holder: Holder,
        /// Until when at most.
        until_ms: Millis,
    },
    /// A provider stated a smaller window, which holds from now on.
    WindowLearnt {
        /// The model.
        model: String,
        /// Its window.
        window_tokens: u64,
        /// What it was believed to be.
        was_tokens: u64,
    },
    /// The output cap was lowered for one call.
    CapLowered {
        /// To this.
        tokens: u64,
        /// From this, where there was one.
        was_tokens: Option<u64>,
    },
    /// Another model was asked.
    FallbackUsed {
        /// The model whose window it is.
        model: String,
        /// Instead of which.
        instead_of: String,
        /// Because of this.
        trouble: String,
    },
    /// Something was done to get a call through, and it is made again.
    Retrying {
        /// What was done.
        after: RecoveryAction,
        /// Because of this.
        trouble: String,
    },
    /// Something people should know.
    Notice {
        /// A sentence for the user.
        text: String,
    },
}

/// Receives events.
pub trait EventSink: Send + Sync {
    /// Told of an event. Must not wait.
    fn tell(&self, event: EngineEvent);
}

impl<F: Fn(EngineEvent) + Send + Sync> EventSink for F {
    fn tell(&self, event: EngineEvent) {
        self(event);
    }
}
