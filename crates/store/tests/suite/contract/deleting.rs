//! Deleting conversations, with and without what hangs on them.

use throughline_store::{
    ArtifactRange, Dependants, Guard, GuardScope, LinkKind, NewArtifact, NewCall, SearchQuery, Store,
    StoreError, UsageBy,
};

use crate::contract::support::*;

fn everything_of_a_chain_goes_with_any_member(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["unmistakable words"]);
    compact(store, "one", "two", "S");
    say(store, "two", &["more"]);
    compact(store, "two", "three", "S");
    let summary = store.summaries(&owner(), &id("one")).unwrap()[0].id;
    let call = NewCall { model: "m".into(), cost_micro_usd: Some(5), ..NewCall::default() };
    store.record_calls(&owner(), &id("one"), vec![call]).unwrap();
    let scope = GuardScope::Chain(owner(), id("two"));
    let guard = Guard { name: "strikes".into(), value: 1.into(), set_ms: 0, expires_ms: None };
    store.set_guard(&scope, "strikes", Some(&guard)).unwrap();
    open(store, "other");
    say(store, "other", &["stays"]);

    assert_eq!(delete(store, "two", Dependants::Refuse).unwrap(), ["one", "two", "three"]);
    for gone in ["one", "two", "three"] {
        assert_eq!(unknown(store.session(&owner(), &id(gone))), gone);
        assert_eq!(unknown(store.messages(&owner(), &id(gone))), gone);
    }
    assert!(matches!(store.summary(&owner(), summary), Err(StoreError::UnknownSummary { .. })));
    assert!(store.usage(&owner(), &Default::default(), UsageBy::Model).unwrap().is_empty());
    let query = SearchQuery { text: "unmistakable".into(), ..SearchQuery::default() };
    assert!(store.search(&owner(), &query).unwrap().hits.is_empty());
    assert!(store.guard(&scope, "strikes", 0).is_err());
    assert_eq!(messages(store, "other"), ["stays"]);
    assert_eq!(store.conversations(&owner(), &Default::default()).unwrap().len(), 1);
}

fn a_chain_others_hang_on_is_not_deleted_by_accident(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    compact(store, "one", "two", "S");
    branch(store, "side", "one", 1);
    store.open_session(linked("agent", LinkKind::SubAgent, "side", 1), None).unwrap();
    match delete(store, "two", Dependants::Refuse).unwrap_err() {
        StoreError::HasDependants { id: refused, dependants } => {
            assert_eq!(refused, id("two"));
            assert_eq!(dependants, [id("side"), id("agent")]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(family(store, "one"), ["one", "two", "side", "agent"]);
    assert_eq!(delete(store, "one", Dependants::Delete).unwrap(), ["one", "two", "side", "agent"]);
    assert!(store.conversations(&owner(), &Default::default()).unwrap().is_empty());
}

fn what_hangs_on_a_dependant_s_continuation_goes_too(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    branch(store, "side", "one", 1);
    say(store, "side", &["x"]);
    compact(store, "side", "side2", "S");
    store.open_session(linked("agent", LinkKind::SideCall, "side2", 2), None).unwrap();
    assert_eq!(delete(store, "one", Dependants::Delete).unwrap(), ["one", "side", "side2", "agent"]);
}

fn a_branch_goes_alone(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    branch(store, "side", "one", 1);
    say(store, "side", &["x"]);
    store.open_session(linked("agent", LinkKind::SubAgent, "one", 1), None).unwrap();
    assert_eq!(delete(store, "side", Dependants::Refuse).unwrap(), ["side"]);
    assert_eq!(delete(store, "agent", Dependants::Refuse).unwrap(), ["agent"]);
    assert_eq!(transcript(store, "one"), ["a"]);
    assert_eq!(family(store, "one"), ["one"]);
    assert_eq!(delete(store, "one", Dependants::Refuse).unwrap(), ["one"]);
}

fn an_id_may_be_used_again_after_it_is_gone(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["old"]);
    let old = session(store, "one").ordinal;
    delete(store, "one", Dependants::Refuse).unwrap();
    open(store, "one");
    say(store, "one", &["new"]);
    assert_eq!(transcript(store, "one"), ["new"]);
    assert!(session(store, "one").ordinal > old);
}

fn artifacts_go_when_nobody_refers_to_them_any_more(store: &dyn Store) {
    open(store, "one");
    open(store, "two");
    let put = |name: &str, text: &str| {
        let session = id(name);
        let new = NewArtifact { session: &session, text, label: "bash", at_ms: 1 };
        store.put_artifact(&owner(), new).unwrap().id
    };
    let (shared, own) = (put("one", "shared text"), put("one", "own text"));
    assert_eq!(put("two", "shared text"), shared);
    delete(store, "one", Dependants::Refuse).unwrap();
    assert_eq!(store.read_artifact(&owner(), &shared, ArtifactRange::All).unwrap(), "shared text");
    let gone = store.read_artifact(&owner(), &own, ArtifactRange::All).unwrap_err();
    assert!(matches!(gone, StoreError::UnknownArtifact { .. }), "{gone:?}");
    delete(store, "two", Dependants::Refuse).unwrap();
    assert!(store.artifact(&owner(), &shared).is_err());
}

fn numbers_are_not_given_out_again(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a", "b"]);
    let number = store.messages(&owner(), &id("one")).unwrap()[1].id;
    delete(store, "one", Dependants::Refuse).unwrap();
    open(store, "two");
    say(store, "two", &["c"]);
    assert!(store.messages(&owner(), &id("two")).unwrap()[0].id > number);
}

on_every_backend!(
    a_chain_others_hang_on_is_not_deleted_by_accident,
    what_hangs_on_a_dependant_s_continuation_goes_too,
    a_branch_goes_alone,
    an_id_may_be_used_again_after_it_is_gone,
    artifacts_go_when_nobody_refers_to_them_any_more,
    numbers_are_not_given_out_again,
);
on_databases!(searching; everything_of_a_chain_goes_with_any_member);

super::support::on_artifact_places!(artifacts_go_when_nobody_refers_to_them_any_more);
