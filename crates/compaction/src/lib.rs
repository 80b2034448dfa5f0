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

pub use act::{Act, ActOutcome, CallAnswer, ToolFamily, one_line, thousands};
pub use anchors::{AnchorKind, scan_anchors};
pub use assemble::assemble;
pub use builtin::RuleSummariser;
pub use check::{FactKind, FactReport, NOT_IN_RECORD, check};
pub use compact::{Attempt, Budgets, Conversation, Options, compact, preview, shown_text};
pub use document::{Entry, SummaryDocument};
pub use ledger::{CountMessage, Ledger};
pub use mend::{Repairs, STUB_RESULT};
pub use merge::{is_momentary, merge_parts, trim_to_budget};
pub use outcome::{AbortReason, Completion, NoOpReason, Outcome, Quality};
pub use pay::{CacheState, PayCheck, PayRule, Payback, deep_target, payback};
pub use plan::{Earlier, Plan};
pub use preface::{
    END_MARKER, Maker, SUMMARY_TAG, SYSTEM_NOTE, SummaryFrame, closing_line, find_summary,
    is_acknowledgement, summary_text,
};
pub use rendition::{PruneRules, Rendition, RenditionKind, append_note, prune};
pub use report::{BeforeAfter, LimitInForce, PlanReport, Report, Stretch, Timings};
pub use sections::Section;
pub use summarise::{
    Account, CountTokens, Detail, Manner, Reach, SummariseError, Summariser, SummaryFuture, SummaryRequest,
    WrittenBy, split_span, summarise_all,
};
pub use view::{Synthetic, ViewItem};
