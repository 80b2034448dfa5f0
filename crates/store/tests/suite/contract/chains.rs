//! Continuations: one session ends, another takes over, and no message is copied or touched.

use throughline_store::{EndReason, Link, LinkKind, NewSession, Origin, Store, StoreError};

use crate::contract::support::*;

fn a_compaction_ends_one_session_and_opens_the_next(store: &dyn Store) {
    let new = NewSession {
        title: Some("Roof".into()),
        origin: Origin { program: "codex".into(), key: Some("k".into()), project: Some("/roof".into()) },
        ..new_session("one")
    };
    store.open_session(new, None).unwrap();
    say(store, "one", &["a", "b"]);
    let opened = compact(store, "one", "two", "S");
    let (old, new) = (session(store, "one"), session(store, "two"));
    assert_eq!(opened, new);
    assert_eq!(old.end_reason, Some(EndReason::COMPRESSION));
    assert_eq!(old.ended_ms, Some(5_000));
    assert_eq!(new.link, Some(Link { parent: id("one"), kind: LinkKind::Continuation, leaves_at: 2 }));
    assert_eq!((new.chain, new.base), (old.chain, new.ordinal));
    assert_eq!((new.first_seq, new.next_seq), (2, 2));
    assert_eq!((new.started_ms, new.ended_ms), (5_000, None));
    assert_eq!((new.model, new.title), (old.model, old.title));
    assert_eq!((new.origin.program.as_str(), new.origin.project.as_deref()), ("codex", Some("/roof")));
    assert_eq!(new.counters, Default::default());
    let by_key = store.session_by_origin(&owner(), "codex", "k").unwrap().unwrap();
    assert_eq!(by_key.id, id("one"));
}

fn no_message_is_copied_or_touched(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b", "c"]);
    let before = store.messages(&owner(), &id("one")).unwrap();
    compact(store, "one", "two", "S");
    say(store, "two", &["d"]);
    compact(store, "two", "three", "S");
    assert_eq!(store.messages(&owner(), &id("one")).unwrap(), before);
    assert!(store.messages(&owner(), &id("three")).unwrap().is_empty());
    let all = store.transcript(&owner(), &id("three")).unwrap();
    assert_eq!(all[..3], before);
    assert_eq!(all.len(), 4);
    let total = store.conversations(&owner(), &Default::default()).unwrap()[0].totals;
    assert_eq!(total.messages, 4);
}

fn the_summary_is_recorded_with_its_sources(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b", "c"]);
    compact(store, "one", "two", "first");
    let first = store.summaries(&owner(), &id("one")).unwrap().remove(0);
    assert_eq!(first.session, id("two"));
    assert_eq!((first.author.as_str(), first.document.as_str(), first.created_ms), ("rules", "first", 5_000));
    assert_eq!(first.sources, summary_of("one", 0, 2, "").sources);
    assert_eq!(first.facts, serde_json::json!({"kept": 3}));
    assert_eq!(first.figures, serde_json::json!({"tokens_before": 100}));
    assert_eq!(first.supersedes, None);
    assert_eq!(store.summary(&owner(), first.id).unwrap(), first);

    say(store, "two", &["d"]);
    let mut second = folding(store, "two", "three", "second");
    second.summary.as_mut().unwrap().supersedes = Some(first.id);
    store.continue_session(&owner(), second).unwrap();
    let all = store.summaries(&owner(), &id("two")).unwrap();
    assert_eq!(all.iter().map(|summary| summary.document.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!(all[1].supersedes, Some(first.id));
    assert!(first.id < all[1].id);
    let none = store.summary(&owner(), throughline_store::SummaryId(all[1].id.0 + 1));
    assert!(matches!(none, Err(StoreError::UnknownSummary { .. })));
}

fn the_chain_is_the_same_from_every_member(store: &dyn Store) {
    open(store, "s0");
    for at in 0..40 {
        say(store, &format!("s{at}"), &[&format!("said {at}")]);
        compact(store, &format!("s{at}"), &format!("s{}", at + 1), &format!("S{at}"));
    }
    let expected: Vec<String> = (0..=40).map(|at| format!("s{at}")).collect();
    for member in ["s0", "s17", "s40"] {
        assert_eq!(chain(store, member), expected);
    }
    assert_eq!(transcript(store, "s40").len(), 40);
    assert_eq!(transcript(store, "s17").len(), 18);
    assert_eq!(shown(store, "s40"), ["S39", "said 39"]);
    let listed = store.conversations(&owner(), &Default::default()).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].sessions, listed[0].compactions, listed[0].totals.messages), (41, 40, 40));
    assert_eq!((listed[0].root.as_str(), listed[0].tip.id.as_str()), ("s0", "s40"));
}

fn only_the_tip_can_be_continued(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    compact(store, "one", "two", "S");
    compact(store, "two", "three", "S");
    for from in ["one", "two"] {
        match store.continue_session(&owner(), folding(store, from, "four", "S")).unwrap_err() {
            StoreError::SessionEnded { id: ended, reason, successor } => {
                assert_eq!((ended, reason.as_str(), successor), (id(from), "compression", Some(id("three"))));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(chain(store, "one"), ["one", "two", "three"]);
}

fn a_session_that_ended_for_good_is_not_continued(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    end(store, "one", EndReason::RESET);
    let error = store.continue_session(&owner(), folding(store, "one", "two", "S")).unwrap_err();
    assert!(
        matches!(&error, StoreError::SessionEnded { reason, successor: None, .. } if reason == "reset"),
        "{error:?}"
    );
    assert_eq!(chain(store, "one"), ["one"]);
}

fn a_successor_whose_id_is_taken_is_refused_and_nothing_is_half_done(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    open(store, "taken");
    let error = store.continue_session(&owner(), folding(store, "one", "taken", "S")).unwrap_err();
    assert!(matches!(error, StoreError::SessionExists { id: taken } if taken == id("taken")));
    let error = store.continue_session(&owner(), folding(store, "one", "one", "S")).unwrap_err();
    assert!(matches!(error, StoreError::SessionExists { .. }));
    assert_eq!(session(store, "one").ended_ms, None);
    assert!(store.summaries(&owner(), &id("one")).unwrap().is_empty());
    say(store, "one", &["b"]);
    assert_eq!(shown(store, "one"), ["a", "b"]);
    assert!(shown(store, "taken").is_empty());
}

fn a_session_without_words_can_be_continued(store: &dyn Store) {
    open(store, "one");
    compact(store, "one", "two", "S");
    say(store, "two", &["a"]);
    assert_eq!(shown(store, "two"), ["S", "a"]);
    assert_eq!(transcript(store, "two"), ["a"]);
}

fn an_imported_continuation_without_a_view_goes_on_where_its_parent_was(store: &dyn Store) {
    open(store, "one");
    store.append(&owner(), &id("one"), vec![said("a"), said_shown_as("long b", "b")]).unwrap();
    let opened = store.open_session(linked("two", LinkKind::Continuation, "one", 0), None).unwrap();
    assert_eq!(opened.first_seq, 2);
    assert_eq!(opened.link.unwrap().leaves_at, 2);
    assert!(session(store, "one").ended_ms.is_some());
    say(store, "two", &["c"]);
    assert_eq!(shown(store, "two"), ["a", "b", "c"]);
    assert_eq!(chain(store, "one"), ["one", "two"]);
    assert_eq!(store.conversations(&owner(), &Default::default()).unwrap()[0].compactions, 0);
}

fn sub_agents_and_side_calls_do_not_confuse_the_tip(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    compact(store, "one", "two", "S");
    for (name, kind) in [("agent", LinkKind::SubAgent), ("title", LinkKind::SideCall)] {
        let opened = store.open_session(linked(name, kind, "one", 1), None).unwrap();
        assert_eq!((opened.first_seq, opened.chain), (0, opened.ordinal));
        say(store, name, &["beside"]);
        assert_eq!(shown(store, name), ["beside"]);
        assert_eq!(transcript(store, name), ["beside"]);
    }
    branch(store, "branch", "one", 1);
    assert_eq!(chain(store, "one"), ["one", "two"]);
    say(store, "two", &["b"]);
    compact(store, "two", "three", "S");
    assert_eq!(chain(store, "one"), ["one", "two", "three"]);
    assert_eq!(chain(store, "agent"), ["agent"]);
    assert_eq!(family(store, "title"), ["one", "two", "agent", "title", "branch", "three"]);
}

on_every_backend!(
    a_compaction_ends_one_session_and_opens_the_next,
    no_message_is_copied_or_touched,
    the_summary_is_recorded_with_its_sources,
    the_chain_is_the_same_from_every_member,
    only_the_tip_can_be_continued,
    a_session_that_ended_for_good_is_not_continued,
    a_successor_whose_id_is_taken_is_refused_and_nothing_is_half_done,
    a_session_without_words_can_be_continued,
    an_imported_continuation_without_a_view_goes_on_where_its_parent_was,
    sub_agents_and_side_calls_do_not_confuse_the_tip,
);
