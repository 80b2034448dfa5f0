//! The request for a compaction to an engine, and its result: a view in terms of the conversation it received.

use serde::{Deserialize, Serialize};
use throughline_compaction::{BeforeAfter, NotesReport, Outcome, Payback, Quality, WrittenBy};
use throughline_tokens::CachePrices;

use crate::context_engine::snapshot::Snapshot;
use crate::decide::trigger::Trigger;

/// A request for a compaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompressRequest {
    /// The conversation.
    pub conversation: Snapshot,
    /// What started it.
    pub trigger: Trigger,
    /// Whether the conversation can continue without a compaction.
    pub room: Headroom,
    /// The subject that the summary should focus on.
    #[serde(default)]
    pub focus: Option<String>,
    /// Compact even below the threshold.
    #[serde(default)]
    pub force: bool,
    /// The size that the whole prompt must stay below, if smaller than the usual target.
    #[serde(default)]
    pub target_tokens: Option<u64>,
    /// Number of newest messages to keep unchanged, exactly; everything before them is compacted.
    #[serde(default)]
    pub keep_messages: Option<usize>,
    /// What a memory plugin contributes about the compacted part, as data.
    #[serde(default)]
    pub memory_context: Option<String>,
}

/// Whether a conversation can go on without a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Headroom {
    /// It can: a failed attempt may be repeated later.
    Left,
    /// It cannot: nothing can be sent without a smaller view.
    None,
}

/// How a compaction by an engine ended.
pub type CompressOutcome = Outcome<Box<CompactedView>>;

/// Whether a compaction would pay for itself now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Profitability {
    /// It would, or this is not known in advance.
    Yes,
    /// It would not.
    No {
        /// The calculation, in words.
        detail: String,
    },
}

/// A new view, with its summary and report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactedView {
    /// What the model is shown, in order.
    pub view: Vec<NewItem>,
    /// The new summary in it, if any.
    pub summary: Option<SummaryDraft>,
    /// The quality of the summary.
    pub quality: Quality,
    /// The figures of the compaction.
    pub report: CompressReport,
}

/// One item of a new view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NewItem {
    /// An unchanged item of the conversation.
    Kept {
        /// Its position in the conversation.
        item: usize,
    },
    /// An item of the conversation with new content, which stays the same in later views.
    Rewritten {
        /// Its position in the conversation.
        item: usize,
        /// What was changed: `pruned`, `trimmed`, `image_label`, `noted`, `mended`, or a name of the engine's own.
        changes: Vec<String>,
        /// The message as it is to be sent.
        json: String,
    },
    /// The summary.
    Summary {
        /// The message as it is sent.
        json: String,
    },
    /// A message that Throughline inserts.
    Synthetic {
        /// Its purpose: `acknowledgement`, `stub_result`, or a name of the engine's own.
        role: String,
        /// The message as it is sent.
        json: String,
    },
}

/// A summary as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryDraft {
    /// The author: `rules`, or the name of a model.
    pub author: String,
    /// The document, as Markdown.
    pub document: String,
    /// Positions of the messages it covers, including earlier summaries that it includes.
    pub covers: Vec<usize>,
    /// Facts kept, attached and removed.
    #[serde(default)]
    pub facts: serde_json::Value,
    /// Further figures of the engine.
    #[serde(default)]
    pub figures: serde_json::Value,
}

/// The figures of a compaction, as shown to users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompressReport {
    /// Estimated tokens of the whole request.
    pub tokens: BeforeAfter,
    /// Number of messages.
    pub messages: BeforeAfter,
    /// Tokens of the summary.
    pub summary_tokens: u64,
    /// Number of important exact facts in the compacted part.
    pub facts_important: usize,
    /// How many of them the summary mentioned by itself.
    pub facts_kept: usize,
    /// How many of them the check attached to the summary.
    pub facts_attached: usize,
    /// What the view retains of the state, and the notes by section; `None` if the engine does not report it.
    #[serde(default)]
    pub notes: Option<NotesReport>,
    /// Whether a prepared summary was used.
    #[serde(default)]
    pub prepared: bool,
    /// Whether the compaction was planned to pay for itself, with the calculation.
    #[serde(default)]
    pub payback: Option<Payback>,
    /// Its cost in millionths of a dollar, if prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// The saving on each later call, in the same unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_per_call_micro_usd: Option<u64>,
    /// The model that wrote the summary, the form of the request, and the usage.
    #[serde(default)]
    pub written_by: Option<WrittenBy>,
    /// Warnings for the user.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl CompressReport {
    /// Sets the cost and the saving in money, at this price per million prompt tokens.
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

    /// Returns cost and saving as a sentence; `None` if prices are not known.
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

/// The result of preparing a compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PrepareOutcome {
    /// The engine does not prepare, or there is nothing to prepare.
    Nothing,
    /// A summary is ready.
    Ready {
        /// Number of messages it covers.
        messages: usize,
    },
    /// It was cancelled because the server was needed for a request with a waiting caller.
    Postponed,
    /// It could not be prepared; the compaction will try again.
    Failed {
        /// The reason, in words.
        detail: String,
    },
}
