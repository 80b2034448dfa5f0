//! What a record on a server promises beyond the contract: several processes at once, lost connections, databases that are not
//! ours, and messages without passwords.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use throughline_store::{NewCall, PostgresStore, Store, StoreError};
use throughline_testkit::{Missing, PostgresServer, skip};

use crate::contract::support::{
    chain, compact, from_role, id, messages, new_session, open, owner, said, say, shown, transcript, words,
};

/// The server, and the address of a database with an empty record.
#[track_caller]
fn database() -> Option<(&'static PostgresServer, String)> {
    let Some(server) = PostgresServer::shared() else {
        skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
        return None;
    };
    Some((server, server.database(|url| drop(PostgresStore::open(url, 2).unwrap()))))
}

fn name_of(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

#[test]
fn two_stores_share_one_record() {
    let Some((_, url)) = database() else { return };
    let (one, other) = (PostgresStore::open(&url, 2).unwrap(), PostgresStore::open(&url, 2).unwrap());
    open(&one, "a");
    say(&other, "a", &["first"]);
    say(&one, "a", &["second"]);
    compact(&other, "a", "b", "notes");
    assert_eq!(transcript(&one, "b"), ["first", "second"]);
    assert_eq!(shown(&one, "b"), shown(&other, "b"));
    assert!(matches!(
        one.append(&owner(), &id("a"), vec![said("late")]),
        Err(StoreError::SessionEnded { .. })
    ));
}

#[test]
fn of_writers_who_know_the_same_version_one_appends() {
    let Some((_, url)) = database() else { return };
    let stores: Vec<PostgresStore> = (0..4).map(|_| PostgresStore::open(&url, 2).unwrap()).collect();
    open(&stores[0], "a");
    for round in 0..10 {
        let version = stores[0].version(&owner(), &id("a")).unwrap();
        let start = Barrier::new(stores.len());
        let written = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for store in &stores {
                let (version, start, written) = (&version, &start, &written);
                scope.spawn(move || {
                    start.wait();
                    match store.append_at(&owner(), version, vec![said("turn"), said("more")]) {
                        Ok(now) => {
                            assert_eq!(now, store.version(&owner(), &id("a")).unwrap());
                            written.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(StoreError::VersionConflict { .. }) => {}
                        Err(other) => panic!("{other:?}"),
                    }
                });
            }
        });
        assert_eq!(written.into_inner(), 1, "round {round}");
    }
    assert_eq!(messages(&stores[0], "a").len(), 20);
}

#[test]
fn appends_at_the_same_time_get_places_that_follow_one_another() {
    let Some((_, url)) = database() else { return };
    let store = PostgresStore::open(&url, 4).unwrap();
    open(&store, "a");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for turn in 0..10 {
                    say(store, "a", &[&format!("{writer}.{turn}"), "answer"]);
                }
            });
        }
    });
    let all = store.messages(&owner(), &id("a")).unwrap();
    assert!(all.iter().map(|message| message.seq).eq(0..80));
    assert!(all.is_sorted_by_key(|message| message.id));
    let session = store.session(&owner(), &id("a")).unwrap();
    assert_eq!((session.next_seq, session.counters.messages, session.counters.message_tokens), (80, 80, 800));
}

#[test]
fn a_conversation_is_compacted_once() {
    let Some((_, url)) = database() else { return };
    let stores: Vec<PostgresStore> = (0..4).map(|_| PostgresStore::open(&url, 2).unwrap()).collect();
    open(&stores[0], "a");
    say(&stores[0], "a", &["one", "two", "three"]);
    let start = Barrier::new(stores.len());
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (at, store) in stores.iter().enumerate() {
            let (start, done) = (&start, &done);
            scope.spawn(move || {
                let continuation = crate::contract::support::folding(store, "a", &format!("b{at}"), "notes");
                start.wait();
                match store.continue_session(&owner(), continuation) {
                    Ok(_) => {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(StoreError::SessionEnded { successor, .. }) => assert!(successor.is_some()),
                    Err(other) => panic!("{other:?}"),
                }
            });
        }
    });
    assert_eq!(done.into_inner(), 1);
    assert_eq!(chain(&stores[0], "a").len(), 2);
}

/// Connections are ended while messages are appended: each append that returned is there once, and those that failed are there
/// once or not at all.
#[test]
fn lost_connections_lose_and_repeat_nothing() {
    let Some((server, url)) = database() else { return };
    let store = PostgresStore::open(&url, 4).unwrap();
    let writers = 3;
    for writer in 0..writers {
        open(&store, &format!("w{writer}"));
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..writers)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    let name = format!("w{writer}");
                    for turn in 0..60 {
                        let text = format!("turn {turn}");
                        if turn % 2 == 0 {
                            say(store, &name, &[&text]);
                            continue;
                        }
                        let version = store.version(&owner(), &id(&name)).unwrap();
                        let now = store.append_at(&owner(), &version, vec![said(&text)]).unwrap();
                        assert_eq!(now, store.version(&owner(), &id(&name)).unwrap());
                        let call = NewCall { key: Some(text), cost_micro_usd: Some(7), ..NewCall::default() };
                        assert_eq!(store.record_calls(&owner(), &id(&name), vec![call]).unwrap(), 1);
                    }
                })
            })
            .collect();
        let is_done = &is_done;
        scope.spawn(move || {
            let end = format!(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{}'",
                name_of(&url)
            );
            while !is_done.load(Ordering::Relaxed) {
                server.run("postgres", &end);
            }
        });
        let results: Vec<_> = handles.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        is_done.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.unwrap());
    });
    for writer in 0..writers {
        let expected: Vec<String> = (0..60).map(|turn| format!("turn {turn}")).collect();
        assert_eq!(messages(&store, &format!("w{writer}")), expected);
        let counters = store.session(&owner(), &id(&format!("w{writer}"))).unwrap().counters;
        assert_eq!((counters.messages, counters.calls, counters.cost_micro_usd), (60, 30, 210));
    }
}

/// The server stops without a farewell, several times, while messages are appended and read.
#[test]
fn a_server_that_crashes_loses_and_repeats_nothing() {
    let Some(server) = PostgresServer::own() else {
        return skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
    };
    let store = PostgresStore::open(&server.empty_database(), 4).unwrap();
    let (writers, turns) = (3, 40);
    let written = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let write = |writer: usize| {
            let (store, written) = (&store, &written);
            scope.spawn(move || {
                let name = format!("w{writer}");
                open(store, &name);
                for turn in 0..turns {
                    let version = store.version(&owner(), &id(&name)).unwrap();
                    store.append_at(&owner(), &version, vec![said(&format!("turn {turn}"))]).unwrap();
                    written.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let handles: Vec<_> = (0..writers).map(write).collect();
        // One crash for every fifth of what is written.
        for part in 1..5 {
            let is_due = || written.load(Ordering::Relaxed) >= part * writers * turns / 5;
            while !is_due() && !handles.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            server.crash();
        }
    });
    for writer in 0..writers {
        let expected: Vec<String> = (0..turns).map(|turn| format!("turn {turn}")).collect();
        assert_eq!(messages(&store, &format!("w{writer}")), expected);
    }
}

#[test]
fn a_pooler_in_transaction_mode_may_stand_between() {
    let Some((server, url)) = database() else { return };
    let Some(pooled) = server.pooled(name_of(&url)) else {
        return skip(&Missing::Program { name: "pgbouncer", installed_by: "apt-get install pgbouncer" });
    };
    let stores: Vec<PostgresStore> = (0..3).map(|_| PostgresStore::open(&pooled, 4).unwrap()).collect();
    open(&stores[0], "a");
    let long = "a line of a long text\n".repeat(20_000);
    std::thread::scope(|scope| {
        for (at, store) in stores.iter().enumerate() {
            let long = &long;
            scope.spawn(move || {
                open(store, &format!("own{at}"));
                for turn in 0..15 {
                    say(store, "a", &[&format!("{at}.{turn}"), "answer"]);
                    let own = id(&format!("own{at}"));
                    let version = store.version(&owner(), &own).unwrap();
                    store.append_at(&owner(), &version, vec![said("mine")]).unwrap();
                    assert_eq!(store.record_calls(&owner(), &own, vec![NewCall::default()]).unwrap(), 1);
                    let session = &id("a");
                    let text =
                        throughline_store::NewArtifact { session, text: long, label: "read", at_ms: 1 };
                    store.put_artifact(&owner(), text).unwrap();
                    assert!(shown(store, "a").len() >= 2);
                }
                compact(store, &format!("own{at}"), &format!("next{at}"), "notes");
            });
        }
    });
    assert_eq!(messages(&stores[0], "a").len(), 90);
    assert!((0..3).all(|at| messages(&stores[0], &format!("own{at}")).len() == 15));
    let artifacts = stores[1].artifacts(&owner(), &id("a")).unwrap();
    assert_eq!(artifacts.len(), 1);
    let range = throughline_store::ArtifactRange::All;
    assert_eq!(stores[2].read_artifact(&owner(), &artifacts[0].id, range).unwrap(), long);
    assert!((0..3).all(|at| chain(&stores[0], &format!("own{at}")).len() == 2));
}

#[test]
fn a_store_works_inside_a_runtime() {
    let Some((_, url)) = database() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = PostgresStore::open(&url, 2).unwrap();
        open(&store, "a");
        say(&store, "a", &["inside"]);
        assert_eq!(messages(&store, "a"), ["inside"]);
    });
}

/// What a gateway does with every call costs one exchange: the server gets everything of a write with its commit.
#[test]
fn a_write_that_follows_a_known_version_is_one_statement() {
    let Some((server, url)) = database() else { return };
    let database = name_of(&url);
    let store = PostgresStore::open(&url, 1).unwrap();
    open(&store, "a");
    let version = store.version(&owner(), &id("a")).unwrap();
    server.run(database, &format!("ALTER DATABASE {database} SET log_statement = 'all'"));
    let logged = PostgresStore::open(&url, 1).unwrap();
    assert_eq!(logged.version(&owner(), &id("a")).unwrap(), version);
    let before = server.log(database).len();
    logged.append_at(&owner(), &version, vec![said("question"), said("answer")]).unwrap();
    logged.record_calls(&owner(), &id("a"), vec![NewCall::default()]).unwrap();
    let log = server.log(database);
    let executed: Vec<&String> =
        log.iter().skip(before).filter(|line| line.contains("LOG:  execute ")).collect();
    assert_eq!(executed.len(), 3, "old marks, messages, a call: {executed:#?}");
    assert_eq!(messages(&store, "a"), ["question", "answer"]);
    // The version that was known is over, so nothing is written.
    let late = logged.append_at(&owner(), &version, vec![said("late")]);
    assert!(matches!(late, Err(StoreError::VersionConflict { .. })), "{late:?}");
    assert_eq!(messages(&store, "a").len(), 2);
}

/// A pooler that gives every transaction another connection knows no names of statements, and sets nothing again.
#[test]
fn no_statement_has_a_name_and_nothing_stays_set() {
    let Some((server, url)) = database() else { return };
    let database = name_of(&url);
    server.run(database, &format!("ALTER DATABASE {database} SET log_statement = 'all'"));
    let store = PostgresStore::open(&url, 1).unwrap();
    open(&store, "a");
    say(&store, "a", &["one"]);
    compact(&store, "a", "b", "notes");
    store.resolve(&owner(), "last").unwrap();
    let log = server.log(database);
    let executed: Vec<&String> = log.iter().filter(|line| line.contains("LOG:  execute ")).collect();
    assert!(executed.len() > 10, "{log:?}");
    assert!(executed.iter().all(|line| line.contains("execute <unnamed>")), "{executed:?}");
    let set = log.iter().filter(|line| line.contains("SET ") && line.contains("BEGIN"));
    assert!(set.clone().count() > 3 && set.clone().all(|line| !line.contains("; SET statement")), "{log:?}");
    assert!(log.iter().all(|line| !line.contains("pg_advisory_lock")), "{log:?}");
}

#[test]
fn texts_with_nul_come_back() {
    let Some((_, url)) = database() else { return };
    let store = PostgresStore::open(&url, 2).unwrap();
    let odd = "a\0b\u{fffe}c";
    let mut new = new_session("a");
    new.title = Some(odd.to_owned());
    new.origin.project = Some(odd.to_owned());
    store.open_session(new, None).unwrap();
    let message = throughline_store::NewMessage {
        tools: vec![odd.to_owned()],
        ..from_role(throughline_transcript::Role::User, odd, 2_000)
    };
    store.append(&owner(), &id("a"), vec![message]).unwrap();
    let session = store.resolve(&owner(), odd).unwrap();
    assert_eq!((session.title.as_deref(), session.origin.project.as_deref()), (Some(odd), Some(odd)));
    let stored = store.messages(&owner(), &id("a")).unwrap();
    assert_eq!(stored[0].tools, [odd]);
    assert_eq!(words(stored[0].json.as_str()), odd);
    assert_eq!(store.tool_counts(&owner(), None).unwrap()[0].tool, odd);
}

#[test]
fn databases_that_are_not_ours_are_refused_and_left_alone() {
    let Some((server, _)) = database() else { return };
    let url = server.empty_database();
    server.run(name_of(&url), "CREATE TABLE invoices (number int)");
    match PostgresStore::open(&url, 1) {
        Err(StoreError::NotOurs { problem, .. }) => assert!(problem.contains("invoices"), "{problem}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(server.run(name_of(&url), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "1");
}

#[test]
fn a_newer_schema_is_read_by_the_release_before_only_if_it_says_so() {
    let Some((server, url)) = database() else { return };
    let known: i64 = server.run(name_of(&url), "SELECT version FROM throughline_schema").parse().unwrap();
    // The next version, as a made-up release leaves it: a new column that this one need not know.
    let next =
        "ALTER TABLE sessions ADD COLUMN colour text; UPDATE throughline_schema SET version = version + 1";
    server.run(name_of(&url), next);
    let store = PostgresStore::open(&url, 2).unwrap();
    open(&store, "a");
    say(&store, "a", &["beside the next release"]);
    assert_eq!(messages(&store, "a"), ["beside the next release"]);
    server.run(name_of(&url), "UPDATE throughline_schema SET version = version + 1, known_by = version");
    match PostgresStore::open(&url, 2) {
        Err(StoreError::FutureSchema { found, known: newest, .. }) => {
            assert_eq!((found, newest), (known + 2, known))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_role_without_rights_is_named_with_the_grant_it_needs() {
    let Some((server, url)) = database() else { return };
    let database = name_of(&url);
    let role = format!("reader_{database}");
    server.run(database, &format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON throughline_schema TO {role}"));
    let store = PostgresStore::open(&server.address_as(&role, database), 1).unwrap();
    let error = store.session(&owner(), &id("a")).unwrap_err().to_string();
    let grant = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE sessions TO {role}");
    assert!(error.contains(&role) && error.contains(&grant), "{error}");
}

#[test]
fn errors_name_the_server_and_no_password() {
    let nowhere = "postgres://ann:s3cret@127.0.0.1:1/record";
    let error = PostgresStore::open(nowhere, 1).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("postgres://127.0.0.1:1/record") && !text.contains("s3cret"), "{text}");
    let Some((server, url)) = database() else { return };
    let missing = server.address("absent").replace("postgres@", "postgres:s3cret@");
    let error = PostgresStore::open(&missing, 1).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("absent") && !text.contains("s3cret"), "{text}");
    let text =
        format!("{:?}", PostgresStore::open(&url.replace("postgres@", "postgres:s3cret@"), 1).unwrap());
    assert!(!text.contains("s3cret"), "{text}");
}
