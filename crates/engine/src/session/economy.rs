//! Limits decided by cost: the observed figures of the conversation, and the limits that follow from them.
//!
//! Not for: the arithmetic (`throughline_compaction::EconomyFigures`), and making the compaction.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use throughline_compaction::{EconomyFigures, Maker, NotesBy, Rereads, Spending, ViewMemory};
use throughline_store::{LinkKind, Millis};
use throughline_tokens::{Economy, ToolDeferral, Usage};
use throughline_transcript::{Message, Part, RawJson, Role};

use super::ManagedSession;
use super::compaction_state::PreparationProgress;
use crate::compressor::decision::automatic;
use crate::decide::trigger::{Automatic, CompactionVerdict, StayReason, Trigger, Urgency};
use crate::limits::in_force::NotesPrice;
use crate::limits::target::EconomyLimits;
use crate::prompt::tool_output::{Shortening, ToolOutputPolicy};

/// The name under which it is stored that unknown prices were reported.
const NO_PRICE_TOLD: &str = "notice_economy_no_price";
/// Limits that change by less than this percentage are left unchanged, so that the engine is not informed with every call.
const STEADY_WITHIN_PERCENT: u64 = 5;
/// Number of last messages among which a client's marks are searched.
const MARKED_MESSAGES: usize = 8;
/// The JSON of a cache mark for an hour.
const HOUR_MARK: &str = "\"ttl\":\"1h\"";

/// The state of a conversation for decisions by cost.
#[derive(Debug, Default)]
pub(super) struct EconomyState {
    /// Number of calls answered since the session was opened.
    calls: u64,
    /// Number of calls after the provider's cache had expired.
    cold_pauses: u64,
    /// Whether the current call follows such a pause.
    is_after_pause: bool,
    /// The amount paid since the session was opened, and the price of the same requests without Throughline.
    spending: Spending,
    /// Tokens that compactions have removed from the prompt since then.
    left_out_tokens: u64,
    /// The size of the last call's prompt if the client had sent it directly.
    direct_prompt_tokens: Option<u64>,
    /// The current limits.
    limits: Option<EconomyLimits>,
    /// Whether the unknown price was reported.
    is_price_reported: bool,
    /// Whether the model is offered tools for reading the full text of shortened results.
    recall: RecallAccess,
    /// Deferred tools that the model requested; the next list includes them.
    pub(super) brought_back: BTreeSet<String>,
}

impl EconomyState {
    /// Returns the number of calls expected before the conversation ends or pauses for longer than the cache lifetime, as in
    /// `EconomyFigures`.
    pub(super) fn expected_calls(&self, calls: u64) -> u64 {
        calls / self.cold_pauses.saturating_add(1)
    }

    /// Returns the number of calls answered since the session was opened.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }
}

/// Whether the model can read the full text of a shortened result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RecallAccess {
    /// As the session's tool output policy says.
    #[default]
    AsConfigured,
    /// It can: the next call offers tools for that. The text tells the model how to call them, with `{artifact}` for the name of the
    /// artifact.
    Offered(String),
    /// It cannot.
    NotOffered,
}

impl ManagedSession {
    /// Returns the limits derived from prices and the conversation so far; `None` if only the window decides.
    pub(super) fn economy_limits(&mut self) -> Option<EconomyLimits> {
        let economy = self.setup.target.policy.economy;
        if !economy.compaction
            || self.setup.policy.automatic == Automatic::Off
            || self.is_side_call()
            || !self.has_price()
        {
            self.economy.limits = None;
            return None;
        }
        let pending = self.pending();
        let snapshot = self.snapshot();
        let asks_model = self.setup.engine.summarisers().is_some_and(|summarisers| {
            summarisers.summariser_for(&automatic(&snapshot, Trigger::Preflight)).maker() == Maker::Model
        });
        let client_pays = self.setup.engine.summary_wait().is_some();
        let notes = match (asks_model, client_pays) {
            (false, _) => NotesBy::Rules,
            (true, false) => NotesBy::Model,
            (true, true) if self.has_notes() || self.affords_notes(pending.total_tokens) => {
                NotesBy::ModelFromSavings
            }
            (true, true) => NotesBy::Rules,
        };
        let notes_price = match asks_model && client_pays {
            true => NotesPrice::FromSavings,
            false => NotesPrice::OfCompaction,
        };
        let (messages, sizes) = (self.prompt.view.messages(), self.prompt.view.sizes());
        let answers = answers(messages);
        let figures = EconomyFigures {
            fixed_tokens: pending.fixed_tokens,
            growth_tokens: growth(messages, sizes, answers),
            calls: self.economy.calls.max(answers),
            cold_pauses: self.economy.cold_pauses,
            rereads: rereads(messages, sizes),
            compactions: self.compaction.count,
            memory: match economy.tools {
                ToolDeferral::Off => ViewMemory::WhenMade,
                ToolDeferral::ByList | ToolDeferral::ByReference => ViewMemory::WhenGrown,
            },
            target_tokens: self.setup.target.policy.target_tokens,
        };
        let plan = figures.plan(self.budget.model.prices, notes);
        // The plan is in tokens of the estimate, limits are in tokens of the provider.
        let estimated = pending.fixed_tokens.saturating_add(pending.message_tokens).max(1);
        let real = |messages: u64| {
            let whole = u128::from(pending.fixed_tokens.saturating_add(messages));
            let scaled = whole * u128::from(pending.total_tokens.max(1)) / u128::from(estimated);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let limits = EconomyLimits {
            threshold_tokens: real(plan.warm_tokens),
            cold_tokens: real(plan.cold_tokens),
            target_tokens: plan.target_tokens,
            left_tokens: plan.left_tokens,
            notes_price,
        };
        let before = self.economy.limits.filter(|before| is_steady(before, &limits));
        self.economy.limits = Some(before.unwrap_or(limits));
        self.economy.limits
    }

    /// Whether a model's notes are paid from past savings.
    pub(super) fn pays_notes_from_savings(&self) -> bool {
        self.economy.limits.is_some_and(|limits| limits.notes_price == NotesPrice::FromSavings)
    }

    /// Whether a model was paid for notes for the next compaction.
    pub(super) fn has_notes(&self) -> bool {
        matches!(self.compaction.progress, Some(PreparationProgress::Covered(_)))
    }

    /// Whether past savings pay for a model's notes on a prompt of this size.
    pub(super) fn affords_notes(&self, prompt_tokens: u64) -> bool {
        let left_tokens = self.economy.limits.map_or(0, |limits| limits.left_tokens);
        self.economy.spending.affords_notes(self.budget.model.prices, prompt_tokens, left_tokens)
    }

    /// Records that a model wrote notes on a prompt of this size.
    pub(super) fn note_notes(&mut self, prompt_tokens: u64) {
        if self.pays_notes_from_savings() {
            self.economy.spending.pay_for_notes(self.budget.model.prices, prompt_tokens);
        }
    }

    /// Records how many tokens a compaction removed from the prompt.
    pub(super) fn note_left_out(&mut self, tokens: u64) {
        self.economy.left_out_tokens = self.economy.left_out_tokens.saturating_add(tokens);
    }

    /// Discards the count of removed tokens, because it is unknown for the new view.
    pub(super) fn forget_left_out(&mut self) {
        self.economy.left_out_tokens = 0;
        self.economy.direct_prompt_tokens = None;
    }

    /// Records the cost of a call, and the cost of the same call without compactions: with the removed tokens, read from the cache as far
    /// as the previous request reached.
    pub(super) fn note_spending(&mut self, usage: &Usage) {
        let prices = self.budget.model.prices;
        let times = |tokens: u64, permille: u64| tokens.saturating_mul(permille);
        let paid = times(usage.input, 1_000)
            .saturating_add(times(usage.cache_read, prices.read_permille))
            .saturating_add(times(usage.cache_write, prices.write_permille))
            .saturating_add(times(usage.output, prices.output_permille));
        let left_out = self.economy.left_out_tokens;
        let whole = usage.prompt().saturating_add(left_out);
        let before = self.economy.direct_prompt_tokens.replace(whole);
        let caches = usage.cache_read.saturating_add(usage.cache_write) > 0;
        let direct = match before.filter(|_| !self.economy.is_after_pause) {
            _ if left_out == 0 => paid,
            Some(before) if caches => {
                let read = before.min(whole);
                times(read, prices.read_permille)
                    .saturating_add(times(whole - read, prices.write_permille))
                    .saturating_add(times(usage.output, prices.output_permille))
            }
            _ => {
                let permille = if caches { prices.write_permille } else { 1_000 };
                paid.saturating_add(times(left_out, permille))
            }
        };
        let spending = &mut self.economy.spending;
        spending.paid = spending.paid.saturating_add(paid);
        spending.direct = spending.direct.saturating_add(direct);
    }

    /// Sets the means of saving money from the next call on.
    pub fn use_economy(&mut self, economy: Economy) {
        self.setup.target.policy.economy = economy;
    }

    /// Sets whether the model can read the full text of shortened results in the next call; if not, none is shortened.
    pub fn set_recall_access(&mut self, access: RecallAccess) {
        self.economy.recall = access;
    }

    /// Returns the policy for long results in the next call.
    pub(super) fn tool_output(&self) -> Cow<'_, ToolOutputPolicy> {
        let configured = &self.setup.tool_output;
        match &self.economy.recall {
            RecallAccess::Offered(words) if configured.recall.is_none() => {
                Cow::Owned(ToolOutputPolicy { recall: Some(words.clone()), ..configured.clone() })
            }
            _ => Cow::Borrowed(configured),
        }
    }

    /// Whether a tool of this name was in the last request; `None` before the first.
    #[must_use]
    pub fn had_tool(&self, name: &str) -> Option<bool> {
        self.prompt.last_call_ms?;
        let tools = self.prompt.envelope.envelope()?.request().tools();
        let name_of = |tool: RawJson<'_>| {
            Some(tool.get("name").or_else(|| tool.get("function")?.get("name"))?.as_text()?.into_owned())
        };
        Some(tools.is_some_and(|tools| tools.elements().filter_map(name_of).any(|known| known == name)))
    }

    /// Returns whether the results of the next call are shortened.
    pub(super) fn shortening(&self) -> Shortening {
        let can_read = match &self.economy.recall {
            RecallAccess::AsConfigured => self.setup.tool_output.recall.is_some(),
            RecallAccess::Offered(_) => true,
            RecallAccess::NotOffered => false,
        };
        let acts = self.setup.target.policy.economy.tool_results && can_read && !self.is_side_call();
        // Whether shortening pays depends on prices.
        if acts && self.has_price() { Shortening::On } else { Shortening::Off }
    }

    /// Decides before a call whose prompt has expired in the provider's cache: a compaction that pays now is made first.
    pub(super) fn verdict_on_cold_cache(
        &self,
        verdict: CompactionVerdict,
        pending_tokens: u64,
    ) -> CompactionVerdict {
        let cold = CompactionVerdict::Compact { trigger: Trigger::ColdCache, urgency: Urgency::Due };
        let is_cold = || self.is_cache_cold();
        match (verdict, self.cold_tokens()) {
            (CompactionVerdict::Stay(StayReason::RoomLeft), Some(from))
                if pending_tokens >= from && is_cold() =>
            {
                cold
            }
            (CompactionVerdict::Compact { trigger: Trigger::Preflight, urgency: Urgency::Due }, Some(_))
                if is_cold() =>
            {
                cold
            }
            _ => verdict,
        }
    }

    /// Returns the size from which a compaction on a cold cache pays; `None` if compactions on a cold cache are off.
    pub(super) fn cold_tokens(&self) -> Option<u64> {
        let acts = self.setup.target.policy.economy.cold_cache;
        self.economy.limits.filter(|_| acts).map(|limits| limits.cold_tokens)
    }

    /// Records whether the next call follows a pause longer than the cache lifetime.
    pub(super) fn note_pause(&mut self) {
        self.economy.is_after_pause = self.is_cache_cold();
        self.economy.cold_pauses += u64::from(self.economy.is_after_pause);
    }

    /// Records an answered call.
    pub(super) fn note_call(&mut self) {
        self.economy.calls += 1;
    }

    /// Whether the client marked its prompt for an hour, if that matters.
    pub(super) fn client_marks_an_hour(&self) -> bool {
        if self.setup.target.policy.economy.is_off() {
            return false;
        }
        let system = self.prompt.envelope.envelope().and_then(|envelope| envelope.request().system());
        let newest = self.prompt.view.messages().iter().rev().take(MARKED_MESSAGES);
        system.is_some_and(|system| system.0.contains(HOUR_MARK))
            || newest.into_iter().any(|message| message.json().contains(HOUR_MARK))
    }

    /// Reports once that no decision is made by cost because the price is unknown.
    pub(super) async fn report_unknown_price(&mut self) {
        let economy = self.setup.target.policy.economy;
        if economy.is_off() || self.economy.is_price_reported || self.has_price() {
            return;
        }
        self.economy.is_price_reported = true;
        let model = &self.setup.target.model;
        let text = format!("the price of {model} is not known: `economy` does nothing for it");
        self.notice_once(NO_PRICE_TOLD, text).await;
    }

    /// Whether the content of the next call may depend on its cost.
    pub(super) fn can_decide_in_money(&self) -> bool {
        !self.is_side_call() && self.has_price()
    }

    fn has_price(&self) -> bool {
        let now: Millis = self.setup.host.now_ms();
        self.setup.target.input_price(now).is_some()
    }

    /// A request outside the conversation, such as a client's own for a summary, is sent unchanged.
    fn is_side_call(&self) -> bool {
        self.prompt.view.session().link.as_ref().is_some_and(|link| link.kind == LinkKind::SideCall)
    }
}

fn is_steady(before: &EconomyLimits, now: &EconomyLimits) -> bool {
    let near = |a: u64, b: u64| a.abs_diff(b).saturating_mul(100) <= a.saturating_mul(STEADY_WITHIN_PERCENT);
    before.target_tokens == now.target_tokens
        && near(before.threshold_tokens, now.threshold_tokens)
        && near(before.cold_tokens, now.cold_tokens)
}

/// Returns the number of answers in a view; consecutive messages of the model count as one.
fn answers(messages: &[Message]) -> u64 {
    let mut answers = 0;
    let mut was_answer = false;
    for message in messages {
        let is_answer = message.role() == Role::Assistant;
        answers += u64::from(is_answer && !was_answer);
        was_answer = is_answer;
    }
    answers
}

/// Returns the tokens added per call: everything from the first answer on, divided by the number of answers.
fn growth(messages: &[Message], sizes: &[u64], answers: u64) -> u64 {
    let first = messages.iter().position(|message| message.role() == Role::Assistant).unwrap_or(0);
    let tokens: u64 = sizes.iter().skip(first).sum();
    tokens.checked_div(answers).unwrap_or(tokens).max(1)
}

/// Returns the results of calls that repeat an earlier call exactly.
fn rereads(messages: &[Message], sizes: &[u64]) -> Rereads {
    let (mut seen, mut repeated) = (HashSet::new(), HashSet::new());
    let mut found = Rereads::default();
    for (message, size) in messages.iter().zip(sizes) {
        for (id, name, arguments) in message.calls() {
            let mut hasher = DefaultHasher::new();
            message.str(name).hash(&mut hasher);
            message.arguments_text(arguments).hash(&mut hasher);
            if !seen.insert(hasher.finish()) {
                repeated.insert(message.str(id).into_owned());
            }
        }
        if repeated.is_empty() {
            continue;
        }
        let results = message.parts().iter().filter(|part| matches!(part, Part::ToolResult { .. })).count();
        let again = message.answered().filter(|id| repeated.contains(&*message.str(*id))).count();
        if again > 0 {
            found.calls += again as u64;
            found.tokens += size.saturating_mul(again as u64) / (results.max(1) as u64);
        }
    }
    found
}

#[cfg(test)]
#[path = "economy_tests.rs"]
mod tests;
