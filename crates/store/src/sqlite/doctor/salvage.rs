//! Salvage: copies everything that can still be read of a damaged database, row by row, into a new one.
//!
//! SQLite finds a row by walking down from the root of its table, so a damaged page hides only the rows on it. Rows are
//! read from both ends, and the gap between is bisected repeatedly. If the pages with the list of tables are lost, those
//! of a new record replace them (see `file_header`).
//!
//! Not for: indexes and counters, which `repair` rebuilds.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::error::{Result, StoreError};
use crate::ids::Millis;

use super::super::connection::{self, OpenMode};
use super::super::error::{TxError, TxResult, io_error};
use super::super::migrate::{STEPS, bring_up_to_date};
use super::super::progress::StoreProgress;
use super::file_header::{FileHeader, replace_beginning};

/// The maximum number of probes per badly damaged table.
const PROBES_A_TABLE: usize = 20_000;

/// A table to copy.
struct SalvageTable {
    name: &'static str,
    key: TableKey,
}

/// The key of a table.
enum TableKey {
    /// A number.
    Number(&'static str),
    /// Other columns; if the first one is the number of another table, rows are also looked up by it.
    Columns(&'static [&'static str]),
}

const TABLES: [SalvageTable; 10] = [
    SalvageTable { name: "sessions", key: TableKey::Number("ordinal") },
    SalvageTable { name: "messages", key: TableKey::Number("id") },
    SalvageTable { name: "renditions", key: TableKey::Number("number") },
    SalvageTable { name: "summaries", key: TableKey::Number("id") },
    SalvageTable { name: "calls", key: TableKey::Number("id") },
    SalvageTable { name: "artifacts", key: TableKey::Number("n") },
    SalvageTable { name: "view_items", key: TableKey::Columns(&["session", "position"]) },
    SalvageTable { name: "artifact_refs", key: TableKey::Columns(&["artifact", "session", "message"]) },
    SalvageTable { name: "preamble_parts", key: TableKey::Columns(&["hash"]) },
    SalvageTable { name: "preambles", key: TableKey::Columns(&["id"]) },
];

/// The salvaged data.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SalvageReport {
    /// The damaged database, unchanged.
    pub damaged: PathBuf,
    /// The result for each table.
    pub tables: Vec<SalvagedTable>,
}

/// The result for a table.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SalvagedTable {
    /// The name of the table.
    pub name: &'static str,
    /// Number of rows copied.
    pub rows: u64,
    /// Whether some rows could not be read.
    pub has_losses: bool,
}

/// Whether a database without our application id is a record, judged by its tables.
pub(super) fn looks_like_ours(path: &Path) -> bool {
    let count = |conn: Connection| {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name IN
                   ('sessions', 'messages', 'view_items', 'clues_sealed', 'artifact_pieces')";
        conn.query_row(sql, [], |row| row.get::<_, i64>(0))
    };
    connection::connect(path, OpenMode::Read, connection::BUSY_TIMEOUT)
        .and_then(count)
        .is_ok_and(|tables| tables == 5)
}

/// Copies everything readable of the database at `path` to a new one, which replaces it; the damaged one is renamed and kept beside it.
/// `None`, without any change, if nothing can be read.
pub(super) fn salvage(
    path: &Path,
    now_ms: Millis,
    progress: &mut dyn FnMut(StoreProgress),
) -> Result<Option<SalvageReport>> {
    let mut work = || -> TxResult<Option<SalvageReport>> {
        // Later writes by others would go to the damaged file.
        if connection::is_in_use(path) {
            return Err(StoreError::Busy { path: path.to_path_buf() }.into());
        }
        let folder =
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let failure = |source| TxError::from(io_error("making a new database", folder, source));
        let workshop =
            tempfile::Builder::new().prefix(".throughline-salvage-").tempdir_in(folder).map_err(failure)?;
        let new = workshop.path().join("new.db");
        let mut target = make_empty(&new, now_ms)?;
        let Some(source) = open_damaged(path, &new, workshop.path())? else { return Ok(None) };
        let tables = copy_tables(&source, &mut target, progress)?;
        drop(source);
        if tables.iter().all(|table| table.rows == 0) && fs::metadata(path).is_ok_and(|found| found.len() > 0)
        {
            return Ok(None);
        }
        target.pragma_update_and_check(None, "wal_checkpoint", "TRUNCATE", |_| Ok(()))?;
        target.close().map_err(|(_, error)| error)?;
        let damaged = put_in_place(path, &new, now_ms).map_err(failure)?;
        Ok(Some(SalvageReport { damaged, tables }))
    };
    work().map_err(|error| error.into_store_error("saving what can be read", path))
}

/// Creates an empty record.
fn make_empty(path: &Path, now_ms: Millis) -> TxResult<Connection> {
    connection::make_private_file(path)
        .map_err(|source| TxError::from(io_error("making a new database", path, source)))?;
    let mut conn = connection::connect(path, OpenMode::Write, connection::BUSY_TIMEOUT)?;
    bring_up_to_date(&mut conn, path, STEPS, now_ms, connection::BUSY_TIMEOUT, &mut |_| ())?;
    conn.pragma_update(None, "synchronous", "OFF")?;
    // Its first page may be needed, in the file.
    conn.pragma_update_and_check(None, "wal_checkpoint", "TRUNCATE", |_| Ok(()))?;
    Ok(conn)
}

/// Opens a damaged database for reading: as it is, or a copy with a readable beginning.
fn open_damaged(path: &Path, new: &Path, workshop: &Path) -> TxResult<Option<Connection>> {
    if let Ok(conn) = open_if_readable(path) {
        return Ok(Some(conn));
    }
    for (number, part) in [FileHeader::Header, FileHeader::Schema].into_iter().enumerate() {
        let copy = workshop.join(format!("damaged-{number}.db"));
        let failure = |source| TxError::from(io_error("copying the damaged database", &copy, source));
        fs::copy(path, &copy).map_err(failure)?;
        if connection::beside(path, "-wal").is_file() {
            fs::copy(connection::beside(path, "-wal"), connection::beside(&copy, "-wal")).map_err(failure)?;
        }
        replace_beginning(&copy, new, part).map_err(failure)?;
        if let Ok(conn) = open_if_readable(&copy) {
            return Ok(Some(conn));
        }
    }
    Ok(None)
}

/// Opens a database if it has the tables of a record.
fn open_if_readable(path: &Path) -> rusqlite::Result<Connection> {
    let conn = connection::connect(path, OpenMode::Read, connection::BUSY_TIMEOUT)?;
    // Allows reading a database that is shorter than stated, or whose schema has errors.
    conn.pragma_update(None, "writable_schema", true)?;
    conn.prepare("SELECT id FROM messages")?;
    conn.prepare("SELECT id FROM sessions")?;
    Ok(conn)
}

fn copy_tables(
    source: &Connection,
    target: &mut Connection,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<Vec<SalvagedTable>> {
    let transaction = target.transaction()?;
    let mut salvaged = Vec::new();
    for (done, table) in (0..).zip(&TABLES) {
        progress(StoreProgress { what: "saving", done, total: TABLES.len() as u64 });
        let mut copier = Copier::new(source, &transaction, table)?;
        match table.key {
            TableKey::Number(number) => copier.copy_by_number(number),
            TableKey::Columns(columns) => copier.copy_by_columns(columns)?,
        }
        salvaged.push(SalvagedTable { name: table.name, rows: copier.rows, has_losses: copier.has_losses });
    }
    for sql in [
        // Numbers that were used are not used again.
        "INSERT OR REPLACE INTO numbers (name, next)
             SELECT name, max(next, (SELECT coalesce(max(id), 0) + 1 FROM messages)) FROM numbers
             WHERE name = 'message'",
        "UPDATE sqlite_sequence SET seq = max(seq, (SELECT coalesce(max(session), 0) FROM messages))
             WHERE name = 'sessions'",
    ] {
        transaction.execute(sql, [])?;
    }
    if let Ok(next) =
        source.query_row("SELECT next FROM numbers WHERE name = 'message'", [], |row| row.get::<_, i64>(0))
    {
        transaction.execute("UPDATE numbers SET next = max(next, ?1) WHERE name = 'message'", [next])?;
    }
    copy_guards(source, &transaction);
    transaction.commit()?;
    progress(StoreProgress { what: "saving", done: TABLES.len() as u64, total: TABLES.len() as u64 });
    Ok(salvaged)
}

/// Guards are small and few; unreadable ones are learnt again.
fn copy_guards(source: &Connection, target: &Connection) {
    const COLUMNS: &str = "kind, chain, endpoint, model, name, value, set_ms, expires_ms";
    let copy = || -> rusqlite::Result<()> {
        let mut select = source.prepare(&format!("SELECT {COLUMNS} FROM guards"))?;
        let mut insert = target.prepare(&format!(
            "INSERT OR IGNORE INTO guards ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        ))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let values: Vec<Value> = (0..8).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?;
            insert.execute(params_from_iter(values))?;
        }
        Ok(())
    };
    // Rows before the damage are used.
    let _ = copy();
}

/// Copies the rows of one table.
struct Copier<'a> {
    source: &'a Connection,
    table: &'a SalvageTable,
    columns: Vec<String>,
    insert: rusqlite::Statement<'a>,
    rows: u64,
    has_losses: bool,
    probes: usize,
}

/// The end of a run of rows.
enum ScanEnd {
    /// All rows were read.
    Whole,
    /// There was damage after the row with this number, or immediately.
    Damaged(Option<i64>),
}

impl<'a> Copier<'a> {
    fn new(
        source: &'a Connection,
        target: &'a Connection,
        table: &'a SalvageTable,
    ) -> rusqlite::Result<Self> {
        // The columns of a new record: a damaged schema is not reliable.
        let columns: Vec<String> = target
            .prepare("SELECT name FROM pragma_table_info(?1)")?
            .query_map([table.name], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let places = vec!["?"; columns.len()].join(", ");
        let sql = format!("INSERT OR IGNORE INTO {} ({}) VALUES ({places})", table.name, columns.join(", "));
        let insert = target.prepare(&sql)?;
        Ok(Self { source, table, columns, insert, rows: 0, has_losses: false, probes: 0 })
    }

    /// Copies rows selected by a condition, in an order, until damage. `key` is the column that identifies a row.
    fn copy(&mut self, condition: &str, values: &[i64], order: &str, key: &str) -> ScanEnd {
        let sql = format!(
            "SELECT {}, {key} FROM {} WHERE {condition} ORDER BY {order}",
            self.columns.join(", "),
            self.table.name
        );
        let mut last = None;
        let mut run = || -> rusqlite::Result<()> {
            let mut select = self.source.prepare_cached(&sql)?;
            let mut rows = select.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                let values: Vec<Value> =
                    (0..self.columns.len()).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?;
                last = row.get::<_, i64>(self.columns.len()).ok();
                // A row that violates the schema is damaged too, but only this row.
                match self.insert.execute(params_from_iter(values)) {
                    Ok(inserted) => self.rows += inserted as u64,
                    Err(_) => self.has_losses = true,
                }
            }
            Ok(())
        };
        match run() {
            Ok(()) => ScanEnd::Whole,
            Err(_) => {
                self.has_losses = true;
                ScanEnd::Damaged(last)
            }
        }
    }

    /// Copies a table with numbered rows, around the damage.
    fn copy_by_number(&mut self, key: &str) {
        let mut gaps = vec![(i64::MIN, i64::MAX)];
        while let Some((low, high)) = gaps.pop() {
            self.probes += 1;
            if low > high || self.probes > PROBES_A_TABLE {
                continue;
            }
            let within = format!("{key} BETWEEN ? AND ?");
            let ScanEnd::Damaged(last) = self.copy(&within, &[low, high], key, key) else { continue };
            let low = last.map_or(low, |last| last.saturating_add(1));
            let ScanEnd::Damaged(last) = self.copy(&within, &[low, high], &format!("{key} DESC"), key) else {
                continue;
            };
            let high = last.map_or(high, |last| last.saturating_sub(1));
            // One row, or nothing left to split.
            if low >= high {
                continue;
            }
            let (low, high) = match (low, high) {
                // Numbers are small and positive: do not bisect the range outside of them.
                (i64::MIN, high) => (0, high),
                other => other,
            };
            let middle = low + (high - low) / 2;
            gaps.push((low, middle));
            gaps.push((middle + 1, high));
        }
    }

    /// Copies a table with other keys: from both ends, and, if the first part of the key is a number, for each of its values.
    fn copy_by_columns(&mut self, columns: &[&str]) -> rusqlite::Result<()> {
        let forward = columns.join(", ");
        let backward: Vec<String> = columns.iter().map(|column| format!("{column} DESC")).collect();
        let first = columns.first().copied().unwrap_or_default();
        if matches!(self.copy("1", &[], &forward, first), ScanEnd::Whole) {
            return Ok(());
        }
        self.copy("1", &[], &backward.join(", "), first);
        let owners = match first {
            "session" => "SELECT ordinal FROM sessions",
            "artifact" => "SELECT n FROM artifacts",
            _ => return Ok(()),
        };
        let numbers: Vec<i64> = match self.source.prepare(owners) {
            // As many as can be read.
            Ok(mut select) => {
                select.query_map([], |row| row.get(0))?.map_while(rusqlite::Result::ok).collect()
            }
            Err(_) => Vec::new(),
        };
        for number in numbers {
            self.copy(&format!("{first} = ?"), &[number], &forward, first);
        }
        Ok(())
    }
}

/// Replaces a damaged database with a new one, and keeps the damaged one beside it. There is a database at every moment.
fn put_in_place(path: &Path, new: &Path, now_ms: Millis) -> std::io::Result<PathBuf> {
    let time = jiff::Timestamp::from_millisecond(now_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let stamp = time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y%m%d_%H%M%S").to_string();
    let damaged = connection::beside(path, &format!(".damaged-{stamp}"));
    if fs::symlink_metadata(&damaged).is_ok() {
        return Err(std::io::ErrorKind::AlreadyExists.into());
    }
    // The journal is moved first: SQLite would apply it to another database beside it.
    for suffix in ["-wal", "-journal"] {
        let journal = connection::beside(path, suffix);
        if journal.is_file() {
            fs::rename(&journal, connection::beside(&damaged, suffix))?;
        }
    }
    if let Err(error) = fs::remove_file(connection::beside(path, "-shm"))
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error);
    }
    if path.is_file() && fs::hard_link(path, &damaged).is_err() {
        fs::copy(path, &damaged)?;
    }
    fs::File::open(new)?.sync_all()?;
    fs::rename(new, path)?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        connection::sync_folder(folder)?;
    }
    Ok(damaged)
}
