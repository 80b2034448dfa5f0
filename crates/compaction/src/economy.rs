//! Decides by cost when to compact and how much stays. Pure: computes sizes from sizes, prices and the history of the conversation.
//!
//! A compaction that leaves L tokens of messages costs C (see `pay`: what is written anew, a model that writes the notes) and what is
//! fetched again because the view no longer has it. With every later call it saves reading the freed tokens. If each call adds G tokens and
//! reading one costs R, a cycle is cheapest when the compaction is made as soon as reading the tokens to be freed has cost as much as the
//! compaction: at `L + sqrt(2 x C x G / R)`. This costs at most twice the optimum with knowledge of the future. Two more conditions apply:
//!
//! - The calls to come must save what the compaction costs: `R x freed x calls >= C`. Their number is unknown. A conversation of N calls
//!   that paused P times for longer than the cache lives is assumed to continue for N / (P + 1) calls before it ends or pauses again, after
//!   which a compaction costs nothing. This is the usual estimate of a duration from its past alone, without a constant.
//! - After such a pause the whole prompt is written again, so a compaction pays at once. It still must free a third of the messages,
//!   because every compaction loses details.
//!
//! The size of the view is chosen among sizes that were measured: the smallest is the cheapest to read; a larger one
//! answers more, so that less must be fetched again. Fetching costs a call over the whole fixed part, so with a large fixed
//! part a larger view is cheaper. Notes by a model answer more at any size. Small notes that are compacted again and again
//! lose more than large ones: a size is chosen only for as many compactions in a row as it was measured to hold. Where
//! definitions of tools leave the prompt, which saves several times what views cost, part of that is spent on memory: only sizes
//! are chosen whose views answer what views of their mean size between two compactions have to answer ([`ViewMemory`]).
//!
//! Notes by a model cost more than the compaction they are for, and save no money: their purpose is recall. If the client pays for them,
//! they are paid from the savings so far ([`Spending::affords_notes`]), and the time of a compaction is decided as with notes by rules.
//!
//! Amounts are in tokens at the price of an uncached prompt token.

use throughline_tokens::CachePrices;

use crate::combine::MODEL_TOKENS;
use crate::pay::{CacheState, PayFigures, PayRule, cost};

/// A possible size after a compaction.
#[derive(Clone, Copy, Debug)]
struct ViewSize {
    /// The setting for it (`compression.target_tokens`).
    target: u64,
    /// The size of a view of recorded sessions with that setting, by the same estimate: some messages are larger than their share.
    left: u64,
    /// The share of questions about the past that such a view answers, in thousandths: with notes by rules, ...
    answered_by_rules: u64,
    /// ... and with a model's.
    answered_by_model: u64,
    /// The number of compactions in a row after which a view of this size still answers as many questions as expected.
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

/// The author of the notes, and how their cost counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotesBy {
    /// Rules, at no cost.
    Rules,
    /// A model, called for every compaction as part of its price.
    Model,
    /// A model, called if past savings pay for it.
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
/// The maximum cost of a conversation after paying for notes by a model, in percent of its cost without Throughline, ...
const NOTES_PERCENT_OF_DIRECT: u64 = 103;
/// ... and after paying for notes together with the compaction they are for.
const COMPACTED_PERCENT_OF_DIRECT: u64 = 105;
/// The approximate share of notes in the remaining tokens, for the price of having a model write them.
const NOTES_PERCENT: u64 = 60;
/// The calculation depends on the size of the prompt at the compaction, which depends on the calculation; this many rounds converge to
/// within a percent.
const ROUNDS: usize = 3;

/// How often the conversation read again what it had read before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rereads {
    /// Tokens of results of calls that repeat an earlier call exactly.
    pub tokens: u64,
    /// The number of such results.
    pub calls: u64,
}

/// The figures of a conversation for the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EconomyFigures {
    /// Tokens of system prompt and tools.
    pub fixed_tokens: u64,
    /// Tokens added per call.
    pub growth_tokens: u64,
    /// Number of calls so far.
    pub calls: u64,
    /// Number of pauses longer than the cache lifetime.
    pub cold_pauses: u64,
    /// Repeated reads within a view.
    pub rereads: Rereads,
    /// Number of compactions so far, each with notes that the next one had to include.
    pub compactions: u64,
    /// How much its views have to answer.
    pub memory: ViewMemory,
    /// The configured target size, if any.
    pub target_tokens: Option<u64>,
}

/// The decision, in tokens of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EconomyPlan {
    /// The target of a compaction (`compression.target_tokens`).
    pub target_tokens: u64,
    /// The expected size after it.
    pub left_tokens: u64,
    /// The size from which a compaction pays while the prompt is cached.
    pub warm_tokens: u64,
    /// The size from which it pays once the cache has expired.
    pub cold_tokens: u64,
    /// The number of calls expected before the conversation ends or pauses for longer than the cache lifetime.
    pub expected_calls: u64,
}

impl EconomyFigures {
    /// Decides for these prices and this author of the notes.
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
        // As much must be freed as the expected calls need to pay for it.
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

    /// Returns the number of calls expected before the end or the next pause.
    fn expected_calls(&self) -> u64 {
        self.calls / self.cold_pauses.saturating_add(1)
    }

    /// Computes the cost of a cycle between two compactions to this size.
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

/// The cost of a conversation so far, and the cost of the same requests without Throughline. Amounts are in thousandths of an uncached
/// prompt token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// The amount paid, including notes.
    pub paid: u64,
    /// The amount without Throughline.
    pub direct: u64,
}

impl Spending {
    /// Whether a model may be paid for notes on a prompt of this size, for a compaction to this size: if the conversation ended then, it
    /// would have cost little more than without Throughline.
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

    /// Adds the cost of a model's notes on a cached prompt of this size.
    pub fn pay_for_notes(&mut self, prices: CachePrices, prompt_tokens: u64) {
        let reading = prompt_tokens.saturating_mul(prices.read_permille);
        let answering = MODEL_TOKENS.saturating_mul(prices.output_permille);
        self.paid = self.paid.saturating_add(reading).saturating_add(answering);
    }
}

/// Returns a configured size; the remaining size is at least that of the smallest measured view.
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
