//! Tests with figures computed by hand, and of properties for any sizes and prices.

use proptest::prelude::*;
use throughline_tokens::CachePrices;

use super::*;

const BY_RULES: PayRule = PayRule {
    prices: CachePrices { write_permille: 1_250, read_permille: 100, output_permille: 5_000 },
    cache: CacheState::Warm,
    asks_model: false,
};

fn figures(before: u64, kept: u64, rewritten: u64, growth: u64) -> PayFigures {
    PayFigures {
        before_tokens: before,
        kept_tokens: kept,
        rewritten_tokens: rewritten,
        summary_tokens: rewritten / 3,
        growth_tokens: growth,
        calls_so_far: before.saturating_sub(kept) / growth.max(1),
    }
}

#[test]
fn a_compaction_pays_once_what_it_frees_is_worth_what_it_writes() {
    // before, unchanged beginning, rewritten, growth -> required, pays
    for ((before, kept, rewritten, growth), required, pays) in [
        // Typical figures at 200,000 tokens: 65,000 are freed.
        ((100_000, 5_000, 30_000, 1_500), 32_171, true),
        // Claude Code in a window of 90,000: at its threshold it does not pay, at a larger size it does.
        ((56_000, 34_400, 10_200, 3_700), 29_462, false),
        ((74_000, 34_400, 10_200, 3_700), 29_462, false),
        ((74_100, 34_400, 10_200, 3_700), 29_462, true),
        // One step that fills the window: almost nothing is freed.
        ((148_000, 1_000, 146_000, 49_000), 405_637, false),
        // A small window with short turns.
        ((4_100, 900, 2_900, 80), 2_900, false),
        // Nothing to free at all.
        ((1_000, 900, 200, 10), 214, false),
    ] {
        let found = figures(before, kept, rewritten, growth).payback(&BY_RULES);
        assert_eq!((found.required_tokens, found.pays), (required, pays), "{found:?}");
    }
}

#[test]
fn a_summary_by_a_model_is_part_of_the_sum() {
    let figures = figures(100_000, 5_000, 30_000, 1_500);
    let by_model = figures.payback(&PayRule { asks_model: true, ..BY_RULES });
    // Written anew 30,000 x 1.15, read 100,000 x 0.1, answered 2,500 x 5.
    assert_eq!(by_model.cost_tokens, 34_500 + 10_000 + 12_500);
    assert!(by_model.required_tokens > figures.payback(&BY_RULES).required_tokens);
    let cold = figures.payback(&PayRule { cache: CacheState::Cold, ..BY_RULES });
    assert_eq!(
        (cold.cost_tokens, cold.required_tokens),
        (0, 15_000),
        "a third of the messages go in any case"
    );
}

#[test]
fn a_provider_that_sells_no_cheaper_reading_makes_every_real_compaction_pay() {
    let prices = CachePrices { write_permille: 1_000, read_permille: 1_000, output_permille: 4_000 };
    let found = figures(60_000, 5_000, 20_000, 9_000).payback(&PayRule { prices, ..BY_RULES });
    assert_eq!((found.cost_tokens, found.required_tokens, found.pays), (0, 20_000, true));
}

#[test]
fn the_sum_is_shown_in_the_unit_people_know() {
    let found = figures(56_000, 34_400, 10_200, 3_700).payback(&BY_RULES);
    insta::assert_snapshot!(found.words(&|tokens| tokens * 2), @"it frees 22800 of 112000 tokens (20.3 %) and 58924 (52.6 %) are required: it costs as much as 23460 uncached prompt tokens and saves 6840 over 3 calls of 7400 tokens each");
}

fn sizes() -> impl Strategy<Value = PayFigures> {
    (1_000u64..2_000_000, 0u64..1_000, 0u64..1_000, 1u64..100_000).prop_map(|(before, kept, left, growth)| {
        let kept_tokens = before * kept / 1_000;
        let rewritten_tokens = (before - kept_tokens) * left / 1_000;
        let summary_tokens = rewritten_tokens / 4;
        PayFigures {
            before_tokens: before,
            kept_tokens,
            rewritten_tokens,
            summary_tokens,
            growth_tokens: growth,
            calls_so_far: (before - kept_tokens) / growth,
        }
    })
}

fn rules() -> impl Strategy<Value = PayRule> {
    (500u64..2_500, 0u64..1_100, any::<bool>(), any::<bool>()).prop_map(|(write, read, cold, asks_model)| {
        PayRule {
            prices: CachePrices { write_permille: write, read_permille: read, output_permille: 5_000 },
            cache: if cold { CacheState::Cold } else { CacheState::Warm },
            asks_model,
        }
    })
}

#[test]
fn a_model_is_paid_where_the_conversation_has_gone_on_for_long_enough() {
    // before, unchanged beginning, rewritten, growth -> model called
    for ((before, kept, rewritten, growth), asked) in [
        // More than sixty calls at the usual threshold: the cost is earned back within nine.
        ((100_000, 5_000, 30_000, 1_500), true),
        // The same size after nine large calls, and after eight.
        ((100_000, 5_000, 30_000, 10_500), true),
        ((100_000, 5_000, 30_000, 11_000), false),
        // Almost nothing is freed.
        ((100_000, 5_000, 90_000, 500), false),
    ] {
        let figures = figures(before, kept, rewritten, growth);
        assert_eq!(figures.affords_model(&BY_RULES), asked, "{figures:?}");
        let known = PayFigures { calls_so_far: 1_000, ..figures };
        assert!(known.affords_model(&BY_RULES), "calls that earlier notes stand for count: {known:?}");
    }
}

#[test]
fn a_model_of_unknown_price_is_never_refused() {
    let short = figures(100_000, 5_000, 90_000, 50_000);
    assert!(!short.affords_model(&BY_RULES));
    assert!(short.affords_model(&PayRule { prices: CachePrices::default(), ..BY_RULES }));
}

proptest! {
    #[test]
    fn a_compaction_that_pays_affords_a_model(figures in sizes(), rule in rules()) {
        let rule = PayRule { asks_model: true, ..rule };
        let found = figures.payback(&rule);
        // The figures are whole tokens and whole calls.
        prop_assert!(!found.pays || found.calls < 4 || found.cost_tokens < 1_000 || figures.affords_model(&rule), "{found:?}");
    }

    #[test]
    fn a_compaction_that_pays_saves_more_than_it_costs(figures in sizes(), rule in rules()) {
        let found = figures.payback(&rule);
        if found.pays {
            // Calls are rounded down, so one may be missing.
            let one_more = (found.calls + 1) * found.freed_tokens;
            prop_assert!(scaled(one_more, rule.prices.read_permille.max(1), 1_000) + 1 >= found.cost_tokens, "{found:?}");
            let times = if rule.cache == CacheState::Cold { 2 } else { 1 };
            prop_assert!(found.freed_tokens * times + 1 >= found.rewritten_tokens);
        }
    }

    #[test]
    fn the_same_view_pays_once_more_was_said(figures in sizes(), rule in rules()) {
        let rule = PayRule { asks_model: false, ..rule };
        let found = figures.payback(&rule);
        let later = PayFigures { before_tokens: found.pays_from_tokens().max(figures.before_tokens), ..figures };
        prop_assert!(later.payback(&rule).pays || found.required_tokens == 0);
    }

    #[test]
    fn a_deep_compaction_pays_or_leaves_the_least(figures in sizes(), rule in rules()) {
        let target = figures.deep_target(&rule);
        let left = target - figures.kept_tokens;
        let messages = figures.before_tokens - figures.kept_tokens;
        prop_assert!(left <= messages);
        let deep = (PayFigures { rewritten_tokens: left, ..figures }).payback(&rule);
        prop_assert!(deep.pays || left <= messages * LEAST_LEFT_PERCENT / 100, "{deep:?}");
    }
}
