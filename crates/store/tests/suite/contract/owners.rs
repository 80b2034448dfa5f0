//! Owners: whatever is asked in another's name, nothing of mine is answered, changed or even known.

use throughline_store::{
    Artifact, ArtifactRange, CallFilter, Dependants, EndReason, Guard, GuardScope, Link, LinkKind,
    NewArtifact, NewCall, NewMessage, NewSession, NewViewItem, Origin, SearchMode, SearchQuery, Selection,
    SessionFilter, Store, StoreError, SummaryId, UsageBy,
};

use crate::contract::support::*;

/// A record with everything in it, all of it mine.
fn mine(store: &dyn Store) -> (Artifact, SummaryId) {
    let new = NewSession {
        title: Some("Secret plan".into()),
        origin: Origin { program: "codex".into(), key: Some("k".into()), project: Some("/secret".into()) },
        ..new_session("one")
    };
    store.open_session(new, None).unwrap();
    let with_tool = NewMessage { tools: vec!["bash".into()], ..said("the secret words") };
    store.append(&owner(), &id("one"), vec![with_tool]).unwrap();
    let session = id("one");
    let artifact = NewArtifact { session: &session, text: "secret artifact text", label: "mine", at_ms: 1 };
    let artifact = store.put_artifact(&owner(), artifact).unwrap();
    let call = NewCall { model: "secret-model".into(), ..NewCall::default() };
    store.record_calls(&owner(), &id("one"), vec![call]).unwrap();
    let scope = GuardScope::Chain(owner(), id("one"));
    let guard = Guard { name: "g".into(), value: 1.into(), set_ms: 0, expires_ms: None };
    store.set_guard(&scope, "g", Some(&guard)).unwrap();
    compact(store, "one", "two", "secret summary");
    let summary = store.summaries(&owner(), &id("two")).unwrap()[0].id;
    (artifact, summary)
}

fn a_stranger_finds_no_session(store: &dyn Store) {
    mine(store);
    let them = stranger();
    for name in ["one", "two"] {
        assert_eq!(unknown(store.session(&them, &id(name))), name);
        assert_eq!(unknown(store.chain(&them, &id(name))), name);
        assert_eq!(unknown(store.family(&them, &id(name))), name);
    }
    for reference in ["one", "two", "o", "tw", "last", "Secret plan"] {
        assert_eq!(unknown(store.resolve(&them, reference)), reference);
    }
    assert_eq!(store.session_by_origin(&them, "codex", "k").unwrap(), None);
    let all = SessionFilter { include_attached: true, ..SessionFilter::default() };
    assert!(store.conversations(&them, &all).unwrap().is_empty());
}

fn a_stranger_reads_no_words(store: &dyn Store) {
    let (_, summary) = mine(store);
    let them = stranger();
    assert_eq!(unknown(store.messages(&them, &id("one"))), "one");
    assert_eq!(unknown(store.transcript(&them, &id("two"))), "two");
    assert_eq!(unknown(store.view_items(&them, &id("one"))), "one");
    assert_eq!(unknown(store.view(&them, &id("one"), None)), "one");
    assert_eq!(unknown(store.summaries(&them, &id("one"))), "one");
    assert!(matches!(store.summary(&them, summary), Err(StoreError::UnknownSummary { .. })));
    for mode in [SearchMode::Words, SearchMode::Substring] {
        for text in ["secret", "artifact", "the secret words", "ecre"] {
            let query = SearchQuery { text: text.into(), mode, ..SearchQuery::default() };
            assert!(store.search(&them, &query).unwrap().hits.is_empty(), "{text} as {mode:?}");
        }
    }
    let within = SearchQuery { text: "secret".into(), session: Some(id("one")), ..SearchQuery::default() };
    assert_eq!(unknown(store.search(&them, &within)), "one");
}

fn a_stranger_changes_nothing(store: &dyn Store) {
    mine(store);
    let them = stranger();
    let before = (session(store, "one"), session(store, "two"), view(store, "two"));
    assert_eq!(unknown(store.append(&them, &id("two"), vec![said("x")])), "two");
    assert_eq!(unknown(store.rename(&them, &id("two"), Some("x"))), "two");
    assert_eq!(unknown(store.end_session(&them, &id("two"), &EndReason::NEW, 1)), "two");
    assert_eq!(unknown(store.delete(&them, &id("two"), Dependants::Delete)), "two");
    assert_eq!(unknown(store.continue_session(&them, folding(store, "two", "three", "S"))), "two");
    let undo = store.select_view(&them, selecting(Selection::Undo, "two", "three", NO_LIMIT));
    assert_eq!(unknown(undo), "two");
    assert_eq!(unknown(store.record_calls(&them, &id("two"), vec![NewCall::default()])), "two");
    let session_id = id("two");
    let artifact = NewArtifact { session: &session_id, text: "x", label: "", at_ms: 1 };
    assert_eq!(unknown(store.put_artifact(&them, artifact)), "two");
    let scope = GuardScope::Chain(them, id("two"));
    assert_eq!(unknown(store.set_guard(&scope, "g", None)), "two");
    assert_eq!(unknown(store.guard(&scope, "g", 0)), "two");
    assert_eq!((session(store, "one"), session(store, "two"), view(store, "two")), before);
    assert_eq!(chain(store, "one"), ["one", "two"]);
}

fn a_stranger_hangs_nothing_on_mine_and_shows_nothing_of_it(store: &dyn Store) {
    let (_, summary) = mine(store);
    for kind in [LinkKind::Continuation, LinkKind::Branch, LinkKind::SubAgent, LinkKind::SideCall] {
        let link = Some(Link { parent: id("two"), kind, leaves_at: 1 });
        let new = NewSession { owner: stranger(), link, ..new_session("theirs") };
        assert_eq!(unknown(store.open_session(new, None)), "two");
    }
    let theirs = NewSession { owner: stranger(), ..new_session("theirs") };
    let refused = store.open_session(theirs.clone(), Some(vec![range("one", 0, 1)]));
    assert!(matches!(refused, Err(StoreError::UnknownMessage { .. })));
    store.open_session(theirs, None).unwrap();
    let mut stolen = folding(store, "two", "stolen", "S");
    stolen.from = id("theirs");
    stolen.made_at_seq = 0;
    stolen.view = vec![NewViewItem::Kept(range("one", 0, 1))];
    let refused = store.continue_session(&stranger(), stolen.clone());
    assert!(matches!(refused, Err(StoreError::UnknownMessage { .. })));
    let item = throughline_store::ViewItem::Summary { summary, json: words_json("S"), tokens: 1 };
    stolen.view = vec![NewViewItem::Kept(item)];
    let refused = store.continue_session(&stranger(), stolen);
    assert!(matches!(refused, Err(StoreError::UnknownSummary { .. })));
    assert_eq!(family(store, "one"), ["one", "two"]);
}

fn a_stranger_counts_nothing(store: &dyn Store) {
    mine(store);
    let them = stranger();
    assert_eq!(unknown(store.calls(&them, &id("one"))), "one");
    for by in [UsageBy::Everything, UsageBy::Model, UsageBy::Project] {
        assert!(store.usage(&them, &CallFilter::default(), by).unwrap().is_empty());
    }
    let of_mine = CallFilter { chain_of: Some(id("one")), ..CallFilter::default() };
    assert_eq!(unknown(store.usage(&them, &of_mine, UsageBy::Model)), "one");
    assert!(store.tool_counts(&them, None).unwrap().is_empty());
    assert_eq!(store.tool_counts(&owner(), None).unwrap().len(), 1);
}

fn a_stranger_gets_no_artifact_until_they_have_the_text_themselves(store: &dyn Store) {
    let (artifact, _) = mine(store);
    let them = stranger();
    assert_eq!(unknown(store.artifacts(&them, &id("one"))), "one");
    let refused = store.artifact(&them, &artifact.id);
    assert!(matches!(refused, Err(StoreError::UnknownArtifact { .. })));
    let refused = store.read_artifact(&them, &artifact.id, ArtifactRange::All);
    assert!(matches!(refused, Err(StoreError::UnknownArtifact { .. })));

    store.open_session(NewSession { owner: stranger(), ..new_session("theirs") }, None).unwrap();
    let session = id("theirs");
    let same = NewArtifact { session: &session, text: "secret artifact text", label: "theirs", at_ms: 500 };
    let kept = store.put_artifact(&them, same).unwrap();
    assert_eq!(kept.id, artifact.id);
    assert_eq!((kept.label.as_str(), kept.created_ms), ("theirs", 500), "what I called it and when is mine");
    assert_eq!(store.artifact(&them, &artifact.id).unwrap(), kept);
    assert_eq!(store.artifact(&owner(), &artifact.id).unwrap(), artifact);
    store.delete(&owner(), &id("one"), Dependants::Delete).unwrap();
    let text = store.read_artifact(&them, &artifact.id, ArtifactRange::All).unwrap();
    assert_eq!(text, "secret artifact text");
    assert!(store.artifact(&owner(), &artifact.id).is_err());
}

fn owners_may_call_their_sessions_alike(store: &dyn Store) {
    mine(store);
    let theirs = NewSession {
        owner: stranger(),
        title: Some("Secret plan".into()),
        origin: Origin { program: "codex".into(), key: Some("k".into()), project: None },
        ..new_session("theirs")
    };
    store.open_session(theirs, None).unwrap();
    assert_eq!(store.resolve(&stranger(), "Secret plan").unwrap().id, id("theirs"));
    assert_eq!(store.resolve(&owner(), "Secret plan").unwrap().id, id("two"));
    let by_key = store.session_by_origin(&stranger(), "codex", "k").unwrap().unwrap();
    assert_eq!(by_key.id, id("theirs"));
}

on_every_backend!(
    a_stranger_finds_no_session,
    a_stranger_changes_nothing,
    a_stranger_hangs_nothing_on_mine_and_shows_nothing_of_it,
    a_stranger_counts_nothing,
    a_stranger_gets_no_artifact_until_they_have_the_text_themselves,
    owners_may_call_their_sessions_alike,
);
on_databases!(searching; a_stranger_reads_no_words);
