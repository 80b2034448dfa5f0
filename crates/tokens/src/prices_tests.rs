//! Tests of prices: names, buckets, tiers, dates, and unknown prices.

use super::{Cost, LIST, PriceBasis, PricedCall, find};
use crate::usage::Usage;

/// 1 November 2026, noon.
const NOW: i64 = 1_793_534_400_000;

fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
    Usage { input, output, cache_read, cache_write, reasoning: 0 }
}

fn call<'a>(model: &'a str, provider: &'a str, usage: Usage) -> PricedCall<'a> {
    PricedCall { model, provider, at_ms: NOW, usage, cache_write_1h: 0 }
}

fn dollars(cost: Cost) -> Option<f64> {
    cost.micro_usd.map(|micro| micro as f64 / 1e6)
}

#[test]
fn the_list_is_read_and_sound() {
    assert_eq!(Cost::prices_as_of(), "2026-11-15");
    assert!(LIST.file.models.len() > 150);
    let mut names = std::collections::HashSet::new();
    for model in &LIST.file.models {
        assert!(LIST.file.makers.iter().any(|maker| maker.name == model.maker), "{}", model.name);
        for name in std::iter::once(&model.name).chain(&model.also) {
            assert!(names.insert(name), "{name} stands twice");
            let normal = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            assert!(normal, "{name} would never be found");
            assert_eq!(find(name).unwrap().0.name, model.name);
        }
        assert!(!model.rates.is_empty(), "{}", model.name);
        for rates in &model.rates {
            let all = [Some(rates.input), Some(rates.output), rates.cache_read, rates.cache_write];
            assert!(all.into_iter().flatten().all(|price| (0.0..1_000.0).contains(&price)), "{}", model.name);
            assert!(rates.cache_read.is_none_or(|read| read <= rates.input), "{}", model.name);
            assert!(
                rates.cache_write_1h.zip(rates.cache_write).is_none_or(|(long, short)| long > short),
                "{}",
                model.name
            );
            if let Some(day) = &rates.since {
                assert!(throughline_transcript::parse_rfc3339_millis(&format!("{day}T00:00:00Z")).is_some());
            }
        }
    }
}

#[test]
fn known_sums() {
    let opus = call("claude-opus-4-7", "anthropic", usage(1_000_000, 100_000, 500_000, 200_000)).list_cost();
    assert_eq!(dollars(opus), Some(9.0));
    assert_eq!(opus.uncached_micro_usd, Some(11_000_000));
    assert_eq!(opus.basis, PriceBasis::List("claude-opus-4-7"));
    let sonnet = call("claude-sonnet-4-6", "anthropic", usage(1_000, 1_000, 0, 0)).list_cost();
    assert_eq!(dollars(sonnet), Some(0.018));
    assert_eq!(dollars(call("claude-opus-4-7", "", Usage::default()).list_cost()), Some(0.0));
}

#[test]
fn hour_long_cache_writes_are_dearer() {
    let mut written = call("claude-opus-4-6", "anthropic", usage(0, 0, 0, 1_000_000));
    assert_eq!(dollars(written.list_cost()), Some(6.25));
    written.cache_write_1h = 400_000;
    assert_eq!(dollars(written.list_cost()), Some(0.6 * 6.25 + 0.4 * 10.0));
    written.cache_write_1h = u64::MAX;
    assert_eq!(dollars(written.list_cost()), Some(10.0), "no more than was written");
}

#[test]
fn names_with_dates_vendors_and_regions() {
    for (name, entry) in [
        ("claude-opus-4-6", "claude-opus-4-6"),
        ("anthropic/claude-opus-4.6", "claude-opus-4-6"),
        ("openrouter/anthropic/claude-opus-4.6", "claude-opus-4-6"),
        ("Claude-Opus-4-6-20260201", "claude-opus-4-6"),
        ("claude-opus-4-6@20260201", "claude-opus-4-6"),
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("claude-opus-4-20250514", "claude-opus-4-0"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("anthropic/claude-3.7-sonnet:thinking", "claude-3-7-sonnet"),
        ("gpt-5.2-2025-12-11", "gpt-5-2"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("models/gemini-2.5-pro", "gemini-2-5-pro"),
        ("x-ai/grok-4.5", "grok-4-5"),
        ("MiniMax-M2.5", "minimax-m2-5"),
        ("kimi-k2.5", "kimi-k2-5"),
        ("qwen3-coder-plus", "qwen3-coder-plus"),
        ("glm-4.7", "glm-4-7"),
        ("moonshot-v1-8k", "moonshot-v1-8k"),
    ] {
        assert_eq!(find(name).map(|(model, _)| model.name.as_str()), Some(entry), "{name}");
    }
}

#[test]
fn names_that_only_look_alike_have_no_price() {
    for name in [
        "",
        "-",
        "claude",
        "claude-opus",
        "claude-opus-4-6-fast",
        "gpt-5-ultra",
        "gpt-4o-20",
        "claude-opus-4-6:free",
        "my-claude-opus-4-6",
        "qwen3-coder-plus-2025-13-99x",
        "é",
        "claude-opus-4-6-2026020",
        "us.claude",
    ] {
        assert!(find(name).is_none(), "{name}");
        assert_eq!(call(name, "", usage(1, 1, 0, 0)).list_cost().basis, PriceBasis::UnknownModel, "{name}");
    }
}

#[test]
fn endpoints_bound_to_a_region_charge_more_where_the_list_says_so() {
    let price = |model| dollars(call(model, "bedrock", usage(1_000_000, 0, 0, 0)).list_cost());
    assert_eq!(price("anthropic.claude-opus-4-6-v1"), Some(5.0));
    assert_eq!(price("global.anthropic.claude-opus-4-6-v1"), Some(5.0));
    assert_eq!(price("us.anthropic.claude-opus-4-6-v1"), Some(5.5));
    assert_eq!(price("us.anthropic.claude-3-7-sonnet-20250219-v1:0"), Some(3.0));
}

#[test]
fn a_used_bucket_without_a_price_leaves_no_amount() {
    let read = call("gpt-5-pro", "openai", usage(10, 10, 5, 0)).list_cost();
    assert_eq!(read.basis, PriceBasis::UnpricedBucket("cache_read"));
    assert_eq!((read.micro_usd, read.uncached_micro_usd), (None, None));
    assert!(call("gpt-5-pro", "openai", usage(10, 10, 0, 0)).list_cost().micro_usd.is_some());
    let written = call("gpt-5.2", "openai", usage(10, 10, 5, 5)).list_cost();
    assert_eq!(written.basis, PriceBasis::UnpricedBucket("cache_write"));
}

#[test]
fn sellers() {
    let basis = |model, provider| call(model, provider, usage(1, 1, 0, 0)).list_cost().basis;
    for provider in
        ["", "anthropic", "Anthropic", "https://api.anthropic.com/v1", "amazon_bedrock", "openrouter"]
    {
        assert_eq!(basis("claude-opus-4-6", provider), PriceBasis::List("claude-opus-4-6"), "{provider}");
    }
    for provider in ["custom", "http://localhost:8080/v1", "ollama", "evil-anthropic"] {
        assert_eq!(basis("claude-opus-4-6", provider), PriceBasis::UnknownSeller, "{provider}");
    }
    // Open weights are sold at any price: without a seller there is none.
    assert_eq!(basis("deepseek-v4-pro", ""), PriceBasis::UnknownSeller);
    assert_eq!(basis("deepseek-v4-pro", "together"), PriceBasis::UnknownSeller);
    assert_eq!(basis("deepseek-v4-pro", "https://api.deepseek.com"), PriceBasis::List("deepseek-v4-pro"));
    let included = call("gpt-5.2-codex", "openai-codex", usage(1_000_000, 1, 0, 0)).list_cost();
    assert_eq!((included.micro_usd, included.basis), (Some(0), PriceBasis::Included));
}

#[test]
fn long_prompts_have_prices_of_their_own() {
    let at = |prompt| dollars(call("gemini-2.5-pro", "google", usage(prompt, 0, 0, 0)).list_cost());
    assert_eq!(at(200_000), Some(0.25));
    assert_eq!(at(200_001), Some(0.500_003));
    // The whole prompt decides, not only its new part.
    let cached = call("gemini-2.5-pro", "google", usage(0, 1_000_000, 200_001, 0)).list_cost();
    assert_eq!(dollars(cached), Some(15.0 + 0.050_000));
}

#[test]
fn prices_are_those_of_the_day_and_hour_of_the_call() {
    let at = |model, provider, day: &str, usage| {
        let at_ms = throughline_transcript::parse_rfc3339_millis(day).unwrap();
        (PricedCall { at_ms, ..call(model, provider, usage) }).list_cost()
    };
    let long = usage(300_000, 0, 0, 0);
    assert_eq!(dollars(at("claude-opus-4-6", "anthropic", "2026-02-07T00:00:00Z", long)), Some(3.0));
    assert_eq!(dollars(at("claude-opus-4-6", "anthropic", "2026-03-13T00:00:00Z", long)), Some(1.5));
    let million = usage(1_000_000, 0, 0, 0);
    let deepseek = |time| dollars(at("deepseek-v4-pro", "deepseek", time, million));
    assert_eq!(deepseek("2026-06-01T02:00:00Z"), Some(0.435));
    assert_eq!(deepseek("2026-11-01T00:59:59Z"), Some(0.66));
    assert_eq!(deepseek("2026-11-01T02:00:00Z"), Some(1.32));
    assert_eq!(deepseek("2026-11-01T04:00:00Z"), Some(0.66));
    // There is no price before the first day in the list.
    let early = at("deepseek-chat", "deepseek", "2025-01-01T00:00:00Z", million);
    assert_eq!(early.basis, PriceBasis::UnknownSeller);
}

#[test]
fn sums_do_not_overflow() {
    let most =
        Usage { input: u64::MAX, output: u64::MAX, cache_read: u64::MAX, cache_write: 0, reasoning: 0 };
    let priced = call("claude-opus-4-7", "anthropic", most).list_cost();
    assert_eq!(priced.micro_usd, Some(u64::MAX));
}

#[test]
fn small_sums_are_rounded_once() {
    // 3 tokens at 0.1 and 3 at 0.5 dollars a million: 1.8 millionths together.
    assert_eq!(call("gpt-6-luna", "openai", usage(3, 3, 0, 0)).list_cost().micro_usd, Some(2));
}

#[test]
fn buckets_add_up_to_the_cost_of_a_call() {
    let usage =
        Usage { input: 1_234, output: 2_345, cache_read: 30_001, cache_write: 4_003, ..Usage::default() };
    let at_ms = 1_790_000_000_000;
    for model in ["claude-sonnet-4-5", "gpt-5", "claude-opus-4-5"] {
        let call = PricedCall { model, provider: "", at_ms, usage, cache_write_1h: 1_000 };
        let parts = crate::Catalogue::shipped().cost_by_bucket(&call);
        // A model without a price for writing to the cache has no amount in either form.
        let sum = parts.map(|parts| parts.iter().map(|(_, amount)| amount).sum::<u64>());
        let whole = call.list_cost().micro_usd;
        assert_eq!(sum.is_some(), whole.is_some(), "{model}");
        assert!(sum.unwrap_or(0).abs_diff(whole.unwrap_or(0)) <= 2, "{model}: {sum:?} {whole:?}");
    }
    let unknown = PricedCall { model: "nobody-knows-it", provider: "", at_ms, usage, cache_write_1h: 0 };
    assert_eq!(crate::Catalogue::shipped().cost_by_bucket(&unknown), None);
}
