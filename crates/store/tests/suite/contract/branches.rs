//! Branches: another way a conversation went. They share what was said before, and nothing after.

use throughline_store::{LinkKind, Store, StoreError};

use crate::contract::support::*;

fn a_branch_shares_what_was_said_before_it(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b", "c"]);
    let opened = branch(store, "side", "one", 2);
    assert_eq!((opened.first_seq, opened.next_seq), (2, 2));
    assert_eq!((opened.chain, opened.base), (opened.ordinal, opened.ordinal));
    say(store, "side", &["x", "y"]);
    say(store, "one", &["d"]);
    assert_eq!(shown(store, "side"), ["a", "b", "x", "y"]);
    assert_eq!(transcript(store, "side"), ["a", "b", "x", "y"]);
    assert_eq!(messages(store, "side"), ["x", "y"]);
    assert_eq!(shown(store, "one"), ["a", "b", "c", "d"]);
    assert_eq!(transcript(store, "one"), ["a", "b", "c", "d"]);
    assert_eq!(chain(store, "side"), ["side"]);
    assert_eq!(chain(store, "one"), ["one"]);
}

fn a_side_branch_shares_what_was_said_before_it_and_is_never_the_last(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b", "c"]);
    store.open_session(linked("summary", LinkKind::SideBranch, "one", 2), None).unwrap();
    say(store, "summary", &["x", "y"]);
    assert_eq!(shown(store, "summary"), ["a", "b", "x", "y"]);
    assert_eq!(transcript(store, "summary"), ["a", "b", "x", "y"]);
    assert_eq!(store.resolve(&owner(), "last").unwrap().id, id("one"));
    let refused = store.open_session(linked("other", LinkKind::SideBranch, "one", 9), None);
    assert!(matches!(refused, Err(StoreError::UnknownMessage { .. })), "{refused:?}");
}

fn a_branch_begins_with_what_was_shown_not_with_what_was_said(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "S");
    store.append(&owner(), &id("two"), vec![said_shown_as("long c", "c"), said("d")]).unwrap();
    branch(store, "side", "two", 3);
    assert_eq!(shown(store, "side"), ["S", "b", "c"]);
    assert_eq!(transcript(store, "side"), ["a", "b", "long c"]);
    branch(store, "from-start", "two", 2);
    assert_eq!(shown(store, "from-start"), ["S", "b"]);
    assert_eq!(transcript(store, "from-start"), ["a", "b"]);
    branch(store, "from-old", "one", 1);
    assert_eq!(shown(store, "from-old"), ["a"]);
    assert_eq!(transcript(store, "from-old"), ["a"]);
}

fn branches_of_branches_share_all_the_way_down(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    branch(store, "two", "one", 1);
    say(store, "two", &["c", "d"]);
    branch(store, "three", "two", 2);
    say(store, "three", &["e"]);
    assert_eq!(shown(store, "three"), ["a", "c", "e"]);
    assert_eq!(transcript(store, "three"), ["a", "c", "e"]);
    branch(store, "four", "two", 1);
    assert_eq!(transcript(store, "four"), ["a"]);
    assert_eq!(shown(store, "four"), ["a"]);
}

fn a_branch_may_be_compacted_and_undone_by_itself(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b", "c"]);
    branch(store, "side", "one", 2);
    say(store, "side", &["x"]);
    let mut folded = folding(store, "side", "side2", "S");
    folded.view.insert(0, throughline_store::NewViewItem::Kept(range("one", 0, 1)));
    store.continue_session(&owner(), folded).unwrap();
    assert_eq!(shown(store, "side2"), ["a", "S", "x"]);
    assert_eq!(transcript(store, "side2"), ["a", "b", "x"]);
    assert_eq!(chain(store, "side2"), ["side", "side2"]);
    undo(store, "side2", "side3");
    assert_eq!(shown(store, "side3"), ["a", "b", "x"]);
    assert_eq!(session(store, "one").ended_ms, None);
    say(store, "one", &["d"]);
    assert_eq!(shown(store, "one"), ["a", "b", "c", "d"]);
}

fn a_branch_may_not_show_what_was_said_after_it_left(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b", "c"]);
    branch(store, "side", "one", 2);
    let mut folded = folding(store, "side", "side2", "S");
    folded.view.push(throughline_store::NewViewItem::Kept(range("one", 2, 3)));
    let error = store.continue_session(&owner(), folded).unwrap_err();
    assert!(matches!(error, StoreError::UnknownMessage { .. }), "{error:?}");
}

fn a_branch_leaves_its_parent_at_a_place_that_is_there(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "S");
    for (parent, leaves_at) in [("one", 3), ("one", u64::MAX), ("two", 1), ("two", 3)] {
        let refused = store.open_session(linked("side", LinkKind::Branch, parent, leaves_at), None);
        assert!(matches!(refused, Err(StoreError::UnknownMessage { .. })), "{parent} at {leaves_at}");
    }
    assert_eq!(family(store, "one"), ["one", "two"]);
    branch(store, "side", "one", 0);
    assert!(shown(store, "side").is_empty());
}

fn branches_of_one_place_do_not_see_each_other(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    for name in ["left", "right"] {
        branch(store, name, "one", 1);
    }
    say(store, "left", &["l"]);
    say(store, "right", &["r"]);
    assert_eq!(transcript(store, "left"), ["a", "l"]);
    assert_eq!(transcript(store, "right"), ["a", "r"]);
    assert_eq!(family(store, "left"), ["one", "left", "right"]);
}

fn a_family_is_the_same_from_every_member(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    branch(store, "side", "one", 1);
    say(store, "side", &["x"]);
    compact(store, "side", "side2", "S");
    store.open_session(linked("agent", LinkKind::SubAgent, "side2", 2), None).unwrap();
    compact(store, "one", "two", "S");
    open(store, "stranger");
    let expected = ["one", "side", "side2", "agent", "two"];
    for member in expected {
        assert_eq!(family(store, member), expected, "from {member}");
    }
    assert_eq!(family(store, "stranger"), ["stranger"]);
}

on_every_backend!(
    a_branch_shares_what_was_said_before_it,
    a_side_branch_shares_what_was_said_before_it_and_is_never_the_last,
    a_branch_begins_with_what_was_shown_not_with_what_was_said,
    branches_of_branches_share_all_the_way_down,
    a_branch_may_be_compacted_and_undone_by_itself,
    a_branch_may_not_show_what_was_said_after_it_left,
    a_branch_leaves_its_parent_at_a_place_that_is_there,
    branches_of_one_place_do_not_see_each_other,
    a_family_is_the_same_from_every_member,
);
