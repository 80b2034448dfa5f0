//! Tests of vectors.

use proptest::prelude::*;

use super::*;

fn similarity(one: &[f32], other: &[f32]) -> f64 {
    let stored = StoredVector::new(other).unwrap();
    QuestionVector::new(one).unwrap().similarity(stored.scale, &stored.entries)
}

#[test]
fn vectors_without_a_direction_are_not_stored() {
    for vector in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0]] {
        assert_eq!(StoredVector::new(vector), None);
    }
}

#[test]
fn passages_count_as_near_where_they_stand_out() {
    let hit = |message, similarity| NearHit { message, part: 0, similarity };
    let mut hits: Vec<NearHit> = (0..100).map(|at| hit(at, 0.70 + 0.001 * (at % 7) as f64)).collect();
    hits.push(hit(500, 0.9));
    let nearest = Nearest::of(hits, false, 10);
    assert_eq!(nearest.hits.iter().map(|hit| hit.message).collect::<Vec<_>>(), [500]);
    assert_eq!(nearest.compared, 101);
    let few = Nearest::of(vec![hit(1, 0.1), hit(2, 0.2)], false, 1);
    assert_eq!(few.hits.iter().map(|hit| hit.message).collect::<Vec<_>>(), [2]);
}

proptest! {
    #[test]
    fn a_byte_for_each_entry_keeps_the_similarity(
        one in prop::collection::vec(-1.0_f32..1.0, 64),
        other in prop::collection::vec(-1.0_f32..1.0, 64),
    ) {
        let length = |vector: &[f32]| vector.iter().map(|entry| f64::from(*entry).powi(2)).sum::<f64>().sqrt();
        prop_assume!(length(&one) > 0.1 && length(&other) > 0.1);
        let exact: f64 = one.iter().zip(&other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
            / length(&one) / length(&other);
        prop_assert!((similarity(&one, &other) - exact).abs() < 0.02);
        prop_assert!((similarity(&one, &one) - 1.0).abs() < 0.02);
    }
}
