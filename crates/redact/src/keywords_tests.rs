//! Tests that the keyword search finds what a search for each keyword in turn finds.

use proptest::prelude::*;

use super::*;

fn hits(words: &[(&str, KeywordCase)], text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    Keywords::new(words.iter().copied()).for_each_hit(text.as_bytes(), |index, at| found.push((index, at)));
    found.sort_unstable();
    found
}

fn hits_one_by_one(words: &[(&str, KeywordCase)], text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (index, (word, case)) in words.iter().enumerate() {
        for (at, window) in text.as_bytes().windows(word.len()).enumerate() {
            let is_hit = match case {
                KeywordCase::Counts => window == word.as_bytes(),
                KeywordCase::Ignored => window.eq_ignore_ascii_case(word.as_bytes()),
            };
            if is_hit {
                found.push((index, at));
            }
        }
    }
    found
}

const WORDS: &[(&str, KeywordCase)] = &[
    ("key", KeywordCase::Ignored),
    ("api_key", KeywordCase::Ignored),
    ("sk-", KeywordCase::Counts),
    ("sk-ant-", KeywordCase::Counts),
    ("://", KeywordCase::Counts),
    ("密码", KeywordCase::Ignored),
    ("ñandú", KeywordCase::Ignored),
    ("aaaa", KeywordCase::Counts),
    (" -u", KeywordCase::Counts),
    ("$2b$", KeywordCase::Counts),
];

#[test]
fn keywords_are_found_at_both_ends_overlapping_and_in_either_case() {
    assert_eq!(hits(WORDS, "key"), [(0, 0)]);
    assert_eq!(hits(WORDS, "API_KEY"), [(0, 4), (1, 0)]);
    assert_eq!(hits(WORDS, "sk-ant-x SK-ANT-"), [(2, 0), (3, 0)]);
    assert_eq!(hits(WORDS, "aaaaa"), [(7, 0), (7, 1)]);
    assert_eq!(hits(WORDS, ""), []);
    assert_eq!(hits(&[("ab", KeywordCase::Counts)], "abab"), [], "too short to be searched for");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: throughline_testkit::cases(2048), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_search_agrees_with_one_keyword_at_a_time(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::sample::select(WORDS.iter().map(|(word, _)| (*word).to_owned()).collect::<Vec<_>>()),
                prop::sample::select(WORDS.iter().map(|(word, _)| word.to_uppercase()).collect::<Vec<_>>()),
                "[a-k_:/ $-]{0,4}",
                "\\PC{0,3}",
            ],
            0..20,
        )
    ) {
        let text = pieces.concat();
        prop_assert_eq!(hits(WORDS, &text), hits_one_by_one(WORDS, &text));
    }
}
