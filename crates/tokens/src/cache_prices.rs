//! What writing, reading and answering cost beside a plain prompt token: all that a decision about caches needs of prices.

use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// Prices in thousandths of the price of a prompt token that no cache is involved in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachePrices {
    /// A prompt token that is written to the cache.
    pub write_permille: u64,
    /// A prompt token that is read from it.
    pub read_permille: u64,
    /// A token of an answer.
    pub output_permille: u64,
}

impl Default for CachePrices {
    /// The usual ratio of writing and reading, where no price is known. It represents the time that a server without prices
    /// needs to read a changed prompt again. What an answer costs there is not known, so it counts as nothing.
    fn default() -> Self {
        Self { write_permille: 1_250, read_permille: 100, output_permille: 0 }
    }
}

/// How long what is written to a cache lives, which some sell at different prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteDuration {
    /// Minutes.
    Minutes,
    /// An hour.
    AnHour,
}

/// Tokens that prices are read at: enough for exact ratios, too few for the higher price of very long prompts.
const PRICED_TOKENS: u64 = 100_000;

impl CachePrices {
    /// The ratios of a price list, which `price` reads: micro-dollars for this usage, of which so many tokens are written to
    /// the cache for an hour. The usual ratio where the list has no price. Where writing has no price of its own it costs
    /// what a prompt token costs, and so does reading where it is not sold cheaper.
    #[must_use]
    pub fn of(duration: WriteDuration, price: impl Fn(Usage, u64) -> Option<u64>) -> Self {
        let price = |usage: Usage| {
            let for_an_hour = if duration == WriteDuration::AnHour { usage.cache_write } else { 0 };
            price(usage, for_an_hour)
        };
        let none = Usage::default();
        let input = price(Usage { input: PRICED_TOKENS, ..none }).filter(|input| *input > 0);
        let Some(input) = input else { return Self::default() };
        let permille = |priced: Option<u64>| priced.unwrap_or(input).saturating_mul(1_000) / input;
        Self {
            write_permille: permille(price(Usage { cache_write: PRICED_TOKENS, ..none })),
            read_permille: permille(price(Usage { cache_read: PRICED_TOKENS, ..none })),
            output_permille: permille(price(Usage { output: PRICED_TOKENS, ..none })),
        }
    }
}

#[cfg(test)]
#[path = "cache_prices_tests.rs"]
mod tests;
