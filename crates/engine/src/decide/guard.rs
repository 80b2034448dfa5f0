//! Guards against thrashing: automatic compactions that save nothing or fail repeatedly are postponed, never permanently.
//!
//! A compaction must make progress, and the first prompt measured after it must be below the threshold. Two in a row that fail this block
//! further automatic ones, and so does a failing summariser. Every block ends by itself, after some time or when the conversation has grown
//! enough to compact. Finding nothing to compact is not a failure. The state is a small JSON value stored with the chain of sessions, so
//! that continuations and restarted processes inherit it.
//!
//! Not for: blocking manual compactions, or those without which nothing can be sent.

use serde::{Deserialize, Serialize};
use throughline_compaction::{AbortReason, BeforeAfter, NoOpReason};
use throughline_store::Millis;

use crate::decide::trigger::Urgency;

/// The name under which the state is stored.
pub(crate) const GUARD_NAME: &str = "compaction";

/// A compaction that saves less than this makes no progress.
const LEAST_PROGRESS_PERCENT: u64 = 5;
/// Ineffective compactions in a row before further ones are postponed.
const STRIKES_ALLOWED: u32 = 2;
/// A block ends when the conversation has grown by this percentage of the threshold, ...
const RELEASE_GROWTH_PERCENT: u64 = 10;
/// ... and at least by this many tokens.
const RELEASE_LEAST_GROWTH_TOKENS: u64 = 4_096;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
/// The duration of a block after ineffective compactions: of the first, the second, and all later ones.
const VAIN_LADDER_MS: [u64; 3] = [5 * MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS];
/// The same after a temporary failure of the summariser.
const PASSING_LADDER_MS: [u64; 3] = [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS];
/// The same after a failure that needs a change of settings.
const LASTING_LADDER_MS: [u64; 3] = [10 * MINUTE_MS, 30 * MINUTE_MS, 60 * MINUTE_MS];

/// Why compactions are postponed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockCause {
    /// The last compactions saved almost nothing, or left the prompt above the threshold.
    NoProgress,
    /// The summariser failed.
    SummariserFailed,
    /// The result was invalid.
    ResultInvalid,
}

/// A block on automatic compactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionBlock {
    /// The reason.
    pub cause: BlockCause,
    /// A sentence for the user.
    pub detail: String,
    /// The time at which the block ends.
    pub until_ms: Millis,
    /// The prompt size at which it ends earlier.
    pub released_at_tokens: u64,
}

/// Whether an attempt may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The attempt may be made.
    Go,
    /// The attempt is blocked.
    Blocked(CompactionBlock),
}

/// The recent history of a conversation's compactions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct GuardState {
    /// Ineffective compactions in a row.
    strikes: u32,
    /// Failures of the summariser, in a row.
    failures: u32,
    /// Whether a compaction was completed and no prompt has been measured since.
    verdict_due: bool,
    /// The current block on further compactions.
    block: Option<CompactionBlock>,
}

/// The figures at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GuardInput {
    /// The current time.
    pub now_ms: Millis,
    /// The size of the prompt, with the best known figures.
    pub tokens: u64,
    /// The size at which a compaction starts.
    pub threshold_tokens: u64,
}

impl GuardState {
    /// Whether the state is empty and need not be stored.
    #[must_use]
    pub(crate) fn is_clear(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an attempt may be made.
    #[must_use]
    pub(crate) fn admit(&self, moment: GuardInput, urgency: Urgency) -> Admission {
        match &self.block {
            Some(block)
                if urgency == Urgency::Due
                    && moment.now_ms < block.until_ms
                    && moment.tokens < block.released_at_tokens =>
            {
                Admission::Blocked(block.clone())
            }
            _ => Admission::Go,
        }
    }

    /// Records a completed compaction.
    pub(crate) fn completed(&mut self, tokens: BeforeAfter, moment: GuardInput) {
        self.failures = 0;
        self.block = None;
        let saved = tokens.before.saturating_sub(tokens.after);
        let enough =
            saved.saturating_mul(100) >= tokens.before.saturating_mul(LEAST_PROGRESS_PERCENT) && saved > 0;
        if enough {
            self.verdict_due = true;
        } else {
            self.verdict_due = false;
            self.strike(format!("the last compaction saved {saved} of {} tokens", tokens.before), moment);
        }
    }

    /// Records a measured prompt. The first one after a compaction decides whether the compaction was effective.
    pub(crate) fn measured(&mut self, moment: GuardInput) {
        let verdict_due = std::mem::take(&mut self.verdict_due);
        if moment.tokens < moment.threshold_tokens {
            self.strikes = 0;
            if self.block.as_ref().is_some_and(|block| block.cause == BlockCause::NoProgress) {
                self.block = None;
            }
        } else if verdict_due {
            let (tokens, threshold) = (moment.tokens, moment.threshold_tokens);
            self.strike(format!("{tokens} tokens were left, over the threshold of {threshold}"), moment);
        }
    }

    /// Records an answer without figures: the last compaction can no longer be judged.
    pub(crate) fn unmeasured(&mut self) {
        self.verdict_due = false;
    }

    /// Records a compaction that had nothing to do.
    pub(crate) fn no_op(&mut self, reason: NoOpReason, moment: GuardInput) {
        if !reason.is_structural() {
            self.strike("a compaction would not have made the conversation smaller".to_owned(), moment);
        }
    }

    /// Records an aborted attempt.
    pub(crate) fn aborted(&mut self, reason: AbortReason, detail: &str, moment: GuardInput) {
        let (cause, ladder) = match reason {
            AbortReason::SummariserUnavailable => (BlockCause::SummariserFailed, PASSING_LADDER_MS),
            AbortReason::SummaryUnusable => (BlockCause::SummariserFailed, PASSING_LADDER_MS),
            AbortReason::SummariserFailed => (BlockCause::SummariserFailed, LASTING_LADDER_MS),
            AbortReason::ResultInvalid => (BlockCause::ResultInvalid, LASTING_LADDER_MS),
        };
        self.set_block(cause, detail.to_owned(), rung(ladder, self.failures), moment);
        self.failures = self.failures.saturating_add(1);
    }

    /// Clears the history, because it does not apply to another model or summariser.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    fn strike(&mut self, detail: String, moment: GuardInput) {
        self.strikes = self.strikes.saturating_add(1);
        if let Some(step) = self.strikes.checked_sub(STRIKES_ALLOWED) {
            self.set_block(BlockCause::NoProgress, detail, rung(VAIN_LADDER_MS, step), moment);
        }
    }

    fn set_block(&mut self, cause: BlockCause, detail: String, for_ms: u64, moment: GuardInput) {
        let growth = moment.threshold_tokens.saturating_mul(RELEASE_GROWTH_PERCENT) / 100;
        self.block = Some(CompactionBlock {
            cause,
            detail,
            until_ms: moment.now_ms.saturating_add_unsigned(for_ms),
            released_at_tokens: moment.tokens.saturating_add(growth.max(RELEASE_LEAST_GROWTH_TOKENS)),
        });
    }
}

/// Returns the duration of a step; steps beyond the last have the last one's duration.
fn rung(ladder: [u64; 3], step: u32) -> u64 {
    ladder[(step as usize).min(ladder.len() - 1)]
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
