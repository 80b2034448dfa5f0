//! Tests of what a calibrator learns, forgets and ignores.

use super::*;

/// Deterministic scatter between -1 and 1.
fn scatter(step: u64) -> f64 {
    let hash = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    hash as f64 / f64::from(1u32 << 23) - 1.0
}

fn learnt(factor: f64, steps: u64) -> Calibrator {
    let mut calibrator = Calibrator::new();
    for step in 0..steps {
        let measured = (2_000.0 * factor * (1.0 + 0.1 * scatter(step))) as u64;
        assert_eq!(calibrator.observe(2_000, measured), Observation::Learnt);
    }
    calibrator
}

#[test]
fn starts_at_the_prior() {
    let fresh = Calibrator::new();
    assert_eq!(fresh.factor(), 1.0);
    assert_eq!(fresh.correct(1_234), 1_234);
    assert_eq!(fresh.correct(0), 0);
}

#[test]
fn ten_calls_find_a_constant_factor_within_a_few_percent() {
    for factor in [0.7, 0.9, 1.0, 1.3, 1.6] {
        let calibrator = learnt(factor, 10);
        let off = (calibrator.factor() / factor - 1.0).abs();
        assert!(off < 0.1, "{factor}: {}", calibrator.factor());
        let settled = learnt(factor, 60);
        assert!((settled.factor() / factor - 1.0).abs() < 0.03, "{factor}: {}", settled.factor());
    }
}

#[test]
fn one_outlier_moves_a_settled_factor_little() {
    let mut calibrator = learnt(1.1, 40);
    let before = calibrator.factor();
    calibrator.observe(3_000, 300_000);
    assert!((calibrator.factor() / before - 1.0).abs() < 0.02, "{before} {}", calibrator.factor());
}

#[test]
fn a_lasting_change_is_followed() {
    let mut calibrator = learnt(1.0, 40);
    for _ in 0..60 {
        calibrator.observe(2_000, 3_000);
    }
    assert!((calibrator.factor() - 1.5).abs() < 0.1, "{}", calibrator.factor());
}

#[test]
fn what_says_nothing_is_not_learnt_from() {
    let mut calibrator = Calibrator::new();
    assert_eq!(calibrator.observe(299, 5_000), Observation::TooSmall);
    assert_eq!(calibrator.observe(5_000, 0), Observation::NotAnAddition);
    assert_eq!(calibrator, Calibrator::new());
}

#[test]
fn no_observation_makes_it_useless() {
    let mut calibrator = Calibrator::new();
    for step in 0..1_000u64 {
        let (estimated, measured) = match step % 4 {
            0 => (u64::MAX, 1),
            1 => (300, u64::MAX),
            2 => (u64::MAX, u64::MAX),
            _ => (300, 1),
        };
        calibrator.observe(estimated, measured);
        assert!(calibrator.factor().is_finite());
        assert!((0.2..=5.0).contains(&calibrator.factor()), "{}", calibrator.factor());
    }
    assert_eq!(calibrator.correct(1).max(1), calibrator.correct(1));
}

#[test]
fn survives_being_stored() {
    let original = learnt(0.95, 12);
    let stored = serde_json::to_string(&original).unwrap();
    let back: Calibrator = serde_json::from_str(&stored).unwrap();
    assert!((back.factor() - original.factor()).abs() < 1e-12);
    assert_eq!(back.samples(), 12);
    let old: Calibrator = serde_json::from_str("{}").unwrap();
    assert_eq!(old, Calibrator::new(), "a record without members is a fresh one");
}
