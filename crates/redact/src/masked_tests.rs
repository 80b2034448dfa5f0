//! Tests of masking in rounds: findings in the masked text are returned with offsets of the original.

use super::*;

fn finding(range: Range<usize>, kind: &'static str) -> Finding {
    Finding { range, kind, rule: kind }
}

/// `0123456789` with `23` and `67` masked: `01[redacted:a]45[redacted:b]89`.
fn masked_twice() -> Masked {
    Masked::new("0123456789", vec![finding(2..4, "a"), finding(6..8, "b")]).unwrap()
}

#[test]
fn nothing_found_is_nothing_masked() {
    assert!(Masked::new("text", Vec::new()).is_none());
}

#[test]
fn masks_replace_what_was_found() {
    assert_eq!(masked_twice().text, "01[redacted:a]45[redacted:b]89");
}

#[test]
fn offsets_lead_back_to_the_original() {
    let masked = masked_twice();
    let original = |part: &str| {
        let start = masked.text.find(part).unwrap();
        masked.original_range(&(start..start + part.len()))
    };
    assert_eq!(original("01"), 0..2);
    assert_eq!(original("45"), 4..6);
    assert_eq!(original("89"), 8..10);
    assert_eq!(original("[redacted:a]"), 2..4);
    assert_eq!(original("1[redacted:a]4"), 1..5);
    assert_eq!(original("1[redac"), 1..4, "a mask that is cut counts whole");
    assert_eq!(original("acted:b]8"), 6..9, "a mask that is cut counts whole");
    assert_eq!(original("01[redacted:a]45[redacted:b]89"), 0..10);
}

#[test]
fn a_later_finding_stands_apart_or_swallows_an_earlier_one() {
    let start = "01[redacted:a]".len();
    let apart = masked_twice().with("0123456789", vec![finding(start..start + 2, "c")]);
    assert_eq!(apart.text, "01[redacted:a][redacted:c][redacted:b]89");
    let around = masked_twice().with("0123456789", vec![finding(0..start + 2, "c")]);
    assert_eq!(around.text, "[redacted:c][redacted:b]89");
    assert_eq!(around.findings, [finding(0..6, "c"), finding(6..8, "b")]);
}
