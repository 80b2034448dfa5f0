//! The outcome of a compaction, shared by compactions, context engines and sessions.
//!
//! Every attempt ends in one of these, and is reported to the user. The names are part of `--json` and of the engine protocol.

use serde::{Deserialize, Serialize};

use crate::plan::NoPlan;

/// The quality of the summary of a completed compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// Written by a model and checked.
    Model,
    /// Written by the built-in rules.
    Rules,
}

/// Why nothing was compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoOpReason {
    /// The conversation is below the threshold.
    BelowThreshold,
    /// There are no messages.
    Empty,
    /// Everything is protected as head or tail.
    NothingInTheMiddle,
    /// Nothing that can be compacted was added since the last summary.
    NothingNew,
    /// The result would not have been smaller.
    WouldNotShrink,
    /// It would free too little to pay for itself; the view grows until it does, or to the hard limit.
    DoesNotPay,
}

impl From<NoPlan> for NoOpReason {
    fn from(reason: NoPlan) -> Self {
        match reason {
            NoPlan::Empty => Self::Empty,
            NoPlan::NothingInTheMiddle => Self::NothingInTheMiddle,
            NoPlan::NothingNew => Self::NothingNew,
        }
    }
}

impl NoOpReason {
    /// Whether the structure of the conversation leaves nothing to compact, or nothing that pays: such attempts are not ineffective.
    #[must_use]
    pub fn is_structural(self) -> bool {
        !matches!(self, Self::WouldNotShrink)
    }

    /// Returns a description for users.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::BelowThreshold => {
                "the conversation is below the threshold; --force compacts it all the same"
            }
            Self::Empty => "there are no messages",
            Self::NothingInTheMiddle => "everything is protected as head or tail",
            Self::NothingNew => "nothing new could be compacted since the last summary",
            Self::WouldNotShrink => "the result would not have been smaller",
            Self::DoesNotPay => "it would free too little to pay for itself",
        }
    }
}

/// Why an attempt was aborted. The conversation is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbortReason {
    /// The summariser failed temporarily.
    SummariserUnavailable,
    /// The summariser failed and will fail again.
    SummariserFailed,
    /// The summary was empty, or longer than what it replaces.
    SummaryUnusable,
    /// The result broke a rule of its wire format that the conversation had kept; it is refused.
    ResultInvalid,
}

/// The outcome of an attempt. `C` is the result of a completed one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome<C = Completion> {
    /// There is a new view.
    Completed(C),
    /// There was nothing to do.
    NoOp {
        /// The rule that applied.
        reason: NoOpReason,
        /// A description with figures.
        detail: String,
    },
    /// The attempt failed; nothing changed.
    Aborted {
        /// The kind of failure.
        reason: AbortReason,
        /// A description.
        detail: String,
    },
}

/// A completed compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The quality of the summary.
    pub quality: Quality,
    /// Why the view was replaced, in words.
    pub reason: String,
}

impl Outcome {
    pub(crate) fn no_op(reason: NoOpReason) -> Self {
        Self::NoOp { reason, detail: reason.words().to_owned() }
    }

    /// Returns a no-op with its description, followed by the calculation if there is one.
    pub(crate) fn no_op_with(reason: NoOpReason, sum: Option<String>) -> Self {
        match sum.filter(|_| reason == NoOpReason::DoesNotPay) {
            Some(sum) => Self::NoOp { reason, detail: format!("{}: {sum}", reason.words()) },
            None => Self::no_op(reason),
        }
    }
}

impl<C> Outcome<C> {
    /// Whether there is a new view.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        matches!(self, Self::Completed(_))
    }

    /// Returns the outcome with another result for a completed attempt.
    #[must_use]
    pub fn map<D>(self, completed: impl FnOnce(C) -> D) -> Outcome<D> {
        match self {
            Self::Completed(made) => Outcome::Completed(completed(made)),
            Self::NoOp { reason, detail } => Outcome::NoOp { reason, detail },
            Self::Aborted { reason, detail } => Outcome::Aborted { reason, detail },
        }
    }
}
