use std::collections::HashSet;

use super::{NamedText, RankedName, rank_names};

fn text<'t>(text: &'t str, names: &[&'t str]) -> NamedText<'t> {
    NamedText { text, names: names.to_vec() }
}

fn ranked(question: &str, texts: &[NamedText<'static>], current: &[&str]) -> Vec<&'static str> {
    let current: HashSet<&str> = current.iter().copied().collect();
    rank_names(question, texts, &current).into_iter().map(|name| name.name).collect()
}

#[test]
fn name_in_a_text_with_words_of_the_question_is_before_others() {
    let texts = [
        text("the build writes out_dir", &["out_dir"]),
        text("payments are refunded by reverse_all", &["reverse_all"]),
    ];
    assert_eq!(ranked("how was the payment refunded?", &texts, &[]), ["reverse_all", "out_dir"]);
    assert_eq!(ranked("what did the build write?", &texts, &[]), ["out_dir", "reverse_all"]);
}

#[test]
fn names_of_a_file_that_is_being_worked_on_are_before_others() {
    let texts = [text("a", &["src/a.rs", "first_fn"]), text("b", &["src/b.rs", "other_fn"])];
    assert_eq!(ranked("go on", &texts, &["src/b.rs"]), ["other_fn", "src/b.rs", "first_fn", "src/a.rs"]);
}

#[test]
fn one_name_among_many_counts_less_than_one_alone() {
    let texts = [text("x", &["n1_a", "n1_b", "n1_c"]), text("y", &["alone_fn"])];
    assert_eq!(ranked("go on", &texts, &[]).first(), Some(&"alone_fn"));
}

#[test]
fn name_in_two_texts_is_before_one_in_a_single_text_and_names_the_last() {
    let texts = [
        text("x", &["twice_fn", "once_a"]),
        text("y", &["twice_fn", "once_b"]),
        text("z", &["once_c", "once_d"]),
    ];
    let ranked = rank_names("go on", &texts, &HashSet::new());
    assert_eq!(ranked.first(), Some(&RankedName { name: "twice_fn", text: 1 }));
    assert_eq!(ranked.len(), 5);
}

#[test]
fn nothing_is_ranked_where_there_is_nothing() {
    assert!(rank_names("", &[], &HashSet::new()).is_empty());
    assert_eq!(ranked("", &[text("", &["only_fn"])], &[]), ["only_fn"]);
}
