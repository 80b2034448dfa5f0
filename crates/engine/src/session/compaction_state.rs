//! The compaction state of a session: guards, summaries in preparation, attempts without effect.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::context_engine::EngineError;
use crate::context_engine::outcome::PrepareOutcome;
use crate::decide::guard::GuardState;
use crate::decide::trigger::Trigger;

/// Time limit of any single operation of an engine, in addition to the engine's own limits.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(30 * 60);

/// A summary in preparation. Dropping it cancels the task.
pub(super) struct PreparationTask(pub(super) JoinHandle<Result<PrepareOutcome, EngineError>>);

impl Drop for PreparationTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The progress of the preparation, as reported to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreparationProgress {
    /// It began.
    Begun,
    /// A summary covers this many messages.
    Covered(usize),
    /// It was cancelled in favour of a request with a waiting caller.
    Postponed,
    /// It failed.
    Failed,
}

/// The state of a session's compactions.
pub(super) struct CompactionState {
    /// Number of compactions so far.
    pub(super) count: u64,
    pub(super) guard: GuardState,
    /// The guard as the record has it.
    pub(super) stored_guard: GuardState,
    /// The trigger of a compaction that is due with the next call.
    pub(super) due: Option<Trigger>,
    /// A summary in preparation.
    pub(super) task: Option<PreparationTask>,
    /// A summary that was too late for the last compaction.
    pub(super) late_task: Option<PreparationTask>,
    /// The last progress that was reported for this view.
    pub(super) progress: Option<PreparationProgress>,
    /// Size of the prompt when the last preparation for this view started.
    pub(super) task_started_at_tokens: u64,
    /// The same for one that was cancelled in favour of another request.
    pub(super) postponed_at_tokens: Option<u64>,
    /// Number of items in the view when nothing in it could be compacted, or compacting it did not pay.
    pub(super) nothing_to_compact_at: Option<usize>,
    /// Whether it was reported that a compaction of this view does not pay yet.
    pub(super) is_waiting_reported: bool,
    /// Number of items in the view at the last idle check.
    pub(super) idle_checked_at: Option<usize>,
}

impl CompactionState {
    pub(super) fn new(guard: GuardState, count: u64) -> Self {
        Self {
            count,
            stored_guard: guard.clone(),
            guard,
            due: None,
            task: None,
            late_task: None,
            progress: None,
            task_started_at_tokens: 0,
            postponed_at_tokens: None,
            nothing_to_compact_at: None,
            is_waiting_reported: false,
            idle_checked_at: None,
        }
    }

    /// Discards the state that concerned the old view.
    pub(super) fn reset_for_new_view(&mut self) {
        self.due = None;
        self.task = None;
        self.progress = None;
        self.postponed_at_tokens = None;
        self.nothing_to_compact_at = None;
        self.is_waiting_reported = false;
        self.idle_checked_at = None;
    }

    /// Discards the state that concerned the old model; the view is the same.
    pub(super) fn reset_for_new_model(&mut self) {
        self.task = None;
        self.progress = None;
        self.nothing_to_compact_at = None;
        self.is_waiting_reported = false;
        // The results of compactions with the old model do not apply to the new one.
        self.guard.reset();
    }
}
