//! Cues are found the quick way as they are one by one.

use proptest::prelude::*;

use super::{FINDINGS, begins_word, findings_in};

fn one_by_one(sentence: &str) -> u32 {
    let lower = sentence.to_lowercase();
    FINDINGS.iter().map(|cue| u32::from(begins_word(&lower, cue))).sum()
}

#[test]
fn cues_begin_words_in_every_script() {
    for (sentence, count) in [
        ("The FIX works because it means so.", 4),
        ("unfixed, prefound; 7fixed", 0),
        ("éfixed über-fixed", 1),
        ("原因: fixed 因为", 3),
        ("", 0),
    ] {
        assert_eq!((findings_in(sentence), one_by_one(sentence)), (count, count), "{sentence}");
    }
    assert!(FINDINGS.len() <= 64);
}

proptest! {
    #[test]
    fn quick_search_finds_what_the_slow_one_finds(
        pieces in prop::collection::vec(
            prop_oneof![prop::sample::select(FINDINGS), prop::sample::select(&[" ", "é", "x", "7", "İ", "-", "原", "THE BUG"][..])],
            0..12,
        ),
        noise in ".{0,20}",
    ) {
        let sentence = format!("{}{noise}", pieces.concat());
        prop_assert_eq!(findings_in(&sentence), one_by_one(&sentence));
    }
}

#[test]
fn units_know_what_they_stand_under() {
    let text = "Two differ:\n- a.rs opens twice\n\n## Options\n| Option | Cost | Risk |\n|---|---|---|\n| keep | low | high |\n\n\
                **Pros:**\n1. First:\n   - exact\n2. cheap\n\nLet me begin:\n- with a.rs";
    let found: Vec<(String, String)> =
        super::units(text).into_iter().map(|unit| (unit.lead, unit.text)).collect();
    let wanted = [
        ("Two differ", "a.rs opens twice"),
        ("Options (Option | Cost | Risk)", "keep | low | high"),
        ("Pros, 1. First", "exact"),
        ("Pros", "2. cheap"),
        ("Pros", "with a.rs"),
    ];
    let wanted = wanted.map(|(lead, text)| (lead.to_owned(), text.to_owned()));
    assert_eq!(found, wanted);
}
