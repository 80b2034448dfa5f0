//! Tests of weighing and choosing passages.

use throughline_transcript::Role;

use super::*;

fn candidate(place: u32, score: f64, text: &str) -> PassageCandidate<u32> {
    PassageCandidate {
        place,
        score,
        holds_all: false,
        spans: vec![(i64::from(place), 0..text.len())],
        words: TextWords(text).set(),
    }
}

fn order(candidates: Vec<PassageCandidate<u32>>, limit: usize) -> Vec<u32> {
    PassageCandidate::choose(candidates, limit).into_iter().map(|chosen| chosen.place).collect()
}

#[test]
fn tally_counts_forms_and_marks_them() {
    let question = Question::new("why did we drop the retry queue?");
    let text = "We dropped it: the queues of retries were dropping messages.";
    let tally = question.tally(text);
    assert_eq!((tally.matched(), tally.length), (3, 10));
    let marked: Vec<&str> = tally.marks.iter().map(|(start, end)| &text[*start..*end]).collect();
    assert_eq!(marked, ["dropped", "queues", "retries", "dropping"]);
}

#[test]
fn tally_finds_pairs_of_characters() {
    let question = Question::new("数据库连接");
    assert_eq!(question.tally("打开数据库以后").matched(), 2);
}

#[test]
fn windows_hold_their_own_words() {
    let question = Question::new("needle");
    let text = format!("{}needle {}", "hay ".repeat(100), "hay ".repeat(30));
    let tallies = question.tally_windows(&text);
    assert_eq!((tallies.windows, tallies.held.len(), tallies.length), (2, 1, 131));
    assert!(text[tallies.held[0].range.clone()].contains("needle"));
}

#[test]
fn rare_words_weigh_more() {
    let commonness = Commonness { runs: 100.0, holding: vec![1.0, 60.0], mean_length: 50.0 };
    let weights = commonness.weights();
    let score = |counts: [u16; 2]| {
        commonness.score(&weights, &Tally { counts: counts.to_vec(), length: 50, marks: Vec::new() })
    };
    assert!(score([1, 0]) > score([0, 3]));
    assert!(score([2, 0]) > score([1, 0]));
}

#[test]
fn words_held_by_everything_never_weigh_less_than_nothing() {
    let commonness = Commonness { runs: 2.0, holding: vec![5.0], mean_length: 1.0 };
    assert!(commonness.weights()[0] >= 0.0);
}

#[test]
fn passages_with_all_words_come_first() {
    let all = PassageCandidate { holds_all: true, ..candidate(1, 1.0, "alpha beta") };
    assert_eq!(order(vec![candidate(2, 9.0, "gamma"), all], 5), [1, 2]);
}

#[test]
fn passages_that_say_the_same_come_last() {
    let candidates = vec![
        candidate(1, 3.0, "one two three four"),
        candidate(2, 2.0, "One, two: three four!"),
        candidate(3, 1.0, "five"),
    ];
    assert_eq!(order(candidates.clone(), 5), [1, 3, 2]);
    assert_eq!(order(candidates, 2), [1, 3]);
}

#[test]
fn overlapping_passages_are_shown_once() {
    let mut inner = candidate(2, 2.0, "other words");
    inner.spans = vec![(1, 5..20)];
    let mut outer = candidate(1, 3.0, "some words");
    outer.spans = vec![(1, 0..20)];
    assert_eq!(order(vec![inner, outer], 5), [1]);
}

#[test]
fn dialogue_and_coverage_raise_a_passage() {
    let source = |role| HitSource { role, machine_written: false, in_artifact: false };
    let value = |role, matched| source(role).boost(0, 0, matched, 4);
    assert!(value(Role::User, 1) > value(Role::Tool, 1));
    assert!(value(Role::User, 4) > value(Role::User, 1));
}
