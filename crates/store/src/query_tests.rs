//! Tests of reading questions.

use proptest::prelude::*;

use super::*;

/// Wanted things as text: atoms joined by `+`, the whole after `=`, a star for a prefix.
fn read(text: &str) -> String {
    let words = ParsedQuery::new(text).wanted;
    let show = |wanted: &Wanted| {
        let atoms: Vec<&str> = wanted.atoms.iter().map(|(atom, _)| atom.as_str()).collect();
        let whole = wanted.whole.as_ref().filter(|_| atoms.len() > 1);
        let whole = whole.map(|whole| format!("={whole}")).unwrap_or_default();
        format!("{}{whole}{}", atoms.join("+"), if wanted.as_prefix { "*" } else { "" })
    };
    words.iter().map(show).collect::<Vec<_>>().join(" ")
}

/// Sets of index terms: terms joined by `&`, sets by ` | `.
fn looked_up(text: &str) -> String {
    let show = |term: &IndexTerm| format!("{}{}", term.term, if term.as_prefix { "*" } else { "" });
    let sets = ParsedQuery::new(text).index_terms();
    sets.iter().map(|set| set.iter().map(show).collect::<Vec<_>>().join("&")).collect::<Vec<_>>().join(" | ")
}

#[test]
fn words_stand_between_white_space_and_count_once() {
    assert_eq!(read("Fix the  FIX\tparser"), "fix the parser");
    assert_eq!(read("don't"), "don+t");
    assert_eq!(read(""), "");
    assert_eq!(read(" ?! :: ** "), "");
}

#[test]
fn identifiers_and_paths_hold_together() {
    assert_eq!(read("maxRetry"), "max+retry=maxretry");
    assert_eq!(read("src/main.rs"), "src+main+rs");
    assert_eq!(read("main.rs:12"), "main+rs+12");
    assert_eq!(read("foo_bar"), "foo+bar=foobar");
}

#[test]
fn quotes_hold_words_together_even_when_not_closed() {
    assert_eq!(read(r#"the "connection was refused" today"#), "the connection+was+refused today");
    assert_eq!(read(r#""one two"#), "one+two");
    assert_eq!(read(r#"one " two"#), "one two");
    assert_eq!(read(r#"""""#), "");
}

#[test]
fn a_star_asks_for_a_beginning() {
    assert_eq!(read("confi* fooBar*"), "confi* foo+bar=foobar*");
    assert_eq!(read("*.rs src/* a*"), "rs src a");
    assert_eq!(looked_up("confi*"), "confi*");
    assert_eq!(looked_up("fooBar*"), "foobar* | bar*&foo");
}

#[test]
fn operators_of_other_searches_are_words() {
    assert_eq!(read("a AND b OR NOT c NEAR(d, 3)"), "a and b or not c near+d 3");
    assert_eq!(read("title:x ^y {z} -w +v (u)"), "title+x y z w v u");
}

#[test]
fn terms_to_look_up() {
    assert_eq!(looked_up("fix parser"), "fix&parser");
    assert_eq!(looked_up("max_retry"), "maxretry | max&retry");
    assert_eq!(looked_up("src/main.rs"), "main&mainrs&rs&src | main&rs&src");
    assert_eq!(looked_up("修复解析 数"), "修复&复解&数*&解析");
    assert_eq!(looked_up("语x言"), "x&言*&语*");
    assert_eq!(looked_up("数，据"), "据*&数*");
    assert_eq!(looked_up("🎉"), "🎉");
}

#[test]
fn ways_to_look() {
    let ways = |text: &str, mode| ParsedQuery::new(text).ways(mode);
    assert_eq!(ways("word", SearchMode::Words), [Way::Words, Way::Substring]);
    assert_eq!(ways("::", SearchMode::Words), [Way::Substring]);
    assert_eq!(ways("word", SearchMode::Substring), [Way::Substring]);
    assert_eq!(ways(" \n", SearchMode::Words), []);
    assert_eq!(ways("", SearchMode::Substring), []);
}

#[test]
fn long_questions_are_bounded() {
    let words: String = (0..5_000).map(|n| format!("word{n} ")).collect();
    let query = ParsedQuery::new(&words);
    assert_eq!(query.wanted.len(), 48);
    assert!(query.substring.len() <= 16 * 1024);
    let phrase = format!("\"{words}");
    assert!(ParsedQuery::new(&phrase).wanted[0].atoms.len() <= 256);
    let one = ParsedQuery::new(&"x".repeat(10_000));
    assert_eq!(one.wanted.len(), 1);
}

proptest! {
    #[test]
    fn any_text_is_a_question(text in "(?s).{0,200}") {
        let query = ParsedQuery::new(&text);
        for set in query.index_terms() {
            for term in set {
                prop_assert!(!term.term.is_empty());
                prop_assert!(term.term.chars().all(|c| !c.is_ascii() || c.is_ascii_alphanumeric()));
            }
        }
        prop_assert!(query.wanted.iter().all(|wanted| !wanted.atoms.is_empty()));
    }
}
