//! Plans one compaction of the built-in engine: its budgets, whether it must pay for itself, and how small the view becomes
//! at the hard limit. Pure: nothing is called or changed.
//!
//! Below the hard limit, an automatic compaction is made only if it pays. At the hard limit it must be made, and the tail
//! and the summary are made small enough for it to pay.

use throughline_compaction::{Budgets, PayCheck, PayRule, Payback, Plan, preview};

use crate::compressor::adapter::{
    AttemptSpec, CompactionInput, CompactionTools, Scale, aimed_at, keep_exactly, pay_rule,
};
use crate::context_engine::outcome::{CompressRequest, Headroom, Profitability};
use crate::context_engine::snapshot::Snapshot;
use crate::decide::trigger::Trigger;
use crate::limits::in_force::ModelInForce;

/// The decision about a request, in the unit of the estimate.
pub(crate) struct CompactionDecision {
    pub(crate) budgets: Budgets,
    pub(crate) pay: PayCheck,
    pub(crate) cut_at: Option<usize>,
    plan: Option<Plan>,
    sum: Option<Payback>,
}

impl CompactionDecision {
    /// Returns the specification of the attempt.
    pub(crate) fn aim<'a>(&'a self, request: &'a CompressRequest) -> AttemptSpec<'a> {
        AttemptSpec {
            budgets: &self.budgets,
            force: request.force,
            focus: request.focus.as_deref(),
            pay: self.pay,
            cut_at: self.cut_at,
            tells_pinned: false,
        }
    }

    /// Returns where the tail should start so that a summary of everything before `cut` suffices; `None` if it starts there already.
    pub(crate) fn reach_back(&self, cut: usize) -> Option<usize> {
        self.plan.as_ref().filter(|plan| plan.tail.start > cut).map(|_| cut)
    }

    /// Whether the compaction would pay for itself. Without a plan the answer is yes, and the attempt reports the reason.
    pub(crate) fn worth(&self, conversation: &Snapshot) -> Profitability {
        let scale = Scale::of(conversation);
        let required = matches!(self.pay, PayCheck::Require(_));
        match &self.sum {
            Some(sum) if required && !sum.pays => {
                Profitability::No { detail: sum.words(&|tokens| scale.to_real(tokens)) }
            }
            _ => Profitability::Yes,
        }
    }
}

/// Returns a request for an automatic compaction.
pub(crate) fn automatic(conversation: &Snapshot, trigger: Trigger) -> CompressRequest {
    CompressRequest {
        conversation: conversation.clone(),
        trigger,
        room: Headroom::Left,
        focus: None,
        force: false,
        target_tokens: None,
        keep_messages: None,
        memory_context: None,
    }
}

/// Decides about a request.
pub(crate) fn decide(
    tools: &CompactionTools,
    gathered: &CompactionInput,
    model: &ModelInForce,
    request: &CompressRequest,
    asks_model: bool,
) -> CompactionDecision {
    let conversation = &request.conversation;
    let mut budgets = conversation.scaled_budgets(&model.budgets(), request.target_tokens);
    if let Some(kept) = request.keep_messages {
        keep_exactly(&mut budgets, kept, &conversation.sizes, conversation.estimated_tokens());
    }
    let rule = pay_rule(model, request.trigger, asks_model);
    let particular = request.target_tokens.is_some() || request.keep_messages.is_some();
    let by_itself = request.trigger.must_pay() && !particular;
    let at_limit = request.room == Headroom::None || conversation.prompt_tokens > model.hard_limit_tokens();
    let (plan, sum, deep) = planned(tools, gathered, &budgets, request.force, rule);
    let pay = if by_itself && !at_limit { PayCheck::Require(rule) } else { PayCheck::Report(rule) };
    let goes_deep = by_itself && at_limit && sum.is_some_and(|sum| !sum.pays);
    match deep.filter(|_| goes_deep) {
        Some(target_tokens) => {
            let budgets = aimed_at(&budgets, target_tokens, conversation.fixed_tokens);
            let (plan, sum, _) = planned(tools, gathered, &budgets, request.force, rule);
            CompactionDecision { budgets, pay, cut_at: None, plan, sum }
        }
        None => CompactionDecision { budgets, pay, cut_at: None, plan, sum },
    }
}

/// Returns the plan with these budgets, its profitability figures, and the size that a compaction would have to reach.
fn planned(
    tools: &CompactionTools,
    gathered: &CompactionInput,
    budgets: &Budgets,
    force: bool,
    rule: PayRule,
) -> (Option<Plan>, Option<Payback>, Option<u64>) {
    let aim = AttemptSpec {
        budgets,
        force,
        focus: None,
        pay: PayCheck::Report(rule),
        cut_at: None,
        tells_pinned: false,
    };
    let seen = tools.with_options(gathered, aim, preview);
    let sum = seen.pay.map(|figures| figures.payback(&rule));
    let deep = seen.pay.map(|figures| figures.deep_target(&rule));
    (seen.plan.ok(), sum, deep)
}

/// Returns the prompt size, as the provider counts, at which a compaction of this conversation is due: the threshold, or as far beyond it
/// as needed to pay for itself, at most the hard limit.
pub(crate) fn due_at(
    tools: &CompactionTools,
    gathered: &CompactionInput,
    model: &ModelInForce,
    asks_model: bool,
) -> u64 {
    let (threshold, hard) = (model.limits.threshold_tokens, model.hard_limit_tokens());
    let budgets = gathered.snapshot.scaled_budgets(&model.budgets(), None);
    let rule = pay_rule(model, Trigger::Preflight, asks_model);
    let (_, sum, _) = planned(tools, gathered, &budgets, true, rule);
    let scale = Scale::of(&gathered.snapshot);
    sum.map_or(threshold, |sum| scale.to_real(sum.pays_from_tokens()).min(hard).max(threshold))
}

/// Whether a model's notes are affordable in this conversation now, judged by what a compaction would save and how long the conversation
/// has lasted. True if no prices are known.
pub(crate) fn affords_model(
    tools: &CompactionTools,
    gathered: &CompactionInput,
    model: &ModelInForce,
) -> bool {
    let budgets = gathered.snapshot.scaled_budgets(&model.budgets(), None);
    let rule = pay_rule(model, Trigger::Preflight, true);
    let aim = AttemptSpec {
        budgets: &budgets,
        force: true,
        focus: None,
        pay: PayCheck::Report(rule),
        cut_at: None,
        tells_pinned: false,
    };
    tools.with_options(gathered, aim, preview).pay.is_none_or(|figures| figures.affords_model(&rule))
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
