//! The record on PostgreSQL with a million messages, compared with a file with the same messages.

use throughline_store::{PostgresStore, SqliteStore};
use throughline_testkit::PostgresServer;

use super::machine;
use crate::store::{IN_FILE, RecordLimits, START_MS, append, ask_everything, told};
use crate::store_texts::Author;
use crate::table::Table;

/// The targets of a record on a server.
const ON_SERVER: RecordLimits =
    RecordLimits { append: 10_000.0, words: 20.0, questions: 60.0, substrings: 100.0, continuation: 5.0 };
/// The most bytes of a database per byte of text, on a server and in a file.
const MOST_TIMES_ON_SERVER: f64 = 4.0;
const MOST_TIMES_IN_FILE: f64 = 3.0;

/// Measures both, and returns the table of the file and that of the server.
pub(super) fn run(messages: usize) -> Result<(Table, Table), String> {
    let file = in_file(messages)?;
    let server = on_server(messages)?;
    Ok((file, server))
}

fn in_file(messages: usize) -> Result<Table, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("record.db");
    let (mut table, mut author) = (Table::default(), Author::new(11));
    let store = SqliteStore::open(&path, START_MS).map_err(told)?;
    note("SQLite: appending");
    let text_bytes = append(&store, &mut author, messages, &IN_FILE, &mut table)?;
    let bytes = std::fs::metadata(&path).map_err(|error| error.to_string())?.len();
    sizes(bytes, text_bytes, MOST_TIMES_IN_FILE, &mut table);
    note("SQLite: asking");
    ask_everything(&store, &author, &IN_FILE, &mut table)?;
    Ok(table)
}

fn on_server(messages: usize) -> Result<Table, String> {
    let server =
        PostgresServer::measured().ok_or("PostgreSQL is not installed (apt-get install postgresql)")?;
    let url = server.empty_database();
    let database = url.rsplit('/').next().unwrap_or_default();
    let (mut table, mut author) = (Table::default(), Author::new(11));
    let store = PostgresStore::open(&url, PostgresStore::CONNECTIONS).map_err(told)?;
    let empty = database_bytes(&server, database)?;
    note("PostgreSQL: appending");
    let (own, theirs) = (machine::own_seconds(), server.process_id().and_then(machine::seconds_of));
    let text_bytes = append(&store, &mut author, messages, &ON_SERVER, &mut table)?;
    let of_thousand = |before: Option<f64>, after: Option<f64>| {
        before.zip(after).map(|(before, after)| (after - before) * 1_000.0 / (messages as f64 / 1_000.0))
    };
    let own = of_thousand(own, machine::own_seconds());
    let theirs = of_thousand(theirs, server.process_id().and_then(machine::seconds_of));
    if let (Some(own), Some(theirs)) = (own, theirs) {
        table.note("  processor time of 1,000: here, server", format!("{own:.1} ms, {theirs:.1} ms"));
    }
    let bytes = database_bytes(&server, database)?.saturating_sub(empty);
    sizes(bytes, text_bytes, MOST_TIMES_ON_SERVER, &mut table);
    let wal = server.run("postgres", "SELECT wal_bytes::int8 FROM pg_stat_wal");
    if let Ok(wal) = wal.parse::<f64>() {
        table.note("  write-ahead log over text", format!("{:.2} times", wal / text_bytes.max(1) as f64));
    }
    note("PostgreSQL: asking");
    ask_everything(&store, &author, &ON_SERVER, &mut table)?;
    Ok(table)
}

fn database_bytes(server: &PostgresServer, database: &str) -> Result<u64, String> {
    let bytes = server.run(database, "SELECT pg_database_size(current_database())");
    bytes.parse().map_err(|_| format!("the size of the database cannot be read: {bytes}"))
}

fn sizes(bytes: u64, text_bytes: usize, limit: f64, table: &mut Table) {
    let times = bytes as f64 / text_bytes.max(1) as f64;
    table.at_most("database over text, indexes included", times, limit, "times");
    table.note("  database", format!("{:.0} MB", bytes as f64 / 1e6));
}

#[expect(clippy::print_stderr, reason = "a run takes minutes: what it is at is said meanwhile")]
fn note(what: &str) {
    eprintln!("{what}");
}
