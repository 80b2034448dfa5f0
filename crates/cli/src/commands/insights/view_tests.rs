//! The output of `insights`.

use throughline_store::ToolCount;

use super::*;
use crate::record::test_samples::{plain, total, widest};

fn usage(scale: u64) -> Usage {
    Usage {
        input: 10 * scale,
        output: 100 * scale,
        cache_read: 5_000 * scale,
        cache_write: 300 * scale,
        reasoning: 0,
    }
}

fn day(name: &str, scale: u64) -> UsageTotal {
    total(name, scale, usage(scale), 40_000 * scale, 260_000 * scale)
}

fn insights() -> Insights {
    Insights {
        first_day: "2026-10-17".parse().unwrap(),
        last_day: "2026-11-15".parse().unwrap(),
        total: day("", 131),
        by_day: vec![
            day("2026-11-10", 20),
            day("2026-11-11", 100),
            day("2026-11-13", 1),
            day("2026-11-15", 10),
        ],
        by_model: vec![day("gpt-5.2", 11), day("claude-opus-4-6", 120)],
        by_project: vec![day("/home/ada/a/rather/long/way/down/to/the/parser", 130), day("", 1)],
        by_task: vec![day("chat", 129), day("compression", 2)],
        by_cache_miss: vec![day("messages changed", 2), day("expired", 1)],
        tools: vec![
            ToolCount { tool: "Bash".to_owned(), messages: 1_200, tokens: 900_000 },
            ToolCount { tool: "Read".to_owned(), messages: 800, tokens: 100_000 },
            ToolCount { tool: "Edit".to_owned(), messages: 1, tokens: 10 },
        ],
        top: 2,
    }
}

#[test]
fn a_month_at_a_glance() {
    let page = render(&insights(), 80);
    assert!(widest(&page) <= 80);
    insta::assert_snapshot!(plain(&page));
}

#[test]
fn the_page_keeps_to_the_width() {
    for width in [46, 47, 60, 80, 99, 100, 101, 120, 200] {
        assert!(widest(&render(&insights(), width)) <= width, "{width}");
    }
}

#[test]
fn long_times_are_put_together() {
    for (first, rows) in [("2026-06-01", 24), ("2020-01-01", 31), ("1950-01-01", 31)] {
        let insights = Insights { first_day: first.parse().unwrap(), ..insights() };
        let mut all = insights;
        all.by_day.insert(0, day(first, 1));
        let periods = periods(&all);
        assert!(periods.len() <= rows, "{} rows from {first}", periods.len());
        assert_eq!(periods.iter().map(|period| period.total.calls).sum::<u64>(), 132);
    }
}

#[test]
fn long_range_with_few_days_of_calls_shows_those_days() {
    let few = Insights { first_day: "2016-11-15".parse().unwrap(), ..insights() };
    assert_eq!(periods(&few).iter().filter(|period| period.total.calls > 0).count(), few.by_day.len());
}

#[test]
fn without_prices_bars_show_tokens() {
    let mut insights = insights();
    for total in insights.by_day.iter_mut().chain(&mut insights.by_model).chain([&mut insights.total]) {
        total.unpriced = total.calls;
        total.cost_micro_usd = 0;
    }
    let page = plain(&render(&insights, 80));
    assert!(page.contains("By day (bars: tokens)"), "{page}");
}

#[test]
fn nothing_recorded_is_said() {
    let page = plain(&render(&Insights { top: 5, ..Insights::default() }, 80));
    assert!(page.contains("no calls are recorded in this time"), "{page}");
}
