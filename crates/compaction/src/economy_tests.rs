//! Tests with figures computed by hand, and of properties for any conversation and prices.

use proptest::prelude::*;
use throughline_tokens::CachePrices;

use super::*;

const FIVE_MINUTES: CachePrices =
    CachePrices { write_permille: 1_250, read_permille: 100, output_permille: 5_000 };
const AN_HOUR: CachePrices = CachePrices { write_permille: 2_000, ..FIVE_MINUTES };

const TALK: EconomyFigures = EconomyFigures {
    fixed_tokens: 42_000,
    growth_tokens: 1_000,
    calls: 100,
    cold_pauses: 0,
    rereads: Rereads { tokens: 0, calls: 0 },
    compactions: 0,
    memory: ViewMemory::WhenMade,
    target_tokens: None,
};

#[test]
fn small_views_are_not_compacted_more_often_than_they_were_measured_to_hold() {
    let target = |compactions: u64| {
        EconomyFigures { compactions, ..TALK }.plan(FIVE_MINUTES, NotesBy::Rules).target_tokens
    };
    assert_eq!([0, 1, 2, 3, 60].map(target), [5_400, 5_400, 8_000, 8_000, 8_000]);
    let configured = EconomyFigures { compactions: 60, target_tokens: Some(6_000), ..TALK };
    assert_eq!(configured.plan(FIVE_MINUTES, NotesBy::Rules).target_tokens, 6_000);
}

#[test]
fn views_that_have_to_answer_as_they_grow_are_larger() {
    let target = |compactions: u64| {
        let figures = EconomyFigures { compactions, memory: ViewMemory::WhenGrown, ..TALK };
        figures.plan(FIVE_MINUTES, NotesBy::Rules).target_tokens
    };
    assert_eq!([0, 1, 60].map(target), [10_000; 3]);
}

#[test]
fn the_point_is_where_reading_has_cost_as_much_as_the_compaction() {
    let plan = TALK.plan(FIVE_MINUTES, NotesBy::ModelFromSavings);
    // Rewriting 9,000 x 1.15 = 10,350; sqrt(2 x 10,350 x 1,000 / 0.1) = 14,387 more than what remains.
    assert_eq!((plan.target_tokens, plan.left_tokens, plan.warm_tokens), (5_400, 9_000, 9_000 + 14_387));
    assert_eq!(plan.cold_tokens, 9_000 + 4_500);
    let for_an_hour = TALK.plan(AN_HOUR, NotesBy::ModelFromSavings);
    // 9,000 x 1.9 = 17,100; the root is 18,493.
    assert_eq!(for_an_hour.warm_tokens, 9_000 + 18_493);
    let by_model = TALK.plan(FIVE_MINUTES, NotesBy::Model);
    assert!(by_model.warm_tokens > plan.warm_tokens, "{by_model:?}");
}

#[test]
fn a_short_conversation_is_not_expected_to_repay_a_compaction() {
    // Eight calls are expected: 10,350 tokens need 12,937 freed ones. With three it is 34,500.
    let eight = EconomyFigures { calls: 8, ..TALK }.plan(FIVE_MINUTES, NotesBy::ModelFromSavings);
    let three = EconomyFigures { calls: 3, ..TALK }.plan(FIVE_MINUTES, NotesBy::ModelFromSavings);
    assert_eq!(eight.warm_tokens, 9_000 + 14_387);
    assert_eq!(three.warm_tokens, 9_000 + 34_500);
    // The same if long pauses divide a longer one.
    let parted =
        EconomyFigures { calls: 12, cold_pauses: 3, ..TALK }.plan(FIVE_MINUTES, NotesBy::ModelFromSavings);
    assert_eq!((parted.expected_calls, parted.warm_tokens), (3, three.warm_tokens));
}

#[test]
fn a_conversation_that_goes_back_often_keeps_more() {
    let rereads = Rereads { tokens: 200_000, calls: 60 };
    let plan = EconomyFigures { rereads, ..TALK }.plan(FIVE_MINUTES, NotesBy::Rules);
    let usual = TALK.plan(FIVE_MINUTES, NotesBy::Rules);
    assert!(plan.target_tokens > usual.target_tokens, "{plan:?}");
    let small_fixed =
        EconomyFigures { fixed_tokens: 500, rereads: Rereads { tokens: 0, calls: 200 }, ..TALK };
    let large_fixed = EconomyFigures { fixed_tokens: 90_000, ..small_fixed };
    let (small, large) =
        (small_fixed.plan(FIVE_MINUTES, NotesBy::Rules), large_fixed.plan(FIVE_MINUTES, NotesBy::Rules));
    assert!(large.left_tokens > small.left_tokens, "{small:?} {large:?}");
}

#[test]
fn a_configured_size_holds() {
    let plan =
        EconomyFigures { target_tokens: Some(13_300), ..TALK }.plan(FIVE_MINUTES, NotesBy::ModelFromSavings);
    assert_eq!((plan.target_tokens, plan.left_tokens), (13_300, 13_300));
    assert!(plan.warm_tokens > TALK.plan(FIVE_MINUTES, NotesBy::ModelFromSavings).warm_tokens);
}

#[test]
fn rules_keep_more_than_a_model_where_much_is_read_again() {
    let again = EconomyFigures { rereads: Rereads { tokens: 200_000, calls: 60 }, ..TALK };
    let (by_rules, by_model) =
        (again.plan(FIVE_MINUTES, NotesBy::Rules), again.plan(FIVE_MINUTES, NotesBy::ModelFromSavings));
    assert!(by_rules.left_tokens > by_model.left_tokens, "{by_rules:?} {by_model:?}");
}

#[test]
fn notes_are_bought_from_what_was_saved() {
    // A prompt of 80,000 tokens: 8,000 for reading it, 12,500 for 2,500 tokens of answer; then 9,000 written for 10,350.
    let spending = |paid: u64, direct: u64| Spending { paid: paid * 1_000, direct: direct * 1_000 };
    let affords = |one: Spending| one.affords_notes(FIVE_MINUTES, 80_000, 9_000);
    // Nothing was saved: 20,500 are three percent of 683,334, and 30,850 five of 617,000.
    assert!(!affords(spending(683_333, 683_333)) && affords(spending(683_334, 683_334)));
    // With savings of 50,000 notes are affordable immediately, in a conversation with a loss they are not.
    assert!(affords(spending(100_000, 150_000)) && !affords(spending(1_000_000, 990_000)));
    let mut paid = spending(100_000, 150_000);
    paid.pay_for_notes(FIVE_MINUTES, 80_000);
    assert_eq!(paid, spending(120_500, 150_000));
}

proptest! {
    #[test]
    fn a_plan_frees_at_least_what_it_leaves(
        fixed_tokens in 0_u64..400_000,
        growth_tokens in 0_u64..200_000,
        calls in 0_u64..5_000,
        cold_pauses in 0_u64..100,
        compactions in 0_u64..50,
        rereads in (0_u64..1_000_000, 0_u64..1_000),
        target_tokens in prop::option::of(1_u64..100_000),
        has_to_answer_grown in any::<bool>(),
        write_permille in 0_u64..4_000,
        read_permille in 0_u64..2_000,
        notes in prop::sample::select(vec![NotesBy::Rules, NotesBy::Model, NotesBy::ModelFromSavings]),
    ) {
        let rereads = Rereads { tokens: rereads.0, calls: rereads.1 };
        let figures = EconomyFigures {
            fixed_tokens,
            growth_tokens,
            calls,
            cold_pauses,
            rereads,
            compactions,
            memory: if has_to_answer_grown { ViewMemory::WhenGrown } else { ViewMemory::WhenMade },
            target_tokens,
        };
        let prices = CachePrices { write_permille, read_permille, output_permille: 5_000 };
        let plan = figures.plan(prices, notes);
        prop_assert!(plan.warm_tokens >= plan.left_tokens * 2);
        prop_assert!(plan.cold_tokens >= plan.left_tokens + plan.left_tokens / 2);
        prop_assert!(plan.cold_tokens <= plan.warm_tokens);
        // The more calls are expected, the earlier it pays.
        let longer = EconomyFigures { calls: calls * 2, ..figures }.plan(prices, notes);
        prop_assert!(longer.warm_tokens <= plan.warm_tokens);
    }
}
