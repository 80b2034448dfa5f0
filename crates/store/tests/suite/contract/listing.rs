//! Lists of conversations.

use throughline_store::{LinkKind, ListCursor, NewCall, NewSession, Origin, Owner, SessionFilter, Store};
use throughline_tokens::Usage;

use crate::contract::support::*;

fn listed(store: &dyn Store, filter: &SessionFilter) -> Vec<String> {
    let conversations = store.conversations(&owner(), filter).unwrap();
    conversations.iter().map(|conversation| conversation.tip.id.to_string()).collect()
}

fn the_most_recently_active_come_first(store: &dyn Store) {
    for (name, at_ms) in [("one", 30_000), ("two", 10_000), ("three", 20_000)] {
        open(store, name);
        store.append(&owner(), &id(name), vec![said_at("x", at_ms)]).unwrap();
    }
    assert_eq!(listed(store, &SessionFilter::default()), ["one", "three", "two"]);
    assert_eq!(listed(store, &SessionFilter { limit: Some(2), ..Default::default() }), ["one", "three"]);
    assert!(listed(store, &SessionFilter { limit: Some(0), ..Default::default() }).is_empty());
    let first = &store.conversations(&Owner::default(), &SessionFilter::default()).unwrap()[0];
    let after = Some(ListCursor::of(first));
    assert_eq!(listed(store, &SessionFilter { after, ..Default::default() }), ["three", "two"]);
    assert_eq!(listed(store, &SessionFilter { after, limit: Some(1), ..Default::default() }), ["three"]);
    assert_eq!(
        listed(store, &SessionFilter { since_ms: Some(20_000), ..Default::default() }),
        ["one", "three"]
    );
}

fn of_those_active_at_once_the_newest_comes_first(store: &dyn Store) {
    for name in ["b", "a", "c"] {
        open(store, name);
    }
    assert_eq!(listed(store, &SessionFilter::default()), ["c", "a", "b"]);
}

fn a_chain_is_listed_once_with_its_totals(store: &dyn Store) {
    let new = NewSession { title: Some("Roof".into()), started_ms: 77, ..new_session("one") };
    store.open_session(new, None).unwrap();
    say(store, "one", &["a", "b"]);
    let usage = Usage { input: 1, output: 2, cache_read: 3, cache_write: 4, reasoning: 1 };
    let call = |cost| NewCall { model: "m".into(), usage, cost_micro_usd: cost, ..NewCall::default() };
    store.record_calls(&owner(), &id("one"), vec![call(Some(7)), call(None)]).unwrap();
    compact(store, "one", "two", "S");
    say(store, "two", &["c"]);
    store.record_calls(&owner(), &id("two"), vec![call(Some(5))]).unwrap();
    let conversation = store.conversations(&owner(), &Default::default()).unwrap().remove(0);
    assert_eq!((conversation.root.as_str(), conversation.tip.id.as_str()), ("one", "two"));
    assert_eq!((conversation.sessions, conversation.compactions, conversation.started_ms), (2, 1, 77));
    assert_eq!(conversation.title.as_deref(), Some("Roof"));
    let totals = conversation.totals;
    assert_eq!((totals.messages, totals.message_tokens, totals.calls), (3, 30, 3));
    assert_eq!((totals.cost_micro_usd, totals.unpriced_calls), (12, 1));
    assert_eq!(totals.usage, usage + usage + usage);
}

fn what_hangs_on_a_conversation_is_listed_when_asked_for(store: &dyn Store) {
    open(store, "one");
    say(store, "one", &["a"]);
    store.open_session(linked("agent", LinkKind::SubAgent, "one", 1), None).unwrap();
    store.open_session(linked("title", LinkKind::SideCall, "one", 1), None).unwrap();
    store.open_session(linked("summary", LinkKind::SideBranch, "one", 1), None).unwrap();
    branch(store, "side", "one", 1);
    say(store, "agent", &["b"]);
    compact(store, "agent", "agent2", "S");
    assert_eq!(listed(store, &SessionFilter::default()), ["one", "side"]);
    let all = listed(store, &SessionFilter { include_attached: true, ..Default::default() });
    assert_eq!(all, ["agent2", "one", "side", "summary", "title"]);
}

fn programs_are_distinguished(store: &dyn Store) {
    for (name, program) in [("one", "codex"), ("two", "hermes"), ("three", "codex")] {
        let origin = Origin { program: program.into(), ..Origin::default() };
        store.open_session(NewSession { origin, ..new_session(name) }, None).unwrap();
    }
    let of = |program: &str| {
        listed(store, &SessionFilter { program: Some(program.into()), ..SessionFilter::default() })
    };
    assert_eq!(of("codex"), ["three", "one"]);
    assert_eq!(of("hermes"), ["two"]);
    assert!(of("cod").is_empty());
}

on_every_backend!(
    the_most_recently_active_come_first,
    of_those_active_at_once_the_newest_comes_first,
    a_chain_is_listed_once_with_its_totals,
    what_hangs_on_a_conversation_is_listed_when_asked_for,
    programs_are_distinguished,
);
