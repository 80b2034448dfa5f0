//! Guards: small values that outlive a process.

use throughline_store::{Guard, GuardScope, Store};

use crate::contract::support::*;

fn guard(name: &str, value: serde_json::Value, expires_ms: Option<i64>) -> Guard {
    Guard { name: name.into(), value, set_ms: 100, expires_ms }
}

fn of_chain(name: &str) -> GuardScope {
    GuardScope::Chain(owner(), id(name))
}

fn a_guard_is_read_back_replaced_and_taken_away(store: &dyn Store) {
    let first = guard("window", serde_json::json!({"tokens": 128_000, "by": ["a", null]}), None);
    store.set_guard(&GuardScope::Global, "window", Some(&first)).unwrap();
    assert_eq!(store.guard(&GuardScope::Global, "window", 0).unwrap(), Some(first));
    let second = guard("window", serde_json::json!(1.5), Some(500));
    store.set_guard(&GuardScope::Global, "window", Some(&second)).unwrap();
    assert_eq!(store.guard(&GuardScope::Global, "window", 0).unwrap(), Some(second));
    store.set_guard(&GuardScope::Global, "window", None).unwrap();
    assert_eq!(store.guard(&GuardScope::Global, "window", 0).unwrap(), None);
    store.set_guard(&GuardScope::Global, "window", None).unwrap();
}

fn a_guard_lets_go_by_itself(store: &dyn Store) {
    open(store, "one");
    store.set_guard(&of_chain("one"), "cooldown", Some(&guard("cooldown", 1.into(), Some(1_000)))).unwrap();
    assert!(store.guard(&of_chain("one"), "cooldown", 999).unwrap().is_some());
    assert!(store.guard(&of_chain("one"), "cooldown", 1_000).unwrap().is_none());
    assert!(store.guard(&of_chain("one"), "cooldown", i64::MAX).unwrap().is_none());
}

fn scopes_and_names_are_distinguished(store: &dyn Store) {
    open(store, "one");
    open(store, "two");
    let model =
        |endpoint: &str, model: &str| GuardScope::Model { endpoint: endpoint.into(), model: model.into() };
    let scopes = [
        GuardScope::Global,
        of_chain("one"),
        of_chain("two"),
        model("a", "b"),
        model("a", "c"),
        model("c", "b"),
        model("ab", ""),
        model("", "ab"),
    ];
    for (at, scope) in scopes.iter().enumerate() {
        for name in ["x", "y"] {
            store.set_guard(scope, name, Some(&guard(name, format!("{at}{name}").into(), None))).unwrap();
        }
    }
    for (at, scope) in scopes.iter().enumerate() {
        for name in ["x", "y"] {
            let read = store.guard(scope, name, 0).unwrap().unwrap();
            assert_eq!((read.name.as_str(), read.value), (name, format!("{at}{name}").into()));
        }
        assert_eq!(store.guard(scope, "z", 0).unwrap(), None);
    }
}

fn continuations_inherit_and_branches_do_not(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    let strikes = guard("strikes", 2.into(), None);
    store.set_guard(&of_chain("one"), "strikes", Some(&strikes)).unwrap();
    branch(store, "side", "one", 1);
    compact(store, "one", "two", "S");
    undo(store, "two", "three");
    for member in ["one", "two", "three"] {
        assert_eq!(store.guard(&of_chain(member), "strikes", 0).unwrap(), Some(strikes.clone()));
    }
    assert_eq!(store.guard(&of_chain("side"), "strikes", 0).unwrap(), None);
    store.set_guard(&of_chain("three"), "strikes", None).unwrap();
    assert_eq!(store.guard(&of_chain("one"), "strikes", 0).unwrap(), None);
}

fn a_guard_of_nobody_is_an_unknown_session(store: &dyn Store) {
    let set = store.set_guard(&of_chain("nobody"), "x", Some(&guard("x", 1.into(), None)));
    assert_eq!(unknown(set), "nobody");
    assert_eq!(unknown(store.guard(&of_chain("nobody"), "x", 0)), "nobody");
}

on_every_backend!(
    a_guard_is_read_back_replaced_and_taken_away,
    a_guard_lets_go_by_itself,
    scopes_and_names_are_distinguished,
    continuations_inherit_and_branches_do_not,
    a_guard_of_nobody_is_an_unknown_session,
);
