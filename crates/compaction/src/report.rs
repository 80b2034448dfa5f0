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
    /// After it; the same as before when nothing changed.
    pub after: u64,
}

/// A run of messages in a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stretch {
    /// First message, from zero.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// How many messages.
    pub messages: usize,
    /// Their estimated tokens.
    pub tokens: u64,
}

/// A value as it was configured and as it is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LimitInForce {
    /// What was asked for.
    pub configured: u64,
    /// What holds.
    pub effective: u64,
    /// Why they differ.
    pub reason: Option<String>,
}

/// The plan, for a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PlanReport {
    /// Messages kept in front.
    pub head: Stretch,
    /// Messages the summary covers.
    pub middle: Stretch,
    /// Messages kept at the end.
    pub tail: Stretch,
    /// The last human message, where it lies in the compacted part and stands after the summary.
    pub pinned: Option<Stretch>,
    /// The window the limits were computed for.
    pub window_tokens: u64,
    /// Tokens from which a conversation is compacted, in force.
    pub threshold_tokens: u64,
    /// Tokens the tail may have, in force.
    pub tail_budget_tokens: u64,
    /// Tokens the summary may have.
    pub summary_budget_tokens: u64,
    /// Each limit as configured and in force, in the order they are shown.
    #[serde(serialize_with = "by_name")]
    pub limits: Vec<(String, LimitInForce)>,
    /// Role the summary speaks in.
    pub summary_role: String,
    /// Whether an acknowledgement of ours follows it.
    pub acknowledged: bool,
    /// Whether an earlier summary was brought up to date.
    pub updates_earlier_summary: bool,
}

/// Microseconds each phase took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Timings {
    /// Gathering facts, where they were not there yet.
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

/// Everything about an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Estimated tokens of the whole request.
    pub tokens: BeforeAfter,
    /// Messages.
    pub messages: BeforeAfter,
    /// Tokens of system prompt and tools, which no compaction changes.
    pub fixed_tokens: u64,
    /// Where it was cut.
    pub plan: PlanReport,
    /// What pruning did before the tail.
    pub pruned: PruneCounts,
    /// What the check found.
    pub facts: FactReport,
    /// What the view keeps of the state, and the notes by section; nothing where none were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<NotesReport>,
    /// What assembly mended.
    pub repairs: Repairs,
    /// Tokens of the summary message.
    pub summary_tokens: u64,
    /// Who made it.
    pub summariser: Option<String>,
    /// The model that wrote it, and what that took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_by: Option<WrittenBy>,
    /// Whether it pays for itself, with the sum; where prices were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payback: Option<Payback>,
    /// Time by phase.
    pub timings_us: Timings,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Writes named values as one object.
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
    /// What stays when there is nothing to compact: everything, as the tail.
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
