//! The gauge.

use super::*;

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn gauge(tokens: u64) -> Gauge {
    Gauge { tokens, window_tokens: 1000, threshold_tokens: 500 }
}

#[test]
fn the_bar_fills_and_the_threshold_stays_visible() {
    assert_eq!(plain(&gauge(0).bar(10)), "░░░░░┃░░░░");
    assert_eq!(plain(&gauge(1).bar(10)), "█░░░░┃░░░░", "something is never shown as nothing");
    assert_eq!(plain(&gauge(300).bar(10)), "███░░┃░░░░");
    assert_eq!(plain(&gauge(800).bar(10)), "█████┃██░░");
    assert_eq!(plain(&gauge(5000).bar(10)), "█████┃████");
}

#[test]
fn lines_fit_their_width_and_line_up() {
    let text = plain(&gauge_lines(&[("before", gauge(1234)), ("after", gauge(56))], 60));
    assert_eq!(
        text,
        "before  ███████████┃██████████  1,234 of 1,000 tokens, 123 %\n\
         after   █░░░░░░░░░░┃░░░░░░░░░░     56 of 1,000 tokens, 5.6 %\n"
    );
}

#[test]
fn narrow_lines_have_the_bar_and_the_figures_under_each_other() {
    let text = plain(&gauge_lines(&[("  before", gauge(1234))], 16));
    assert_eq!(text, "  before\n  ███████┃██████\n  1,234 of 1,000\n  tokens, 123 %\n");
    for width in 10..100 {
        let text = plain(&gauge_lines(&[("  before", gauge(1234)), ("  after", gauge(5))], width));
        assert!(text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
    }
}

#[test]
fn a_window_of_nothing_is_full() {
    let gauge = Gauge { tokens: 5, window_tokens: 0, threshold_tokens: 0 };
    assert_eq!(plain(&gauge.bar(4)), "███┃");
}
