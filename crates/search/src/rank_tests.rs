//! Tests of the order of hits.

use super::*;

fn candidate(key: u64, fit: Fit, role: Role, at_ms: i64) -> SearchCandidate<u64> {
    let speaker = HitSource { role, machine_written: false, in_artifact: false };
    let mut content = [0; 32];
    content[0] = u8::try_from(key).unwrap();
    SearchCandidate { key, content, fit, speaker, at_ms }
}

fn keys(candidates: &[SearchCandidate<u64>]) -> Vec<u64> {
    SearchCandidate::best(candidates, 10).iter().map(|hit| hit.key).collect()
}

const PLAIN: Fit = Fit { frequency: 0.5, closeness: 0.2, as_asked: false, density: 0.01 };

#[test]
fn what_answers_better_comes_first() {
    let phrase = Fit { as_asked: true, closeness: 1.0, ..PLAIN };
    let often = Fit { frequency: 0.9, ..PLAIN };
    let dense = Fit { density: 0.5, ..PLAIN };
    let all = [
        candidate(1, phrase, Role::Tool, 0),
        candidate(2, dense, Role::Tool, 0),
        candidate(3, often, Role::Tool, 0),
        candidate(4, PLAIN, Role::Tool, 0),
    ];
    assert_eq!(keys(&all), [1, 2, 3, 4]);
}

#[test]
fn people_before_tools_and_new_before_old() {
    let day = 86_400_000;
    let all = [
        candidate(1, PLAIN, Role::Tool, 0),
        candidate(2, PLAIN, Role::User, 0),
        candidate(3, PLAIN, Role::Tool, 90 * day),
        candidate(4, PLAIN, Role::User, 90 * day),
    ];
    assert_eq!(keys(&all[..2]), [2, 1]);
    assert_eq!(keys(&all[2..]), [4, 3]);
    assert_eq!(keys(&[all[0], all[2]]), [3, 1]);
    assert_eq!(keys(&[all[1], all[3]]), [4, 2]);
    let mut reminder = candidate(5, PLAIN, Role::User, 0);
    reminder.speaker.machine_written = true;
    assert_eq!(keys(&[reminder, candidate(1, PLAIN, Role::Tool, 0)]), [1, 5]);
}

#[test]
fn of_equals_the_newest_comes_first_and_the_same_content_once() {
    let mut all: Vec<_> = (1..=4).map(|key| candidate(key, PLAIN, Role::User, 0)).collect();
    assert_eq!(keys(&all), [4, 3, 2, 1]);
    all[0].content = all[2].content;
    all[1].content = all[2].content;
    let hits: Vec<_> = SearchCandidate::best(&all, 10).iter().map(|hit| (hit.key, hit.repeats)).collect();
    assert_eq!(hits, [(4, 0), (3, 2)]);
    assert_eq!(SearchCandidate::best(&all, 1).len(), 1);
    assert!(SearchCandidate::<u64>::best(&[], 5).is_empty());
}

#[test]
fn times_from_another_world_do_no_harm() {
    let all = [candidate(1, PLAIN, Role::User, i64::MIN), candidate(2, PLAIN, Role::User, i64::MAX)];
    let hits = SearchCandidate::best(&all, 10);
    assert_eq!(hits[0].key, 2);
    assert!(hits.iter().all(|hit| hit.score.is_finite()));
}
