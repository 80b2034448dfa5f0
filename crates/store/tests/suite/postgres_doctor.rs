//! The doctor on PostgreSQL: nothing to tell of a sound record, and each kind of damage under the name it has on SQLite.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use throughline_store::{
    Depth, Examination, Holder, LockRequest, PostgresStore, RecordProblem, SearchMode, SearchQuery, Store,
};
use throughline_testkit::PostgresServer;

use crate::contract::support::{id, owner};
use crate::postgres_copy::{assert_same, database, record};

/// The names of what is found.
fn findings(store: &PostgresStore, depth: Depth) -> Vec<String> {
    findings_at(store, depth, 50)
}

fn findings_at(store: &PostgresStore, depth: Depth, now_ms: i64) -> Vec<String> {
    let examination = Examination { depth, now_ms, is_alive: &|_| true, artifacts: None };
    let diagnosis = store.examine(&examination, &mut |_| ()).unwrap();
    assert!(diagnosis.messages > 0 && diagnosis.sessions > 0 && diagnosis.database_bytes > 0);
    let found = diagnosis.findings.iter().map(|finding| {
        let json = serde_json::to_value(finding).unwrap();
        json["finding"].as_str().unwrap().to_owned()
    });
    let mut found: Vec<String> = found.collect();
    found.sort();
    found
}

#[test]
fn damage_is_found_under_the_name_it_has_in_a_file() {
    let Some(url) = database() else { return };
    let server = PostgresServer::shared().unwrap();
    let home = tempfile::tempdir().unwrap();
    let (file, ..) = record(home.path(), 2_600);
    let store = PostgresStore::open(&url, 4).unwrap();
    store.copy_from(&file, &mut |_| ()).unwrap();
    assert!(findings(&store, Depth::Thorough).is_empty(), "{:?}", findings(&store, Depth::Thorough));

    let database = url.rsplit('/').next().unwrap();
    // Each is undone before the next: what one causes must not hide another.
    for (damage, repair, expected) in [
        (
            "UPDATE sessions SET messages = messages + 1 WHERE id = 's3'",
            "UPDATE sessions SET messages = messages - 1 WHERE id = 's3'",
            &["wrong_counters"] as &[&str],
        ),
        (
            "UPDATE sessions SET is_tip = false WHERE id = 's3'",
            "UPDATE sessions SET is_tip = true WHERE id = 's3'",
            &["wrong_links"],
        ),
        (
            "UPDATE view_items SET end_seq = 99999 WHERE session = 4",
            "UPDATE view_items SET end_seq = NULL WHERE session = 4",
            &["broken_views"],
        ),
        (
            "CREATE TABLE saved AS SELECT * FROM messages WHERE session = 4 AND seq = 1; \
             DELETE FROM messages WHERE session = 4 AND seq = 1",
            "INSERT INTO messages SELECT * FROM saved; DROP TABLE saved",
            &["broken_views", "lost_messages", "search_index", "wrong_counters"],
        ),
        (
            "UPDATE messages SET hash = decode(repeat('00', 32), 'hex') WHERE session = 4 AND seq = 2",
            "UPDATE messages SET hash = (SELECT hash FROM saved_hash)",
            &["unreadable_messages"],
        ),
        (
            "CREATE TABLE saved AS SELECT * FROM artifact_pieces; DELETE FROM artifact_pieces",
            "INSERT INTO artifact_pieces SELECT * FROM saved; DROP TABLE saved",
            &["lost_artifacts", "search_index", "unreadable_messages"],
        ),
        (
            "CREATE TABLE saved AS SELECT * FROM search_segments; DELETE FROM search_segments",
            "INSERT INTO search_segments SELECT * FROM saved; DROP TABLE saved",
            &["search_index"],
        ),
        (
            "INSERT INTO renditions (owner, session, seq, kinds, tokens, json) VALUES ('default', 777, 1, '[]', 1, '')",
            "DELETE FROM renditions WHERE session = 777",
            &["orphaned_rows"],
        ),
        (
            "ALTER TABLE preamble_parts RENAME TO saved; CREATE TABLE preamble_parts (hash bytea, bytes bytea)",
            "DROP TABLE preamble_parts; ALTER TABLE saved RENAME TO preamble_parts",
            &["lost_preambles"],
        ),
    ] {
        let is_hash = damage.starts_with("UPDATE messages SET hash");
        if is_hash {
            let save = "CREATE TABLE saved_hash AS SELECT hash FROM messages WHERE session = 4 AND seq = 2";
            server.run(database, save);
        }
        server.run(database, damage);
        assert_eq!(findings(&store, Depth::Thorough), expected, "{damage}");
        let repair =
            if is_hash { format!("{repair} WHERE session = 4 AND seq = 2") } else { repair.to_owned() };
        server.run(database, &repair);
        assert!(findings(&store, Depth::Quick).is_empty(), "{repair}");
    }
    let holder = Holder { host: "here".into(), process_id: 1, process_start: 1, what: "chat".into() };
    let name = LockRequest::conversation_name(store.session(&owner(), &id("s3")).unwrap().chain);
    let request = LockRequest { name, holder, now_ms: 1, expires_ms: 2 };
    store.lock(&request, &|_| true).unwrap();
    // The server's clock says when it ends.
    let expires_ms = store.locks().unwrap()[0].expires_ms;
    assert!(findings_at(&store, Depth::Quick, expires_ms - 1).is_empty());
    assert_eq!(findings_at(&store, Depth::Quick, expires_ms), ["stale_locks"]);
}

#[test]
fn what_follows_from_other_rows_is_computed_again_and_nothing_else_is_changed() {
    let Some(url) = database() else { return };
    let server = PostgresServer::shared().unwrap();
    let home = tempfile::tempdir().unwrap();
    let (file, ..) = record(home.path(), 2_600);
    let store = PostgresStore::open(&url, 4).unwrap();
    store.copy_from(&file, &mut |_| ()).unwrap();
    let database = url.rsplit('/').next().unwrap();
    let holder = Holder { host: "here".into(), process_id: 1, process_start: 1, what: "chat".into() };
    store.lock(&LockRequest { name: "a lock".into(), holder, now_ms: 1, expires_ms: 2 }, &|_| true).unwrap();
    let later = store.locks().unwrap()[0].expires_ms;
    for damage in [
        "UPDATE sessions SET messages = messages + 1, next_seq = next_seq - 1 WHERE id = 's3'",
        "UPDATE sessions SET is_tip = false WHERE id = 's5'",
        "DELETE FROM search_segments",
        "DELETE FROM search_open WHERE kind = 1",
        "INSERT INTO search_open SELECT owner, kind, id + 1000000, fingerprints FROM search_open",
    ] {
        server.run(database, damage);
    }
    let examination =
        Examination { depth: Depth::Thorough, now_ms: later, is_alive: &|_| true, artifacts: None };
    let report = store.repair(&examination, &mut |_| ()).unwrap();
    let names = |problems: &[RecordProblem]| {
        let names = problems
            .iter()
            .map(|problem| serde_json::to_value(problem).unwrap()["finding"].as_str().unwrap().to_owned());
        names.collect::<std::collections::BTreeSet<String>>()
    };
    assert_eq!(
        names(&report.before).iter().map(String::as_str).collect::<Vec<_>>(),
        ["search_index", "stale_locks", "wrong_counters", "wrong_links"]
    );
    assert!(report.after.is_empty(), "{:?}", report.after);
    assert!(store.locks().unwrap().is_empty());
    assert_same(&file, &store);
    for (text, mode) in [("the", SearchMode::Words), ("line of a long", SearchMode::Substring)] {
        let query = SearchQuery { text: text.to_owned(), mode, ..SearchQuery::default() };
        let [in_file, on_server] =
            [&file as &dyn Store, &store].map(|store| store.search(&owner(), &query).unwrap().hits.len());
        assert!(in_file > 0 && in_file == on_server, "{text}: {in_file}, {on_server}");
    }

    // A message that is gone is gone: what depends on it stays as it is, for a person.
    server.run(database, "DELETE FROM messages WHERE session = 4 AND seq = 1");
    let report = store.repair(&examination, &mut |_| ()).unwrap();
    assert_eq!(names(&report.after).into_iter().collect::<Vec<_>>(), ["broken_views", "lost_messages"]);
    assert_eq!(
        server.run(database, "SELECT count(*) FROM view_items WHERE session = 4 AND end_seq IS NULL"),
        "1"
    );
}
