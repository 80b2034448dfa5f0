//! Converts between the figures of the trait and those of a compaction.
//!
//! A compaction counts in tokens of its estimator. The provider's count differs by a factor, which the host learns from
//! every call. Limits are divided by the factor on the way in, and results multiplied by it on the way out.

use std::sync::Arc;

use serde_json::json;
use throughline_compaction::{
    Attempt, BeforeAfter, Budgets, CacheState, Conversation, Correction, CountMessage, CountTokens, Ledger,
    NotesReport, Options, PayCheck, PayRule, PruneRules, RenditionKind, Report, Summariser, Synthetic,
    ViewItem, compact,
};
use throughline_redact::Redactor;
use throughline_tokens::{ContentProfile, TextProfile, TokenModel};
use throughline_transcript::{Groups, Message};

use crate::context_engine::outcome::{
    CompactedView, CompressOutcome, CompressReport, CompressRequest, NewItem, SummaryDraft,
};
use crate::context_engine::snapshot::Snapshot;
use crate::decide::trigger::Trigger;
use crate::limits::in_force::ModelInForce;
use crate::recorded_state::NOTES_FIGURE;

/// Percentage of the tokens beside the fixed part that the tail may have if a target is given; the same for the summary.
const TARGET_TAIL_PERCENT: u64 = 40;
const TARGET_SUMMARY_PERCENT: u64 = 25;

/// The ratio between tokens of the estimate and tokens of the provider.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    estimated: u64,
    real: u64,
}

impl Scale {
    /// Returns the scale of a conversation.
    #[must_use]
    pub fn of(conversation: &Snapshot) -> Self {
        Self { estimated: conversation.estimated_tokens().max(1), real: conversation.prompt_tokens.max(1) }
    }

    /// Converts a limit to the unit of the estimate.
    fn to_estimate(self, real: u64) -> u64 {
        ratio(real, self.estimated, self.real)
    }

    /// Converts a size to the unit of the provider.
    #[must_use]
    pub fn to_real(self, estimated: u64) -> u64 {
        ratio(estimated, self.real, self.estimated)
    }
}

fn ratio(amount: u64, multiply: u64, divide: u64) -> u64 {
    let product = u128::from(amount) * u128::from(multiply) / u128::from(divide.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

impl Snapshot {
    /// Returns the budgets for one attempt, in the unit of the estimate.
    #[must_use]
    pub fn scaled_budgets(&self, budgets: &Budgets, target_tokens: Option<u64>) -> Budgets {
        let scale = Scale::of(self);
        // A target size is configured in the unit of the estimate, whatever the provider counts.
        let part = |tokens: u64| match budgets.target_tokens {
            Some(_) => tokens,
            None => scale.to_estimate(tokens),
        };
        let mut scaled = Budgets {
            window_tokens: scale.to_estimate(budgets.window_tokens),
            threshold_tokens: scale.to_estimate(budgets.threshold_tokens).max(1),
            tail_tokens: part(budgets.tail_tokens),
            stretched_tail_tokens: part(budgets.stretched_tail_tokens),
            head_tokens: part(budgets.head_tokens),
            summary_cap_tokens: part(budgets.summary_cap_tokens),
            summary_floor_tokens: part(budgets.summary_floor_tokens),
            ..budgets.clone()
        };
        if let Some(target) = target_tokens {
            scaled = aimed_at(&scaled, scale.to_estimate(target), self.fixed_tokens);
        }
        scaled
    }
}

/// Returns budgets that bring a whole request with this fixed part below a target, all in one unit.
#[must_use]
pub(crate) fn aimed_at(budgets: &Budgets, target_tokens: u64, fixed_tokens: u64) -> Budgets {
    let room = target_tokens.saturating_sub(fixed_tokens);
    let tail_tokens = budgets.tail_tokens.min(room.saturating_mul(TARGET_TAIL_PERCENT) / 100);
    let summary_cap_tokens =
        budgets.summary_cap_tokens.min(room.saturating_mul(TARGET_SUMMARY_PERCENT) / 100);
    Budgets {
        threshold_tokens: budgets.threshold_tokens.min(target_tokens).max(1),
        tail_tokens,
        stretched_tail_tokens: budgets.stretched_tail_tokens.min(tail_tokens.saturating_mul(3) / 2),
        head_tokens: budgets.head_tokens.min(tail_tokens / 2),
        target_tokens: budgets.target_tokens.map(|tokens| tokens.min(room)),
        summary_cap_tokens,
        summary_floor_tokens: budgets.summary_floor_tokens.min(summary_cap_tokens),
        ..budgets.clone()
    }
}

/// Sets the budgets so that the tail is exactly the newest `messages`; `sizes` are those of all messages, `total_tokens` is the size of the
/// whole request.
pub(crate) fn keep_exactly(budgets: &mut Budgets, messages: usize, sizes: &[u64], total_tokens: u64) {
    budgets.protect_last_n = messages;
    budgets.tail_tokens = sizes.iter().rev().take(messages).sum();
    budgets.stretched_tail_tokens = budgets.tail_tokens.saturating_mul(3) / 2;
    // Everything before the tail is summarised, even a large beginning.
    budgets.head_tokens = budgets.head_tokens.min(budgets.tail_tokens / 2);
    // For a request below the threshold, shares are taken of the request.
    budgets.threshold_tokens = budgets.threshold_tokens.min(total_tokens).max(1);
}

/// Returns the rule by which a compaction with this trigger has to pay for itself.
#[must_use]
pub(crate) fn pay_rule(model: &ModelInForce, trigger: Trigger, asks_model: bool) -> PayRule {
    let cache = match trigger {
        // The provider's cache has expired, or the new model never had one of this conversation.
        Trigger::Idle | Trigger::ModelSwitch | Trigger::ColdCache => CacheState::Cold,
        Trigger::Preflight
        | Trigger::Settle
        | Trigger::Overflow
        | Trigger::Manual
        | Trigger::Hygiene
        | Trigger::Ahead => CacheState::Warm,
    };
    PayRule { prices: model.prices, cache, asks_model }
}

/// Estimates the sizes of new texts and messages in the unit of the conversation's sizes.
#[derive(Clone)]
pub(crate) struct TextEstimator {
    pub(crate) token_model: TokenModel,
    /// The factor by which estimates are multiplied.
    pub(crate) correction: f64,
}

impl TextEstimator {
    fn text(&self, text: &str) -> u64 {
        self.corrected(self.token_model.estimate(&TextProfile::of(text)))
    }

    fn message(&self, message: &Message) -> u64 {
        self.corrected(self.token_model.estimate_content(&ContentProfile::of_message(message)))
    }

    fn corrected(&self, tokens: u64) -> u64 {
        if self.correction == 1.0 { tokens } else { (tokens as f64 * self.correction).round() as u64 }
    }
}

/// What an attempt needs in addition to the conversation and the summariser.
#[derive(Clone)]
pub(crate) struct CompactionTools {
    pub(crate) estimator: TextEstimator,
    pub(crate) prune: PruneRules,
    pub(crate) redactor: Option<Redactor>,
    pub(crate) recall: Option<String>,
    /// The user's corrections of the state.
    pub(crate) corrections: Arc<[Correction]>,
}

/// A conversation with the facts gathered from it.
#[derive(Clone)]
pub(crate) struct CompactionInput {
    pub(crate) snapshot: Snapshot,
    pub(crate) groups: Arc<Groups>,
    pub(crate) ledger: Arc<Ledger>,
}

/// The parameters of one attempt.
#[derive(Clone, Copy)]
pub(crate) struct AttemptSpec<'a> {
    pub(crate) budgets: &'a Budgets,
    pub(crate) force: bool,
    pub(crate) focus: Option<&'a str>,
    /// Whether the compaction has to pay for itself.
    pub(crate) pay: PayCheck,
    /// Where the tail should start, if a summary of everything before it exists.
    pub(crate) cut_at: Option<usize>,
    /// Whether the summary includes the pinned message.
    pub(crate) tells_pinned: bool,
}

impl CompactionTools {
    /// Calls `act` with the conversation and the options of an attempt.
    pub(crate) fn with_options<T>(
        &self,
        gathered: &CompactionInput,
        aim: AttemptSpec<'_>,
        act: impl FnOnce(&Conversation<'_>, &Options<'_>) -> T,
    ) -> T {
        let count_tokens = |text: &str| self.estimator.text(text);
        let count_message = |message: &Message| self.estimator.message(message);
        let started = std::time::Instant::now();
        let clock_us = move || u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let scale = Scale::of(&gathered.snapshot);
        let shown_tokens = move |tokens: u64| scale.to_real(tokens);
        let options = Options {
            shown_tokens: &shown_tokens,
            ..self.options(aim, &count_tokens, &count_message, &clock_us)
        };
        act(&gathered.conversation(), &options)
    }

    /// Makes an attempt.
    pub(crate) async fn attempt(
        &self,
        gathered: &CompactionInput,
        aim: AttemptSpec<'_>,
        summariser: &dyn Summariser,
    ) -> Attempt {
        let count_tokens = |text: &str| self.estimator.text(text);
        let count_message = |message: &Message| self.estimator.message(message);
        let started = std::time::Instant::now();
        let clock_us = move || u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let scale = Scale::of(&gathered.snapshot);
        let shown_tokens = move |tokens: u64| scale.to_real(tokens);
        let options = Options {
            shown_tokens: &shown_tokens,
            ..self.options(aim, &count_tokens, &count_message, &clock_us)
        };
        compact(&gathered.conversation(), &options, summariser).await
    }

    fn options<'a>(
        &'a self,
        aim: AttemptSpec<'a>,
        count_tokens: CountTokens<'a>,
        count_message: CountMessage<'a>,
        clock_us: &'a (dyn Fn() -> u64 + Send + Sync),
    ) -> Options<'a> {
        Options {
            force: aim.force,
            focus: aim.focus,
            budgets: aim.budgets,
            prune: self.prune,
            redactor: self.redactor.as_ref(),
            corrections: &self.corrections,
            recall: self.recall.as_deref(),
            pay: aim.pay,
            cut_at: aim.cut_at,
            tells_pinned: aim.tells_pinned,
            shown_tokens: &|tokens| tokens,
            count_tokens,
            count_message,
            clock_us,
        }
    }
}

impl CompactionInput {
    /// Returns a conversation of which only the sizes are used.
    pub(crate) fn sizes_of(conversation: &Snapshot) -> Self {
        Self {
            snapshot: conversation.clone(),
            groups: Arc::new(Groups::of(&conversation.messages)),
            ledger: Arc::new(Ledger::default()),
        }
    }

    fn conversation(&self) -> Conversation<'_> {
        Conversation {
            wire_format: self.snapshot.wire_format,
            messages: &self.snapshot.messages,
            groups: &self.groups,
            sizes: &self.snapshot.sizes,
            ledger: Some(&self.ledger),
            fixed_tokens: self.snapshot.fixed_tokens,
        }
    }
}

/// Converts an attempt to the outcome of a request.
pub(crate) fn outcome_of(attempt: &Attempt, request: &CompressRequest) -> CompressOutcome {
    attempt.outcome.clone().map(|completion| {
        Box::new(CompactedView {
            view: attempt.items.iter().map(NewItem::from).collect(),
            summary: new_summary(attempt),
            quality: completion.quality,
            report: report_of(&attempt.report, Scale::of(&request.conversation)),
        })
    })
}

fn new_summary(attempt: &Attempt) -> Option<SummaryDraft> {
    let (document, plan) = (attempt.summary.as_ref()?, attempt.plan.as_ref()?);
    let report = &attempt.report;
    let pinned = |index: &usize| plan.pinned.as_ref().is_some_and(|pinned| pinned.contains(index));
    Some(SummaryDraft {
        author: report.summariser.clone().unwrap_or_default(),
        document: document.to_markdown(),
        covers: plan.middle.clone().filter(|index| !pinned(index)).collect(),
        facts: json!(report.facts),
        figures: json!({
            "window_tokens": report.plan.window_tokens,
            "threshold_tokens": report.plan.threshold_tokens,
            "fixed_tokens": report.fixed_tokens,
            "summary_tokens": report.summary_tokens,
            "written_by": report.written_by,
            NOTES_FIGURE: report.notes,
            "pruned": report.pruned,
            "repairs": report.repairs,
            "timings_us": report.timings_us,
        }),
    })
}

impl From<&ViewItem> for NewItem {
    fn from(item: &ViewItem) -> Self {
        match item {
            ViewItem::Verbatim(item) => Self::Kept { item: *item },
            ViewItem::Rendition { message, rendition } => Self::Rewritten {
                item: *message,
                changes: rendition.kinds.iter().map(|kind| change_name(*kind).to_owned()).collect(),
                json: rendition.json.clone(),
            },
            ViewItem::Summary(json) => Self::Summary { json: json.clone() },
            ViewItem::Synthetic(kind, json) => {
                let role = match kind {
                    Synthetic::Acknowledgement => "acknowledgement",
                    Synthetic::StubResult => "stub_result",
                };
                Self::Synthetic { role: role.to_owned(), json: json.clone() }
            }
        }
    }
}

/// Returns the name of a change in the record.
pub(crate) fn change_name(kind: RenditionKind) -> &'static str {
    match kind {
        RenditionKind::Pruned => "pruned",
        RenditionKind::Trimmed => "trimmed",
        RenditionKind::ImageLabel => "image_label",
        RenditionKind::Noted => "noted",
        RenditionKind::Mended => "mended",
    }
}

fn scaled_notes(mut notes: NotesReport, scale: Scale) -> NotesReport {
    for share in &mut notes.sections {
        share.tokens = scale.to_real(share.tokens);
    }
    notes
}

fn report_of(report: &Report, scale: Scale) -> CompressReport {
    CompressReport {
        tokens: BeforeAfter {
            before: scale.to_real(report.tokens.before),
            after: scale.to_real(report.tokens.after),
        },
        messages: report.messages,
        summary_tokens: scale.to_real(report.summary_tokens),
        facts_important: report.facts.important,
        facts_kept: report.facts.kept,
        facts_attached: report.facts.attached,
        notes: report.notes.clone().map(|notes| scaled_notes(notes, scale)),
        prepared: false,
        payback: report.payback.map(|sum| sum.in_unit(&|tokens| scale.to_real(tokens))),
        cost_micro_usd: None,
        saved_per_call_micro_usd: None,
        written_by: report.written_by.clone(),
        warnings: report.warnings.clone(),
    }
}
