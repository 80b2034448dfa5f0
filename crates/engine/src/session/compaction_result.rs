//! The request for a compaction of a session, and its result.

use throughline_compaction::{AbortReason, NoOpReason, Quality};
use throughline_store::{Holder, Millis, SessionId};

use crate::context_engine::outcome::CompressReport;
use crate::decide::guard::CompactionBlock;
use crate::decide::recovery::RecoveryAction;
use crate::decide::trigger::{Trigger, Urgency};
use crate::event::EngineEvent;

/// How a compaction ended.
#[derive(Clone, Debug, PartialEq)]
pub enum CompactionResult {
    /// The conversation continues with a new view.
    Completed(Box<CompactionDone>),
    /// There was nothing to do.
    NoOp {
        /// Why nothing was compacted.
        reason: NoOpReason,
        /// A sentence for the user.
        detail: String,
    },
    /// Aborted; the conversation is unchanged.
    Aborted {
        /// The reason. `None` if neither the summary nor the view was the cause.
        reason: Option<AbortReason>,
        /// A sentence for the user.
        detail: String,
    },
    /// Postponed by a guard.
    Blocked(CompactionBlock),
    /// Another process has locked the conversation.
    Locked {
        /// The program that has the conversation open.
        holder: Holder,
        /// When the lock expires.
        until_ms: Millis,
    },
}

/// A compaction that was committed.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionDone {
    /// The quality of the summary.
    pub quality: Quality,
    /// The figures.
    pub report: CompressReport,
    /// The session that ended.
    pub old: SessionId,
    /// The session that continues it.
    pub new: SessionId,
}

/// The options of a manual compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManualCompaction {
    /// The topic of most of the summary.
    pub focus: Option<String>,
    /// The number of newest exchanges that stay unchanged, while everything before them is compacted.
    pub keep_exchanges: Option<usize>,
    /// Notes from a memory about the compacted part.
    pub memory_context: Option<String>,
}

/// The request for a compaction.
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

    /// Whether it has options that rule out a prepared summary.
    pub(super) fn is_particular(&self) -> bool {
        self.focus.is_some()
            || self.target_tokens.is_some()
            || self.keep_messages.is_some()
            || self.memory_context.is_some()
    }
}

/// The event for a result.
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

/// The recovery step for a result. `None` for a postponed compaction.
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
