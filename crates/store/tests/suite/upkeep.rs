//! Upkeep of a record: retention, and erasing everything of one owner, on both engines.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeMap;

use throughline_store::{
    LinkKind, NewCall, NewSession, OperatorAction, Owner, RemovalReport, RetentionPolicy, SearchQuery, Store,
    StoreError, StoreUpkeep, StoredPreamble,
};

use crate::contract::support::{
    compact, folder_in, id, linked, new_session, open, owner, said_at, say, sqlite_in, stranger,
};

const DAY_MS: i64 = 86_400_000;
const NOW_MS: i64 = 100 * DAY_MS;

/// A conversation in which something was said so many days ago.
fn said_days_ago(store: &dyn Store, owner: &Owner, name: &str, days: i64) {
    let at_ms = NOW_MS - days * DAY_MS;
    let new = NewSession { owner: owner.clone(), started_ms: at_ms, ..new_session(name) };
    store.open_session(new, None).unwrap();
    store.append(owner, &id(name), vec![said_at(&format!("words of {name}"), at_ms)]).unwrap();
}

fn names(store: &dyn StoreUpkeep, owner: &Owner) -> Vec<String> {
    store.sessions_of(owner).unwrap().iter().map(ToString::to_string).collect()
}

fn policy(days: u64, owners: &[(&str, Option<u64>)]) -> RetentionPolicy {
    let owners: BTreeMap<String, Option<u64>> =
        owners.iter().map(|(owner, days)| ((*owner).to_owned(), *days)).collect();
    RetentionPolicy { days: Some(days), owners }
}

fn retention_removes_what_is_older(store: &dyn StoreUpkeep) {
    said_days_ago(store, &owner(), "old", 31);
    said_days_ago(store, &owner(), "young", 29);
    said_days_ago(store, &stranger(), "theirs", 31);
    // An old conversation of which a branch is young stays whole.
    said_days_ago(store, &owner(), "trunk", 60);
    let branch = NewSession { started_ms: NOW_MS, ..linked("branch", LinkKind::Branch, "trunk", 1) };
    store.open_session(branch, None).unwrap();
    store.append(&owner(), &id("branch"), vec![said_at("now", NOW_MS)]).unwrap();
    // A continuation goes with what it continues.
    said_days_ago(store, &owner(), "long", 50);
    compact(store, "long", "longer", "notes");

    let policy = policy(30, &[("stranger", None)]);
    let mut go_on = |_| Ok(());
    let counted = policy.apply(store, NOW_MS, true, &mut go_on).unwrap();
    assert_eq!(names(store, &owner()).len(), 6);
    let removed = policy.apply(store, NOW_MS, false, &mut go_on).unwrap();
    assert_eq!(removed, counted);
    assert_eq!((removed.conversations, removed.sessions), (2, 3), "{removed:?}");
    assert_eq!(names(store, &owner()), ["young", "trunk", "branch"]);
    assert_eq!(names(store, &stranger()), ["theirs"]);
    let found =
        store.search(&owner(), &SearchQuery { text: "words of old".into(), ..SearchQuery::default() });
    assert!(found.unwrap().hits.iter().all(|hit| hit.session != id("old")));
    let again = policy.apply(store, NOW_MS, false, &mut go_on).unwrap();
    assert_eq!(again, RemovalReport::default());
}

fn retention_stops_when_it_is_told(store: &dyn StoreUpkeep) {
    said_days_ago(store, &owner(), "one", 31);
    said_days_ago(store, &owner(), "two", 31);
    let mut asked = 0;
    let mut go_on = |_| {
        asked += 1;
        match asked {
            1 => Ok(()),
            _ => Err(StoreError::Unsupported { what: "a second one" }),
        }
    };
    policy(30, &[]).apply(store, NOW_MS, false, &mut go_on).unwrap_err();
    assert_eq!(names(store, &owner()), ["two"]);
}

fn owner_is_erased_and_others_are_not(store: &dyn StoreUpkeep) {
    open(store, "mine");
    say(store, "mine", &["words of mine"]);
    let mine = StoredPreamble { system: Some("of both".into()), ..StoredPreamble::default() };
    let theirs = StoredPreamble { system: Some("of the stranger".into()), ..StoredPreamble::default() };
    let [mine, theirs] = [mine, theirs].map(|preamble| store.put_preamble(&preamble).unwrap());
    let call = |preamble| NewCall { preamble: Some(preamble), model: "m".into(), ..NewCall::default() };
    store.record_calls(&owner(), &id("mine"), vec![call(mine.clone())]).unwrap();
    for name in ["theirs", "more of theirs"] {
        said_days_ago(store, &stranger(), name, 1);
        let calls = vec![call(mine.clone()), call(theirs.clone())];
        store.record_calls(&stranger(), &id(name), calls).unwrap();
    }
    let long = "what the stranger read\n".repeat(6_000);
    let json = serde_json::json!({ "role": "tool", "tool_call_id": "c", "content": long }).to_string();
    let message = throughline_transcript::decode_message_text(json).unwrap();
    let result = throughline_store::NewMessage { message, ..said_at("", NOW_MS) };
    store.append(&stranger(), &id("theirs"), vec![result]).unwrap();
    assert_eq!(store.artifacts(&stranger(), &id("theirs")).unwrap().len(), 1);

    let report = store.erase_owner(&stranger(), &mut |_| ()).unwrap();
    assert_eq!(report, RemovalReport { conversations: 2, sessions: 2, messages: 3 });
    assert!(names(store, &stranger()).is_empty());
    assert_eq!(names(store, &owner()), ["mine"]);
    assert!(store.preamble(&mine).unwrap().is_some());
    assert!(store.preamble(&theirs).unwrap().is_none());
    let query = |text: &str| SearchQuery { text: text.into(), ..SearchQuery::default() };
    assert_eq!(store.search(&stranger(), &query("stranger")).unwrap().hits.len(), 0);
    assert_eq!(store.search(&owner(), &query("words")).unwrap().hits.len(), 1);
    // There is nothing to be erased any more, and the name may be used again.
    assert_eq!(store.erase_owner(&stranger(), &mut |_| ()).unwrap(), RemovalReport::default());
    said_days_ago(store, &stranger(), "theirs", 0);
    assert_eq!(store.search(&stranger(), &query("words")).unwrap().hits.len(), 1);
}

fn acts_of_operators_are_noted_in_order(store: &dyn StoreUpkeep) {
    let act = |action: &str, at_ms| OperatorAction {
        action: action.into(),
        owner: "ann".into(),
        at_ms,
        by: "me@here".into(),
        conversations: 1,
        messages: 2,
    };
    let acts = [act("retention", 7), act("export-owner", 1_000), act("erase-owner", 1_000_000)];
    for act in acts.iter().rev() {
        act.note(store).unwrap();
    }
    assert_eq!(store.actions().unwrap(), acts);
}

macro_rules! on_every_place {
    ($($name:ident),* $(,)?) => {
        mod on_disk {
            use super::*;
            $(#[test] fn $name() {
                let home = tempfile::tempdir().unwrap();
                super::$name(&sqlite_in(home.path()));
            })*
        }
        mod on_disk_with_folder {
            use super::*;
            $(#[test] fn $name() {
                let home = tempfile::tempdir().unwrap();
                super::$name(&sqlite_in(home.path()).with_artifacts(Some(&folder_in(home.path()))).unwrap());
            })*
        }
        #[cfg(feature = "postgres")]
        mod on_postgres {
            $(#[test] fn $name() {
                let Some(store) = crate::contract::support::postgres() else { return };
                super::$name(&store);
            })*
        }
        #[cfg(feature = "postgres")]
        mod on_postgres_with_folder {
            use super::*;
            $(#[test] fn $name() {
                let Some(store) = crate::contract::support::postgres() else { return };
                let home = tempfile::tempdir().unwrap();
                super::$name(&store.with_artifacts(Some(&folder_in(home.path()))).unwrap());
            })*
        }
    };
}

on_every_place!(
    retention_removes_what_is_older,
    retention_stops_when_it_is_told,
    owner_is_erased_and_others_are_not,
    acts_of_operators_are_noted_in_order,
);

/// What lies in a folder, in files of any depth.
fn all_bytes(folder: &std::path::Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => bytes.extend(all_bytes(&path)),
            false => bytes.extend(std::fs::read(&path).unwrap()),
        }
    }
    bytes
}

#[test]
fn no_byte_of_an_erased_owner_stays_in_the_file() {
    let home = tempfile::tempdir().unwrap();
    let store = sqlite_in(home.path());
    open(&store, "mine");
    said_days_ago(&store, &stranger(), "theirs", 1);
    store.append(&stranger(), &id("theirs"), vec![said_at("xylophone-4711", NOW_MS)]).unwrap();
    let is_there = || all_bytes(home.path()).windows(14).any(|bytes| bytes == b"xylophone-4711");
    assert!(is_there());
    let upkeep: &dyn StoreUpkeep = &store;
    upkeep.erase_owner(&stranger(), &mut |_| ()).unwrap();
    assert!(!is_there());
}
