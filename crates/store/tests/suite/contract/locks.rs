//! Locks between processes.

use throughline_store::{Holder, LockOutcome, LockRecord, LockRequest, Store};

fn holder(process_id: u32) -> Holder {
    Holder { host: "here".into(), process_id, process_start: 7, what: "chat".into() }
}

fn request(holder: &Holder, now_ms: i64) -> LockRequest {
    LockRequest { name: "conversation 1".into(), holder: holder.clone(), now_ms, expires_ms: now_ms + 1_000 }
}

fn ask(store: &dyn Store, holder: &Holder, now_ms: i64) -> LockOutcome {
    store.lock(&request(holder, now_ms), &|_| true).unwrap()
}

const TAKEN: LockOutcome = LockOutcome::Taken { from: None };

fn a_free_lock_is_taken_and_named(store: &dyn Store) {
    assert!(store.locks().unwrap().is_empty());
    assert_eq!(ask(store, &holder(1), 100), TAKEN);
    let held =
        LockRecord { name: "conversation 1".into(), holder: holder(1), since_ms: 100, expires_ms: 1_100 };
    assert_eq!(store.locks().unwrap(), std::slice::from_ref(&held));
    assert_eq!(ask(store, &holder(2), 200), LockOutcome::HeldBy(held));
}

fn asking_again_renews(store: &dyn Store) {
    ask(store, &holder(1), 100);
    assert_eq!(ask(store, &holder(1), 900), TAKEN);
    let held = store.locks().unwrap().remove(0);
    assert_eq!((held.since_ms, held.expires_ms), (100, 1_900));
    assert!(matches!(ask(store, &holder(2), 1_500), LockOutcome::HeldBy(_)));
}

fn a_late_holder_loses_it(store: &dyn Store) {
    ask(store, &holder(1), 100);
    assert!(matches!(ask(store, &holder(2), 1_099), LockOutcome::HeldBy(_)));
    assert_eq!(ask(store, &holder(2), 1_100), LockOutcome::Taken { from: Some(holder(1)) });
    let held = store.locks().unwrap().remove(0);
    assert_eq!((held.holder, held.since_ms), (holder(2), 1_100));
    assert!(matches!(ask(store, &holder(1), 1_200), LockOutcome::HeldBy(_)));
}

fn a_dead_holder_loses_it_at_once(store: &dyn Store) {
    ask(store, &holder(1), 100);
    let outcome = store.lock(&request(&holder(2), 101), &|asked| *asked != holder(1)).unwrap();
    assert_eq!(outcome, LockOutcome::Taken { from: Some(holder(1)) });
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
    let outcome = store.lock(&request(&holder(2), 101), &|_| false).unwrap();
    assert!(matches!(outcome, LockOutcome::HeldBy(_)));
    let outcome = store.lock(&request(&holder(2), 1_100), &|_| false).unwrap();
    assert_eq!(outcome, LockOutcome::Taken { from: Some(elsewhere) });
}

fn only_its_holder_lets_it_go(store: &dyn Store) {
    ask(store, &holder(1), 100);
    store.unlock("conversation 1", &holder(2)).unwrap();
    assert!(matches!(ask(store, &holder(2), 101), LockOutcome::HeldBy(_)));
    store.unlock("something else", &holder(1)).unwrap();
    assert_eq!(store.locks().unwrap().len(), 1);
    store.unlock("conversation 1", &holder(1)).unwrap();
    assert!(store.locks().unwrap().is_empty());
    assert_eq!(ask(store, &holder(2), 102), TAKEN);
}

fn locks_of_other_names_are_free(store: &dyn Store) {
    ask(store, &holder(1), 100);
    let other = LockRequest { name: "conversation 2".into(), ..request(&holder(2), 100) };
    assert_eq!(store.lock(&other, &|_| true).unwrap(), TAKEN);
    assert_eq!(store.locks().unwrap().len(), 2);
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
);
