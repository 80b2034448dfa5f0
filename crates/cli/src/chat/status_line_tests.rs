//! The line under an answer.

use super::*;

fn plain(pressure: Pressure, tally: &UsageTally, width: usize) -> String {
    anstream::adapter::strip_str(&status(pressure, tally, width)).to_string()
}

#[test]
fn fading_is_shown_with_the_count_that_is_true() {
    assert!(fading(2).starts_with("this conversation has been compacted twice: "));
    assert!(fading(5).starts_with("this conversation has been compacted 5 times: "));
}

#[test]
fn figures_of_a_conversation_fit_one_line() {
    let usage = Usage { input: 1_000, cache_read: 9_000, output: 300, ..Usage::default() };
    let total = UsageTotal { calls: 3, usage, cost_micro_usd: 12_300, ..UsageTotal::default() };
    assert_eq!(
        figures(&total, 1),
        "this conversation: 3 calls, 10k tokens in (90 % from the cache), 300 out, $0.01, 1 compaction"
    );
    let unknown = UsageTotal { unpriced: 3, estimated: 1, ..total };
    assert_eq!(
        figures(&unknown, 0),
        "this conversation: 3 calls, ~10k tokens in (90 % from the cache), ~300 out, cost not known, 0 compactions"
    );
}

#[test]
fn the_gauge_has_the_figures_of_the_trigger_and_fits_narrow_terminals() {
    let pressure = Pressure { tokens: 12_400, threshold_tokens: 16_384, window_tokens: 32_768 };
    let usage = Usage { input: 1_000, cache_read: 9_000, output: 300, ..Usage::default() };
    let tally = UsageTally { calls: 2, usage, cost_micro_usd: 12_300, unpriced: 0 };
    assert_eq!(plain(pressure, &tally, 80), "█████░┃░░░░░ 12k of 33k · compacts at 16k · $0.01 · cache 90 %");
    for width in [20, 30, 40, 50] {
        let line = plain(pressure, &tally, width);
        assert!(columns(&line) <= width.max(24), "{width}: {line}");
    }
    assert_eq!(plain(pressure, &UsageTally::default(), 80), "█████░┃░░░░░ 12k of 33k · compacts at 16k");
}
