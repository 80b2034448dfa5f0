//! Prices of cache writes, cache reads and answers relative to an uncached prompt token.

use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// Prices in thousandths of the price of an uncached prompt token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachePrices {
    /// The price of a prompt token written to the cache.
    pub write_permille: u64,
    /// The price of a prompt token read from the cache.
    pub read_permille: u64,
    /// The price of an output token.
    pub output_permille: u64,
}

impl Default for CachePrices {
    /// The default ratios, for unknown prices. They represent the time that a server without prices needs to process a changed prompt
    /// again. The price of an answer is unknown there and counts as zero.
    fn default() -> Self {
        Self { write_permille: 1_250, read_permille: 100, output_permille: 0 }
    }
}

/// The lifetime of cache writes, which some providers sell at different prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteDuration {
    /// A few minutes.
    Minutes,
    /// An hour.
    AnHour,
}

/// The number of tokens for which prices are computed: enough for exact ratios, too few for the higher price of very long prompts.
const PRICED_TOKENS: u64 = 100_000;

impl CachePrices {
    /// Returns the ratios of a price list. `price` returns micro-dollars for a usage, of which the second argument is the cache writes that
    /// last an hour. The default ratios apply if the list has no price. Without separate prices, writing and reading cost as much as a
    /// prompt token.
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
