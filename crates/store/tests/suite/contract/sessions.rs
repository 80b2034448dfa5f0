//! Opening, describing, ending and renaming sessions.

use throughline_store::{EndReason, Link, LinkKind, NewSession, Origin, Store, StoreError};
use throughline_transcript::WireFormat;

use crate::contract::support::*;

fn a_session_is_read_back_as_it_was_opened(store: &dyn Store) {
    let new = NewSession {
        model: Some("model-x".into()),
        title: Some("Mending the roof".into()),
        origin: Origin {
            program: "claude-code".into(),
            key: Some("key-1".into()),
            project: Some("/home/someone/roof".into()),
        },
        wire_format: WireFormat::Anthropic,
        started_ms: -5,
        ..new_session("20261115_093000_a1b2c3")
    };
    let opened = store.open_session(new.clone(), None).unwrap();
    let read = store.session(&owner(), &new.id).unwrap();
    assert_eq!(opened, read);
    assert_eq!(read.id, new.id);
    assert_eq!(read.owner, owner());
    assert_eq!(read.model, new.model);
    assert_eq!(read.title, new.title);
    assert_eq!(read.origin, new.origin);
    assert_eq!(read.wire_format, WireFormat::Anthropic);
    assert_eq!((read.started_ms, read.active_ms), (-5, -5));
    assert_eq!((read.ended_ms, read.end_reason), (None, None));
    assert_eq!((read.first_seq, read.next_seq), (0, 0));
    assert_eq!((read.chain, read.base), (read.ordinal, read.ordinal));
    assert_eq!(read.link, None);
    assert_eq!(read.counters, Default::default());
}

fn a_second_session_of_the_same_id_is_refused(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["hello"]);
    let refused = store.open_session(NewSession { model: None, ..new_session("one") }, None);
    assert!(matches!(refused, Err(StoreError::SessionExists { id: there }) if there == id("one")));
    assert_eq!(messages(store, "one"), ["hello"]);
    assert_eq!(session(store, "one").model.as_deref(), Some("model-a"));
}

fn ordinals_follow_the_order_of_opening_although_clocks_run_backwards(store: &dyn Store) {
    let first = store.open_session(NewSession { started_ms: 900, ..new_session("b") }, None).unwrap();
    let second = store.open_session(NewSession { started_ms: 100, ..new_session("a") }, None).unwrap();
    assert!(first.ordinal < second.ordinal);
}

fn an_unknown_id_is_said_to_be_unknown(store: &dyn Store) {
    open(store, "one");
    assert_eq!(unknown(store.session(&owner(), &id("on"))), "on");
    assert_eq!(unknown(store.session(&owner(), &id("two"))), "two");
    assert_eq!(unknown(store.chain(&owner(), &id("two"))), "two");
    assert_eq!(unknown(store.family(&owner(), &id("two"))), "two");
    assert_eq!(unknown(store.messages(&owner(), &id("two"))), "two");
    assert_eq!(unknown(store.transcript(&owner(), &id("two"))), "two");
    assert_eq!(unknown(store.view_items(&owner(), &id("two"))), "two");
    assert_eq!(unknown(store.view(&owner(), &id("two"), None)), "two");
    assert_eq!(unknown(store.append(&owner(), &id("two"), vec![said("x")])), "two");
    assert_eq!(unknown(store.end_session(&owner(), &id("two"), &EndReason::NEW, 1)), "two");
    assert_eq!(unknown(store.rename(&owner(), &id("two"), Some("x"))), "two");
    assert_eq!(unknown(delete(store, "two", throughline_store::Dependants::Delete)), "two");
    assert_eq!(unknown(store.summaries(&owner(), &id("two"))), "two");
    assert_eq!(unknown(store.calls(&owner(), &id("two"))), "two");
    assert_eq!(unknown(store.artifacts(&owner(), &id("two"))), "two");
}

fn ending_twice_keeps_the_first_reason(store: &dyn Store) {
    open(store, "one");
    store.end_session(&owner(), &id("one"), &EndReason::RESET, 4_000).unwrap();
    store.end_session(&owner(), &id("one"), &EndReason::named("logout"), 8_000).unwrap();
    let ended = session(store, "one");
    assert_eq!(ended.end_reason, Some(EndReason::RESET));
    assert_eq!(ended.ended_ms, Some(4_000));
}

fn reasons_of_other_programs_are_carried_as_they_were(store: &dyn Store) {
    open(store, "one");
    end(store, "one", EndReason::named("cli_close \u{1f50c}"));
    assert_eq!(session(store, "one").end_reason.unwrap().as_str(), "cli_close \u{1f50c}");
}

fn an_ended_session_takes_no_more_words(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["before"]);
    end(store, "one", EndReason::NEW);
    match store.append(&owner(), &id("one"), vec![said("after")]).unwrap_err() {
        StoreError::SessionEnded { id: ended, reason, successor } => {
            assert_eq!((ended, reason.as_str(), successor), (id("one"), "new", None));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(messages(store, "one"), ["before"]);
}

fn words_for_a_compacted_session_are_sent_on_to_its_newest_successor(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["before"]);
    compact(store, "one", "two", "S");
    compact(store, "two", "three", "S");
    match store.append(&owner(), &id("one"), vec![said("after")]).unwrap_err() {
        StoreError::SessionEnded { id: ended, reason, successor } => {
            assert_eq!((ended, reason.as_str(), successor), (id("one"), "compression", Some(id("three"))));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(transcript(store, "three"), ["before"]);
}

fn the_whole_chain_is_renamed_from_any_member(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["x"]);
    compact(store, "one", "two", "S");
    store.rename(&owner(), &id("one"), Some("Roof")).unwrap();
    let listed = store.conversations(&owner(), &Default::default()).unwrap();
    assert_eq!(listed[0].title.as_deref(), Some("Roof"));
    assert_eq!(store.resolve(&owner(), "Roof").unwrap().id, id("two"));
    store.rename(&owner(), &id("two"), None).unwrap();
    let listed = store.conversations(&owner(), &Default::default()).unwrap();
    assert_eq!(listed[0].title, None);
    assert_eq!(unknown(store.resolve(&owner(), "Roof")), "Roof");
}

fn renaming_leaves_branches_and_sub_agents_alone(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["x"]);
    branch(store, "side", "one", 1);
    let titled = NewSession { title: Some("Agent".into()), ..linked("agent", LinkKind::SubAgent, "one", 1) };
    store.open_session(titled, None).unwrap();
    store.rename(&owner(), &id("one"), Some("Roof")).unwrap();
    assert_eq!(session(store, "side").title, None);
    assert_eq!(session(store, "agent").title.as_deref(), Some("Agent"));
}

fn a_session_is_found_by_what_its_program_calls_it(store: &dyn Store) {
    let origin =
        |program: &str, key: &str| Origin { program: program.into(), key: Some(key.into()), project: None };
    store.open_session(NewSession { origin: origin("codex", "k"), ..new_session("one") }, None).unwrap();
    store.open_session(NewSession { origin: origin("hermes", "k"), ..new_session("two") }, None).unwrap();
    let found = |program: &str, key: &str| {
        store.session_by_origin(&owner(), program, key).unwrap().map(|session| session.id.to_string())
    };
    assert_eq!(found("codex", "k").as_deref(), Some("one"));
    assert_eq!(found("hermes", "k").as_deref(), Some("two"));
    assert_eq!(found("codex", "K"), None);
    assert_eq!(found("claude-code", "k"), None);
    for (name, key) in [("four", "k/2"), ("five", "k/1"), ("six", "K/1"), ("seven", "l"), ("eight", "k%/3")] {
        store.open_session(NewSession { origin: origin("codex", key), ..new_session(name) }, None).unwrap();
    }
    let starting = |program: &str, start: &str| {
        let found = store.sessions_by_origin(&owner(), program, start).unwrap();
        found.iter().map(|session| session.id.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(starting("codex", "k/"), "four five");
    assert_eq!(starting("codex", "k"), "one four five eight");
    assert_eq!(starting("codex", "k%"), "eight");
    assert_eq!(starting("hermes", "k"), "two");
    assert_eq!(starting("codex", "m"), "");
    let again = NewSession { origin: origin("codex", "k"), ..new_session("three") };
    let refused = store.open_session(again, None);
    assert!(matches!(refused, Err(StoreError::SessionExists { id: there }) if there == id("one")));
}

fn what_a_session_hangs_on_must_be_there(store: &dyn Store) {
    for kind in [LinkKind::Continuation, LinkKind::Branch, LinkKind::SubAgent, LinkKind::SideCall] {
        assert_eq!(unknown(store.open_session(linked("one", kind, "nobody", 0), None)), "nobody");
        assert_eq!(unknown(store.open_session(linked("one", kind, "one", 0), None)), "one");
    }
    assert!(store.conversations(&owner(), &Default::default()).unwrap().is_empty());
}

fn links_of_every_kind_are_kept(store: &dyn Store) {
    open(store, "root");
    say(store, "root", &["a", "b"]);
    for (name, kind) in [("b", LinkKind::Branch), ("s", LinkKind::SubAgent), ("c", LinkKind::SideCall)] {
        let opened = store.open_session(linked(name, kind, "root", 1), None).unwrap();
        assert_eq!(opened.link, Some(Link { parent: id("root"), kind, leaves_at: 1 }));
        assert_eq!(session(store, name), opened);
        assert_eq!(opened.chain, opened.ordinal);
    }
}

on_every_backend!(
    a_session_is_read_back_as_it_was_opened,
    a_second_session_of_the_same_id_is_refused,
    ordinals_follow_the_order_of_opening_although_clocks_run_backwards,
    an_unknown_id_is_said_to_be_unknown,
    ending_twice_keeps_the_first_reason,
    reasons_of_other_programs_are_carried_as_they_were,
    an_ended_session_takes_no_more_words,
    words_for_a_compacted_session_are_sent_on_to_its_newest_successor,
    the_whole_chain_is_renamed_from_any_member,
    renaming_leaves_branches_and_sub_agents_alone,
    a_session_is_found_by_what_its_program_calls_it,
    what_a_session_hangs_on_must_be_there,
    links_of_every_kind_are_kept,
);
