//! The index of the record compared with full-text tables of SQLite, on the same messages and questions, in one run.
//!
//! Figures are CPU time of this thread, with wall time beside it, so that they are valid on a machine with other work. The tables of
//! SQLite are asked for row numbers; the record reads, ranks and shows passages, so its figures include more work. `tantivy` is in a
//! separate program (`bench/tantivy`), so that no build of the workspace compiles it.

use std::fmt::Write;
use std::path::Path;

use rusqlite::{Connection, params};
use throughline_store::{Owner, SearchMode, SearchQuery, SqliteStore, Store};

use crate::index_questions::{QUESTIONS, QuestionKind, Wanted, kinds, trigrams_of};
use crate::store::{IN_FILE, START_MS, append, told};
use crate::store_texts::Author;
use crate::table::Table;

/// Messages per transaction.
const BATCH: usize = 1_000;
/// The most hits of an answer.
const LIMIT: usize = 20;

/// A full-text table that is compared.
struct Candidate {
    name: &'static str,
    options: &'static str,
    /// Whether it indexes trigrams instead of words.
    holds_trigrams: bool,
}

const TABLES: [Candidate; 3] = [
    Candidate { name: "FTS5 unicode61", options: "tokenize='unicode61'", holds_trigrams: false },
    Candidate {
        name: "FTS5 porter unicode61",
        options: "tokenize='porter unicode61'",
        holds_trigrams: false,
    },
    Candidate { name: "FTS5 trigram", options: "tokenize='trigram', detail='none'", holds_trigrams: true },
];

/// Answers a question and returns the number of hits. `None` if the table cannot answer it.
type AskColumn = Box<dyn Fn(&QuestionKind, &str) -> Result<Option<usize>, String>>;

/// CPU and wall time in milliseconds.
#[derive(Clone, Copy, Default)]
struct Spent {
    cpu_ms: f64,
    wall_ms: f64,
}

/// The CPU time of this thread so far; wall time if the system does not report it.
fn cpu_ms(started: std::time::Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split_whitespace().next()?.parse::<f64>().ok());
    nanos.map_or_else(|| started.elapsed().as_secs_f64() * 1_000.0, |nanos| nanos / 1e6)
}

/// Runs a closure and returns the time it took.
fn spend<T>(run: impl FnOnce() -> Result<T, String>) -> Result<(T, Spent), String> {
    let started = std::time::Instant::now();
    let before = cpu_ms(started);
    let result = run()?;
    let spent =
        Spent { cpu_ms: cpu_ms(started) - before, wall_ms: started.elapsed().as_secs_f64() * 1_000.0 };
    Ok((result, spent))
}

/// Runs the comparison with databases in `folder`, which stay there. Existing ones are queried again.
pub(crate) fn run(folder: &Path, messages: usize, tables: bool) -> Result<String, String> {
    let mut out = format!("{messages} messages; CPU time, wall time in brackets\n\n");
    let author = Author::new(11);
    let record = folder.join("record.db");
    if !record.exists() {
        let store = SqliteStore::open(&record, START_MS).map_err(told)?;
        let ((), spent) = spend(|| {
            append(&store, &mut Author::new(11), messages, &IN_FILE, &mut Table::default()).map(drop)
        })?;
        let _ = writeln!(out, "{:<28} appended {}", "the record, its index with it", rate(messages, spent));
    }
    let store = SqliteStore::open(&record, START_MS).map_err(told)?;
    let _ = writeln!(out, "{:<28} {:.0} MB", "the record", megabytes(&record));
    let _ = writeln!(out, "{:<28} {:.0} MB", "  of these its index", index_megabytes(&record)?);
    let mut columns: Vec<(&str, AskColumn)> = Vec::new();
    columns.push(("the record", Box::new(move |kind, text| ask_record(&store, kind, text))));
    for table in TABLES.iter().filter(|_| tables) {
        let path = folder.join(format!("{}.db", table.name.replace(' ', "-")));
        let is_new = !path.exists();
        let conn = open(&path)?;
        if is_new {
            let ((), spent) = spend(|| fill(&conn, table, messages))?;
            let _ = writeln!(out, "{:<28} appended {}", table.name, rate(messages, spent));
        }
        let _ = writeln!(out, "{:<28} {:.0} MB", table.name, megabytes(&path));
        columns.push((table.name, Box::new(move |kind, text| ask_table(&conn, table, kind, text))));
    }
    out.push('\n');
    for kind in kinds(&author) {
        let _ = writeln!(out, "{}", kind.name);
        for (name, ask) in &columns {
            let mut spent = Vec::new();
            let mut found = 0;
            for question in &kind.questions {
                let (hits, one) = spend(|| ask(&kind, question))?;
                let Some(hits) = hits else { break };
                found += usize::from(hits > 0);
                spent.push(one);
            }
            if spent.is_empty() {
                let _ = writeln!(out, "  {name:<26} cannot");
                continue;
            }
            let p50 = |of: fn(&Spent) -> f64| {
                let mut times: Vec<f64> = spent.iter().map(of).collect();
                crate::store::percentiles(&mut times)
            };
            let ((cpu, cpu95), (wall, wall95)) = (p50(|spent| spent.cpu_ms), p50(|spent| spent.wall_ms));
            let _ = writeln!(
                out,
                "  {name:<26} p50 {cpu:>7.1} ({wall:.1}) ms, p95 {cpu95:>7.1} ({wall95:.1}) ms, {found} of {QUESTIONS} found"
            );
        }
    }
    Ok(out)
}

fn rate(messages: usize, spent: Spent) -> String {
    let per_second = |ms: f64| messages as f64 / ms * 1_000.0;
    format!(
        "{:.0} messages/s of CPU ({:.0} of wall time)",
        per_second(spent.cpu_ms),
        per_second(spent.wall_ms)
    )
}

fn megabytes(path: &Path) -> f64 {
    std::fs::metadata(path).map_or(0.0, |found| found.len() as f64 / 1e6)
}

/// The size of a record's index.
fn index_megabytes(record: &Path) -> Result<f64, String> {
    let sql = "SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND name LIKE 'clues%'";
    let bytes: i64 = open(record)?.query_row(sql, [], |row| row.get(0)).map_err(failed)?;
    Ok(bytes as f64 / 1e6)
}

fn failed(error: rusqlite::Error) -> String {
    error.to_string()
}

#[expect(
    clippy::disallowed_methods,
    reason = "tables that are compared with the record, in files of their own"
)]
fn open(path: &Path) -> Result<Connection, String> {
    let conn = Connection::open(path).map_err(failed)?;
    conn.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    conn.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    conn.pragma_update(None, "cache_size", -32 * 1024).map_err(failed)?;
    Ok(conn)
}

/// Writes the texts of the same messages.
fn fill(conn: &Connection, table: &Candidate, messages: usize) -> Result<(), String> {
    let sql = format!("CREATE VIRTUAL TABLE texts USING fts5(text, content='', {})", table.options);
    conn.execute_batch(&sql).map_err(failed)?;
    let mut author = Author::new(11);
    let mut row = 0_i64;
    while (row as usize) < messages {
        let transaction = conn.unchecked_transaction().map_err(failed)?;
        let mut insert =
            transaction.prepare_cached("INSERT INTO texts (rowid, text) VALUES (?1, ?2)").map_err(failed)?;
        for _ in 0..BATCH.min(messages - row as usize) {
            row += 1;
            let json = author.message().json;
            insert.execute(params![row, crate::store::text_of(json)?]).map_err(failed)?;
        }
        drop(insert);
        transaction.commit().map_err(failed)?;
    }
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failed)
}

fn ask_record(store: &SqliteStore, kind: &QuestionKind, text: &str) -> Result<Option<usize>, String> {
    let (text, mode) = match kind.wanted {
        Wanted::AllWords => (text.to_owned(), SearchMode::AllWords),
        Wanted::AnyWord => (format!("why did the {text} not work?"), SearchMode::Words),
        Wanted::Phrase => (format!("\"{text}\""), SearchMode::AllWords),
        Wanted::Substring => (text.to_owned(), SearchMode::Substring),
    };
    let query = SearchQuery { text, mode, limit: LIMIT, ..SearchQuery::default() };
    Ok(Some(store.search(&Owner::default(), &query).map_err(told)?.hits.len()))
}

/// The query of a table. A table of trigrams without positions returns texts that contain all of them; a table of words cannot find parts
/// of words.
fn match_of(table: &Candidate, kind: &QuestionKind, text: &str) -> Option<String> {
    let all_trigrams = |text: &str| {
        let trigrams: Vec<String> = trigrams_of(text).iter().map(|part| format!("\"{part}\"")).collect();
        (!trigrams.is_empty()).then(|| format!("({})", trigrams.join(" AND ")))
    };
    let of_words = |joint: &str| {
        let words = text.split(' ').map(|word| match table.holds_trigrams {
            true => all_trigrams(word),
            false => Some(format!("\"{word}\"")),
        });
        Some(words.collect::<Option<Vec<_>>>()?.join(joint))
    };
    match kind.wanted {
        Wanted::AllWords => of_words(" AND "),
        Wanted::AnyWord => of_words(" OR "),
        Wanted::Phrase if table.holds_trigrams => all_trigrams(text),
        Wanted::Phrase => Some(format!("\"{text}\"")),
        Wanted::Substring if table.holds_trigrams => all_trigrams(text),
        Wanted::Substring => None,
    }
}

fn ask_table(
    conn: &Connection,
    table: &Candidate,
    kind: &QuestionKind,
    text: &str,
) -> Result<Option<usize>, String> {
    let Some(wanted) = match_of(table, kind, text) else { return Ok(None) };
    let mut select = conn
        .prepare_cached("SELECT rowid FROM texts WHERE texts MATCH ?1 ORDER BY rank LIMIT ?2")
        .map_err(failed)?;
    let rows = select.query_map(params![wanted, LIMIT as i64], |row| row.get::<_, i64>(0)).map_err(failed)?;
    rows.collect::<Result<Vec<_>, _>>().map(|rows| Some(rows.len())).map_err(failed)
}
