//! Figures as text, bars and sparklines.

use super::*;

#[test]
fn money_shows_as_many_places_as_it_needs() {
    for (micro, words) in [
        (0, "$0"),
        (1, "<$0.0001"),
        (99, "<$0.0001"),
        (100, "$0.0001"),
        (3_249, "$0.0032"),
        (10_000, "$0.01"),
        (994_999, "$0.99"),
        (995_000, "$1.00"),
        (12_400_000, "$12.40"),
        (1_234_567_890_000, "$1,234,567.89"),
    ] {
        assert_eq!(dollars(micro), words, "{micro}");
    }
    assert!(dollars(u64::MAX).starts_with('$'));
}

#[test]
fn a_cost_that_is_not_wholly_known_says_so() {
    assert_eq!(cost_words(0, 0, 0), "-");
    assert_eq!(cost_words(0, 3, 3), "?");
    assert_eq!(cost_words(1_200_000, 3, 1), "$1.20+");
    assert_eq!(cost_words(1_200_000, 3, 0), "$1.20");
}

#[test]
fn rounded_counts_are_short() {
    for (count, words) in [
        (0, "0"),
        (999, "999"),
        (1_000, "1.0k"),
        (9_949, "9.9k"),
        (9_950, "10k"),
        (182_340, "182k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (12_345_678, "12M"),
        (7_000_000_000, "7.0G"),
    ] {
        assert_eq!(rounded(count), words, "{count}");
    }
}

#[test]
fn a_bar_is_to_scale_and_whatever_is_there_is_seen() {
    assert_eq!(bar(0, 100, 10), "");
    assert_eq!(bar(100, 100, 10), "█".repeat(10));
    assert_eq!(bar(50, 100, 10), "█".repeat(5));
    assert_eq!(bar(1, 1_000_000, 10), "▏");
    assert_eq!(bar(55, 100, 10), format!("{}▌", "█".repeat(5)));
    assert_eq!(bar(5, 0, 10), "");
    assert_eq!(bar(5, 10, 0), "", "where there is no room there is no bar");
}

#[test]
fn a_sparkline_has_one_cell_a_value() {
    assert_eq!(sparkline(&[0, 1, 50, 100]), "·▁▄█");
    assert_eq!(sparkline(&[0, 0]), "··");
    assert_eq!(sparkline(&[]), "");
}
