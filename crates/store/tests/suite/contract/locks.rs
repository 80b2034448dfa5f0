//! Locks between processes. A server counts the time by its own clock, so that nothing here depends on what `now_ms` says but by
//! how much later than it a lock ends.

use throughline_store::{Holder, Lease, LockOutcome, LockRequest, Store, StoreError};

use super::support::{NO_LIMIT, compact, folding, id, open, owner, say, selecting};

const LONG_MS: i64 = 3_600_000;

fn holder(process_id: u32) -> Holder {
    Holder { host: "here".into(), process_id, process_start: 7, what: "chat".into() }
}

fn request(holder: &Holder, now_ms: i64, lasts_ms: i64) -> LockRequest {
    let expires_ms = now_ms + lasts_ms;
    LockRequest { name: "conversation 1".into(), holder: holder.clone(), now_ms, expires_ms }
}

fn ask(store: &dyn Store, holder: &Holder, now_ms: i64) -> LockOutcome {
    store.lock(&request(holder, now_ms, LONG_MS), &|_| true).unwrap()
}

/// A lock that is over as soon as it is taken.
fn ask_briefly(store: &dyn Store, holder: &Holder, now_ms: i64) -> LockOutcome {
    store.lock(&request(holder, now_ms, 0), &|_| true).unwrap()
}

/// The fencing number of a lock that was taken from this holder.
#[track_caller]
fn taken(outcome: LockOutcome, before: Option<Holder>) -> u64 {
    match outcome {
        LockOutcome::Taken { from, fence } => {
            assert_eq!(from, before);
            fence
        }
        LockOutcome::HeldBy(held) => panic!("it is held: {held:?}"),
    }
}

fn a_free_lock_is_taken_and_named(store: &dyn Store) {
    assert!(store.locks().unwrap().is_empty());
    taken(ask(store, &holder(1), 100), None);
    let held = store.locks().unwrap();
    let [held] = held.as_slice() else { panic!("{held:?}") };
    assert_eq!((held.name.as_str(), &held.holder), ("conversation 1", &holder(1)));
    assert_eq!(held.expires_ms - held.since_ms, LONG_MS);
    assert_eq!(ask(store, &holder(2), 200), LockOutcome::HeldBy(held.clone()));
}

fn asking_again_renews(store: &dyn Store) {
    let first = taken(ask_briefly(store, &holder(1), 100), None);
    let before = store.locks().unwrap().remove(0);
    assert_eq!(taken(ask(store, &holder(1), 900), None), first, "it is the same lease");
    let held = store.locks().unwrap().remove(0);
    assert_eq!(held.since_ms, before.since_ms);
    assert!(held.expires_ms >= before.expires_ms + LONG_MS);
    assert!(matches!(ask(store, &holder(2), 1_500), LockOutcome::HeldBy(_)));
}

fn a_late_holder_loses_it(store: &dyn Store) {
    let first = taken(ask_briefly(store, &holder(1), 100), None);
    let second = taken(ask(store, &holder(2), 100), Some(holder(1)));
    assert_ne!(first, second);
    let held = store.locks().unwrap().remove(0);
    assert_eq!(held.holder, holder(2));
    assert!(matches!(ask(store, &holder(1), 1_200), LockOutcome::HeldBy(_)));
}

fn a_dead_holder_loses_it_at_once(store: &dyn Store) {
    ask(store, &holder(1), 100);
    let outcome = store.lock(&request(&holder(2), 101, LONG_MS), &|asked| *asked != holder(1)).unwrap();
    taken(outcome, Some(holder(1)));
    assert_eq!(store.locks().unwrap()[0].holder, holder(2));
}

fn the_same_number_of_another_process_is_somebody_else(store: &dyn Store) {
    ask(store, &holder(1), 100);
    let reborn = Holder { process_start: 8, ..holder(1) };
    assert!(matches!(ask(store, &reborn, 101), LockOutcome::HeldBy(_)));
    let elsewhere = Holder { host: "there".into(), ..holder(1) };
    assert!(matches!(ask(store, &elsewhere, 101), LockOutcome::HeldBy(_)));
}

fn nobody_here_knows_who_is_dead_elsewhere(store: &dyn Store) {
    let elsewhere = Holder { host: "there".into(), ..holder(1) };
    ask(store, &elsewhere, 100);
    let outcome = store.lock(&request(&holder(2), 101, LONG_MS), &|_| false).unwrap();
    assert!(matches!(outcome, LockOutcome::HeldBy(_)));
    ask_briefly(store, &elsewhere, 101);
    let outcome = store.lock(&request(&holder(2), 101, LONG_MS), &|_| false).unwrap();
    taken(outcome, Some(elsewhere));
}

fn only_its_holder_lets_it_go(store: &dyn Store) {
    ask(store, &holder(1), 100);
    store.unlock("conversation 1", &holder(2)).unwrap();
    assert!(matches!(ask(store, &holder(2), 101), LockOutcome::HeldBy(_)));
    store.unlock("something else", &holder(1)).unwrap();
    assert_eq!(store.locks().unwrap().len(), 1);
    store.unlock("conversation 1", &holder(1)).unwrap();
    assert!(store.locks().unwrap().is_empty());
    taken(ask(store, &holder(2), 102), None);
}

fn locks_of_other_names_are_free(store: &dyn Store) {
    ask(store, &holder(1), 100);
    let other = LockRequest { name: "conversation 2".into(), ..request(&holder(2), 100, LONG_MS) };
    taken(store.lock(&other, &|_| true).unwrap(), None);
    assert_eq!(store.locks().unwrap().len(), 2);
}

fn a_compaction_under_a_lease_that_was_taken_over_writes_nothing(store: &dyn Store) {
    open(store, "s1");
    let lease = |holder: Holder, fence| Lease { name: "conversation 1".into(), holder, fence };
    let compact = |to: &str, lease: Lease| {
        let under =
            throughline_store::Continuation { lease: Some(lease), ..folding(store, "s1", to, "notes") };
        store.continue_session(&owner(), under)
    };
    let lost = |result: throughline_store::Result<throughline_store::Session>| {
        matches!(result, Err(StoreError::LeaseLost { .. }))
    };
    let stale = taken(ask_briefly(store, &holder(1), 100), None);
    // Somebody else had it meanwhile; then the first one took it anew, under another number.
    let other = taken(ask_briefly(store, &holder(2), 100), Some(holder(1)));
    assert!(lost(compact("s2", lease(holder(1), stale))), "it is somebody else's");
    let again = taken(ask(store, &holder(1), 100), Some(holder(2)));
    assert!(lost(compact("s2", lease(holder(1), stale))), "it is another lease");
    assert!(lost(compact("s2", lease(holder(2), other))), "it is over");
    assert!(lost(compact("s2", lease(holder(2), again))), "the number alone is not enough");
    assert_eq!(store.chain(&owner(), &id("s1")).unwrap().len(), 1);
    assert!(store.summaries(&owner(), &id("s1")).unwrap().is_empty());
    compact("s2", lease(holder(1), again)).unwrap();
    // Released, it is nobody's.
    store.unlock("conversation 1", &holder(1)).unwrap();
    assert!(lost(compact("s3", lease(holder(1), again))));
}

fn a_view_selected_under_a_lease_that_was_taken_over_stays_as_it_is(store: &dyn Store) {
    open(store, "s1");
    say(store, "s1", &["a", "b"]);
    compact(store, "s1", "s2", "notes");
    let stale = taken(ask_briefly(store, &holder(1), 100), None);
    let current = taken(ask(store, &holder(2), 10_000), Some(holder(1)));
    let select = |holder: Holder, fence, to: &str| {
        let lease = Some(Lease { name: "conversation 1".into(), holder, fence });
        let wanted = selecting(throughline_store::Selection::Undo, "s2", to, NO_LIMIT);
        store.select_view(&owner(), throughline_store::ViewSelection { lease, ..wanted })
    };
    assert!(matches!(select(holder(1), stale, "s3"), Err(StoreError::LeaseLost { .. })));
    assert!(matches!(select(holder(2), stale, "s3"), Err(StoreError::LeaseLost { .. })));
    assert_eq!(store.chain(&owner(), &id("s1")).unwrap().len(), 2);
    select(holder(2), current, "s3").unwrap();
    assert_eq!(store.chain(&owner(), &id("s1")).unwrap().len(), 3);
}

on_every_backend!(
    a_free_lock_is_taken_and_named,
    asking_again_renews,
    a_late_holder_loses_it,
    a_dead_holder_loses_it_at_once,
    the_same_number_of_another_process_is_somebody_else,
    nobody_here_knows_who_is_dead_elsewhere,
    only_its_holder_lets_it_go,
    locks_of_other_names_are_free,
    a_compaction_under_a_lease_that_was_taken_over_writes_nothing,
    a_view_selected_under_a_lease_that_was_taken_over_stays_as_it_is,
);
