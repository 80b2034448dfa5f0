//! The request for a compaction of a session, and its result.

use throughline_compaction::{AbortReason, NoOpReason, Quality};
use throughline_store::{Holder, Millis, SessionId};

use crate::context_engine::outcome::CompressReport;
use crate::decide::guard::CompactionBlock;
use crate::decide::recovery::RecoveryAction;
use crate::decide::trigger::{Trigger, Urgency};
use crate::event::EngineEvent;

/// How a compaction ended, whatever stood in its way.
#[derive(Clone, Debug, PartialEq)]
pub enum CompactionResult {
    /// The conversation goes on with a new view.
    Completed(Box<CompactionDone>),
    /// There was nothing to be done.
    NoOp {
        /// Why nothing was compacted.
        reason: NoOpReason,
        /// A sentence for the user.
        detail: String,
    },
    /// Given up; the conversation is as it was.
    Aborted {
        /// Why; `None` when it was neither the summary nor the view.
        reason: Option<AbortReason>,
        /// A sentence for the user.
        detail: String,
    },
    /// Put off by a guard.
    Blocked(CompactionBlock),
    /// Somebody else is at work on the conversation.
    Locked {
        /// The program that has the conversation open.
        holder: Holder,
        /// Until when at most.
        until_ms: Millis,
    },
}

/// A compaction that was committed.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionDone {
    /// How good the summary is.
    pub quality: Quality,
    /// In figures.
    pub report: CompressReport,
    /// The session that was.
    pub old: SessionId,
    /// The session that is.
    pub new: SessionId,
}

/// A compaction that a person asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManualCompaction {
    /// What most of the summary shall be about.
    pub focus: Option<String>,
    /// Newest exchanges, counted by what a person said, that stay as they are while all before them is compacted.
    pub keep_exchanges: Option<usize>,
    /// What a memory has to say about the compacted part.
    pub memory_context: Option<String>,
}

/// A compaction to be made.
#[derive(Clone, Debug)]
pub(super) struct CompactionSpec {
    pub(super) trigger: Trigger,
    pub(super) urgency: Urgency,
    pub(super) force: bool,
    pub(super) target_tokens: Option<u64>,
    pub(super) focus: Option<String>,
    pub(super) keep_messages: Option<usize>,
    pub(super) memory_context: Option<String>,
}

impl CompactionSpec {
    pub(super) fn new(trigger: Trigger, urgency: Urgency) -> Self {
        Self {
            trigger,
            urgency,
            force: false,
            target_tokens: None,
            focus: None,
            keep_messages: None,
            memory_context: None,
        }
    }

    /// Whether it asks for something that nobody could have prepared.
    pub(super) fn is_particular(&self) -> bool {
        self.focus.is_some()
            || self.target_tokens.is_some()
            || self.keep_messages.is_some()
            || self.memory_context.is_some()
    }
}

/// A result as it is told.
pub(super) fn event_of(trigger: Trigger, result: &CompactionResult) -> EngineEvent {
    match result {
        CompactionResult::Completed(done) => EngineEvent::CompactionCompleted {
            trigger,
            quality: done.quality,
            report: Box::new(done.report.clone()),
            old: done.old.clone(),
            new: done.new.clone(),
        },
        CompactionResult::NoOp { reason, detail } => {
            EngineEvent::CompactionNoOp { trigger, reason: *reason, detail: detail.clone() }
        }
        CompactionResult::Aborted { reason, detail } => {
            EngineEvent::CompactionAborted { trigger, reason: *reason, detail: detail.clone() }
        }
        CompactionResult::Blocked(block) => EngineEvent::CompactionBlocked {
            trigger,
            cause: block.cause,
            detail: block.detail.clone(),
            until_ms: block.until_ms,
            released_at_tokens: block.released_at_tokens,
        },
        CompactionResult::Locked { holder, until_ms } => {
            EngineEvent::CompactionLocked { trigger, holder: holder.clone(), until_ms: *until_ms }
        }
    }
}

/// A compaction as something that was tried; `None` for one that was put off.
pub(super) fn action_of(result: &CompactionResult) -> Option<RecoveryAction> {
    match result {
        CompactionResult::Completed(done) => Some(RecoveryAction::Compacted {
            before_tokens: done.report.tokens.before,
            after_tokens: done.report.tokens.after,
        }),
        CompactionResult::NoOp { detail, .. } | CompactionResult::Aborted { detail, .. } => {
            Some(RecoveryAction::CompactedInVain { detail: detail.clone() })
        }
        CompactionResult::Blocked(_) | CompactionResult::Locked { .. } => None,
    }
}
