//! Compaction in five phases: prune, cut, summarise, check, assemble. No I/O, no clock, no model of its own.
//!
//! [`Conversation::compact`] makes one attempt: it never changes the conversation, and returns a new view of it with a report. [`Conversation::preview`] is the plan
//! alone. A [`Summariser`] writes the summary; [`RuleSummariser`] needs no model. A [`Ledger`] has every exact fact of the conversation,
//! and a summary is checked against it.
//!
//! For engines that manage context. Programs should use `Compactor` of the crate `throughline`, which supplies the rest.
//!
//! ```
//! use throughline_compaction::{AnchorKind, Ledger};
//! use throughline_transcript::{DecodeOptions, Groups, Transcript};
//!
//! let mut anchors = Vec::new();
//! AnchorKind::scan("Edit src/main.rs, then run with --release.", |text, _kind| anchors.push(text));
//! assert_eq!(anchors, ["src/main.rs", "--release"]);
//!
//! let list = br#"[{"role":"user","content":"Move the parser to src/parse.rs"}]"#;
//! let messages = Transcript::decode(list.to_vec(), &DecodeOptions::default())?.messages;
//! let (ledger, sizes) = Ledger::gather(&messages, &Groups::of(&messages), None, &|_| 10);
//! assert_eq!(sizes, [10]);
//! # let _ = ledger;
//! # Ok::<(), throughline_transcript::DecodeError>(())
//! ```
//!
//! Not for: when a compaction is due, and the use of its result.

mod act;
mod anchors;
mod assemble;
mod builtin;
mod check;
mod chunks;
mod combine;
mod compact;
mod document;
mod earlier;
mod economy;
mod entries;
mod facts;
mod interner;
mod ledger;
mod mend;
mod merge;
mod notes_report;
mod number_runs;
mod outcome;
mod pay;
mod plan;
mod preface;
mod rendition;
mod report;
mod sections;
mod shrink;
mod state;
mod stems;
mod summarise;
mod view;

pub use act::{AbsentMark, Act, ActOutcome, CallAnswer, ToolFamily, one_line, thousands};
pub use anchors::AnchorKind;
pub use builtin::RuleSummariser;
pub use check::FactReport;
pub use combine::replaced_notes;
pub use compact::{Attempt, Budgets, Conversation, Options};
pub use document::{Entry, SummaryDocument};
pub use economy::{EconomyFigures, NotesBy, Rereads, Spending, ViewMemory};
pub use facts::CountMessage;
pub use ledger::Ledger;
pub use mend::Repairs;
pub use notes_report::NotesReport;
pub use outcome::{AbortReason, Completion, NoOpReason, Outcome, Quality};
pub use pay::{CacheState, PayCheck, PayRule, Payback};
pub use plan::{Earlier, Plan};
pub use preface::{Maker, SummaryFrame};
pub use rendition::{PruneRules, Rendition, RenditionKind};
pub use report::{BeforeAfter, LimitInForce, PlanReport, Report, Stretch, Timings};
pub use sections::Section;
pub use shrink::{ContentKind, shrink};
pub use state::{Correction, StateEntry, StateKind};
pub use summarise::{
    Account, CountTokens, Detail, Reach, SummariseError, Summariser, SummaryFuture, SummaryKind,
    SummaryRequest, WrittenBy,
};
pub use view::{Synthetic, ViewItem};
