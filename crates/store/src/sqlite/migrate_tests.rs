//! Tests of versions, with artificial steps.

use std::time::Duration;

use rusqlite::Connection;

use super::*;
use crate::artifacts::artifact::NewArtifact;
use crate::search::request::SearchQuery;
use crate::sqlite::connection::{BUSY_TIMEOUT, prepare_file};
use crate::sqlite::{Depth, Diagnosis, Examination, SqliteStore, test_home};
use crate::store::Store;

const NOW_MS: Millis = 1_700_000_000_000;

fn first(bench: &mut MigrationContext<'_>) -> TxResult<()> {
    Ok(bench.conn.execute_batch("CREATE TABLE things (name TEXT); INSERT INTO things VALUES ('one')")?)
}

fn second(bench: &mut MigrationContext<'_>) -> TxResult<()> {
    Ok(bench.conn.execute_batch("ALTER TABLE things ADD COLUMN size INTEGER; UPDATE things SET size = 7")?)
}

fn third(bench: &mut MigrationContext<'_>) -> TxResult<()> {
    Ok(bench
        .conn
        .execute_batch("CREATE TABLE more (thing TEXT); INSERT INTO more SELECT name FROM things")?)
}

fn broken(bench: &mut MigrationContext<'_>) -> TxResult<()> {
    Ok(bench.conn.execute_batch("DELETE FROM things; INSERT INTO nowhere VALUES (1)")?)
}

struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("record.db")
    }

    fn connect(&self) -> Connection {
        prepare_file(&self.path(), &self.folder.path().join("artifacts")).unwrap();
        connect(&self.path(), OpenMode::Write, BUSY_TIMEOUT).unwrap()
    }

    fn bring(&self, steps: &[MigrationStep]) -> TxResult<SchemaState> {
        bring_up_to_date(&mut self.connect(), &self.path(), steps, NOW_MS, BUSY_TIMEOUT, &mut |_| ())
    }

    fn backups(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_str().unwrap().contains(".backup-")).collect()
    }
}

fn value<T: rusqlite::types::FromSql>(conn: &Connection, sql: &str) -> T {
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_new_database_goes_through_every_step_without_a_backup() {
    let home = Home::new();
    assert_eq!(home.bring(&[first, second, third]).unwrap(), SchemaState::Made);
    let conn = home.connect();
    assert_eq!(value::<i64>(&conn, "PRAGMA user_version"), 3);
    assert_eq!(value::<i64>(&conn, "PRAGMA application_id"), APPLICATION_ID);
    assert_eq!(value::<String>(&conn, "PRAGMA journal_mode"), "wal");
    assert_eq!(value::<String>(&conn, "SELECT thing FROM more"), "one");
    assert_eq!(home.bring(&[first, second, third]).unwrap(), SchemaState::AsItWas);
    assert!(home.backups().is_empty());
}

#[test]
fn an_older_database_is_backed_up_and_brought_forward() {
    let home = Home::new();
    home.bring(&[first]).unwrap();
    home.connect().execute("INSERT INTO things VALUES ('two')", []).unwrap();
    let arrival = home.bring(&[first, second, third]).unwrap();
    let SchemaState::Migrated { from: 1, backup } = arrival else { panic!("{arrival:?}") };
    assert_eq!(backup, home.folder.path().join("record.db.backup-v1-20231114_221320"));
    let conn = home.connect();
    assert_eq!(value::<i64>(&conn, "PRAGMA user_version"), 3);
    assert_eq!(value::<i64>(&conn, "SELECT sum(size) FROM things"), 14);
    assert_eq!(value::<i64>(&conn, "SELECT count(*) FROM more"), 2);
    let old = connect(&backup, OpenMode::Read, BUSY_TIMEOUT).unwrap();
    assert_eq!(value::<i64>(&old, "PRAGMA user_version"), 1);
    assert_eq!(value::<i64>(&old, "PRAGMA application_id"), APPLICATION_ID);
    assert_eq!(value::<i64>(&old, "SELECT count(*) FROM things"), 2);
    assert_eq!(value::<String>(&old, "PRAGMA integrity_check"), "ok");
}

#[cfg(unix)]
#[test]
fn a_backup_is_its_owners_only() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.bring(&[first]).unwrap();
    home.bring(&[first, second]).unwrap();
    let backups = home.backups();
    assert_eq!(backups.len(), 1);
    assert_eq!(std::fs::metadata(&backups[0]).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_step_that_fails_leaves_the_old_version_and_its_backup() {
    let home = Home::new();
    home.bring(&[first]).unwrap();
    assert!(home.bring(&[first, second, broken]).is_err());
    let conn = home.connect();
    assert_eq!(value::<i64>(&conn, "PRAGMA user_version"), 1);
    assert_eq!(value::<String>(&conn, "SELECT name FROM things"), "one");
    assert!(conn.prepare("SELECT size FROM things").is_err(), "the step before it was taken back too");
    assert_eq!(home.backups().len(), 1);
}

#[test]
fn a_backup_is_never_overwritten() {
    let home = Home::new();
    home.bring(&[first]).unwrap();
    std::fs::write(home.folder.path().join("record.db.backup-v1-20231114_221320"), "earlier").unwrap();
    assert!(home.bring(&[first, second]).is_err());
    assert_eq!(value::<i64>(&home.connect(), "PRAGMA user_version"), 1);
    assert_eq!(std::fs::read(&home.backups()[0]).unwrap(), b"earlier");
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    let home = Home::new();
    home.bring(&[first, second, third]).unwrap();
    match home.bring(&[first, second]) {
        Err(TxError::Refused(StoreError::FutureSchema { found: 3, known: 2, .. })) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(value::<i64>(&home.connect(), "PRAGMA user_version"), 3);
}

#[test]
fn of_many_that_make_a_database_at_once_one_does() {
    let home = Home::new();
    let path = home.path();
    prepare_file(&path, Path::new("")).unwrap();
    let arrivals: Vec<SchemaState> = std::thread::scope(|scope| {
        let open = || {
            let mut conn = connect(&path, OpenMode::Write, Duration::from_secs(30)).unwrap();
            bring_up_to_date(&mut conn, &path, &[first, second], NOW_MS, Duration::from_secs(30), &mut |_| ())
                .unwrap()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(arrivals.iter().filter(|arrival| **arrival == SchemaState::Made).count(), 1);
    assert_eq!(value::<i64>(&home.connect(), "SELECT count(*) FROM things"), 1);
}

#[test]
fn the_schema_of_this_version_can_be_made() {
    let home = Home::new();
    assert_eq!(home.bring(STEPS).unwrap(), SchemaState::Made);
    assert_eq!(value::<String>(&home.connect(), "PRAGMA integrity_check"), "ok");
}

/// The index of the first version: two full-text tables and pieces with their state in each.
const FULL_TEXT_TABLES: &str = "
    DROP TABLE clues_open;
    DROP TABLE clues_sealed;
    DROP TABLE artifact_pieces;
    DELETE FROM numbers WHERE name = 'piece';
    CREATE VIRTUAL TABLE words USING fts5(
        terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
    );
    CREATE VIRTUAL TABLE grams USING fts5(
        folded, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
    );
    CREATE TABLE grams_position (one INTEGER PRIMARY KEY CHECK (one = 1), message INTEGER NOT NULL) STRICT;
    INSERT INTO grams_position VALUES (1, 0);
    CREATE TABLE artifact_pieces (
        row INTEGER PRIMARY KEY,
        artifact INTEGER NOT NULL,
        first_byte INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        first_line INTEGER NOT NULL,
        has_grams INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX artifact_pieces_without_grams ON artifact_pieces (row) WHERE has_grams = 0;
    INSERT INTO words (rowid, terms) VALUES (1, 'message');
    DROP TABLE vectors;
    DROP TABLE vector_models;
    ALTER TABLE calls DROP COLUMN access_token;
    PRAGMA user_version = 1;";

/// The index after that: the present tables, filled with shorter hashes.
const SHORTER_CLUES: &str = "
    UPDATE clues_open SET clues = x'0102030405';
    UPDATE clues_sealed SET entries = x'ff00ff00' WHERE slice % 3 = 0;
    DROP TABLE vectors;
    DROP TABLE vector_models;
    ALTER TABLE calls DROP COLUMN access_token;
    PRAGMA user_version = 1;";

#[test]
fn records_of_the_first_version_are_indexed_anew_whatever_their_index_was() {
    for layout in [FULL_TEXT_TABLES, SHORTER_CLUES] {
        // More than one segment, so that one is sealed and one open.
        let home = test_home::Home::with_messages(2_500);
        let store = home.open();
        let text = format!("the needle of the artifact\n{}", "hay ".repeat(4_000));
        let session = test_home::id("one");
        let artifact = NewArtifact { session: &session, text: &text, label: "hay", at_ms: 3 };
        store.put_artifact(&test_home::owner(), artifact).unwrap();
        drop(store);
        test_home::stranger(&home.path()).execute_batch(layout).unwrap();

        let mut told = Vec::new();
        let store =
            SqliteStore::open_following(&home.path(), NOW_MS, &mut |progress| told.push(progress)).unwrap();

        let forward = store.migration().unwrap();
        assert_eq!((forward.from, forward.to), (1, 4));
        assert!(forward.backup.is_file());
        assert_eq!(told.len(), 3, "two segments of messages and an artifact");
        for (query, hits) in [("2499", 1), ("7", 1), ("needle artifact", 1), ("needl", 1)] {
            let question = SearchQuery { text: query.to_owned(), ..SearchQuery::default() };
            let answer = store.search(&test_home::owner(), &question).unwrap();
            assert_eq!(answer.hits.len(), hits, "{query}");
        }
        drop(store);
        let examination =
            Examination { depth: Depth::Thorough, now_ms: NOW_MS, is_alive: &|_| false, artifacts: None };
        let diagnosis = Diagnosis::of_file(&home.path(), &examination, &mut |_| ()).unwrap();
        assert_eq!(diagnosis.findings, []);
        assert!(home.open().migration().is_none(), "once is enough");
    }
}

/// The schema that other builds, older and newer, read and write: tables, columns, indexes, versions. Belongs to `cli/tests/cli/golden.rs`;
/// `INSTA_UPDATE=always` rewrites the list.
#[test]
fn tables_of_a_new_record_match_their_golden_list() {
    let home = test_home::Home::with_messages(1);
    let conn = test_home::stranger(&home.path());
    let mut lines = std::collections::BTreeSet::from([
        format!("version {}", value::<i64>(&conn, "PRAGMA user_version")),
        format!("application {:#010x}", value::<i64>(&conn, "PRAGMA application_id")),
    ]);
    let all = |sql: &str| -> Vec<(String, String, String)> {
        let mut statement = conn.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        rows.map(|row| row.unwrap()).collect()
    };
    let plain = |sql: &str| {
        let uncommented: Vec<&str> =
            sql.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
        uncommented.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (kind, name, sql) in all("SELECT type, name, coalesce(sql, '') FROM sqlite_schema") {
        let ending = plain(&sql).rsplit_once(')').map(|(_, ending)| ending.trim().to_owned());
        match kind.as_str() {
            "table" => {
                lines.insert(format!("table {name} {}", ending.unwrap_or_default()).trim_end().to_owned());
                let columns = format!(
                    "SELECT name, type || iif(\"notnull\", ' not null', '') || iif(pk, ' key ' || pk, ''), \
                     coalesce(' default ' || dflt_value, '') FROM pragma_table_xinfo('{name}')"
                );
                lines.extend(
                    all(&columns)
                        .into_iter()
                        .map(|(column, about, default)| format!("column {name}.{column} {about}{default}")),
                );
            }
            _ => {
                lines.insert(format!("{kind} {name}: {}", plain(&sql)));
            }
        }
    }
    let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/tables.txt");
    throughline_testkit::check_golden(Path::new(path), &text);
}
