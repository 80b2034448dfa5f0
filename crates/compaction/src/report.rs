//! The figures of an attempt, for people and programs.

use crate::check::FactReport;
use crate::mend::Repairs;
use crate::notes_report::NotesReport;
use crate::pay::Payback;
use crate::plan::Plan;
use crate::rendition::PruneCounts;
use crate::summarise::WrittenBy;

/// A figure before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BeforeAfter {
    /// Before the attempt.
    pub before: u64,
    /// After it; equal to `before` if nothing changed.
    pub after: u64,
}

/// A run of messages in a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stretch {
    /// First message, from zero.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// The number of messages.
    pub messages: usize,
    /// Their estimated tokens.
    pub tokens: u64,
}

/// A configured and an effective limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LimitInForce {
    /// The configured value.
    pub configured: u64,
    /// The effective value.
    pub effective: u64,
    /// The reason for the difference, if there is one.
    pub reason: Option<String>,
}

/// The plan, as it is reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PlanReport {
    /// The messages kept at the beginning.
    pub head: Stretch,
    /// Messages the summary covers.
    pub middle: Stretch,
    /// Messages kept at the end.
    pub tail: Stretch,
    /// The last human message, if it is in the compacted part and repeated after the summary.
    pub pinned: Option<Stretch>,
    /// The window the limits were computed for.
    pub window_tokens: u64,
    /// The effective threshold.
    pub threshold_tokens: u64,
    /// The effective budget of the tail.
    pub tail_budget_tokens: u64,
    /// The budget of the summary.
    pub summary_budget_tokens: u64,
    /// Each configured and effective limit, in display order.
    #[serde(serialize_with = "by_name")]
    pub limits: Vec<(String, LimitInForce)>,
    /// The role of the summary.
    pub summary_role: String,
    /// Whether our acknowledgement follows it.
    pub acknowledged: bool,
    /// Whether an earlier summary was updated.
    pub updates_earlier_summary: bool,
}

/// The duration of each phase in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Timings {
    /// Gathering facts, if that was necessary.
    pub facts: u64,
    /// Choosing the cut.
    pub cut: u64,
    /// Pruning.
    pub prune: u64,
    /// Summarising.
    pub summarise: u64,
    /// Checking.
    pub check: u64,
    /// Assembling and verifying.
    pub assemble: u64,
}

/// The whole report of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Estimated tokens of the whole request.
    pub tokens: BeforeAfter,
    /// Number of messages.
    pub messages: BeforeAfter,
    /// Tokens of system prompt and tools, which no compaction changes.
    pub fixed_tokens: u64,
    /// The cuts.
    pub plan: PlanReport,
    /// The effects of pruning before the tail.
    pub pruned: PruneCounts,
    /// The result of the check.
    pub facts: FactReport,
    /// The entries that the view retains of the state, and the notes by section; `None` if no notes were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<NotesReport>,
    /// The repairs made by assembly.
    pub repairs: Repairs,
    /// Tokens of the summary message.
    pub summary_tokens: u64,
    /// The name of the summariser.
    pub summariser: Option<String>,
    /// The model that wrote it, and the cost of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_by: Option<WrittenBy>,
    /// Whether it pays for itself, with the calculation; `None` without prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payback: Option<Payback>,
    /// Time by phase.
    pub timings_us: Timings,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Serialises named values as one object.
fn by_name<S: serde::Serializer>(
    limits: &[(String, LimitInForce)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(limits.iter().map(|(name, limit)| (name, limit)))
}

pub(crate) fn stretch(range: std::ops::Range<usize>, sizes: &[u64]) -> Stretch {
    let tokens = sizes.get(range.clone()).unwrap_or_default().iter().sum();
    Stretch { start: range.start, end: range.end, messages: range.len(), tokens }
}

impl PlanReport {
    /// Returns the plan if there is nothing to compact: everything is the tail.
    pub(crate) fn unchanged(messages: usize, sizes: &[u64]) -> Self {
        Self { tail: stretch(0..messages, sizes), ..Self::default() }
    }

    pub(crate) fn new(plan: &Plan, sizes: &[u64]) -> Self {
        Self {
            head: stretch(plan.head.clone(), sizes),
            middle: stretch(plan.middle.clone(), sizes),
            tail: stretch(plan.tail.clone(), sizes),
            pinned: plan.pinned.clone().map(|range| stretch(range, sizes)),
            summary_role: plan.summary_role.name().to_owned(),
            acknowledged: plan.acknowledge,
            updates_earlier_summary: !plan.earlier.summaries.is_empty(),
            ..Self::default()
        }
    }
}
