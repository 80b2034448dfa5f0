//! Tests of fingerprints and of the two forms of blocks.

use proptest::prelude::*;

use super::*;

fn fingerprints_of(text: &str) -> Vec<u32> {
    let mut set = FingerprintSet::default();
    set.add_text(text);
    set.take()
}

fn triples_of(text: &str) -> Vec<u32> {
    let mut folded = String::new();
    fold_text(text, &mut folded);
    let mut triples = Vec::new();
    each_triple(folded.trim(), |fingerprint| triples.push(fingerprint));
    triples
}

fn has_all(text: &str, wanted: &[u32]) -> bool {
    let fingerprints = fingerprints_of(text);
    wanted.iter().all(|fingerprint| fingerprints.binary_search(fingerprint).is_ok())
}

fn looked_up(term: &str, as_prefix: bool) -> Vec<u32> {
    let term = term.to_owned();
    lookup_fingerprints(&if as_prefix { IndexTerm::Beginning(term) } else { IndexTerm::Whole(term) })
}

#[test]
fn three_characters_of_any_script_make_a_triple() {
    assert!(triples_of("ab").is_empty());
    assert_eq!(triples_of("abc").len(), 1);
    assert_eq!(triples_of("数据库连接").len(), 3);
    assert_ne!(triples_of("abc"), triples_of("acb"));
    assert_eq!(fingerprints_of("  a b  "), fingerprints_of("a b"), "white space around it does not count");
    assert_eq!(
        fingerprints_of("the end the end the end"),
        fingerprints_of("the end the"),
        "each is there once"
    );
}

#[test]
fn words_are_looked_up_by_what_every_text_has_that_holds_them() {
    let text = "the maxRetryCount of max_retries, 数据库";
    for (term, as_prefix) in [
        ("the", false),
        ("retry", false),
        ("maxretrycount", false),
        ("maxretries", false),
        ("ma", true),
        ("maxr", true),
        ("maxretri", true),
        ("retr", true),
        ("数据", false),
        ("库", false),
        ("库", true),
        ("据", true),
    ] {
        let fingerprints = looked_up(term, as_prefix);
        assert!(!fingerprints.is_empty() && has_all(text, &fingerprints), "{term} {as_prefix}");
    }
    for (term, as_prefix) in
        [("end", false), ("retri", false), ("据", false), ("en", true), ("retrie", false)]
    {
        assert!(!has_all(text, &looked_up(term, as_prefix)), "{term} {as_prefix}");
    }
    assert!(looked_up("m", true).is_empty(), "one letter begins too much to be known by it");
}

#[test]
fn long_substrings_are_looked_up_by_a_few_rare_triples() {
    let triples = FingerprintSet::rarest_triples("the next of these is the quetzalcoatl");
    assert_eq!(triples.len(), 8);
    assert!(triples_of("quetzalcoatl").iter().filter(|triple| triples.contains(triple)).count() >= 5);
    assert!(FingerprintSet::rarest_triples("ab").is_empty());
}

#[test]
fn a_set_can_be_filled_again() {
    let mut set = FingerprintSet::default();
    set.add_text("something");
    assert!(set.take().is_sorted());
    assert!(set.take().is_empty());
    [7, FINGERPRINTS - 1, 0, 7].into_iter().for_each(|fingerprint| set.add(fingerprint));
    assert_eq!(set.take(), [0, 7, FINGERPRINTS - 1]);
}

#[test]
fn words_side_by_side_are_known_as_pairs() {
    let has_pair = |text: &str, first: &str, second: &str| {
        has_all(text, &lookup_fingerprints(&IndexTerm::Pair(first.to_owned(), second.to_owned())))
    };
    let text = "see src/mainLoop.rs: it 数 is";
    for (first, second) in [("see", "src"), ("src", "main"), ("main", "loop"), ("loop", "rs"), ("rs", "it")] {
        assert!(has_pair(text, first, second), "{first} {second}");
    }
    for (first, second) in [("src", "see"), ("see", "main"), ("src", "mainloop"), ("it", "is"), ("it", "数")]
    {
        assert!(!has_pair(text, first, second), "{first} {second}");
    }
}

#[test]
fn one_of_several_terms_is_looked_up_by_a_fingerprint_of_each() {
    let whole = |term: &str| IndexTerm::Whole(term.to_owned());
    let [fingerprints] = IndexTerm::fingerprints_of_any(&[whole("one"), whole("two")]).try_into().unwrap();
    assert_eq!(fingerprints, [looked_up("one", false), looked_up("two", false)].concat());
    let anything = IndexTerm::Beginning("m".to_owned());
    assert!(IndexTerm::fingerprints_of_any(&[whole("one"), anything]).is_empty(), "then anything will do");
    assert_eq!(
        IndexTerm::fingerprints_of_any(&[IndexTerm::Beginning("retry".to_owned())]).len(),
        4,
        "each of them is needed"
    );
}

#[test]
fn the_hash_is_part_of_the_format() {
    insta::assert_snapshot!(format!("{:?}", fingerprints_of("the 数据库 of max_retry")));
}

proptest! {
    #[test]
    fn a_text_is_known_by_every_substring_of_it(text in "[a-cA-C \\n\u{e9}\u{df}数据库]{0,40}", from in 0_usize..40, count in 0_usize..40) {
        let substring: String = text.chars().skip(from).take(count).collect();
        prop_assert!(has_all(&text, &triples_of(&substring)));
    }

    #[test]
    fn fingerprints_are_taken_in_order_and_once(mut fingerprints in prop::collection::vec(0..FINGERPRINTS, 0..2_000)) {
        let mut set = FingerprintSet::default();
        fingerprints.iter().chain(&fingerprints).for_each(|fingerprint| set.add(*fingerprint));
        fingerprints.sort_unstable();
        fingerprints.dedup();
        prop_assert_eq!(set.take(), fingerprints);
    }
}
