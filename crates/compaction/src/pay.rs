//! Decides whether a compaction pays for itself. Pure: computes costs and a verdict from sizes and prices.
//!
//! A compaction writes a new prefix (summary, tail) at the price of writing, where the old one would have been read, and a summary by a
//! model costs extra. The calls that follow need not read the freed tokens. A conversation that grows by G tokens per call has filled the
//! freed space after `freed / G` calls, and is compacted again.
//!
//! With a cost of C for each compaction and a price R for reading a token, a cycle of N calls costs `C` plus reading the new tokens, `R x G
//! x N^2 / 2`. The cost per call is lowest where the two are equal: a compaction is due when reading the tokens to be freed has cost as
//! much as freeing them, `R x freed^2 / (2 x G) >= C`. It then saves twice its cost until the next one. Compacting earlier costs more per
//! call, and much more if it happens with every call, which the rule prevents. Whatever the prices are, a compaction must free at least as
//! many tokens as it writes: at least half of what follows the fixed part and the head. On a cold cache half as much is enough.
//!
//! Amounts are in tokens at the price of an uncached prompt token.

use serde::{Deserialize, Serialize};
use throughline_tokens::CachePrices;
use throughline_transcript::{GroupKind, Groups};

use crate::combine::MODEL_TOKENS;
use crate::plan::Earlier;

/// Whether the provider has the conversation in its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// It has: the unchanged part is read from the cache.
    Warm,
    /// It has not: the next prompt is written anew in any case.
    Cold,
}

/// The rule by which a compaction has to pay for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayRule {
    /// Prices.
    pub prices: CachePrices,
    /// Whether the prompt is cached.
    pub cache: CacheState,
    /// Whether a model has to be called for the summary now.
    pub asks_model: bool,
}

/// What to do if a compaction does not pay for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayCheck {
    /// Nothing: it is not computed.
    Skip,
    /// Report the calculation.
    Report(PayRule),
    /// Do not compact.
    Require(PayRule),
}

impl PayCheck {
    pub(crate) fn rule(self) -> Option<PayRule> {
        match self {
            Self::Skip => None,
            Self::Report(rule) | Self::Require(rule) => Some(rule),
        }
    }

    pub(crate) fn allows(self, sum: &Payback) -> bool {
        !matches!(self, Self::Require(_)) || sum.pays
    }
}

/// The sizes of a planned compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayFigures {
    /// Tokens of the whole request before it.
    pub before_tokens: u64,
    /// Tokens of the unchanged beginning: system prompt, tools, head.
    pub kept_tokens: u64,
    /// Tokens after that: summary, pinned message, tail.
    pub rewritten_tokens: u64,
    /// Tokens of the summary in them.
    pub summary_tokens: u64,
    /// Tokens added per call of this conversation.
    pub growth_tokens: u64,
    /// Number of calls answered so far, including those that earlier notes cover.
    pub calls_so_far: u64,
}

/// Whether a compaction pays for itself, with the calculation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payback {
    /// Tokens of the whole request before it.
    pub before_tokens: u64,
    /// The approximate tokens after it.
    pub after_tokens: u64,
    /// Tokens freed.
    pub freed_tokens: u64,
    /// Tokens that must be freed for it to pay.
    pub required_tokens: u64,
    /// The same in thousandths of the whole request.
    pub required_permille: u64,
    /// Tokens written anew.
    pub rewritten_tokens: u64,
    /// Tokens added per call.
    pub growth_tokens: u64,
    /// Number of calls until the freed tokens are used again.
    pub calls: u64,
    /// The cost, in uncached tokens.
    pub cost_tokens: u64,
    /// The savings of those calls, in the same unit.
    pub saved_tokens: u64,
    /// Whether it pays.
    pub pays: bool,
}

impl Payback {
    /// Returns the size of the request from which it pays, if everything added can be compacted.
    #[must_use]
    pub fn pays_from_tokens(&self) -> u64 {
        self.after_tokens.saturating_add(self.required_tokens)
    }

    /// Converts the token figures to another unit.
    #[must_use]
    pub fn in_unit(self, unit: &dyn Fn(u64) -> u64) -> Self {
        Self {
            before_tokens: unit(self.before_tokens),
            after_tokens: unit(self.after_tokens),
            freed_tokens: unit(self.freed_tokens),
            required_tokens: unit(self.required_tokens),
            rewritten_tokens: unit(self.rewritten_tokens),
            growth_tokens: unit(self.growth_tokens),
            cost_tokens: unit(self.cost_tokens),
            saved_tokens: unit(self.saved_tokens),
            ..self
        }
    }

    /// Returns the calculation in words, with token figures converted by `shown`.
    #[must_use]
    pub fn words(&self, shown: &dyn Fn(u64) -> u64) -> String {
        format!(
            "it frees {} of {} tokens ({}) and {} ({}) are required: it costs as much as {} uncached prompt tokens and saves {} over {} calls of {} tokens each",
            shown(self.freed_tokens),
            shown(self.before_tokens),
            percent(self.freed_tokens, self.before_tokens),
            shown(self.required_tokens),
            percent(self.required_tokens, self.before_tokens),
            shown(self.cost_tokens),
            shown(self.saved_tokens),
            self.calls,
            shown(self.growth_tokens),
        )
    }
}

fn percent(part: u64, whole: u64) -> String {
    let permille = part.saturating_mul(1_000).checked_div(whole).unwrap_or(0);
    format!("{}.{} %", permille / 10, permille % 10)
}

impl PayFigures {
    /// Computes the payback.
    #[must_use]
    pub fn payback(&self, rule: &PayRule) -> Payback {
        let after_tokens = self.kept_tokens.saturating_add(self.rewritten_tokens);
        let freed_tokens = self.before_tokens.saturating_sub(after_tokens);
        let growth_tokens = self.growth_tokens.max(1);
        let read = rule.prices.read_permille.max(1);
        let cost_tokens = cost(self, rule, self.rewritten_tokens);
        let required_tokens = required(self, rule, self.rewritten_tokens);
        let calls = freed_tokens / growth_tokens;
        Payback {
            before_tokens: self.before_tokens,
            after_tokens,
            freed_tokens,
            required_tokens,
            required_permille: scaled(required_tokens, 1_000, self.before_tokens),
            rewritten_tokens: self.rewritten_tokens,
            growth_tokens,
            calls,
            cost_tokens,
            saved_tokens: scaled(freed_tokens.saturating_mul(calls), read, 1_000),
            pays: freed_tokens > 0 && freed_tokens >= required_tokens,
        }
    }
}

/// Returns the cost of a compaction that writes this many tokens anew.
pub(crate) fn cost(figures: &PayFigures, rule: &PayRule, rewritten_tokens: u64) -> u64 {
    let prices = &rule.prices;
    let instead_of_reading = match rule.cache {
        CacheState::Warm => prices.write_permille.saturating_sub(prices.read_permille),
        CacheState::Cold => 0,
    };
    let writing = scaled(rewritten_tokens, instead_of_reading, 1_000);
    if !rule.asks_model {
        return writing;
    }
    // The model is called with the conversation in its cache, or reads it uncached.
    let reading = match rule.cache {
        CacheState::Warm => prices.read_permille,
        CacheState::Cold => 1_000,
    };
    let asking = scaled(figures.before_tokens, reading, 1_000);
    // Whatever the budget of the notes, no more than this is requested from a model.
    let answered = figures.summary_tokens.min(MODEL_TOKENS);
    let answering = scaled(answered, prices.output_permille, 1_000);
    writing.saturating_add(asking).saturating_add(answering)
}

/// Returns how many tokens a compaction must free in order to pay, if it writes this many anew.
fn required(figures: &PayFigures, rule: &PayRule, rewritten_tokens: u64) -> u64 {
    let cost = u128::from(cost(figures, rule, rewritten_tokens));
    let growth = u128::from(figures.growth_tokens.max(1));
    let read = u128::from(rule.prices.read_permille.max(1));
    let cheapest = (cost.saturating_mul(2_000).saturating_mul(growth) / read).isqrt();
    let least = match rule.cache {
        CacheState::Warm => rewritten_tokens,
        // Every freed token saves money immediately, since everything would be written again. But the compaction loses details, so it must
        // still free a third of what follows the fixed part and the head.
        CacheState::Cold => rewritten_tokens / 2,
    };
    u64::try_from(cheapest).unwrap_or(u64::MAX).max(least)
}

impl PayFigures {
    /// Whether the conversation has lasted long enough to pay a model for its notes. The end is unknown, but a conversation of `n` calls is
    /// as likely as not to last for `n` more. So notes are paid for if compaction and notes are earned back within as many calls as there
    /// were. A compaction that pays is earned back within half the calls that add what it frees, so a model is refused only if the hard
    /// limit comes first: in a task of few large calls. True if the price of an answer is unknown.
    #[must_use]
    pub fn affords_model(&self, rule: &PayRule) -> bool {
        if rule.prices.output_permille == 0 {
            return true;
        }
        let rule = PayRule { asks_model: true, ..*rule };
        let sum = self.payback(&rule);
        let saved_per_call = scaled(sum.freed_tokens, rule.prices.read_permille.max(1), 1_000).max(1);
        let calls_until_paid = sum.cost_tokens.div_ceil(saved_per_call);
        calls_until_paid <= self.calls_so_far
    }
}

/// The minimum percentage of the messages that a deep compaction leaves.
const LEAST_LEFT_PERCENT: u64 = 12;

impl PayFigures {
    /// Returns the maximum size of the whole request after a compaction at the hard limit for it to pay, but not so small that almost
    /// nothing is left.
    #[must_use]
    pub fn deep_target(&self, rule: &PayRule) -> u64 {
        let messages = self.before_tokens.saturating_sub(self.kept_tokens);
        let pays = |rewritten: u64| messages.saturating_sub(rewritten) >= required(self, rule, rewritten);
        // The freed tokens fall and the required ones rise with the remaining size: the two curves cross once.
        let (mut low, mut high) = (scaled(messages, LEAST_LEFT_PERCENT, 100), messages);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if pays(middle) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        self.kept_tokens.saturating_add(low)
    }
}

/// Returns the average tokens per call in this conversation: from the first answer on, an answer with its results and everything up to the
/// next. Earlier summaries do not count.
#[must_use]
pub(crate) fn growth_per_call(groups: &Groups, sizes: &[u64], earlier: &Earlier) -> u64 {
    let steps = || groups.as_slice().iter().filter(|group| group.kind == GroupKind::Step);
    let answers = steps().filter(|group| !earlier.contains(group.start)).count() as u64;
    let first = steps().map(|group| group.start).find(|start| !earlier.contains(*start)).unwrap_or(0);
    let said = sizes.iter().enumerate().skip(first).filter(|(index, _)| !earlier.contains(*index));
    let tokens: u64 = said.map(|(_, size)| size).sum();
    tokens.checked_div(answers).unwrap_or(tokens).max(1)
}

/// Returns the number of calls answered so far. Messages covered by earlier notes are assumed to have as many messages per call as those
/// that remain.
#[must_use]
pub(crate) fn calls_so_far(groups: &Groups, messages: usize, earlier: &Earlier, told: usize) -> u64 {
    let answers = groups.as_slice().iter().filter(|group| group.kind == GroupKind::Step);
    let answers = answers.filter(|group| !earlier.contains(group.start)).count() as u64;
    let there = (0..messages).filter(|index| !earlier.contains(*index)).count() as u64;
    answers.saturating_add(scaled(told as u64, answers, there))
}

fn scaled(amount: u64, multiply: u64, divide: u64) -> u64 {
    let product = u128::from(amount) * u128::from(multiply) / u128::from(divide.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "pay_tests.rs"]
mod tests;
