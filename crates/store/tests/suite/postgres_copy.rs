//! Copying a record from a file to a server and back: everything is there and the same, also when a copy was interrupted.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use throughline_store::{
    Export, ExportForm, ExportOptions, ExportSide, Guard, GuardScope, LinkKind, NewArtifact, NewCall,
    NewMessage, Owner, PostgresStore, SessionFilter, SqliteStore, Store, StoreError, StoreProgress,
    StoredPreamble,
};
use throughline_testkit::{Missing, PostgresServer, Rng, skip};
use throughline_transcript::decode_message_text;

use crate::contract::support::{compact, id, linked, owner, say, stranger, undo};
use crate::postgres_search::{Author, compare, fill};

/// An empty database, where there is a server.
#[track_caller]
pub(crate) fn database() -> Option<String> {
    let Some(server) = PostgresServer::shared() else {
        skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
        return None;
    };
    Some(server.database(|url| drop(PostgresStore::open(url, 2).unwrap())))
}

/// A record with everything a record has.
pub(crate) fn record(folder: &std::path::Path, messages: usize) -> (SqliteStore, Author, Vec<String>) {
    let store = SqliteStore::open(&folder.join("record.db"), 0).unwrap();
    let mut author = Author { rng: Rng::new(77), at_ms: 0 };
    let said = fill([&store, &SqliteStore::in_memory().unwrap()], &mut author, &owner(), messages);
    fill([&store, &SqliteStore::in_memory().unwrap()], &mut author, &stranger(), 300);
    let long = "a line of a long result\n".repeat(6_000);
    let result = serde_json::json!({ "role": "tool", "tool_call_id": "c1", "content": long }).to_string();
    let message = decode_message_text(result).unwrap();
    let result = NewMessage { message, tokens: 10, at_ms: 5, tools: vec!["Read".into()], rendition: None };
    store.append(&owner(), &id("s1"), vec![result]).unwrap();
    let artifact =
        NewArtifact { session: &id("s6"), label: "notes", text: &"w7q\n".repeat(40_000), at_ms: 5 };
    store.put_artifact(&owner(), artifact).unwrap();
    store.open_session(linked("branch", LinkKind::Branch, "s1", 1), None).unwrap();
    say(&store, "branch", &["elsewhere", "with a nul: \u{0} and \u{fffe}"]);
    store.rename(&owner(), &id("branch"), Some("a title\u{0} with a nul")).unwrap();
    compact(&store, "s0", "s0b", "notes \u{0} and more");
    undo(&store, "s0b", "s0c");
    let preamble = StoredPreamble { system: Some("be careful".into()), ..StoredPreamble::default() };
    let preamble = store.put_preamble(&preamble).unwrap();
    let calls = (0..40).map(|at| NewCall {
        key: Some(format!("call {at}")),
        model: "model-a".into(),
        preamble: Some(preamble.clone()),
        at_ms: at,
        error: (at == 7).then(|| "it failed\u{0}".to_owned()),
        access_token: Some("desk".into()),
        ..NewCall::default()
    });
    store.record_calls(&owner(), &id("s1"), calls.collect()).unwrap();
    for scope in [GuardScope::Global, GuardScope::Chain(owner(), id("s1"))] {
        let guard = Guard { name: "strikes".into(), value: 3.into(), set_ms: 1, expires_ms: None };
        store.set_guard(&scope, "strikes", Some(&guard)).unwrap();
    }
    (store, author, said)
}

/// Everything an owner has, as others see it.
fn everything(store: &dyn Store, owner: &Owner) -> Vec<String> {
    let mut all = Vec::new();
    let filter = SessionFilter { limit: Some(10_000), ..SessionFilter::default() };
    for conversation in store.conversations(owner, &filter).unwrap() {
        for session in store.chain(owner, &conversation.tip.id).unwrap() {
            all.push(format!("{session:?}"));
            all.push(format!("{:?}", store.messages(owner, &session.id).unwrap()));
            all.push(format!("{:?}", store.view(owner, &session.id, None).unwrap()));
            all.push(format!("{:?}", store.calls(owner, &session.id).unwrap()));
            all.push(format!("{:?}", store.summaries(owner, &session.id).unwrap()));
            for artifact in store.artifacts(owner, &session.id).unwrap() {
                // How well a text is packed is the engine's.
                all.push(format!("{:?} {} {}", artifact.id, artifact.bytes, artifact.label));
            }
            for side in [ExportSide::Said, ExportSide::Shown] {
                for form in [ExportForm::Lines, ExportForm::Body] {
                    let options = ExportOptions { side, form, redactor: None };
                    all.push(format!("{:?}", Export::of(store, owner, &session.id, &options)));
                }
            }
            let scope = GuardScope::Chain(owner.clone(), session.id.clone());
            all.push(format!("{:?}", store.guard(&scope, "strikes", 0).unwrap()));
        }
    }
    all.push(format!("{:?}", store.guard(&GuardScope::Global, "strikes", 0).unwrap()));
    all
}

pub(crate) fn assert_same(one: &dyn Store, other: &dyn Store) {
    for owner in [owner(), stranger()] {
        let (one, other) = (everything(one, &owner), everything(other, &owner));
        assert!(one.len() > 10);
        for (one, other) in one.iter().zip(&other) {
            assert_eq!(one, other);
        }
        assert_eq!(one.len(), other.len());
    }
}

#[test]
fn a_record_is_copied_to_a_server_and_back() {
    let Some(url) = database() else { return };
    let home = tempfile::tempdir().unwrap();
    let (file, mut author, said) = record(home.path(), 5_000);
    let server = PostgresStore::open(&url, 4).unwrap();
    let report = server.copy_from(&file, &mut |_| ()).unwrap();
    assert_eq!((report.messages, report.resumed_messages), (5_303, 0));
    assert_eq!(report.artifacts, 2);
    assert_same(&file, &server);

    let back = SqliteStore::open(&home.path().join("back").join("record.db"), 0).unwrap();
    assert_eq!(server.copy_to(&back, &mut |_| ()).unwrap(), report);
    assert_same(&file, &back);
    compare([&file, &back], &mut author, &said, 60);

    // Both go on where the record stood.
    for store in [&file as &dyn Store, &server, &back] {
        say(store, "s3", &["what comes after a copy"]);
        compact(store, "s4", "s4b", "notes");
    }
    assert_same(&file, &server);
    assert_same(&file, &back);
}

#[test]
fn an_interrupted_copy_goes_on_where_it_stopped() {
    let Some(url) = database() else { return };
    let home = tempfile::tempdir().unwrap();
    let (file, ..) = record(home.path(), 4_000);
    let interrupted = |stop: u64| {
        let server = PostgresStore::open(&url, 4).unwrap();
        let mut follow = |progress: StoreProgress| assert!(progress.done < stop, "the copy is interrupted");
        let copied = catch_unwind(AssertUnwindSafe(|| server.copy_from(&file, &mut follow)));
        assert!(copied.is_err());
    };
    interrupted(1);
    interrupted(4_000);
    let server = PostgresStore::open(&url, 4).unwrap();
    let report = server.copy_from(&file, &mut |_| ()).unwrap();
    assert!(report.resumed_messages > 0, "{report:?}");
    assert_same(&file, &server);
    let again = server.copy_from(&file, &mut |_| ());
    assert!(
        matches!(again, Err(StoreError::NotCopied { .. })),
        "a complete copy is not written to: {again:?}"
    );
}

#[test]
fn a_copy_of_another_record_is_not_gone_on_with() {
    let Some(url) = database() else { return };
    let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [(one, ..), (other, ..)] = [record(homes[0].path(), 900), record(homes[1].path(), 800)];
    let server = PostgresStore::open(&url, 4).unwrap();
    let stopped = catch_unwind(AssertUnwindSafe(|| server.copy_from(&one, &mut |_| panic!("interrupted"))));
    assert!(stopped.is_err());
    let refused = server.copy_from(&other, &mut |_| ()).unwrap_err().to_string();
    assert!(refused.contains("another record"), "{refused}");
    server.copy_from(&one, &mut |_| ()).unwrap();
}
