//! Compaction in five phases: prune, cut, summarise, check, assemble. No I/O, no clock, no model of its own.

mod act;
mod anchors;
mod assemble;
mod builtin;
mod check;
mod chunks;
mod compact;
mod document;
mod earlier;
mod interner;
mod ledger;
mod mend;
mod merge;
mod number_runs;
mod outcome;
mod pay;
mod plan;
mod preface;
mod rendition;
mod report;
mod sections;
mod state;
mod summarise;
mod view;

pub use act::{
    Act, ActOutcome, CLEARED, CallAnswer, CallStatus, Evidence, StatusReading, ToolFamily, one_line,
    read_status, thousands,
};
pub use anchors::{AnchorKind, scan_anchors};
pub use assemble::assemble;
pub use builtin::RuleSummariser;
pub use check::{Fact, FactKind, FactReport, NOT_IN_RECORD, check, important_facts};
pub use compact::{Attempt, Budgets, Conversation, Options, Preview, compact, preview, shown_text};
pub use document::{Entry, SummaryDocument};
pub use earlier::EarlierSummary;
pub use ledger::{AnchorInfo, CountMessage, Ledger, SeenBy};
pub use mend::{Repairs, STUB_RESULT};
pub use merge::{is_momentary, merge_parts, trim_to_budget};
pub use outcome::{AbortReason, Completion, NoOpReason, Outcome, Quality};
pub use pay::{CacheState, PayCheck, PayFigures, PayRule, Payback, deep_target, growth_per_call, payback};
pub use plan::{CutBudget, Earlier, NoPlan, Plan, PlanInput, plan};
pub use preface::{
    ACKNOWLEDGEMENT, END_MARKER, FoundSummary, Maker, SUMMARY_TAG, SYSTEM_NOTE, SummaryFrame, closing_line,
    find_summary, is_acknowledgement, summary_text,
};
pub use rendition::{PruneCounts, PruneRules, Rendition, RenditionKind, append_note, prune, with_note};
pub use report::{BeforeAfter, LimitInForce, PlanReport, Report, Stretch, Timings};
pub use sections::Section;
pub use state::{
    Choice, Constraint, Delegated, Edit, Entity, Fate, Look, Problem, Request, Run, RunOutcome, State,
    Statement, TodoItem, TodoSource, TodoStatus, Via,
};
pub use summarise::{
    Account, CountTokens, Detail, Manner, Reach, SummariseError, Summariser, SummaryFuture, SummaryRequest,
    WrittenBy, split_span, summarise_all,
};
pub use view::{Synthetic, ViewItem};
