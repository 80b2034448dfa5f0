//! Tests of matching texts with questions.

use proptest::prelude::*;

use super::*;
use crate::fingerprint::FingerprintSet;
use crate::query::IndexTerm;

fn fit(question: &str, way: SearchMethod, text: &str) -> Option<Fit> {
    Matcher::new(&ParsedQuery::new(question), way).fit(text)
}

fn finds(question: &str, text: &str) -> bool {
    fit(question, SearchMethod::Words, text).is_some()
}

fn marked<'t>(question: &str, way: SearchMethod, text: &'t str) -> Vec<&'t str> {
    let query = ParsedQuery::new(question);
    Matcher::new(&query, way).places(text).iter().map(|mark| &text[mark.start..mark.end]).collect()
}

#[test]
fn all_words_must_be_there_in_any_order() {
    assert!(finds("parser fix", "Fix the parser."));
    assert!(!finds("parser fix lexer", "Fix the parser."));
    assert!(!finds("pars", "Fix the parser."));
    assert!(finds("pars*", "Fix the parser."));
}

#[test]
fn characters_that_fold_to_several_are_marked_whole() {
    assert_eq!(marked("s", SearchMethod::Substring, "Straße"), ["S", "ß"]);
    assert_eq!(marked("ras", SearchMethod::Substring, "Straße"), ["raß"]);
    assert_eq!(marked("sse", SearchMethod::Substring, "Straße"), ["ße"]);
}

#[test]
fn phrases_must_be_there_in_their_order() {
    assert!(finds(r#""connection refused""#, "error: Connection\nrefused (os error 111)"));
    assert!(!finds(r#""refused connection""#, "Connection refused"));
    assert!(!finds(r#""connection refused""#, "connection was refused"));
}

#[test]
fn identifiers_are_found_however_they_are_written() {
    for question in ["maxRetryCount", "max_retry_count", "max-retry-count", "MaxRetryCount", "maxretrycount"]
    {
        for text in ["let maxRetryCount = 3;", "MAX_RETRY_COUNT=3", "--max-retry-count 3", "maxretrycount"] {
            assert!(finds(question, text), "{question} in {text}");
        }
    }
    assert!(finds("retry", "let maxRetryCount = 3;"));
    assert!(finds("retryCount", "let max_retry_count = 3;"));
    assert!(!finds("retryMax", "let max_retry_count = 3;"));
    assert!(finds("src/main.rs", "error in /app/src/main.rs:12"));
    assert!(!finds("src/main.rs", "src/lib.rs and main.rs"));
}

#[test]
fn scripts_without_spaces_are_found_by_any_run_of_characters() {
    let text = "请修复解析错误，不要改动公开接口。";
    for question in ["修复", "解析错误", "修", "接口", "错误 接口"] {
        assert!(finds(question, text), "{question}");
    }
    assert!(!finds("错误不要", text));
    assert!(!finds("错修", text));
    assert!(finds("함수", "이 함수가 왜"));
    assert!(finds("ช่วย", "ช่วยแก้"));
    assert!(finds("テスト", "にテストを追加"));
}

#[test]
fn closer_and_more_often_fits_better() {
    let near = fit("disk full", SearchMethod::Words, "the disk is full").unwrap();
    let far =
        fit("disk full", SearchMethod::Words, "the disk that we bought a long time ago is now full").unwrap();
    let asked = fit("disk full", SearchMethod::Words, "is the disk full today").unwrap();
    assert!(near.closeness > far.closeness && near.density > far.density);
    assert!(asked.as_asked && !near.as_asked && asked.closeness > near.closeness);
    let once = fit("disk", SearchMethod::Words, "disk one two").unwrap();
    let twice = fit("disk", SearchMethod::Words, "disk disk two").unwrap();
    assert!(twice.frequency > once.frequency && twice.frequency < 1.0);
}

#[test]
fn one_thing_found_very_often_does_not_hide_another() {
    let text = format!("{} needle", "hay ".repeat(20_000));
    assert!(finds("hay needle", &text));
}

#[test]
fn places_begin_where_all_stand_together() {
    let text = "alpha one two three beta, then alpha beta at last";
    assert_eq!(marked("alpha beta", SearchMethod::Words, text), ["alpha", "beta", "alpha", "beta"]);
    let query = ParsedQuery::new("alpha beta");
    assert_eq!(Matcher::new(&query, SearchMethod::Words).places(text)[0].start, 31);
    assert_eq!(marked("maxRetry", SearchMethod::Words, "a max_retry b"), ["max_retry"]);
    assert_eq!(marked("gamma", SearchMethod::Words, text), Vec::<&str>::new());
}

#[test]
fn substrings_ignore_case_accents_and_breaks() {
    for (question, text, found) in [
        ("onnecti", "Connection", "onnecti"),
        ("a  B", "x A\n\tb y", "A\n\tb"),
        ("::new(", "Foo::new()", "::new("),
        ("prüf", "GEPRUFT", "PRUF"),
        ("👩\u{200d}💻", "hi 👩\u{200d}💻!", "👩\u{200d}💻"),
        ("\0", "", ""),
    ] {
        assert_eq!(fit(question, SearchMethod::Substring, text).is_some(), !found.is_empty(), "{question:?}");
        if !found.is_empty() {
            assert_eq!(marked(question, SearchMethod::Substring, text), [found]);
        }
    }
}

#[test]
fn a_substring_that_stands_alone_fits_better() {
    let text = "unfitting, fit, fitting";
    assert!(fit("fit", SearchMethod::Substring, text).unwrap().as_asked);
    assert!(!fit("fit", SearchMethod::Substring, "unfitting").unwrap().as_asked);
    let query = ParsedQuery::new("fit");
    assert_eq!(Matcher::new(&query, SearchMethod::Substring).places(text)[0].start, 11);
}

/// Whether the fingerprints of a text propose it.
fn proposes(query: &ParsedQuery, text: &str) -> bool {
    let mut set = FingerprintSet::default();
    set.add_text(text);
    let fingerprints = set.take();
    let has_one =
        |any: Vec<u32>| any.iter().any(|fingerprint| fingerprints.binary_search(fingerprint).is_ok());
    query
        .look_ups()
        .iter()
        .any(|look_up| look_up.iter().flat_map(|one_of| IndexTerm::fingerprints_of_any(one_of)).all(has_one))
}

/// Texts in which letters, digits, marks, hyphens and scripts meet in every way.
fn tangled() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-cA-C]{1,3}",
        "[0-2]{1,2}",
        "[_.\\-]{1,2}",
        "[ \n/:,]",
        "[中文字]{1,3}",
        "[함수]{1,2}",
        "[éÉßΣς]",
        "[🎉→]",
        "[\u{301}\u{200d}]",
    ];
    proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(throughline_testkit::cases(2_000)))]

    /// The index may propose too much, never too little: what matches is always looked at.
    #[test]
    fn what_matches_is_proposed(question in tangled(), text in tangled()) {
        let query = ParsedQuery::new(&question);
        if !query.wanted.is_empty() && Matcher::new(&query, SearchMethod::Words).fit(&text).is_some() {
            prop_assert!(proposes(&query, &text));
        }
    }

    #[test]
    fn every_word_finds_its_text(text in tangled()) {
        for word in text.split_whitespace() {
            let query = ParsedQuery::new(&word.replace('"', " "));
            if !query.wanted.is_empty() {
                prop_assert!(Matcher::new(&query, SearchMethod::Words).fit(&text).is_some(), "{}", word);
                prop_assert!(proposes(&query, &text), "{}", word);
            }
        }
    }

    #[test]
    fn marks_are_pieces_of_the_text(question in "(?s).{0,20}", text in "(?s).{0,60}") {
        let query = ParsedQuery::new(&question);
        for way in [SearchMethod::Words, SearchMethod::Substring] {
            if query.substring.is_empty() {
                continue;
            }
            let mut matcher = Matcher::new(&query, way);
            let fits = (way == SearchMethod::Substring || !query.wanted.is_empty()) && matcher.fit(&text).is_some();
            for mark in if fits { matcher.places(&text) } else { Vec::new() } {
                prop_assert!(text.get(mark.start..mark.end).is_some());
            }
        }
    }
}
