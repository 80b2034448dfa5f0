//! Tests of how long routes are skipped.

use throughline_provider::{ProviderError, ProviderErrorKind};

use super::super::test_upstream::{Scripted, route};
use super::*;

fn overload() -> RouteFailure {
    RouteFailure::Trouble(Box::new(ProviderError::of(ProviderErrorKind::Overload)))
}

#[test]
fn rests_grow_with_failures_in_a_row_and_end_by_time_or_success() {
    let script = Scripted::new(throughline_transcript::WireFormat::Chat, vec![]);
    let key = route("a", 10_000, &script).key(SummaryForm::Standalone);
    let health = RouteHealth::default();
    assert_eq!(health.resting(&key, 0), None);
    health.failed(key.clone(), &overload(), 0);
    assert!(health.resting(&key, 29_999).is_some());
    assert_eq!(health.resting(&key, 30_000), None);
    health.failed(key.clone(), &overload(), 30_000);
    assert!(health.resting(&key, 149_999).is_some(), "the second time it is longer");
    health.worked(&key);
    assert_eq!(health.resting(&key, 100_000), None);
    health.failed(key.clone(), &overload(), 200_000);
    assert_eq!(health.resting(&key, 230_000), None, "a success forgets what was before");
    let other = route("b", 10_000, &script).key(SummaryForm::Standalone);
    health.failed(other, &overload(), 230_000);
    assert_eq!(health.resting(&key, 230_000), None, "each route is on its own");
}

#[test]
fn what_cost_nothing_is_no_reason_to_rest() {
    let script = Scripted::new(throughline_transcript::WireFormat::Chat, vec![]);
    let key = route("a", 10_000, &script).key(SummaryForm::Standalone);
    let health = RouteHealth::default();
    health.failed(key.clone(), &RouteFailure::WindowTooSmall { window_tokens: 1, needed_tokens: 2 }, 0);
    assert_eq!(health.resting(&key, 1), None);
    health.learn_window(key.clone(), 4_096);
    assert_eq!(health.learnt_window(&key), Some(4_096));
}
