//! Tests of the ratios of real price lists, and of the defaults.

use super::*;
use crate::prices::PricedCall;

/// A day for which the list has prices.
const AT_MS: i64 = 1_790_000_000_000;

fn prices(model: &str, provider: &str, duration: WriteDuration) -> (u64, u64, u64) {
    let found = CachePrices::of(duration, |usage, cache_write_1h| {
        (PricedCall { model, provider, at_ms: AT_MS, usage, cache_write_1h }).list_cost().micro_usd
    });
    (found.write_permille, found.read_permille, found.output_permille)
}

#[test]
fn prices_come_from_the_list() {
    assert_eq!(prices("claude-sonnet-4-5", "anthropic", WriteDuration::Minutes), (1_250, 100, 5_000));
    assert_eq!(prices("claude-sonnet-4-5", "anthropic", WriteDuration::AnHour), (2_000, 100, 5_000));
    // There is no separate price for writing.
    assert_eq!(prices("gpt-5", "openai", WriteDuration::Minutes), (1_000, 100, 8_000));
}

#[test]
fn a_model_without_a_price_has_the_usual_ratio() {
    assert_eq!(prices("qwen3-8b-of-mine", "http://127.0.0.1:8080", WriteDuration::Minutes), (1_250, 100, 0));
}
