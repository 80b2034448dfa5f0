//! The request for a compaction to an engine, and its result: a view in terms of the conversation it received.

use serde::{Deserialize, Serialize};
use throughline_compaction::{BeforeAfter, NotesReport, Outcome, Payback, Quality, WrittenBy};
use throughline_tokens::CachePrices;

use crate::context_engine::snapshot::Snapshot;
use crate::decide::trigger::Trigger;

/// A compaction that is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompressRequest {
    /// The conversation.
    pub conversation: Snapshot,
    /// What brought it about.
    pub trigger: Trigger,
    /// Whether the conversation could go on without.
    pub room: Headroom,
    /// What most of the summary shall be about.
    #[serde(default)]
    pub focus: Option<String>,
    /// Compact below the threshold too.
    #[serde(default)]
    pub force: bool,
    /// What the whole prompt has to come below, where that is less than the usual.
    #[serde(default)]
    pub target_tokens: Option<u64>,
    /// Newest messages that stay as they are, exactly these, while all before them is compacted.
    #[serde(default)]
    pub keep_messages: Option<usize>,
    /// What a memory has to say about the compacted part, as data.
    #[serde(default)]
    pub memory_context: Option<String>,
}

/// Whether a conversation can go on without a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Headroom {
    /// It can: an attempt that fails may be made again later.
    Left,
    /// It cannot: without a smaller view nothing can be sent.
    None,
}

/// How a compaction by an engine ended.
pub type CompressOutcome = Outcome<Box<CompactedView>>;

/// Whether a compaction would pay for itself now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Profitability {
    /// It would, or nobody can say before it was made.
    Yes,
    /// It would not.
    No {
        /// The sum, in words.
        detail: String,
    },
}

/// A new view and how it came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactedView {
    /// What the model shall be shown, in order.
    pub view: Vec<NewItem>,
    /// The summary in it, if there is a new one.
    pub summary: Option<SummaryDraft>,
    /// How good it is.
    pub quality: Quality,
    /// In figures.
    pub report: CompressReport,
}

/// One item of a new view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NewItem {
    /// An item of the conversation as it is.
    Kept {
        /// Its place in the conversation.
        item: usize,
    },
    /// An item of the conversation in other words, once and for good.
    Rewritten {
        /// Its place in the conversation.
        item: usize,
        /// What was changed: `pruned`, `trimmed`, `image_label`, `noted`, `mended`, or a name of the engine's own.
        changes: Vec<String>,
        /// The message as it is to be sent.
        json: String,
    },
    /// The summary.
    Summary {
        /// The message as it is to be sent.
        json: String,
    },
    /// A message that Throughline inserts.
    Synthetic {
        /// What for: `acknowledgement`, `stub_result`, or a name of the engine's own.
        role: String,
        /// The message as it is to be sent.
        json: String,
    },
}

/// A summary for the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryDraft {
    /// Who wrote it: `rules`, or the name of a model.
    pub author: String,
    /// The document, as Markdown.
    pub document: String,
    /// Places in the conversation of the messages it covers, among them earlier summaries it includes.
    pub covers: Vec<usize>,
    /// Facts kept, attached and removed.
    #[serde(default)]
    pub facts: serde_json::Value,
    /// Further figures of the engine's own.
    #[serde(default)]
    pub figures: serde_json::Value,
}

/// What a compaction did, in figures people are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompressReport {
    /// Estimated tokens of the whole request.
    pub tokens: BeforeAfter,
    /// Messages.
    pub messages: BeforeAfter,
    /// Tokens of the summary.
    pub summary_tokens: u64,
    /// Exact facts of the compacted part that matter.
    pub facts_important: usize,
    /// Of those, how many the summary told by itself.
    pub facts_kept: usize,
    /// How many were attached by the check.
    pub facts_attached: usize,
    /// What the view keeps of the state, and the notes by section, where the engine says so.
    #[serde(default)]
    pub notes: Option<NotesReport>,
    /// Whether a summary that had been prepared was used.
    #[serde(default)]
    pub prepared: bool,
    /// Whether it pays for itself, as it was planned, with the sum.
    #[serde(default)]
    pub payback: Option<Payback>,
    /// What it costs, in millionths of a dollar, where prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// What each later call costs less, in the same unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_per_call_micro_usd: Option<u64>,
    /// The model that wrote the summary, how it was asked, and what that took.
    #[serde(default)]
    pub written_by: Option<WrittenBy>,
    /// What people should know.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl CompressReport {
    /// Writes down what the compaction costs and saves in money, at this price of a million prompt tokens.
    pub(crate) fn price(&mut self, input_price: u64, prices: CachePrices) {
        let Some(sum) = self.payback else { return };
        let money = |tokens: u64, permille: u64| {
            let product = u128::from(tokens) * u128::from(permille) * u128::from(input_price) / 1_000_000_000;
            u64::try_from(product).unwrap_or(u64::MAX)
        };
        self.cost_micro_usd = Some(money(sum.cost_tokens, 1_000));
        let freed = self.tokens.before.saturating_sub(self.tokens.after);
        self.saved_per_call_micro_usd = Some(money(freed, prices.read_permille));
    }

    /// What it costs and saves, in words; `None` where prices are not known.
    #[must_use]
    pub fn money_words(&self) -> Option<String> {
        let cents = |micro_usd: u64| {
            let tenths = micro_usd.saturating_add(500) / 1_000;
            format!("{}.{} cents", tenths / 10, tenths % 10)
        };
        let (cost, saved) = (self.cost_micro_usd?, self.saved_per_call_micro_usd?);
        Some(format!("costs {}, saves {} per call", cents(cost), cents(saved)))
    }
}

/// What came of preparing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PrepareOutcome {
    /// The engine does not prepare, or there is nothing to prepare.
    Nothing,
    /// A summary is ready.
    Ready {
        /// Messages it covers.
        messages: usize,
    },
    /// It was cancelled because the server was needed for a request with a waiting caller.
    Postponed,
    /// It could not be prepared; the compaction will try again.
    Failed {
        /// Why, in words.
        detail: String,
    },
}
