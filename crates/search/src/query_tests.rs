//! Tests of reading questions.

use proptest::prelude::*;

use super::*;

/// QueryTerm things as text: atoms joined by `+`, the whole after `=`, a star for a prefix.
fn read(text: &str) -> String {
    let words = ParsedQuery::new(text).wanted;
    let show = |wanted: &QueryTerm| {
        let atoms: Vec<&str> = wanted.atoms.iter().map(|(atom, _)| atom.as_str()).collect();
        let whole = wanted.whole.as_ref().filter(|_| atoms.len() > 1);
        let whole = whole.map(|whole| format!("={whole}")).unwrap_or_default();
        format!("{}{whole}{}", atoms.join("+"), if wanted.as_prefix { "*" } else { "" })
    };
    words.iter().map(show).collect::<Vec<_>>().join(" ")
}

/// What is looked up: alternatives joined by `/`, what is needed together by `&`, one look-up and the next by ` | `.
fn looked_up(text: &str) -> String {
    let show = |term: &IndexTerm| match term {
        IndexTerm::Whole(term) => term.clone(),
        IndexTerm::Beginning(stem) => format!("{stem}*"),
        IndexTerm::Pair(first, second) => format!("{first}+{second}"),
    };
    let joined = |all: Vec<String>, by: &str| all.join(by);
    let one_of = |terms: &Vec<IndexTerm>| joined(terms.iter().map(show).collect(), "/");
    let look_ups = ParsedQuery::new(text).look_ups();
    joined(look_ups.iter().map(|all| joined(all.iter().map(one_of).collect(), "&")).collect(), " | ")
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
    assert_eq!(looked_up("fooBar*"), "foobar* | foo&bar*");
    assert_eq!(looked_up("foo/barBaz*"), "foo+bar&barbaz*&bar&foo&baz* | foo+bar&bar&foo&baz*");
}

#[test]
fn operators_of_other_searches_are_words() {
    assert_eq!(read("a AND b OR NOT c NEAR(d, 3)"), "a and b or not c near+d 3");
    assert_eq!(read("title:x ^y {z} -w +v (u)"), "title+x y z w v u");
}

#[test]
fn terms_to_look_up() {
    assert_eq!(looked_up("fix parser"), "parser&fix");
    assert_eq!(looked_up("max_retry"), "maxretry | max+retry&retry&max");
    assert_eq!(
        looked_up("src/main.rs"),
        "src+main&main+rs&mainrs&main&src&rs | src+main&main+rs&main&src&rs"
    );
    assert_eq!(looked_up("\"the end of\""), "the+end&end+of&end&the&of");
    assert_eq!(looked_up("修复解析 数"), "修复&复解&解析&数*");
    assert_eq!(looked_up("语x言"), "言*&语*&x");
    assert_eq!(looked_up("数，据"), "据*&数*");
    assert_eq!(looked_up("🎉"), "🎉");
}

#[test]
fn of_several_words_each_may_be_written_in_its_own_way() {
    let looked_up = looked_up("foo_bar max");
    assert_eq!(looked_up, "foobar&max | foo+bar/foobar&bar/foobar&foo/foobar&max");
}

#[test]
fn ways_to_look() {
    let ways = |text: &str, mode| ParsedQuery::new(text).ways(mode);
    assert_eq!(ways("word", SearchMode::Words), [SearchMethod::Words, SearchMethod::Substring]);
    assert_eq!(ways("::", SearchMode::Words), [SearchMethod::Substring]);
    assert_eq!(ways("word", SearchMode::Substring), [SearchMethod::Substring]);
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
        for term in query.look_ups().into_iter().flatten().flatten() {
            let (term, next) = match term {
                IndexTerm::Whole(term) | IndexTerm::Beginning(term) => (term, None),
                IndexTerm::Pair(first, second) => (first, Some(second)),
            };
            for term in next.iter().chain([&term]) {
                prop_assert!(!term.is_empty());
                prop_assert!(term.chars().all(|c| !c.is_ascii() || c.is_ascii_alphanumeric()));
            }
        }
        prop_assert!(query.wanted.iter().all(|wanted| !wanted.atoms.is_empty()));
    }
}
