//! Undo and redo: a new continuation with another view and everything said since.

use throughline_store::{EndReason, LinkKind, Selection, Store, StoreError};

use crate::contract::support::*;

fn nothing_to_select(store: &dyn Store, selection: Selection, at: &str) {
    let sessions = chain(store, at).len();
    let error = select(store, selection, at, "never", NO_LIMIT).unwrap_err();
    assert!(matches!(error, StoreError::NothingToSelect { .. }), "{error:?}");
    assert_eq!(chain(store, at).len(), sessions);
    assert_eq!(session(store, at).ended_ms, None);
}

fn undo_goes_back_and_keeps_what_was_said_since(store: &dyn Store) {
    open(store, "one");
    store.append(&owner(), &id("one"), vec![said("a"), said_shown_as("long b", "b"), said("c")]).unwrap();
    compact(store, "one", "two", "S");
    store.append(&owner(), &id("two"), vec![said("d"), said_shown_as("long e", "e")]).unwrap();
    let opened = undo(store, "two", "three");
    assert_eq!(shown(store, "three"), ["a", "b", "c", "d", "e"]);
    assert_eq!(session(store, "two").end_reason, Some(EndReason::UNDO));
    assert_eq!(session(store, "two").ended_ms, Some(6_000));
    assert_eq!(opened.base, session(store, "one").ordinal);
    assert_eq!((opened.first_seq, opened.link.unwrap().kind), (5, LinkKind::Continuation));
    say(store, "three", &["f"]);
    assert_eq!(shown(store, "three"), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(transcript(store, "three"), ["a", "long b", "c", "d", "long e", "f"]);
    assert_eq!(chain(store, "one"), ["one", "two", "three"]);
    let listed = store.conversations(&owner(), &Default::default()).unwrap();
    assert_eq!(listed[0].compactions, 0, "what was undone does not count");
}

fn redo_takes_the_compaction_up_again(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "S");
    say(store, "two", &["c"]);
    undo(store, "two", "three");
    say(store, "three", &["d"]);
    let opened = redo(store, "three", "four");
    assert_eq!(shown(store, "four"), ["S", "b", "c", "d"]);
    assert_eq!(opened.base, session(store, "two").ordinal);
    assert_eq!(session(store, "three").end_reason, Some(EndReason::REDO));
    say(store, "four", &["e"]);
    undo(store, "four", "five");
    assert_eq!(shown(store, "five"), ["a", "b", "c", "d", "e"]);
    redo(store, "five", "six");
    assert_eq!(shown(store, "six"), ["S", "b", "c", "d", "e"]);
}

fn undo_twice_goes_back_two_compactions(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "S1");
    say(store, "two", &["c", "d"]);
    compact(store, "two", "three", "S2");
    say(store, "three", &["e"]);
    assert_eq!(shown(store, "three"), ["S2", "d", "e"]);
    undo(store, "three", "four");
    assert_eq!(shown(store, "four"), ["S1", "b", "c", "d", "e"]);
    say(store, "four", &["f"]);
    undo(store, "four", "five");
    assert_eq!(shown(store, "five"), ["a", "b", "c", "d", "e", "f"]);
    nothing_to_select(store, Selection::Undo, "five");
    redo(store, "five", "six");
    assert_eq!(shown(store, "six"), ["S1", "b", "c", "d", "e", "f"]);
    redo(store, "six", "seven");
    assert_eq!(shown(store, "seven"), ["S2", "d", "e", "f"]);
    nothing_to_select(store, Selection::Redo, "seven");
}

fn a_compaction_after_undo_is_the_one_redo_takes_up(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "old");
    undo(store, "two", "three");
    say(store, "three", &["c"]);
    compact(store, "three", "four", "new");
    assert_eq!(shown(store, "four"), ["new", "c"]);
    nothing_to_select(store, Selection::Redo, "four");
    undo(store, "four", "five");
    assert_eq!(shown(store, "five"), ["a", "b", "c"]);
    redo(store, "five", "six");
    assert_eq!(shown(store, "six"), ["new", "c"]);
}

fn what_does_not_fit_is_refused_with_the_sum(store: &dyn Store) {
    open(store, "one");
    store.append(&owner(), &id("one"), vec![said("a"), said_shown_as("long b", "b"), said("c")]).unwrap();
    compact(store, "one", "two", "S");
    say(store, "two", &["d"]);
    // 10 + 3 + 10 as they were shown, 10 since.
    match select(store, Selection::Undo, "two", "three", 32).unwrap_err() {
        StoreError::DoesNotFit { needed_tokens, limit_tokens } => {
            assert_eq!((needed_tokens, limit_tokens), (33, 32));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(chain(store, "one"), ["one", "two"]);
    assert_eq!(session(store, "two").ended_ms, None);
    select(store, Selection::Undo, "two", "three", 33).unwrap();
    // 7 of the summary, 10 kept, 10 since.
    match select(store, Selection::Redo, "three", "four", 26).unwrap_err() {
        StoreError::DoesNotFit { needed_tokens, .. } => assert_eq!(needed_tokens, 27),
        other => panic!("{other:?}"),
    }
    select(store, Selection::Redo, "three", "four", 27).unwrap();
}

fn there_is_nothing_to_undo_without_a_compaction(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    nothing_to_select(store, Selection::Undo, "one");
    nothing_to_select(store, Selection::Redo, "one");
    compact(store, "one", "two", "S");
    nothing_to_select(store, Selection::Redo, "two");
    branch(store, "branch", "two", 1);
    nothing_to_select(store, Selection::Undo, "branch");
}

fn undo_may_be_asked_of_any_member_and_happens_at_the_tip(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "S");
    say(store, "two", &["c"]);
    let taken = select(store, Selection::Undo, "one", "two", NO_LIMIT).unwrap_err();
    assert!(matches!(taken, StoreError::SessionExists { .. }), "{taken:?}");
    assert_eq!(session(store, "two").ended_ms, None);
    undo(store, "one", "three");
    assert_eq!(chain(store, "one"), ["one", "two", "three"]);
    assert_eq!(shown(store, "three"), ["a", "b", "c"]);
}

fn a_conversation_that_ended_can_go_back_too(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "S");
    end(store, "two", EndReason::NEW);
    undo(store, "two", "three");
    assert_eq!(session(store, "two").end_reason, Some(EndReason::NEW));
    say(store, "three", &["c"]);
    assert_eq!(shown(store, "three"), ["a", "b", "c"]);
}

fn undo_opens_no_message_and_no_summary(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "S");
    let (all, summaries) =
        (store.transcript(&owner(), &id("two")).unwrap(), store.summaries(&owner(), &id("two")).unwrap());
    undo(store, "two", "three");
    assert_eq!(store.transcript(&owner(), &id("three")).unwrap(), all);
    assert_eq!(store.summaries(&owner(), &id("three")).unwrap(), summaries);
    assert!(store.messages(&owner(), &id("three")).unwrap().is_empty());
}

fn a_continuation_that_changed_nothing_is_undone_with_its_parent(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    compact(store, "one", "two", "S");
    store.open_session(linked("three", LinkKind::Continuation, "two", 0), None).unwrap();
    say(store, "three", &["c"]);
    assert_eq!(shown(store, "three"), ["S", "b", "c"]);
    undo(store, "three", "four");
    assert_eq!(shown(store, "four"), ["a", "b", "c"]);
}

on_every_backend!(
    undo_goes_back_and_keeps_what_was_said_since,
    redo_takes_the_compaction_up_again,
    undo_twice_goes_back_two_compactions,
    a_compaction_after_undo_is_the_one_redo_takes_up,
    what_does_not_fit_is_refused_with_the_sum,
    there_is_nothing_to_undo_without_a_compaction,
    undo_may_be_asked_of_any_member_and_happens_at_the_tip,
    a_conversation_that_ended_can_go_back_too,
    undo_opens_no_message_and_no_summary,
    a_continuation_that_changed_nothing_is_undone_with_its_parent,
);
