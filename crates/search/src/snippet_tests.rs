//! Tests of passages.

use proptest::prelude::*;

use super::*;
use crate::matching::Matcher;
use crate::query::{ParsedQuery, SearchMethod};

fn snippet(question: &str, text: &str) -> Snippet {
    let query = ParsedQuery::new(question);
    let marks = Matcher::new(&query, SearchMethod::Words).places(text);
    Snippet::passage(text, &marks)
}

/// The passage with brackets around marks and dots where it was cut.
fn shown(snippet: &Snippet) -> String {
    let mut out = snippet.text.clone();
    for (from, to) in snippet.marks.iter().rev() {
        out.insert(*to, ']');
        out.insert(*from, '[');
    }
    let dots = |cut: bool| if cut { "..." } else { "" };
    format!("{}{out}{}", dots(snippet.cut_before), dots(snippet.cut_after))
}

#[test]
fn a_short_text_is_shown_whole_on_one_line() {
    assert_eq!(shown(&snippet("parser", "Fix\n  the\tparser.\n")), "Fix the [parser].");
    assert_eq!(shown(&snippet("the parser", "Fix the parser")), "Fix [the] [parser]");
    assert_eq!(shown(&snippet("修复 复解", "请修复解析")), "请[修复解]析");
    assert_eq!(shown(&snippet("\"the parser\"", "Fix the\nparser")), "Fix [the parser]");
}

#[test]
fn a_long_text_is_cut_between_words() {
    let text = format!("{} needle {}", "before ".repeat(40), "after ".repeat(60));
    let found = snippet("needle", &text);
    assert!(found.cut_before && found.cut_after);
    assert!(found.text.starts_with("before ") && found.text.ends_with(" after"), "{}", found.text);
    assert!(found.text.chars().count() <= SNIPPET_CHARACTERS);
    assert!(shown(&found).contains(" [needle] "));
}

#[test]
fn a_word_longer_than_the_passage_is_cut_where_it_must() {
    let text = "x".repeat(1_000);
    let found = snippet(&text, &text);
    assert_eq!(found.text.chars().count(), SNIPPET_CHARACTERS);
    assert_eq!(found.marks, [(0, SNIPPET_CHARACTERS)]);
    assert!(found.cut_after && !found.cut_before);
}

#[test]
fn beginnings_are_one_line_and_say_when_there_is_more() {
    assert_eq!(Snippet::beginning("  one\n\ntwo  "), "one two");
    assert_eq!(Snippet::beginning(""), "");
    let long = Snippet::beginning(&"word ".repeat(100));
    assert!(long.ends_with("word…"), "{long}");
    assert!(long.chars().count() <= BEGINNING_CHARACTERS + 1);
}

proptest! {
    #[test]
    fn marks_are_in_order_and_inside(question in "[a-c 中]{1,6}", text in "(?s)[a-c中 \n\u{0}.]{0,400}") {
        let found = snippet(&question, &text);
        let mut last = 0;
        for (from, to) in &found.marks {
            prop_assert!(last <= *from && from < to && *to <= found.text.len());
            prop_assert!(found.text.get(*from..*to).is_some());
            last = *to;
        }
        prop_assert!(!found.text.contains(['\n', '\t', '\0']));
        prop_assert_eq!(found.text.trim(), &found.text);
    }

    #[test]
    fn what_was_found_is_marked(before in "[a-y \n]{0,300}", after in "[a-y \n]{0,300}") {
        let text = format!("{before} zebra {after}");
        let found = snippet("zebra", &text);
        prop_assert_eq!(found.marks.len(), 1);
        let (from, to) = found.marks[0];
        prop_assert_eq!(&found.text[from..to], "zebra");
    }
}
