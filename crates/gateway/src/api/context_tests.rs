//! The selection of calls for a chart.

use super::*;

/// Calls with these prompts and costs, all of which hit the cache.
fn calls(figures: &[(u64, u64)]) -> Vec<ChartFigures> {
    let call = |&(prompt_tokens, cost): &(u64, u64)| ChartFigures {
        prompt_tokens,
        cost_micro_usd: Some(cost),
        is_missed: false,
    };
    figures.iter().map(call).collect()
}

fn places(calls: &[ChartFigures], points: usize) -> Vec<usize> {
    let shown = shown_in_chart(calls, points);
    shown.into_iter().enumerate().filter_map(|(at, is_shown)| is_shown.then_some(at)).collect()
}

#[test]
fn largest_and_most_expensive_call_of_each_stretch_are_shown() {
    let calls = calls(&[(5, 1), (9, 1), (7, 8), (1, 1), (2, 2), (3, 3)]);
    assert_eq!(places(&calls, 2), [1, 2, 5]);
    assert_eq!(places(&calls, 1), [1, 2]);
}

#[test]
fn few_calls_are_all_shown() {
    let calls = calls(&[(5, 1), (9, 1), (7, 8)]);
    assert_eq!(places(&calls, 3), [0, 1, 2]);
    assert_eq!(places(&calls, 600), [0, 1, 2]);
    assert!(places(&[], 600).is_empty());
}

#[test]
fn newest_calls_that_missed_the_cache_are_shown_too() {
    let mut calls = calls(&vec![(1, 1); 1_000]);
    calls.iter_mut().for_each(|call| call.is_missed = true);
    let shown = places(&calls, 2);
    assert!((MISSED_SHOWN..=MISSED_SHOWN + 4).contains(&shown.len()), "{}", shown.len());
    assert!((1_000 - MISSED_SHOWN..1_000).all(|at| shown.contains(&at)));
}
