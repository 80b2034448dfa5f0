//! Calls, their totals, and the preambles that were sent.

use throughline_store::{
    CallFilter, NewCall, NewMessage, NewSession, Origin, Store, StoredPreamble, UsageBy, UsageKind,
    UsageTotal,
};
use throughline_tokens::Usage;

use crate::contract::support::*;

const DAY_MS: i64 = 86_400_000;

fn call(key: &str, at_ms: i64) -> NewCall {
    NewCall {
        key: Some(key.into()),
        model: "model-a".into(),
        provider: "someone".into(),
        task: "chat".into(),
        usage: Usage { input: 10, output: 5, cache_read: 100, cache_write: 20, reasoning: 2 },
        cost_micro_usd: Some(1_000),
        uncached_micro_usd: Some(3_000),
        at_ms,
        latency_ms: Some(250),
        ..NewCall::default()
    }
}

fn groups(store: &dyn Store, by: UsageBy) -> Vec<(String, u64)> {
    let totals = store.usage(&owner(), &CallFilter::default(), by).unwrap();
    totals.into_iter().map(|total| (total.group, total.calls)).collect()
}

fn a_call_is_read_back_as_it_was_booked(store: &dyn Store) {
    open(store, "one");
    let preamble = store.put_preamble(&StoredPreamble::default()).unwrap();
    let booked = NewCall {
        usage_kind: UsageKind::Estimated,
        usage_raw: Some("{\"input_tokens\": 10}".into()),
        first_token_ms: Some(90),
        error: Some("overloaded".into()),
        preamble: Some(preamble),
        sent_to_seq: Some(4),
        cache_miss: Some("tools changed".into()),
        access_token: Some("desk".into()),
        ..call("k", -7)
    };
    assert_eq!(
        store.record_calls(&owner(), &id("one"), vec![booked.clone(), NewCall::default()]).unwrap(),
        2
    );
    let calls = store.calls(&owner(), &id("one")).unwrap();
    assert_eq!(calls[0].call, booked);
    assert_eq!(calls[1].call, NewCall::default());
    assert_eq!(calls[0].session, id("one"));
    assert!(calls[0].id < calls[1].id);
}

fn a_call_is_found_by_its_key_among_those_of_its_owner(store: &dyn Store) {
    open(store, "one");
    open(store, "two");
    let failed = NewCall { error: Some("cut off".into()), ..call("failed", 1) };
    store.record_calls(&owner(), &id("one"), vec![call("k", 1), failed]).unwrap();
    store.record_calls(&owner(), &id("two"), vec![call("k", 2)]).unwrap();
    let found = store.call_by_key(&owner(), "k").unwrap().unwrap();
    assert_eq!((found.session, found.call.at_ms), (id("two"), 2), "the newest of them");
    assert_eq!(store.call_by_key(&owner(), "failed").unwrap(), None);
    assert_eq!(store.call_by_key(&owner(), "unknown").unwrap(), None);
    assert_eq!(store.call_by_key(&stranger(), "k").unwrap(), None);
}

fn a_key_is_booked_once_a_session(store: &dyn Store) {
    open(store, "one");
    open(store, "two");
    let again = NewCall { cost_micro_usd: Some(9), ..call("k", 5) };
    let record = |name: &str, calls| store.record_calls(&owner(), &id(name), calls).unwrap();
    assert_eq!(record("one", vec![call("k", 1), again.clone(), call("l", 1)]), 2);
    assert_eq!(record("one", vec![again.clone(), call("m", 1)]), 1);
    assert_eq!(record("two", vec![again]), 1);
    let without = NewCall { key: None, ..call("", 1) };
    assert_eq!(record("two", vec![without.clone(), without]), 2);
    assert_eq!(record("two", Vec::new()), 0);
    let read = session(store, "one");
    assert_eq!((read.counters.calls, read.counters.cost_micro_usd), (3, 3_000));
    assert_eq!(read.counters.usage.cache_read, 300);
}

fn counters_tell_priced_from_unpriced(store: &dyn Store) {
    open(store, "one");
    let unpriced = NewCall { cost_micro_usd: None, ..call("u", 9_999) };
    store.record_calls(&owner(), &id("one"), vec![call("k", 1), unpriced]).unwrap();
    let counters = session(store, "one").counters;
    assert_eq!((counters.calls, counters.cost_micro_usd, counters.unpriced_calls), (2, 1_000, 1));
    assert_eq!(
        counters.usage,
        Usage { input: 20, output: 10, cache_read: 200, cache_write: 40, reasoning: 4 }
    );
}

fn ended_sessions_may_be_booked_to(store: &dyn Store) {
    open(store, "one");
    compact(store, "one", "two", "S");
    store.record_calls(&owner(), &id("one"), vec![call("a", 1)]).unwrap();
    store.record_calls(&owner(), &id("two"), vec![call("b", 2)]).unwrap();
    let keys = |name: &str| -> Vec<Option<String>> {
        store.calls(&owner(), &id(name)).unwrap().into_iter().map(|call| call.call.key).collect()
    };
    assert_eq!(keys("one"), [Some("a".to_owned()), Some("b".to_owned())]);
    assert_eq!(keys("two"), keys("one"));
}

fn totals_add_every_column_up(store: &dyn Store) {
    open(store, "one");
    open(store, "two");
    let failed = NewCall { error: Some("x".into()), latency_ms: None, ..call("f", 2) };
    let unpriced = NewCall { cost_micro_usd: None, uncached_micro_usd: Some(50_000), ..call("u", 3) };
    let estimated = NewCall { usage_kind: UsageKind::Estimated, ..call("e", 4) };
    store.record_calls(&owner(), &id("one"), vec![call("k", 1), failed]).unwrap();
    store.record_calls(&owner(), &id("two"), vec![unpriced, estimated]).unwrap();
    let totals = store.usage(&owner(), &CallFilter::default(), UsageBy::Everything).unwrap();
    let expected = UsageTotal {
        group: String::new(),
        calls: 4,
        failed: 1,
        estimated: 1,
        usage: Usage { input: 40, output: 20, cache_read: 400, cache_write: 80, reasoning: 8 },
        cost_micro_usd: 3_000,
        unpriced: 1,
        uncached_micro_usd: 9_000,
        latency_ms: 750,
        sessions: 2,
    };
    assert_eq!(totals, [expected]);
}

fn totals_are_grouped_by_what_is_asked_for(store: &dyn Store) {
    let origin = |program: &str, project: Option<&str>| Origin {
        program: program.into(),
        key: None,
        project: project.map(Into::into),
    };
    let open_from =
        |name: &str, origin| store.open_session(NewSession { origin, ..new_session(name) }, None).unwrap();
    open_from("one", origin("codex", Some("/roof")));
    open_from("two", origin("hermes", None));
    let access_token = Some("desk".into());
    let titled = NewCall { model: "model-b".into(), task: "title".into(), access_token, ..call("b", 2) };
    store.record_calls(&owner(), &id("one"), vec![call("a", 1), titled]).unwrap();
    store.record_calls(&owner(), &id("two"), vec![call("c", 3)]).unwrap();
    let named =
        |pairs: &[(&str, u64)]| pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Vec<_>>();
    assert_eq!(groups(store, UsageBy::Model), named(&[("model-a", 2), ("model-b", 1)]));
    assert_eq!(groups(store, UsageBy::Task), named(&[("chat", 2), ("title", 1)]));
    assert_eq!(groups(store, UsageBy::Program), named(&[("codex", 2), ("hermes", 1)]));
    assert_eq!(groups(store, UsageBy::Project), named(&[("", 1), ("/roof", 2)]));
    assert_eq!(groups(store, UsageBy::AccessToken), named(&[("", 2), ("desk", 1)]));
}

fn cache_misses_are_grouped_by_reason_without_their_figures(store: &dyn Store) {
    open(store, "one");
    let missed = |key: &str, words: &str| NewCall { cache_miss: Some(words.into()), ..call(key, 1) };
    let calls = vec![
        call("hit", 1),
        missed("a", "messages changed from item 4 on"),
        missed("b", "messages changed from item 17 on"),
        missed("c", "expired after 301 s"),
        missed("d", "500 tokens are below the minimum of 1024"),
        missed("e", "something new"),
    ];
    store.record_calls(&owner(), &id("one"), calls).unwrap();
    let found = groups(store, UsageBy::CacheMiss);
    let wanted =
        [("", 1), ("below the minimum", 1), ("expired", 1), ("messages changed", 2), ("something new", 1)];
    assert_eq!(found, wanted.map(|(name, calls)| (name.to_owned(), calls)));
}

fn days_are_those_of_the_reader(store: &dyn Store) {
    open(store, "one");
    let late = 20_000 * DAY_MS + DAY_MS - 1; // the last millisecond of 2024-10-04 in UTC
    store
        .record_calls(&owner(), &id("one"), vec![call("a", late), call("b", late + 1), call("c", -1)])
        .unwrap();
    let by = |offset_minutes| {
        groups(store, UsageBy::Day { offset_minutes })
            .into_iter()
            .map(|(day, n)| format!("{day} {n}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(by(0), ["1969-12-31 1", "2024-10-04 1", "2024-10-05 1"]);
    assert_eq!(by(60), ["1970-01-01 1", "2024-10-05 2"]);
    assert_eq!(by(-60), ["1969-12-31 1", "2024-10-04 2"]);
}

fn filters_take_the_beginning_and_leave_the_end(store: &dyn Store) {
    open(store, "one");
    open(store, "other");
    store.record_calls(&owner(), &id("one"), vec![call("a", 10), call("b", 20)]).unwrap();
    compact(store, "one", "two", "S");
    store.record_calls(&owner(), &id("two"), vec![call("c", 30)]).unwrap();
    store.record_calls(&owner(), &id("other"), vec![call("d", 20)]).unwrap();
    let count = |filter: CallFilter| {
        let totals = store.usage(&owner(), &filter, UsageBy::Everything).unwrap();
        totals.first().map_or(0, |total| total.calls)
    };
    assert_eq!(count(CallFilter::default()), 4);
    assert_eq!(count(CallFilter { since_ms: Some(20), ..Default::default() }), 3);
    assert_eq!(count(CallFilter { until_ms: Some(20), ..Default::default() }), 1);
    assert_eq!(count(CallFilter { since_ms: Some(20), until_ms: Some(30), ..Default::default() }), 2);
    assert_eq!(count(CallFilter { since_ms: Some(31), ..Default::default() }), 0);
    assert_eq!(count(CallFilter { chain_of: Some(id("one")), ..Default::default() }), 3);
    assert_eq!(count(CallFilter { chain_of: Some(id("two")), until_ms: Some(20), ..Default::default() }), 1);
    let nobody = CallFilter { chain_of: Some(id("nobody")), ..Default::default() };
    assert_eq!(unknown(store.usage(&owner(), &nobody, UsageBy::Model)), "nobody");
}

fn preambles_are_kept_once_and_told_apart(store: &dyn Store) {
    let part = |text: &str| Some(text.to_owned());
    let whole =
        StoredPreamble { system: part("\"be kind\""), tools: part("[ ]"), parameters: part("{\"t\":1}") };
    let first = store.put_preamble(&whole).unwrap();
    assert_eq!(store.put_preamble(&whole.clone()).unwrap(), first);
    assert_eq!(store.preamble(&first).unwrap(), Some(whole.clone()));
    let others = [
        StoredPreamble { system: part("\"be kind\"[ ]"), tools: part(""), ..whole.clone() },
        StoredPreamble { system: part("\"be kind\"[ ]"), tools: None, ..whole.clone() },
        StoredPreamble { system: whole.tools.clone(), tools: whole.system.clone(), ..whole.clone() },
        StoredPreamble { parameters: None, ..whole },
        StoredPreamble::default(),
    ];
    let mut ids = vec![first];
    for other in others {
        let id = store.put_preamble(&other).unwrap();
        assert!(!ids.contains(&id), "{other:?}");
        assert_eq!(store.preamble(&id).unwrap(), Some(other));
        ids.push(id);
    }
    assert_eq!(store.preamble(&throughline_store::PreambleId("nothing".into())).unwrap(), None);
}

fn tools_are_counted_by_message(store: &dyn Store) {
    open(store, "one");
    let with = |tools: &[&str], tokens, at_ms| NewMessage {
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        tokens,
        ..said_at("x", at_ms)
    };
    let batch =
        vec![with(&["bash"], 1, 10), with(&["bash", "edit"], 2, 20), with(&["abc"], 4, 30), with(&[], 8, 40)];
    store.append(&owner(), &id("one"), batch).unwrap();
    let counts = |since_ms| -> Vec<(String, u64, u64)> {
        let counts = store.tool_counts(&owner(), since_ms).unwrap();
        counts.into_iter().map(|count| (count.tool, count.messages, count.tokens)).collect()
    };
    let named = |tool: &str, messages, tokens| (tool.to_owned(), messages, tokens);
    assert_eq!(counts(None), [named("bash", 2, 3), named("abc", 1, 4), named("edit", 1, 2)]);
    assert_eq!(counts(Some(20)), [named("abc", 1, 4), named("bash", 1, 2), named("edit", 1, 2)]);
    assert!(counts(Some(31)).is_empty());
}

on_every_backend!(
    a_call_is_read_back_as_it_was_booked,
    a_call_is_found_by_its_key_among_those_of_its_owner,
    a_key_is_booked_once_a_session,
    counters_tell_priced_from_unpriced,
    ended_sessions_may_be_booked_to,
    totals_add_every_column_up,
    totals_are_grouped_by_what_is_asked_for,
    cache_misses_are_grouped_by_reason_without_their_figures,
    days_are_those_of_the_reader,
    filters_take_the_beginning_and_leave_the_end,
    preambles_are_kept_once_and_told_apart,
    tools_are_counted_by_message,
);
