//! The line under an answer.

use super::*;

fn plain(pressure: Pressure, tally: &Tally, width: usize) -> String {
    anstream::adapter::strip_str(&status(pressure, tally, width)).to_string()
}

#[test]
fn the_gauge_has_the_figures_of_the_trigger_and_fits_narrow_terminals() {
    let pressure = Pressure { tokens: 12_400, threshold_tokens: 16_384, window_tokens: 32_768 };
    let usage = Usage { input: 1_000, cache_read: 9_000, output: 300, ..Usage::default() };
    let tally = Tally { calls: 2, usage, cost_micro_usd: 12_300, unpriced: 0 };
    assert_eq!(plain(pressure, &tally, 80), "█████░┃░░░░░ 12k of 33k · folds at 16k · $0.01 · cache 90 %");
    for width in [20, 30, 40, 50] {
        let line = plain(pressure, &tally, width);
        assert!(columns(&line) <= width.max(24), "{width}: {line}");
    }
    assert_eq!(plain(pressure, &Tally::default(), 80), "█████░┃░░░░░ 12k of 33k · folds at 16k");
}
