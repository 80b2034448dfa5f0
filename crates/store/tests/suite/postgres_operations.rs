//! What operators rely on: a backup with PostgreSQL's own tools is a record, and trouble of the server is named and changes
//! nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::path::{Path, PathBuf};
use std::process::Command;

use throughline_store::{Dependants, Depth, Examination, NewArtifact, PostgresStore, Store, StoreError};
use throughline_testkit::{Missing, PostgresServer, skip};

use crate::contract::support::{compact, folder_in, id, open, owner, said, say};
use crate::postgres_copy::{assert_same, database, record};

/// A program of the newest PostgreSQL that is installed.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").unwrap();
    let number = |path: &Path| path.file_name().unwrap().to_string_lossy().parse::<u32>().unwrap_or(0);
    let newest = versions.map(|entry| entry.unwrap().path()).max_by_key(|path| number(path)).unwrap();
    newest.join("bin").join(name)
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn backup_by_pg_dump_is_restored_as_a_record() {
    let Some(url) = database() else { return };
    let home = tempfile::tempdir().unwrap();
    let (file, ..) = record(home.path(), 1_200);
    let place = folder_in(home.path());
    let store = PostgresStore::open(&url, 4).unwrap();
    store.copy_from(&file, &mut |_| ()).unwrap();
    let store = store.with_artifacts(Some(&place)).unwrap();
    let elsewhere =
        NewArtifact { session: &id("s6"), text: &"elsewhere\n".repeat(9_000), label: "", at_ms: 5 };
    let elsewhere = store.put_artifact(&owner(), elsewhere).unwrap();

    let dump = home.path().join("record.dump");
    succeeds(Command::new(program("pg_dump")).args(["--format=custom", "--file"]).arg(&dump).arg(&url));
    // What is said after the backup is not in it.
    say(&store, "s3", &["after the backup"]);
    let restored = PostgresServer::shared().unwrap().empty_database();
    succeeds(Command::new(program("pg_restore")).args(["--exit-on-error", "--dbname", &restored]).arg(&dump));
    let restored = PostgresStore::open(&restored, 4).unwrap().with_artifacts(Some(&place)).unwrap();

    let range = throughline_store::ArtifactRange::Lines { first: 9_000, count: 1 };
    assert_eq!(restored.read_artifact(&owner(), &elsewhere.id, range).unwrap(), "elsewhere\n");
    let examination =
        Examination { depth: Depth::Thorough, now_ms: 50, is_alive: &|_| true, artifacts: None };
    let diagnosis = restored.examine(&examination, &mut |_| ()).unwrap();
    assert!(diagnosis.is_well(), "{:?}", diagnosis.findings);
    let (before, after) = (restored.version(&owner(), &id("s3")), store.version(&owner(), &id("s3")));
    assert_ne!(before.unwrap(), after.unwrap());
    // Both go on from there alike.
    say(&restored, "s3", &["after the backup"]);
    assert_same(&store, &restored);
}

/// What was deleted by mistake is there again after a recovery to a moment before it: a base backup, and the log after it.
#[test]
fn record_of_a_moment_is_recovered_from_the_archived_log() {
    let Some(server) = PostgresServer::own() else {
        return skip(&Missing::Program { name: "PostgreSQL", installed_by: "apt-get install postgresql" });
    };
    let url = server.empty_database();
    let home = tempfile::tempdir().unwrap();
    let (file, ..) = record(home.path(), 1_200);
    let store = PostgresStore::open(&url, 4).unwrap();
    store.copy_from(&file, &mut |_| ()).unwrap();
    server.archive();
    // Only the log has what is said after the base backup.
    for store in [&file as &dyn Store, &store] {
        say(store, "s3", &["after the base backup"]);
        compact(store, "s4", "s4b", "notes");
    }
    server.name_moment("before_the_mistake");
    store.delete(&owner(), &id("s3"), Dependants::Delete).unwrap();
    say(&store, "s5", &["after the mistake"]);
    server.name_moment("after_the_mistake");

    let recovered = server.recovered_to("before_the_mistake");
    let restored = PostgresStore::open(&recovered.address(url.rsplit('/').next().unwrap()), 4).unwrap();
    let examination =
        Examination { depth: Depth::Thorough, now_ms: 50, is_alive: &|_| true, artifacts: None };
    let diagnosis = restored.examine(&examination, &mut |_| ()).unwrap();
    assert!(diagnosis.is_well(), "{:?}", diagnosis.findings);
    assert_same(&file, &restored);
    assert!(store.session(&owner(), &id("s3")).is_err(), "it is still deleted where it was deleted");
    // It is a record like any other. Numbers of messages go on behind those that the lost log may have given out.
    say(&restored, "s5", &["what comes after a recovery"]);
    let said = restored.messages(&owner(), &id("s5")).unwrap();
    assert!(said.last().unwrap().json.as_str().contains("what comes after a recovery"));
    assert!(said.is_sorted_by_key(|message| message.id));
}

#[test]
fn full_disk_of_the_server_is_named_and_changes_nothing() {
    let Some(url) = database() else { return };
    let server = PostgresServer::shared().unwrap();
    let name = url.rsplit('/').next().unwrap();
    let store = PostgresStore::open(&url, 2).unwrap();
    open(&store, "one");
    say(&store, "one", &["before"]);
    server.run(
        name,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION \
         'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$; \
         CREATE TRIGGER full_disk BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION full_disk()",
    );
    let refused = store.append(&owner(), &id("one"), vec![said("lost?")]).unwrap_err();
    assert!(matches!(refused, StoreError::DiskFull { .. }), "{refused:?}");
    assert_eq!(store.messages(&owner(), &id("one")).unwrap().len(), 1);
    server.run(name, "DROP TRIGGER full_disk ON messages");
    say(&store, "one", &["after"]);
    assert_eq!(store.messages(&owner(), &id("one")).unwrap().len(), 2);
}

#[test]
fn database_of_another_encoding_is_refused_with_the_statement_for_a_right_one() {
    let Some(url) = database() else { return };
    let server = PostgresServer::shared().unwrap();
    let name = format!("latin_{}", url.rsplit('_').next().unwrap());
    server.run(
        "postgres",
        &format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"),
    );
    let refused = PostgresStore::open(&server.address(&name), 2).unwrap_err();
    assert!(matches!(refused, StoreError::NotOurs { .. }), "{refused:?}");
    assert!(refused.to_string().contains("ENCODING 'UTF8' TEMPLATE template0"), "{refused}");
    assert_eq!(
        server.run(&name, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"),
        "0"
    );
}
