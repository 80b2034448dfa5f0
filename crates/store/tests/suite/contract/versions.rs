//! Versions of a conversation, writes on the condition of one, and conversations that are attached to another later.

use throughline_store::{Dependants, Link, LinkKind, NewMessage, SessionFilter, Store, StoreError, Version};

use crate::contract::support::*;

fn version(store: &dyn Store, name: &str) -> Version {
    store.version(&owner(), &id(name)).unwrap()
}

fn a_version_changes_with_everything_that_is_written_to_the_conversation(store: &dyn Store) {
    open(store, "one");
    let empty = version(store, "one");
    assert_eq!((empty.tip.as_str(), empty.next_seq, empty.last), ("one", 0, None));
    say(store, "one", &["a", "b"]);
    let said = version(store, "one");
    assert_eq!((said.tip.as_str(), said.next_seq), ("one", 2));
    assert_ne!(said.last, None);
    compact(store, "one", "two", "S");
    let compacted = version(store, "one");
    assert_eq!((compacted.tip.as_str(), compacted.next_seq), ("two", 2));
    assert_eq!(version(store, "two"), compacted, "each session of the conversation names it");
    undo(store, "two", "three");
    assert_eq!(version(store, "one").tip.as_str(), "three");
    say(store, "three", &["c"]);
    let all = [empty, said, compacted, version(store, "three")];
    for (at, one) in all.iter().enumerate() {
        assert!(all.iter().skip(at + 1).all(|other| other != one), "{all:?}");
    }
}

fn a_version_stays_when_nothing_was_written_to_the_conversation(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    let before = version(store, "one");
    store.rename(&owner(), &id("one"), Some("Roof")).unwrap();
    branch(store, "side", "one", 1);
    say(store, "side", &["x"]);
    open(store, "another");
    say(store, "another", &["a"]);
    assert_eq!(version(store, "one"), before);
    assert_ne!(version(store, "side"), before);
}

fn a_version_of_another_owner_is_unknown(store: &dyn Store) {
    open(store, "one");
    let seen = version(store, "one");
    let refused = store.version(&stranger(), &id("one"));
    assert!(matches!(refused, Err(StoreError::UnknownSession { .. })), "{refused:?}");
    let refused = store.append_at(&stranger(), &seen, vec![said("mine")]);
    assert!(matches!(refused, Err(StoreError::UnknownSession { .. })), "{refused:?}");
    store.delete(&owner(), &id("one"), Dependants::Refuse).unwrap();
    let gone = store.append_at(&owner(), &seen, vec![said("late")]);
    assert!(matches!(gone, Err(StoreError::UnknownSession { .. })), "{gone:?}");
}

fn an_append_at_a_version_returns_the_next_one(store: &dyn Store) {
    open(store, "one");
    let mut at = version(store, "one");
    for (turn, text) in ["a", "b", "c"].iter().enumerate() {
        at = store.append_at(&owner(), &at, vec![said(text)]).unwrap();
        assert_eq!(at.next_seq, turn as u64 + 1);
        assert_eq!(at, version(store, "one"));
    }
    assert_eq!(store.append_at(&owner(), &at, Vec::new()).unwrap(), at, "nothing said, nothing changed");
    assert_eq!(messages(store, "one"), ["a", "b", "c"]);
}

fn an_append_at_an_old_version_writes_nothing(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    let old = version(store, "one");
    say(store, "one", &["b"]);
    let refused = store.append_at(&owner(), &old, vec![said("lost?")]);
    assert!(matches!(&refused, Err(StoreError::VersionConflict { tip, .. }) if tip.as_str() == "one"));
    let old = version(store, "one");
    compact(store, "one", "two", "S");
    let refused = store.append_at(&owner(), &old, vec![said("lost?")]);
    assert!(matches!(&refused, Err(StoreError::VersionConflict { tip, .. }) if tip.as_str() == "two"));
    assert_eq!(transcript(store, "two"), ["a", "b"]);
}

/// What a backup brings back may stand at the same place as what it replaced.
fn an_append_at_the_version_of_other_words_writes_nothing(store: &dyn Store) {
    open(store, "one");
    store.append(&owner(), &id("one"), vec![said("a")]).unwrap();
    let first = version(store, "one");
    store.delete(&owner(), &id("one"), Dependants::Refuse).unwrap();
    open(store, "one");
    store.append(&owner(), &id("one"), vec![said("b")]).unwrap();
    assert_ne!(version(store, "one"), first);
    let refused = store.append_at(&owner(), &first, vec![said("c")]);
    assert!(matches!(refused, Err(StoreError::VersionConflict { .. })), "{refused:?}");
}

fn of_many_writers_at_a_version_one_appends(store: &dyn Store) {
    open(store, "one");
    for round in 0..20 {
        let at = version(store, "one");
        let appended: Vec<bool> = std::thread::scope(|scope| {
            let write = |writer: usize| {
                let at = &at;
                let new: NewMessage = said(&format!("round {round} writer {writer}"));
                scope.spawn(move || store.append_at(&owner(), at, vec![new]).is_ok())
            };
            let writers: Vec<_> = (0..4).map(write).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        assert_eq!(appended.iter().filter(|done| **done).count(), 1, "round {round}");
    }
    assert_eq!(messages(store, "one").len(), 20);
}

fn attach(store: &dyn Store, name: &str, kind: LinkKind, parent: &str) -> Result<(), StoreError> {
    let link = Link { parent: id(parent), kind, leaves_at: 0 };
    store.attach(&owner(), &id(name), &link).map(|session| assert_eq!(session.id, id(name)))
}

fn listed(store: &dyn Store, include_attached: bool) -> Vec<String> {
    let filter = SessionFilter { include_attached, ..SessionFilter::default() };
    let found = store.conversations(&owner(), &filter).unwrap();
    let mut names: Vec<String> = found.iter().map(|one| one.tip.id.to_string()).collect();
    names.sort();
    names
}

fn a_conversation_is_attached_after_it_began(store: &dyn Store) {
    open(store, "title");
    say(store, "title", &["a", "b"]);
    compact(store, "title", "title-2", "S");
    branch(store, "title-branch", "title-2", 2);
    open(store, "main");
    say(store, "main", &["x"]);
    attach(store, "title-2", LinkKind::SideCall, "main").unwrap();
    assert_eq!(listed(store, false), ["main", "title-branch"]);
    assert_eq!(listed(store, true), ["main", "title-2", "title-branch"]);
    let link = session(store, "title").link.unwrap();
    assert_eq!((link.parent, link.kind), (id("main"), LinkKind::SideCall));
    let family: Vec<_> = store.family(&owner(), &id("main")).unwrap().into_iter().map(|one| one.id).collect();
    assert_eq!(family, [id("title"), id("title-2"), id("title-branch"), id("main")]);
    assert_eq!(transcript(store, "title-2"), ["a", "b"], "what was said stays");
    // It may be deleted with what it hangs on, and not be left behind by accident.
    let refused = store.delete(&owner(), &id("main"), Dependants::Refuse);
    assert!(matches!(refused, Err(StoreError::HasDependants { .. })), "{refused:?}");
}

fn a_conversation_is_not_attached_twice_nor_in_a_circle(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    open(store, "two");
    open(store, "three");
    attach(store, "two", LinkKind::SubAgent, "one").unwrap();
    let refused = |result: Result<(), StoreError>| {
        assert!(matches!(result, Err(StoreError::NotAttached { .. })), "{result:?}");
    };
    refused(attach(store, "two", LinkKind::SideCall, "three"));
    refused(attach(store, "one", LinkKind::SideCall, "two"));
    refused(attach(store, "one", LinkKind::SideCall, "one"));
    refused(attach(store, "three", LinkKind::Branch, "one"));
    let link = Link { parent: id("one"), kind: LinkKind::SideCall, leaves_at: 0 };
    let foreign = store.attach(&stranger(), &id("three"), &link);
    assert!(matches!(foreign, Err(StoreError::UnknownSession { .. })), "{foreign:?}");
}

fn last_is_never_a_side_call(store: &dyn Store) {
    open(store, "main");
    say(store, "main", &["x"]);
    let side = linked("title", LinkKind::SideCall, "main", 1);
    store.open_session(side, None).unwrap();
    store.append(&owner(), &id("title"), vec![said_at("later", 9_000)]).unwrap();
    assert_eq!(store.resolve(&owner(), "last").unwrap().id, id("main"));
    store.open_session(linked("helper", LinkKind::SubAgent, "main", 1), None).unwrap();
    assert_eq!(store.resolve(&owner(), "last").unwrap().id, id("main"));
}

on_every_backend!(
    a_version_changes_with_everything_that_is_written_to_the_conversation,
    a_version_stays_when_nothing_was_written_to_the_conversation,
    a_version_of_another_owner_is_unknown,
    an_append_at_a_version_returns_the_next_one,
    an_append_at_an_old_version_writes_nothing,
    an_append_at_the_version_of_other_words_writes_nothing,
    of_many_writers_at_a_version_one_appends,
    a_conversation_is_attached_after_it_began,
    a_conversation_is_not_attached_twice_nor_in_a_circle,
    last_is_never_a_side_call,
);
