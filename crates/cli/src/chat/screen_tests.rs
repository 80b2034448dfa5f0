//! Lines of the screen, without colours.

use throughline_compaction::BeforeAfter;

use super::*;

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn a_compaction_is_shown_in_figures() {
    let report = CompressReport {
        tokens: BeforeAfter { before: 96_000, after: 22_000 },
        messages: BeforeAfter { before: 214, after: 31 },
        facts_important: 151,
        facts_kept: 148,
        facts_attached: 3,
        ..CompressReport::default()
    };
    assert_eq!(
        compacted_words(Quality::Rules, &report),
        "compacted 214 -> 31 messages, 96k -> 22k tokens, 148 of 151 facts kept, 3 re-attached; summary by rules"
    );
    let quiet = CompressReport { facts_important: 0, ..report };
    assert!(!compacted_words(Quality::Model, &quiet).contains("facts"));
}

#[test]
fn of_output_the_end_is_shown_and_of_a_difference_the_beginning() {
    let output: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    let shown = plain(&beside("terminal", &output));
    assert!(
        shown.starts_with("  ... 12 lines before\n  line 13\n") && shown.ends_with("line 20\n"),
        "{shown}"
    );
    let shown = plain(&beside("patch", &output.repeat(3)));
    assert!(shown.starts_with("  line 1\n") && shown.ends_with("  ... 20 more lines\n"), "{shown}");
    assert!(!plain(&beside("terminal", "a\x1b[31mred\x07\n")).contains('\x1b'));
}
