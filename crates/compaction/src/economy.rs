//! Decides by cost when to compact and how much stays. Pure: sizes, prices and the history of the conversation in, sizes out.
//!
//! A compaction that leaves L tokens of messages costs C (see `pay`: what is written anew, a model that writes the notes) and
//! what is fetched again because the view no longer has it. With every later call it saves reading the freed tokens. If each
//! call adds G tokens and reading one costs R, a cycle is cheapest when the compaction is made as soon as reading the tokens
//! to be freed has cost as much as the compaction: at `L + sqrt(2 x C x G / R)`. This costs at most twice the optimum with
//! knowledge of the future. Two more conditions apply:
//!
//! - The calls to come must save what the compaction costs: `R x freed x calls >= C`. Their number is unknown. A conversation
//!   of N calls that paused P times for longer than the cache lives is assumed to continue for N / (P + 1) calls before it
//!   ends or pauses again, after which a compaction costs nothing. This is the usual estimate of a duration from its past
//!   alone, without a constant.
//! - After such a pause the whole prompt is written again, so a compaction pays at once. It still must free a third of the
//!   messages, because every compaction loses details.
//!
//! The size of the view is chosen among sizes that were measured: the smallest is the cheapest to read; a larger one
//! answers more, so that less must be fetched again. Fetching costs a call over the whole fixed part, so with a large fixed
//! part a larger view is cheaper. Notes by a model answer more at any size. Small notes that are compacted again and again
//! lose more than large ones: a size is chosen only for as many compactions in a row as it was measured to hold. Where
//! definitions of tools leave the prompt, which saves several times what views cost, part of that is spent on memory: only sizes
//! are chosen whose views answer what views of their mean size between two compactions have to answer ([`ViewMemory`]).
//!
//! Notes by a model cost more than the compaction they are for, and save no money: their purpose is memory. If the client
//! pays for them, they are paid from the savings so far ([`Spending::affords_notes`]), and the time of a compaction is
//! decided as with notes by rules.
//!
//! Amounts are in tokens at the price of an uncached prompt token.

use throughline_tokens::CachePrices;

use crate::combine::MODEL_TOKENS;
use crate::pay::{CacheState, PayFigures, PayRule, cost};

/// A size after a compaction that can be chosen.
#[derive(Clone, Copy, Debug)]
struct ViewSize {
    /// What is asked for (`compression.target_tokens`).
    target: u64,
    /// What a view of recorded sessions then has, by the same estimate: some messages are larger than their share.
    left: u64,
    /// The share of questions about the past that such a view answers, in thousandths: with notes by rules, ...
    answered_by_rules: u64,
    /// ... and with a model's.
    answered_by_model: u64,
    /// After so many compactions in a row a view of this size still answers what is asked of one of its size.
    holds_for: u64,
    /// How much its views remember as they grow.
    memory: ViewMemory,
}

/// How much of the past views have to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViewMemory {
    /// What is asked of a view of the size right after a compaction.
    WhenMade,
    /// What is asked of a view of the mean size until the next one, though what was added says nothing of the past before it.
    WhenGrown,
}

/// Who writes the notes, and what that has to do with the price of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotesBy {
    /// Rules, for nothing.
    Rules,
    /// A model that is asked for every compaction, as part of its price.
    Model,
    /// A model that is asked when what was saved pays for it.
    ModelFromSavings,
}

/// Measured with `throughline-bench takeover --target --words` on recorded sessions; the table is in
/// `docs/guide/limits.md`, where tokens are a quarter of the characters (here about 2.5 characters are one).
static SIZES: [ViewSize; 4] = [
    ViewSize {
        target: 5_400,
        left: 9_000,
        answered_by_rules: 865,
        answered_by_model: 962,
        holds_for: 2,
        memory: ViewMemory::WhenMade,
    },
    ViewSize {
        target: 8_000,
        left: 10_300,
        answered_by_rules: 890,
        answered_by_model: 966,
        holds_for: u64::MAX,
        memory: ViewMemory::WhenMade,
    },
    ViewSize {
        target: 10_000,
        left: 11_200,
        answered_by_rules: 911,
        answered_by_model: 970,
        holds_for: u64::MAX,
        memory: ViewMemory::WhenGrown,
    },
    ViewSize {
        target: 20_000,
        left: 17_300,
        answered_by_rules: 941,
        answered_by_model: 983,
        holds_for: u64::MAX,
        memory: ViewMemory::WhenGrown,
    },
];
/// What notes by a model may bring the cost of a conversation to, in percent of what it would have cost directly, ...
const NOTES_PERCENT_OF_DIRECT: u64 = 103;
/// ... and notes together with the compaction they are for.
const COMPACTED_PERCENT_OF_DIRECT: u64 = 105;
/// About the share of what stays that is notes, for the price of having a model write them.
const NOTES_PERCENT: u64 = 60;
/// The sum depends on the size of the prompt at the time of the compaction, which depends on the sum; this many rounds
/// come within a percent of where the two meet.
const ROUNDS: usize = 3;

/// How often the conversation went back to what it had read before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rereads {
    /// Tokens of results that answered a call which had been made before in the same words.
    pub tokens: u64,
    /// Such results.
    pub calls: u64,
}

/// A conversation as the decision sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EconomyFigures {
    /// System prompt and tools.
    pub fixed_tokens: u64,
    /// What a call adds.
    pub growth_tokens: u64,
    /// Calls made so far.
    pub calls: u64,
    /// Pauses among them that outlasted the provider's cache.
    pub cold_pauses: u64,
    /// How often it went back, within a view.
    pub rereads: Rereads,
    /// Compactions made so far, each with notes that the next one had to carry on.
    pub compactions: u64,
    /// How much its views have to answer.
    pub memory: ViewMemory,
    /// What is to stay, where that is configured.
    pub target_tokens: Option<u64>,
}

/// What was decided, in tokens of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EconomyPlan {
    /// What a compaction aims at (`compression.target_tokens`).
    pub target_tokens: u64,
    /// What is expected to stay after it.
    pub left_tokens: u64,
    /// From here on a compaction pays while the prompt is cached.
    pub warm_tokens: u64,
    /// From here on it pays once the cache has expired.
    pub cold_tokens: u64,
    /// Calls that are expected before the conversation ends or pauses for longer than the cache lives.
    pub expected_calls: u64,
}

impl EconomyFigures {
    /// Decides for these prices, and for notes that are written by these.
    #[must_use]
    pub fn plan(&self, prices: CachePrices, notes: NotesBy) -> EconomyPlan {
        let asks_model = notes == NotesBy::Model;
        let configured = self.target_tokens.map(|target| [of_target(target)]);
        let sizes: &[ViewSize] = configured.as_ref().map_or(SIZES.as_slice(), |one| one.as_slice());
        let is_configured = configured.is_some();
        let holds = |size: &&ViewSize| {
            is_configured || (self.compactions < size.holds_for && size.memory >= self.memory)
        };
        let cycles = sizes.iter().filter(holds).map(|size| self.cycle(prices, notes, *size));
        let best = cycles.min_by_key(|cycle| cycle.cost_per_call).unwrap_or_default();
        let expected_calls = self.expected_calls();
        let read = prices.read_permille.max(1);
        // As much has to be freed as the calls to come need to pay for it.
        let repaid = scaled(best.cost, 1_000, read.saturating_mul(expected_calls.max(1)));
        let warm = best.left.saturating_add(best.freed.max(repaid));
        let rule = PayRule { prices, cache: CacheState::Cold, asks_model };
        let cold_cost = cost(&self.figures(best.left, best.left), &rule, best.left);
        let saved = prices.write_permille.saturating_add(read.saturating_mul(expected_calls));
        let cold = best.left.saturating_add((best.left / 2).max(scaled(cold_cost, 1_000, saved)));
        EconomyPlan {
            target_tokens: best.target,
            left_tokens: best.left,
            warm_tokens: warm,
            cold_tokens: cold.min(warm),
            expected_calls,
        }
    }

    /// Calls before the end or the next pause.
    fn expected_calls(&self) -> u64 {
        self.calls / self.cold_pauses.saturating_add(1)
    }

    /// What a cycle between two compactions that leave so much costs.
    fn cycle(&self, prices: CachePrices, notes: NotesBy, size: ViewSize) -> Cycle {
        let asks_model = notes == NotesBy::Model;
        let (ViewSize { target, left, .. }, answered) = (size, size.answered(notes));
        let (growth, read) = (self.growth_tokens.max(1), prices.read_permille.max(1));
        let rule = PayRule { prices, cache: CacheState::Warm, asks_model };
        let forgotten = 1_000_u64.saturating_sub(answered);
        let reading = scaled(self.fixed_tokens.saturating_add(left), read, 1_000);
        let again = scaled(self.rereads.tokens, prices.write_permille, 1_000)
            .saturating_add(self.rereads.calls.saturating_mul(reading));
        let again = scaled(again, forgotten, 1_000);
        let (mut freed, mut spent) = (left, 0);
        for _ in 0..ROUNDS {
            spent = cost(&self.figures(left, freed), &rule, left).saturating_add(again);
            freed = root(u128::from(spent) * 2_000 * u128::from(growth) / u128::from(read)).max(left);
        }
        let resting = scaled(left.saturating_add(freed / 2), read, 1_000);
        let cost_per_call = resting.saturating_add(scaled(spent, growth, freed));
        Cycle { target, left, freed, cost: spent, cost_per_call }
    }

    fn figures(&self, left: u64, freed: u64) -> PayFigures {
        PayFigures {
            before_tokens: self.fixed_tokens.saturating_add(left).saturating_add(freed),
            kept_tokens: self.fixed_tokens,
            rewritten_tokens: left,
            summary_tokens: scaled(left, NOTES_PERCENT, 100),
            growth_tokens: self.growth_tokens,
            calls_so_far: left.saturating_add(freed) / self.growth_tokens.max(1),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    target: u64,
    left: u64,
    freed: u64,
    cost: u64,
    cost_per_call: u64,
}

impl ViewSize {
    fn answered(&self, notes: NotesBy) -> u64 {
        match notes {
            NotesBy::Rules => self.answered_by_rules,
            NotesBy::Model | NotesBy::ModelFromSavings => self.answered_by_model,
        }
    }
}

/// What a conversation has cost so far, beside what the same requests would have cost directly. Amounts are thousandths of
/// a prompt token that no cache is involved in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// What was paid, notes included.
    pub paid: u64,
    /// What would have been paid directly.
    pub direct: u64,
}

impl Spending {
    /// Whether a model may be paid for notes about a prompt of so many tokens, for a compaction that then leaves so much: if
    /// the conversation ended with them, it would have cost little more than directly, whatever came after.
    #[must_use]
    pub fn affords_notes(&self, prices: CachePrices, prompt_tokens: u64, left_tokens: u64) -> bool {
        let reading = prompt_tokens.saturating_mul(prices.read_permille);
        let notes = reading.saturating_add(MODEL_TOKENS.saturating_mul(prices.output_permille));
        let anew = prices.write_permille.saturating_sub(prices.read_permille);
        let paid = self.paid.saturating_add(notes);
        let compacted = paid.saturating_add(left_tokens.saturating_mul(anew));
        let allowed = |percent| scaled(self.direct, percent, 100);
        paid <= allowed(NOTES_PERCENT_OF_DIRECT) && compacted <= allowed(COMPACTED_PERCENT_OF_DIRECT)
    }

    /// A model was paid for notes about a prompt of so many tokens, which was cached.
    pub fn pay_for_notes(&mut self, prices: CachePrices, prompt_tokens: u64) {
        let reading = prompt_tokens.saturating_mul(prices.read_permille);
        let answering = MODEL_TOKENS.saturating_mul(prices.output_permille);
        self.paid = self.paid.saturating_add(reading).saturating_add(answering);
    }
}

/// A configured size: what is left is no smaller than the smallest view that was measured.
fn of_target(target: u64) -> ViewSize {
    let [smallest, ..] = SIZES;
    let measured = SIZES.into_iter().rev().find(|size| size.target <= target).unwrap_or(smallest);
    ViewSize { target, left: target.max(smallest.left), ..measured }
}

fn root(square: u128) -> u64 {
    u64::try_from(square.isqrt()).unwrap_or(u64::MAX)
}

fn scaled(amount: u64, multiply: u64, divide: u64) -> u64 {
    let product = u128::from(amount) * u128::from(multiply) / u128::from(divide.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "economy_tests.rs"]
mod tests;
