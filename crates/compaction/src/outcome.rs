//! How an attempt ended. Every attempt ends in one of these, and the user sees which.

use crate::plan::NoPlan;

/// How good the summary of a completed compaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// Written by a model and checked.
    Model,
    /// Made by the built-in rules.
    Rules,
}

/// Why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoOpReason {
    /// The conversation is below the threshold.
    BelowThreshold,
    /// There is no message.
    Empty,
    /// Everything is protected as head or tail.
    NothingInTheMiddle,
    /// Nothing was said since the last summary that could be folded.
    NothingNew,
    /// The result would not have been smaller.
    WouldNotShrink,
    /// It would free too little to pay for itself; the view grows until it does, or until the hard limit.
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
    /// In words, for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::BelowThreshold => {
                "the conversation is below the threshold; --force compacts it all the same"
            }
            Self::Empty => "there are no messages",
            Self::NothingInTheMiddle => "everything is protected as head or tail",
            Self::NothingNew => "nothing new could be folded since the last summary",
            Self::WouldNotShrink => "the result would not have been smaller",
            Self::DoesNotPay => "it would free too little to pay for itself",
        }
    }
}

/// Why an attempt was given up. The conversation is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AbortReason {
    /// The summariser failed for now.
    SummariserUnavailable,
    /// The summariser failed and will fail again.
    SummariserFailed,
    /// The summariser answered with nothing, or with more than it replaces.
    SummaryUnusable,
    /// The result broke a rule of its wire that the conversation had kept; it is refused.
    ResultInvalid,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// The view was replaced.
    Completed {
        /// How good the summary is.
        quality: Quality,
        /// In words.
        reason: String,
    },
    /// Nothing was to be done.
    NoOp {
        /// Why.
        reason: NoOpReason,
        /// In words.
        detail: String,
    },
    /// Given up, unchanged.
    Aborted {
        /// Why.
        reason: AbortReason,
        /// In words.
        detail: String,
    },
}

impl Outcome {
    pub(crate) fn no_op(reason: NoOpReason) -> Self {
        Self::NoOp { reason, detail: reason.words().to_owned() }
    }

    /// The same with the sum behind it, where there is one.
    pub(crate) fn no_op_with(reason: NoOpReason, sum: Option<String>) -> Self {
        match sum.filter(|_| reason == NoOpReason::DoesNotPay) {
            Some(sum) => Self::NoOp { reason, detail: format!("{}: {sum}", reason.words()) },
            None => Self::no_op(reason),
        }
    }

    /// Whether the view was replaced.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        matches!(self, Self::Completed { .. })
    }
}
