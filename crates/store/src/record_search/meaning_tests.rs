//! Tests of combining both lists.

use super::*;

fn candidate(name: &'static str, score: f64) -> PassageCandidate<&'static str> {
    PassageCandidate { place: name, score, holds_all: false, spans: Vec::new(), words: Vec::new() }
}

fn order(
    mut candidates: Vec<PassageCandidate<&'static str>>,
    near: &[usize],
    weight: f64,
) -> Vec<&'static str> {
    let near = near.iter().enumerate().map(|(rank, at)| (*at, rank)).collect();
    let by_words = candidates.iter().take_while(|candidate| candidate.place != "near").count();
    fuse(&mut candidates, by_words, &near, weight);
    candidates.sort_by(|a, b| b.holds_all.cmp(&a.holds_all).then(b.score.total_cmp(&a.score)));
    candidates.into_iter().map(|candidate| candidate.place).collect()
}

#[test]
fn short_turns_keep_their_places_by_words() {
    let candidates = vec![candidate("second", 1.0), candidate("first", 2.0), candidate("near", 0.0)];
    assert_eq!(order(candidates, &[2, 0], 0.0), ["first", "second", "near"]);
    assert_eq!(weight(25.0), 0.0);
    assert_eq!(weight(200.0), 1.0);
}

#[test]
fn short_turns_are_not_led_by_what_only_vectors_proposed() {
    let mut near = candidate("near", 9.0);
    near.holds_all = true;
    let candidates = vec![candidate("first", 2.0), candidate("second", 1.0), near];
    assert_eq!(order(candidates.clone(), &[2], 0.0), ["first", "second", "near"]);
    assert_eq!(order(candidates, &[2], 1.0), ["near", "first", "second"]);
}

#[test]
fn long_turns_are_ranked_by_both() {
    let candidates =
        vec![candidate("words", 2.0), candidate("both", 1.9), candidate("near", 0.0), candidate("last", 0.1)];
    assert_eq!(order(candidates, &[2, 1], 1.0), ["both", "words", "near", "last"]);
}

#[test]
fn words_alone_keep_their_order() {
    let candidates = vec![candidate("b", 1.0), candidate("a", 2.0)];
    assert_eq!(order(candidates, &[], 1.0), ["a", "b"]);
}
