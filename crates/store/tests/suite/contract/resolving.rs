//! Finding a session by what a person types: ids, beginnings of ids, `last`, titles.

use throughline_store::{LinkKind, NewSession, Store, StoreError};

use crate::contract::support::*;

fn titled(store: &dyn Store, name: &str, title: &str) {
    let new = NewSession { title: Some(title.into()), ..new_session(name) };
    store.open_session(new, None).unwrap();
}

fn resolved(store: &dyn Store, reference: &str) -> String {
    store.resolve(&owner(), reference).unwrap().id.to_string()
}

fn candidates(store: &dyn Store, reference: &str) -> Vec<String> {
    match store.resolve(&owner(), reference).unwrap_err() {
        StoreError::AmbiguousSession { reference: asked, candidates } => {
            assert_eq!(asked, reference);
            candidates.iter().map(ToString::to_string).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn whole_ids_and_unique_beginnings_are_found(store: &dyn Store) {
    for name in ["20261115_093000_a1b2c3", "20261115_093000_a1ffff", "20261116_000000_000000"] {
        open(store, name);
    }
    assert_eq!(resolved(store, "20261115_093000_a1b2c3"), "20261115_093000_a1b2c3");
    assert_eq!(resolved(store, "20261115_093000_a1b"), "20261115_093000_a1b2c3");
    assert_eq!(resolved(store, "20261116"), "20261116_000000_000000");
    assert_eq!(unknown(store.resolve(&owner(), "20261117")), "20261117");
    assert_eq!(unknown(store.resolve(&owner(), "0261116")), "0261116");
}

fn a_whole_id_wins_over_the_ids_that_begin_with_it(store: &dyn Store) {
    open(store, "abc");
    open(store, "abcdef");
    assert_eq!(resolved(store, "abc"), "abc");
    assert_eq!(resolved(store, "abcd"), "abcdef");
}

fn candidates_are_named_newest_first_and_at_most_twenty(store: &dyn Store) {
    for at in 0..25 {
        open(store, &format!("x{at:02}"));
    }
    let named = candidates(store, "x");
    assert_eq!(named.len(), 20);
    assert_eq!((named[0].as_str(), named[19].as_str()), ("x24", "x05"));
    assert_eq!(candidates(store, "x1").len(), 10);
}

fn wildcards_are_ordinary_characters(store: &dyn Store) {
    open(store, "a_c");
    open(store, "abc");
    open(store, "100%");
    assert_eq!(resolved(store, "a_"), "a_c");
    assert_eq!(resolved(store, "100%"), "100%");
    for reference in ["%", "_", "*", "?", "a*", "[a]", "'", "\"", "abc'--", "\0", "\u{10ffff}"] {
        assert_eq!(unknown(store.resolve(&owner(), reference)), reference);
    }
}

fn nothing_is_not_a_reference(store: &dyn Store) {
    open(store, "one");
    assert_eq!(unknown(store.resolve(&owner(), "")), "");
}

fn last_is_what_was_active_last(store: &dyn Store) {
    assert_eq!(unknown(store.resolve(&owner(), "last")), "last");
    open(store, "one");
    open(store, "two");
    store.append(&owner(), &id("one"), vec![said_at("x", 50_000)]).unwrap();
    assert_eq!(resolved(store, "last"), "one");
    compact(store, "two", "three", "S");
    store.append(&owner(), &id("three"), vec![said_at("x", 60_000)]).unwrap();
    assert_eq!(resolved(store, "last"), "three");
}

fn last_is_a_conversation_not_something_beside_one(store: &dyn Store) {
    open(store, "one");
    store.open_session(linked("agent", LinkKind::SubAgent, "one", 0), None).unwrap();
    store.append(&owner(), &id("agent"), vec![said_at("x", 90_000)]).unwrap();
    assert_eq!(resolved(store, "last"), "one");
}

fn titles_are_found_whatever_their_case(store: &dyn Store) {
    titled(store, "one", "Mending the Roof");
    titled(store, "two", "\u{dc}bung macht den Meister");
    assert_eq!(resolved(store, "Mending the Roof"), "one");
    assert_eq!(resolved(store, "mending the roof"), "one");
    assert_eq!(resolved(store, "\u{fc}bung macht den meister"), "two");
    assert_eq!(unknown(store.resolve(&owner(), "Mending")), "Mending");
}

fn a_title_a_conversation_has_several_times_means_its_newest_session(store: &dyn Store) {
    titled(store, "one", "Roof");
    say(store, "one", &["a"]);
    compact(store, "one", "two", "S");
    compact(store, "two", "three", "S");
    assert_eq!(resolved(store, "Roof"), "three");
}

fn a_title_of_several_conversations_is_ambiguous(store: &dyn Store) {
    titled(store, "one", "Roof");
    titled(store, "two", "roof");
    say(store, "one", &["a"]);
    compact(store, "one", "three", "S");
    assert_eq!(candidates(store, "Roof"), ["three", "two"]);
}

fn an_id_wins_over_a_title(store: &dyn Store) {
    open(store, "roof");
    titled(store, "two", "roof");
    titled(store, "three", "last");
    assert_eq!(resolved(store, "roof"), "roof");
    store.append(&owner(), &id("two"), vec![said_at("x", 90_000)]).unwrap();
    assert_eq!(resolved(store, "last"), "two");
}

on_every_backend!(
    whole_ids_and_unique_beginnings_are_found,
    a_whole_id_wins_over_the_ids_that_begin_with_it,
    candidates_are_named_newest_first_and_at_most_twenty,
    wildcards_are_ordinary_characters,
    nothing_is_not_a_reference,
    last_is_what_was_active_last,
    last_is_a_conversation_not_something_beside_one,
    titles_are_found_whatever_their_case,
    a_title_a_conversation_has_several_times_means_its_newest_session,
    a_title_of_several_conversations_is_ambiguous,
    an_id_wins_over_a_title,
);
