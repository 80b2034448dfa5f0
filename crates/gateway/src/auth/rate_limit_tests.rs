//! Counting requests, and the refill over time.

use std::time::Duration;

use throughline_store::{IdLength, MemoryStore, NewCall, NewSession, Origin, SessionId};
use throughline_transcript::WireFormat;

use super::*;

#[test]
fn requests_come_back_evenly_over_a_minute() {
    let meter = Arc::new(RateLimiter::default());
    let limits = TokenLimits { requests_per_minute: Some(6), ..TokenLimits::default() };
    let start = Instant::now();
    let at_ms = |ms| meter.enter(&limits, start + Duration::from_millis(ms)).map(drop);
    for _ in 0..6 {
        assert_eq!(at_ms(0), Ok(()));
    }
    assert_eq!(at_ms(0), Err(RateLimitError::InAMinute { wait_secs: 10 }));
    assert_eq!(at_ms(4_000), Err(RateLimitError::InAMinute { wait_secs: 6 }));
    assert_eq!(at_ms(10_001), Ok(()));
    assert!(at_ms(10_001).is_err());
    // After any pause, at most the requests of one minute are admitted at once.
    assert_eq!((0..20).filter(|_| at_ms(3_600_000).is_ok()).count(), 6);
}

#[test]
fn a_place_is_free_again_when_it_is_given_back() {
    let meter = Arc::new(RateLimiter::default());
    let limits = TokenLimits { concurrent: Some(2), ..TokenLimits::default() };
    let enter = || meter.enter(&limits, Instant::now());
    let (first, _second) = (enter().unwrap(), enter().unwrap());
    assert_eq!(enter().err(), Some(RateLimitError::AtOnce));
    drop(first);
    assert!(enter().is_ok());
}

#[test]
fn money_is_counted_by_day_and_by_thirty_days() {
    let (store, owner) = (MemoryStore::new(), Owner::new("team"));
    let now_ms = 100 * DAY_MS + 5_000;
    let id = SessionId::new(now_ms, 1, IdLength::Gateway);
    let new = NewSession {
        id: id.clone(),
        owner: owner.clone(),
        link: None,
        started_ms: now_ms,
        model: None,
        title: None,
        origin: Origin::default(),
        wire_format: WireFormat::Chat,
    };
    store.open_session(new, None).unwrap();
    let call = |at_ms, cost| NewCall { at_ms, cost_micro_usd: Some(cost), ..NewCall::default() };
    let calls = vec![call(now_ms - DAY_MS, 700), call(now_ms, 200)];
    store.record_calls(&owner, &id, calls).unwrap();
    let of = |day, month| {
        let limits =
            TokenLimits { micro_usd_per_day: day, micro_usd_per_month: month, ..TokenLimits::default() };
        spent(&store, &owner, &limits, now_ms).unwrap().map(|spent| spent.span)
    };
    assert_eq!(of(Some(201), Some(901)), None);
    assert_eq!(of(Some(200), None), Some("today"));
    assert_eq!(of(Some(201), Some(900)), Some("in thirty days"));
    let others = TokenLimits { micro_usd_per_day: Some(1), ..TokenLimits::default() };
    assert_eq!(spent(&store, &Owner::new("other"), &others, now_ms).unwrap(), None);
}
