//! Changes that gateways hear of at once: over a connection of their own, with a pooler before the rest and without one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use throughline_store::{FleetChange, FleetEvent, FleetStore, Owner, PostgresStore};
use throughline_testkit::{Missing, PostgresServer, skip};

/// Longer than any machine takes.
const LONG: Duration = Duration::from_secs(120);

fn server() -> Option<&'static PostgresServer> {
    let server = PostgresServer::shared();
    if server.is_none() {
        skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
    }
    server
}

/// The notifications that a listening store receives.
fn listening(store: &PostgresStore) -> Receiver<FleetChange> {
    let (sender, receiver) = channel();
    assert!(store.listen(Arc::new(move |change| drop(sender.send(change)))));
    receiver
}

/// Waits for such a notification.
#[track_caller]
fn until(told: &Receiver<FleetChange>, is_it: impl Fn(&FleetChange) -> bool) {
    while !is_it(&told.recv_timeout(LONG).unwrap()) {}
}

fn events() -> Vec<FleetEvent> {
    vec![FleetEvent { owner: Owner::default(), at_ms: 1, body: "{}".to_owned() }]
}

fn changes_are_heard(url: &str, direct: &str) {
    let hearing = PostgresStore::open(url, 2).unwrap().with_direct(direct).unwrap();
    let other = PostgresStore::open(url, 2).unwrap();
    assert!(!other.listen(Arc::new(|_| ())), "its settings name no connection");
    let told = listening(&hearing);
    until(&told, |change| *change == FleetChange::Connected);
    let (_, position) = hearing.events_since("one", None).unwrap();
    other.publish_events("two", &events()).unwrap();
    until(&told, |change| *change == FleetChange::Events);
    // What it is, is read.
    let read = || hearing.events_since("one", Some(position)).unwrap().0;
    let found = (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        !read().is_empty()
    });
    assert!(found);
    assert!(other.replace_fleet_text("tokens", None, Some("a list")).unwrap());
    until(&told, |change| *change == FleetChange::Texts);
}

#[test]
fn changes_are_heard_at_once() {
    let Some(server) = server() else { return };
    let url = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
    changes_are_heard(&url, &url);
}

#[test]
fn changes_are_heard_at_once_beside_a_pooler() {
    let Some(server) = server() else { return };
    let url = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
    let Some(pooled) = server.pooled(url.rsplit('/').next().unwrap()) else {
        return skip(&Missing::Program { name: "pgbouncer", installed_by: "apt-get install pgbouncer" });
    };
    changes_are_heard(&pooled, &url);
}

#[test]
fn connection_that_is_cut_is_made_anew_and_everything_read_once() {
    let Some(server) = server() else { return };
    let url = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
    let store = PostgresStore::open(&url, 2).unwrap().with_direct(&url).unwrap();
    let told = listening(&store);
    for round in 0..3 {
        until(&told, |change| *change == FleetChange::Connected);
        // A change made while the listener is disconnected is reported when it connects again.
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND query LIKE 'LISTEN%'";
        assert_eq!(server.run(url.rsplit('/').next().unwrap(), cut), "1", "round {round}");
        until(&told, |change| matches!(change, FleetChange::Disconnected { .. }));
    }
    until(&told, |change| *change == FleetChange::Connected);
    store.publish_events("two", &events()).unwrap();
    until(&told, |change| *change == FleetChange::Events);
}

#[test]
fn pooler_in_place_of_the_server_is_noticed() {
    let Some(server) = server() else { return };
    let url = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
    let Some(pooled) = server.pooled(url.rsplit('/').next().unwrap()) else {
        return skip(&Missing::Program { name: "pgbouncer", installed_by: "apt-get install pgbouncer" });
    };
    let store = PostgresStore::open(&url, 2).unwrap().with_direct(&pooled).unwrap();
    let told = listening(&store);
    match told.recv_timeout(LONG).unwrap() {
        FleetChange::Disconnected { .. } => {}
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn address_that_does_not_work_is_told_of_without_its_password() {
    let Some(server) = server() else { return };
    let url = server.database(|url| drop(PostgresStore::open(url, 2).unwrap()));
    let wrong = "postgres://me:hunter2@127.0.0.1:1/record?connect_timeout=2";
    let store = PostgresStore::open(&url, 2).unwrap().with_direct(wrong).unwrap();
    let told = listening(&store);
    let Ok(FleetChange::Disconnected { problem }) = told.recv_timeout(LONG) else {
        unreachable!("it cannot work")
    };
    assert!(!problem.is_empty() && !problem.contains("hunter2"), "{problem}");
}
