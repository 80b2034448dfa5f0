//! One attempt, phase by phase: prune, cut, summarise, check, assemble.

use std::collections::HashMap;

use throughline_redact::Redactor;
use throughline_tokens::Limits;
use throughline_transcript::{
    Groups, Message, Part, SharedText, WireFormat, decode_message, unescape, violations,
};

use crate::assemble::assemble;
use crate::builtin::notes_by_rules;
use crate::check::check;
use crate::combine::{MODEL_TOKENS, combine, contradiction_warning};
use crate::document::SummaryDocument;
use crate::earlier::{EarlierSummary, find_earlier, nothing_said_since};
use crate::facts::CountMessage;
use crate::ledger::Ledger;
use crate::notes_report::NotesReport;
use crate::outcome::{AbortReason, Completion, NoOpReason, Outcome, Quality};
use crate::pay::{PayCheck, PayFigures, calls_so_far, growth_per_call};
use crate::plan::{CutBudget, NoPlan, Plan, PlanInput, first_prompt, plan};
use crate::preface::{Maker, SummaryFrame};
use crate::rendition::{CUT_MARK, PruneRules, Rendition, RenditionKind, prune, shortened_prompt};
use crate::report::{BeforeAfter, PlanReport, Report};
use crate::state::{Correction, correct_notes};
use crate::summarise::{CountTokens, SummariseError, Summariser, SummaryKind, SummaryRequest, summarise_all};
use crate::view::ViewItem;

/// Budgets of one attempt, in tokens of the estimator in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// The model's window.
    pub window_tokens: u64,
    /// The size at which a conversation is compacted.
    pub threshold_tokens: u64,
    /// The tail's share of the threshold, in thousandths: used for a forced attempt below the threshold.
    pub tail_permille: u64,
    /// Tokens of the tail.
    pub tail_tokens: u64,
    /// Tokens up to which the last `protect_last_n` messages may extend the tail.
    pub stretched_tail_tokens: u64,
    /// Tokens of the protected messages at the beginning.
    pub head_tokens: u64,
    /// Tokens of head, notes and tail together, if configured: the notes get what the other two leave.
    pub target_tokens: Option<u64>,
    /// The maximum size of a summary.
    pub summary_cap_tokens: u64,
    /// The minimum budget of a summary.
    pub summary_floor_tokens: u64,
    /// Number of messages protected at the beginning.
    pub protect_first_n: usize,
    /// Number of messages protected at the end.
    pub protect_last_n: usize,
}

impl From<&Limits> for Budgets {
    fn from(limits: &Limits) -> Self {
        Self {
            window_tokens: limits.window_tokens,
            threshold_tokens: limits.threshold_tokens.effective,
            tail_permille: (limits.target_ratio.effective * 1000.0).round() as u64,
            tail_tokens: limits.tail_tokens,
            stretched_tail_tokens: limits.stretched_tail_tokens,
            head_tokens: limits.head_tokens,
            target_tokens: limits.target_tokens.map(|target| target.effective),
            summary_cap_tokens: limits.summary_cap_tokens,
            summary_floor_tokens: limits.summary_floor_tokens,
            protect_first_n: limits.protect_first_n,
            protect_last_n: limits.protect_last_n,
        }
    }
}

impl Budgets {
    /// Returns the budget of the summary of a middle, of which `earlier_tokens` are an earlier summary: a fifth of the new messages, in
    /// addition to the earlier summary, which would otherwise shrink with every compaction; and at most half of the new messages, or the
    /// compaction would free too little.
    #[must_use]
    pub fn summary_tokens(&self, middle_tokens: u64, earlier_tokens: u64) -> u64 {
        let new_tokens = middle_tokens.saturating_sub(earlier_tokens);
        let carried = earlier_tokens.saturating_mul(CARRIED_ROOM_PERCENT) / 100;
        let wanted = carried.saturating_add(new_tokens / 5).max(self.summary_floor_tokens);
        wanted.min(self.summary_cap_tokens).min(earlier_tokens.saturating_add(new_tokens / 2))
    }

    /// Returns the budget if the size of the whole view is configured: what the remaining messages leave of it.
    fn summary_beside(
        &self,
        target_tokens: u64,
        staying_tokens: u64,
        middle_tokens: u64,
        earlier_tokens: u64,
    ) -> u64 {
        let new_tokens = middle_tokens.saturating_sub(earlier_tokens);
        let left = target_tokens.saturating_sub(staying_tokens).max(self.summary_floor_tokens);
        let left = left.saturating_mul(100) / RULES_FILL_PERCENT;
        left.min(self.summary_cap_tokens).min(earlier_tokens.saturating_add(new_tokens / 2))
    }

    /// Returns the budgets of an attempt on messages of this size. A forced attempt below the threshold uses the present size as the
    /// threshold, so that there is a middle at all.
    fn on(&self, total_tokens: u64, fixed_tokens: u64) -> Self {
        if total_tokens >= self.threshold_tokens {
            return self.clone();
        }
        let target_tokens =
            self.target_tokens.map(|tokens| tokens.min(total_tokens.saturating_sub(fixed_tokens) / 2));
        let tail_tokens = match self.target_tokens.zip(target_tokens) {
            Some((configured, target)) => scaled(self.tail_tokens, target, configured),
            None => total_tokens.saturating_mul(self.tail_permille) / 1000,
        };
        Self {
            target_tokens,
            tail_tokens,
            // A scaled tail may be extended by the same share.
            stretched_tail_tokens: scaled(self.stretched_tail_tokens, tail_tokens, self.tail_tokens),
            head_tokens: self.head_tokens.min(tail_tokens / 2),
            ..self.clone()
        }
    }
}

/// A conversation with its groups, sizes and facts.
#[derive(Clone, Copy)]
pub struct Conversation<'a> {
    /// Its wire format.
    pub wire_format: WireFormat,
    /// Its messages.
    pub messages: &'a [Message],
    /// Their groups.
    pub groups: &'a Groups,
    /// Tokens of each message.
    pub sizes: &'a [u64],
    /// Its exact facts, if they were gathered as messages arrived.
    pub ledger: Option<&'a Ledger>,
    /// Tokens of system prompt and tools, which are outside the list.
    pub fixed_tokens: u64,
}

/// Options of one attempt.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Compact even below the threshold.
    pub force: bool,
    /// The subject that the summary should focus on.
    pub focus: Option<&'a str>,
    /// Budgets.
    pub budgets: &'a Budgets,
    /// Settings for pruning.
    pub prune: PruneRules,
    /// Masks secrets in the summary.
    pub redactor: Option<&'a Redactor>,
    /// Entries that the user removed from the state: the notes leave them out.
    pub corrections: &'a [Correction],
    /// The text that explains to the model how to recall originals; `None` if it cannot.
    pub recall: Option<&'a str>,
    /// Whether the compaction has to pay for itself.
    pub pay: PayCheck,
    /// Where the tail should start, if a summary of everything before it exists.
    pub cut_at: Option<usize>,
    /// Whether the summary includes the pinned message: when the summary is used later, another message may be the last human one.
    pub tells_pinned: bool,
    /// Converts a figure for display, if users know another unit than the estimator's.
    pub shown_tokens: &'a (dyn Fn(u64) -> u64 + Send + Sync),
    /// Counts the tokens of a text.
    pub count_tokens: CountTokens<'a>,
    /// Counts the tokens of a message.
    pub count_message: CountMessage<'a>,
    /// Returns the microseconds of a monotonic clock.
    pub clock_us: &'a (dyn Fn() -> u64 + Send + Sync),
}

/// The result of an attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// How it ended.
    pub outcome: Outcome,
    /// The figures.
    pub report: Report,
    /// The new view, or the unchanged conversation.
    pub items: Vec<ViewItem>,
    /// The new summary, if there is one.
    pub summary: Option<SummaryDocument>,
    /// The model's text, before the rules added to it; `None` if no model was called.
    pub answer: Option<SummaryDocument>,
    /// The plan that was followed.
    pub plan: Option<Plan>,
}

/// Percentage of a summary's budget that the summariser may fill; the rest is for facts added by the check.
const SUMMARISER_SHARE_PERCENT: u64 = 92;

/// The budget for an earlier summary, as a percentage of its size. Notes by rules leave part of their budget empty, so the same size would
/// shorten the earlier summary.
const CARRIED_ROOM_PERCENT: u64 = 150;

/// Percentage of the budget that notes by rules fill.
const RULES_FILL_PERCENT: u64 = 79;
/// Percentage that a model's summary fills together with the rules' additions. On recorded sessions that is 3,500 tokens, against 3,100 for
/// the rules alone; with less, questions stay unanswered that either of them could answer alone.
const COMBINED_PERCENT: u64 = 90;

/// The approximate size of a pruned result.
const PRUNED_LINE_TOKENS: u64 = 60;

/// For a rough size without a measurement.
const BYTES_A_TOKEN: u64 = 3;

/// A plan with its inputs, or the reason why there is none. Changes nothing.
pub struct Preview {
    /// The plan.
    pub plan: Result<Plan, NoOpReason>,
    /// The figures.
    pub report: Report,
    /// The summaries of earlier compactions.
    pub earlier: Option<EarlierSummary>,
    /// The sizes that decide whether it pays, if there is a plan and prices are given.
    pub pay: Option<PayFigures>,
}

/// Decides what an attempt would do.
#[must_use]
pub fn preview(conversation: &Conversation<'_>, options: &Options<'_>) -> Preview {
    let total: u64 = conversation.sizes.iter().sum::<u64>().saturating_add(conversation.fixed_tokens);
    let count = conversation.messages.len() as u64;
    let mut report = Report {
        tokens: BeforeAfter { before: total, after: total },
        messages: BeforeAfter { before: count, after: count },
        fixed_tokens: conversation.fixed_tokens,
        ..Report::default()
    };
    let budgets = options.budgets.on(total, conversation.fixed_tokens);
    let (earlier, earlier_summary) = find_earlier(conversation.messages, budgets.protect_first_n);
    let below = total < budgets.threshold_tokens;
    let found = if conversation.messages.is_empty() {
        Err(NoOpReason::Empty)
    } else if below && !options.force {
        Err(NoOpReason::BelowThreshold)
    } else if below && nothing_said_since(conversation.messages, &earlier, earlier_summary.as_ref()) {
        Err(NoOpReason::NothingNew)
    } else {
        let budget = CutBudget {
            tail_tokens: budgets.tail_tokens,
            stretched_tokens: budgets.stretched_tail_tokens,
            head_tokens: budgets.head_tokens,
            protect_first_n: budgets.protect_first_n,
            protect_last_n: budgets.protect_last_n,
        };
        let pruned_sizes = pruned_head_sizes(conversation, budgets.protect_first_n, budgets.head_tokens);
        let input = PlanInput {
            pruned_sizes: &pruned_sizes,
            messages: conversation.messages,
            groups: conversation.groups,
            sizes: conversation.sizes,
            earlier,
            budget,
            cut_at: options.cut_at,
        };
        let as_pruned = plan(&input);
        // A head is affordable because its results are pruned, which happens only if something is compacted.
        let found = match as_pruned {
            Err(NoPlan::NothingInTheMiddle) => {
                let protected = conversation.sizes.len().min(budgets.protect_first_n);
                let sizes = conversation.sizes.get(..protected).unwrap_or_default();
                plan(&PlanInput { pruned_sizes: sizes, ..input })
            }
            found => found,
        };
        found.map_err(|reason: NoPlan| reason.into())
    };
    let frame = SummaryFrame { messages: 1, kept: 1, maker: Maker::Rules, recall: options.recall };
    let around_tokens = (options.count_tokens)(&frame.message_text(""));
    let shown = match &found {
        Ok(plan) => PlanReport::new(plan, conversation.sizes),
        Err(_) => PlanReport::unchanged(conversation.messages.len(), conversation.sizes),
    };
    report.plan = PlanReport {
        window_tokens: budgets.window_tokens,
        threshold_tokens: budgets.threshold_tokens,
        tail_budget_tokens: if found.is_ok() { budgets.tail_tokens } else { options.budgets.tail_tokens },
        summary_budget_tokens: found.as_ref().map_or(budgets.summary_cap_tokens, |plan| {
            let earlier = plan.earlier.summaries.iter().filter_map(|at| conversation.sizes.get(*at)).sum();
            let Some(target) = budgets.target_tokens else {
                return budgets.summary_tokens(shown.middle.tokens, earlier);
            };
            let head: u64 =
                pruned_head_sizes(conversation, plan.head.len(), budgets.head_tokens).iter().sum();
            let pinned = shown.pinned.map_or(0, |pinned| pinned.tokens);
            let staying = head + pinned + shown.tail.tokens + around_tokens;
            budgets.summary_beside(target, staying, shown.middle.tokens, earlier)
        }),
        ..shown
    };
    let mut pay = None;
    let found = match (found, options.pay.rule()) {
        (Ok(plan), Some(rule)) => {
            let told = earlier_summary.as_ref().map_or(0, |earlier| earlier.messages);
            let figures = pay_figures(conversation, &plan, &report, around_tokens, budgets.head_tokens, told);
            let sum = figures.payback(&rule);
            pay = Some(figures);
            report.payback = Some(sum);
            if options.pay.allows(&sum) { Ok(plan) } else { Err(NoOpReason::DoesNotPay) }
        }
        (found, _) => found,
    };
    Preview { plan: found, report, earlier: earlier_summary, pay }
}

fn scaled(amount: u64, multiply: u64, divide: u64) -> u64 {
    let product = u128::from(amount) * u128::from(multiply) / u128::from(divide.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Returns the sizes for a decision by cost: the cached beginning, and everything rewritten after it. Earlier notes count as `told`
/// messages.
fn pay_figures(
    conversation: &Conversation<'_>,
    plan: &Plan,
    report: &Report,
    around_tokens: u64,
    head_tokens: u64,
    told: usize,
) -> PayFigures {
    let pruned = pruned_head_sizes(conversation, plan.head.len(), head_tokens);
    let head: u64 = pruned.iter().sum();
    let pinned = report.plan.pinned.map_or(0, |pinned| pinned.tokens);
    let summary = report.plan.summary_budget_tokens;
    PayFigures {
        before_tokens: report.tokens.before,
        kept_tokens: conversation.fixed_tokens.saturating_add(head),
        rewritten_tokens: around_tokens + summary + pinned + report.plan.tail.tokens,
        summary_tokens: summary,
        growth_tokens: growth_per_call(conversation.groups, conversation.sizes, &plan.earlier),
        calls_so_far: calls_so_far(conversation.groups, conversation.messages.len(), &plan.earlier, told),
    }
}

/// Returns the approximate sizes of the first messages with old tool results pruned to one line and a prompt cut to the size of the head. A
/// message never counts for more after pruning than before, so that the next compaction finds the same head affordable.
fn pruned_head_sizes(conversation: &Conversation<'_>, protect_first_n: usize, head_tokens: u64) -> Vec<u64> {
    let messages = conversation.messages.iter().zip(conversation.sizes);
    messages
        .take(protect_first_n)
        .map(|(message, size)| {
            let mut results = 0;
            let mut other_bytes = message.json().len();
            for part in message.parts() {
                if let Part::ToolResult { value, .. } = part {
                    results += 1;
                    other_bytes = other_bytes.saturating_sub(value.len());
                }
            }
            if results == 0 {
                return if message.is_human() { (*size).min(head_tokens) } else { *size };
            }
            (*size).min(PRUNED_LINE_TOKENS * results + other_bytes as u64 / BYTES_A_TOKEN)
        })
        .collect()
}

/// Makes an attempt. The conversation itself is never changed; a completed attempt returns a new view of it.
pub async fn compact(
    conversation: &Conversation<'_>,
    options: &Options<'_>,
    summariser: &dyn Summariser,
) -> Attempt {
    let started = (options.clock_us)();
    let preview = preview(conversation, options);
    let mut report = preview.report;
    let unchanged = |outcome: Outcome, report: Report, plan: Option<Plan>| Attempt {
        outcome,
        report,
        items: (0..conversation.messages.len()).map(ViewItem::Verbatim).collect(),
        summary: None,
        answer: None,
        plan,
    };
    let plan = match preview.plan {
        Ok(plan) => plan,
        Err(reason) => {
            let sum = report.payback.map(|sum| sum.words(options.shown_tokens));
            return unchanged(Outcome::no_op_with(reason, sum), report, None);
        }
    };
    report.timings_us.cut = (options.clock_us)().saturating_sub(started);

    let mark = (options.clock_us)();
    let gathered;
    let ledger = match conversation.ledger {
        Some(ledger) => ledger,
        None => {
            gathered = Ledger::of(conversation.messages, conversation.groups, options.redactor);
            &gathered
        }
    };
    let corrected;
    let ledger = if options.corrections.is_empty() {
        ledger
    } else {
        corrected = ledger.corrected(options.corrections);
        &corrected
    };
    let mut earlier = preview.earlier;
    if let Some(earlier) = &mut earlier {
        correct_notes(&mut earlier.document, options.corrections);
    }
    report.timings_us.facts = (options.clock_us)().saturating_sub(mark);

    let mark = (options.clock_us)();
    let (mut renditions, pruned) = prune(conversation.messages, &plan, ledger, options.prune);
    report.pruned = pruned;
    let head_bytes = options.budgets.head_tokens.saturating_mul(BYTES_A_TOKEN);
    let first = first_prompt(conversation.messages, &plan.earlier, options.budgets.protect_first_n);
    if let Some(index) = first.filter(|index| plan.head.contains(index) && !renditions.contains_key(index))
        && let Some(message) = conversation.messages.get(index)
        // A prompt that was shortened before is unchanged, or the prefix would change with every compaction.
        && !message.json().contains(CUT_MARK)
        && let Some(shorter) = shortened_prompt(message, usize::try_from(head_bytes).unwrap_or(usize::MAX))
        && shorter.json.len() < message.json().len()
    {
        renditions.insert(index, shorter);
    }
    report.timings_us.prune = (options.clock_us)().saturating_sub(mark);

    let mark = (options.clock_us)();
    let budget_tokens = report.plan.summary_budget_tokens;
    let shown_text = shown_text(conversation.messages, &plan, &renditions);
    let told = Plan { pinned: plan.pinned.clone().filter(|_| !options.tells_pinned), ..plan.clone() };
    let request = SummaryRequest {
        messages: conversation.messages,
        groups: conversation.groups,
        sizes: conversation.sizes,
        ledger,
        plan: &told,
        span: plan.middle.clone(),
        earlier: earlier.as_ref().map(|earlier| &earlier.document),
        focus: options.focus,
        manner: SummaryKind::default(),
        shown_text: &shown_text,
        budget_tokens: budget_tokens * SUMMARISER_SHARE_PERCENT / 100,
        count_tokens: options.count_tokens,
    };
    let most = if summariser.maker() == Maker::Model { MODEL_TOKENS } else { u64::MAX };
    let asked = SummaryRequest { budget_tokens: request.budget_tokens.min(most), ..request.clone() };
    let summarised = summarise_all(summariser, asked).await;
    let account = summariser.account();
    let author = account.written_by.as_ref().map_or(summariser.name(), |author| author.model.as_str());
    report.summariser = Some(author.to_owned());
    report.written_by = account.written_by;
    report.warnings.extend(account.notes);
    report.timings_us.summarise = (options.clock_us)().saturating_sub(mark);
    let middle_tokens = report.plan.middle.tokens;
    let answer = summarised
        .and_then(|document| usable(document, summariser.maker(), middle_tokens, options.count_tokens));
    let (mut document, mut used) = match answer {
        Ok(found) => found,
        Err(error) => return unchanged(aborted(&error), report, Some(plan)),
    };

    let mark = (options.clock_us)();
    let answer = (summariser.maker() == Maker::Model).then(|| document.clone());
    let mut on_model = None;
    if summariser.maker() == Maker::Model {
        // Text that the model invented is removed before anything from the record is added.
        on_model = Some(check(&mut document, &request, Maker::Model, options.redactor, 0));
        let by_rules = notes_by_rules(&request);
        let fill =
            if options.budgets.target_tokens.is_some() { RULES_FILL_PERCENT } else { COMBINED_PERCENT };
        let room = request.budget_tokens.saturating_mul(fill) / 100;
        let combined = combine(document, &by_rules, ledger.state(), room, options.count_tokens);
        report.warnings.extend(contradiction_warning(&combined.contradictions));
        document = combined.document;
        used = (options.count_tokens)(&document.to_markdown());
    }
    if !options.corrections.is_empty() {
        // For text of a model, and notes that were prepared before the correction.
        correct_notes(&mut document, options.corrections);
        used = (options.count_tokens)(&document.to_markdown());
    }
    if used > budget_tokens {
        // Facts added by the check need their share.
        document.trim_to_budget(budget_tokens * SUMMARISER_SHARE_PERCENT / 100, options.count_tokens);
        report.warnings.push(format!(
            "the summary had {} tokens where {} were allowed; its oldest details were dropped",
            (options.shown_tokens)(used),
            (options.shown_tokens)(budget_tokens),
        ));
        used = (options.count_tokens)(&document.to_markdown());
    }
    let room = budget_tokens.saturating_sub(used);
    report.facts = check(&mut document, &request, Maker::Rules, options.redactor, room);
    if let Some(on_model) = on_model {
        report.facts.removed = on_model.removed;
        report.facts.removed_strings = on_model.removed_strings;
        report.facts.redacted_in_summary += on_model.redacted_in_summary;
        report.facts.redacted = report.facts.redacted.max(on_model.redacted);
    }
    let masked = report.facts.redacted_in_summary;
    if masked > 0 && summariser.maker() == Maker::Model {
        report.warnings.push(format!("secrets that stood in the model's summary and were masked: {masked}"));
    }
    let is_in_view = |index: usize| {
        let is_pinned = plan.pinned.as_ref().is_some_and(|pinned| pinned.contains(&index));
        // Earlier notes are no longer a message of the view.
        (is_pinned || !plan.middle.contains(&index)) && !plan.earlier.contains(index)
    };
    report.notes = Some(NotesReport::of(&document, ledger, &is_in_view, options.count_tokens));
    report.timings_us.check = (options.clock_us)().saturating_sub(mark);

    let mark = (options.clock_us)();
    let stands_for = plan.summarised().count() + earlier.as_ref().map_or(0, |e| e.messages);
    let markdown = document.to_markdown();
    let text = |kept: usize| {
        let maker = summariser.maker();
        SummaryFrame { messages: stands_for, kept, maker, recall: options.recall }.message_text(&markdown)
    };
    let (items, repairs) = assemble(
        conversation.wire_format,
        conversation.messages,
        conversation.groups,
        &plan,
        &renditions,
        text,
    );
    report.repairs = repairs;
    if repairs.orphan_results > 0 {
        report
            .warnings
            .push(format!("tool results without a call, left out of the view: {}", repairs.orphan_results));
    }
    if repairs.stub_results > 0 {
        report.warnings.push(format!("tool calls without a result, given a stub: {}", repairs.stub_results));
    }
    let measured = measure(conversation, options, &items);
    report.timings_us.assemble = (options.clock_us)().saturating_sub(mark);
    let view = match measured {
        Ok(view) => view,
        Err(detail) => {
            let outcome = Outcome::Aborted { reason: AbortReason::ResultInvalid, detail };
            return unchanged(outcome, report, Some(plan));
        }
    };
    let after = view.tokens.saturating_add(conversation.fixed_tokens);
    if after >= report.tokens.before {
        return unchanged(Outcome::no_op(NoOpReason::WouldNotShrink), report, Some(plan));
    }
    report.tokens.after = after;
    report.messages.after = items.len() as u64;
    report.summary_tokens = view.summary_tokens;
    if after > options.budgets.threshold_tokens {
        let text = format!(
            "still {} tokens, above the threshold of {}: head, last messages and fixed overhead alone are that large",
            (options.shown_tokens)(after),
            (options.shown_tokens)(options.budgets.threshold_tokens)
        );
        report.warnings.push(text);
    }
    let (quality, reason) = match summariser.maker() {
        Maker::Rules => (Quality::Rules, "compacted by the built-in rules; no model was used"),
        Maker::Model => (Quality::Model, "compacted with a model's summary, checked against the record"),
    };
    let outcome = Outcome::Completed(Completion { quality, reason: reason.to_owned() });
    Attempt { outcome, report, items, summary: Some(document), answer, plan: Some(plan) }
}

/// Returns the text that head and pinned message show: the summary need not repeat it.
#[must_use]
pub fn shown_text(messages: &[Message], plan: &Plan, renditions: &HashMap<usize, Rendition>) -> String {
    let mut out = String::new();
    for index in plan.head.clone().chain(plan.pinned.clone().into_iter().flatten()) {
        let Some(message) = messages.get(index) else { continue };
        let pruned = renditions.get(&index).is_some_and(|r| r.kinds.contains(&RenditionKind::Pruned));
        for part in message.parts() {
            match part {
                Part::Text(string) => out.push_str(&message.str(*string)),
                Part::ToolCall { arguments, .. } => {
                    out.push_str(&unescape(&message.arguments_text(*arguments)))
                }
                Part::ToolResult { content, .. } if !pruned => out.push_str(&message.result_text(content)),
                _ => {}
            }
            out.push('\n');
        }
    }
    out
}

/// Returns an answer with its tokens, unless it is unusable: empty, or not shorter than what it covers. A summary by rules may be empty, if
/// nothing in the middle was relevant; whether it saves anything is checked at the end.
fn usable(
    document: SummaryDocument,
    maker: Maker,
    middle_tokens: u64,
    count_tokens: CountTokens<'_>,
) -> Result<(SummaryDocument, u64), SummariseError> {
    let used = count_tokens(&document.to_markdown());
    match maker {
        Maker::Model if document.is_empty() => Err(SummariseError::Unusable("it was empty".to_owned())),
        Maker::Model if used >= middle_tokens => {
            let why = format!("it has {used} tokens, and what it replaces only {middle_tokens}");
            Err(SummariseError::Unusable(why))
        }
        Maker::Model | Maker::Rules => Ok((document, used)),
    }
}

fn aborted(error: &SummariseError) -> Outcome {
    let reason = match error {
        SummariseError::Transient(_) => AbortReason::SummariserUnavailable,
        SummariseError::Permanent(_) | SummariseError::WindowTooSmall { .. } => AbortReason::SummariserFailed,
        SummariseError::Unusable(_) => AbortReason::SummaryUnusable,
    };
    Outcome::Aborted { reason, detail: error.to_string() }
}

struct Measured {
    tokens: u64,
    summary_tokens: u64,
}

/// Measures the view and checks it against the rules of its wire format: the view must not break a rule that the conversation kept.
fn measure(
    conversation: &Conversation<'_>,
    options: &Options<'_>,
    items: &[ViewItem],
) -> Result<Measured, String> {
    let mut measured = Measured { tokens: 0, summary_tokens: 0 };
    let mut view: Vec<Message> = Vec::with_capacity(items.len());
    for item in items {
        let (message, tokens) = match item {
            ViewItem::Verbatim(index) => {
                let Some(message) = conversation.messages.get(*index) else {
                    return Err(format!("item points to message {index}, which does not exist"));
                };
                (message.clone(), conversation.sizes.get(*index).copied().unwrap_or(0))
            }
            other => {
                let json = other.json(conversation.messages).to_owned();
                let Some(message) = decode_message(SharedText::new(json)) else {
                    return Err("an item of the view is not a message".to_owned());
                };
                let tokens = (options.count_message)(&message);
                (message, tokens)
            }
        };
        if matches!(item, ViewItem::Summary(_)) {
            measured.summary_tokens = tokens;
        }
        measured.tokens = measured.tokens.saturating_add(tokens);
        view.push(message);
    }
    let groups = Groups::of(&view);
    let broken = violations(conversation.wire_format, &view, &groups);
    if broken.is_empty() {
        return Ok(measured);
    }
    let before = violations(conversation.wire_format, conversation.messages, conversation.groups);
    match broken.iter().find(|new| !before.iter().any(|old| old.kind == new.kind)) {
        Some(new) => Err(format!("the view would break a rule the conversation kept: {new}")),
        None => Ok(measured),
    }
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
