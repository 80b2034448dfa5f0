//! Connections to database files: creating, opening and recognising files. All connections of the workspace are opened here.
//!
//! A connection waits for others rather than failing at once, and uses a write-ahead log, so that readers and a writer do not wait for one
//! another. The file is not mapped into memory: a page that cannot be read must be an error, not a signal that ends the process.
//!
//! The database file is never opened by other means while it is in use: closing it would release SQLite's own locks.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{Result, StoreError};

use super::error::{TxError, TxResult, io_error};

/// The application id of Throughline's databases: "Thru".
pub(super) const APPLICATION_ID: i64 = 0x5468_7275;

/// Name of the folder of artifacts beside the database.
pub(super) const ARTIFACTS: &str = "artifacts";

/// The name of a database in memory, in SQLite and in error messages.
pub(super) const IN_MEMORY: &str = ":memory:";

/// How long a connection waits for another process before it fails.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a file may be empty while it is being created.
const BEING_MADE: Duration = Duration::from_secs(3);
/// Number of prepared statements cached by a connection.
const STATEMENTS_KEPT: usize = 96;
/// Page cache of a connection, in KiB.
const CACHE_KIB: i64 = 32 * 1024;
/// The size to which an unneeded journal is truncated.
const JOURNAL_KEPT_BYTES: i64 = 64 * 1024 * 1024;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// Reading and writing.
    Write,
    /// Reading while others may write.
    Read,
    /// Reading a file that no process can write, where not even a lock can be created.
    ReadUnchanging,
}

/// Held while a database is being opened. Creating the file also closes it, which would release locks that another thread of this process
/// has just taken on it.
static OPENING: Mutex<()> = Mutex::new(());

pub(super) fn opening() -> MutexGuard<'static, ()> {
    OPENING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a connection to an existing file.
pub(super) fn connect(path: &Path, access: OpenMode, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let threading = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = match access {
        OpenMode::Write => open_file(path, OpenFlags::SQLITE_OPEN_READ_WRITE | threading)?,
        OpenMode::Read => open_file(path, OpenFlags::SQLITE_OPEN_READ_ONLY | threading)?,
        OpenMode::ReadUnchanging => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | threading;
            open_file(&unchanging_uri(path), flags)?
        }
    };
    configure(&conn, access, busy_timeout)?;
    Ok(conn)
}

/// Opens a new, empty database in memory, which is lost with the connection.
pub(super) fn connect_in_memory() -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = open_file(Path::new(IN_MEMORY), flags)?;
    configure(&conn, OpenMode::Write, BUSY_TIMEOUT)?;
    Ok(conn)
}

fn configure(conn: &Connection, access: OpenMode, busy_timeout: Duration) -> rusqlite::Result<()> {
    conn.busy_timeout(busy_timeout)?;
    // A statement is planned once, not again for other values: that would cost more than running most of them.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    if access == OpenMode::Write {
        conn.pragma_update(None, "journal_size_limit", JOURNAL_KEPT_BYTES)?;
        // The store decides when the journal is moved to the database, so that no short write is delayed by it.
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    }
    Ok(())
}

/// Whether another process has a database open. Unknown if SQLite can no longer open it.
pub(super) fn is_in_use(path: &Path) -> bool {
    let ask = || -> rusqlite::Result<()> {
        let conn = open_file(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        // The check must not move the journal to the database.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Before any read: a connection in this mode needs exclusive access to the file.
        conn.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
    };
    ask().is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
}

/// Opens a database of another program, for reading.
pub(crate) fn open_foreign(path: &Path) -> Result<Connection> {
    let failure = |error: rusqlite::Error| {
        TxError::from(error).into_store_error("opening another program's database", path)
    };
    fs::metadata(path).map_err(|source| io_error("opening", path, source))?;
    let conn = connect(path, OpenMode::Read, BUSY_TIMEOUT).map_err(failure)?;
    match conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0)) {
        Ok(_) => Ok(conn),
        // Its folder is read-only, and no process writes it: read the file as it is.
        Err(_) if !has_journal(path) => {
            connect(path, OpenMode::ReadUnchanging, BUSY_TIMEOUT).map_err(failure)
        }
        Err(error) => Err(failure(error)),
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that opens databases")]
fn open_file(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, flags)
}

/// Returns the path as a URI that declares the file immutable.
fn unchanging_uri(path: &Path) -> PathBuf {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    PathBuf::from(uri)
}

/// Returns the folder of artifacts of the database at `path`.
pub(super) fn artifacts_beside(path: &Path) -> PathBuf {
    path.parent().unwrap_or_else(|| Path::new("")).join(ARTIFACTS)
}

/// Returns the path of a file that SQLite creates beside a database.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Whether the journal has anything that is not in the database yet.
pub(super) fn has_journal(path: &Path) -> bool {
    ["-wal", "-journal"]
        .iter()
        .any(|suffix| fs::metadata(beside(path, suffix)).is_ok_and(|journal| journal.len() > 0))
}

/// Creates the file with its folders if necessary, for its owner only, and restricts access to existing ones. Called while [`opening`] is
/// held.
pub(super) fn prepare_file(path: &Path, artifacts: &Path) -> Result<()> {
    let failure = |source| io_error("making the record", path, source);
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(is_a_folder(path)),
        Ok(found) if found.len() == 0 && stays_emptied(path, artifacts) => {
            return Err(StoreError::Damaged {
                path: path.to_path_buf(),
                problem: "the file is empty, but there are traces of what was in it".to_owned(),
            });
        }
        Ok(_) => {}
        Err(missing) if missing.kind() == ErrorKind::NotFound => make_file(path).map_err(failure)?,
        Err(other) => return Err(failure(other)),
    }
    for suffix in ["", "-wal", "-shm", "-journal"] {
        keep_others_out(&beside(path, suffix)).map_err(failure)?;
    }
    Ok(())
}

/// Returns the error for a folder in place of the file.
pub(super) fn is_a_folder(path: &Path) -> StoreError {
    StoreError::NotOurs { path: path.to_path_buf(), problem: "it is a folder".to_owned() }
}

/// Whether a file is empty although it had contents. A file that another process is creating looks the same, but only briefly.
fn stays_emptied(path: &Path, artifacts: &Path) -> bool {
    let began = Instant::now();
    loop {
        let is_empty = fs::metadata(path).is_ok_and(|found| found.len() == 0);
        if !is_empty || !(has_journal(path) || has_entries(artifacts)) {
            return false;
        }
        if began.elapsed() >= BEING_MADE {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn has_entries(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// Creates an empty file that only its owner may read, unless another process has just created it.
fn make_file(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        make_private_folder(folder)?;
    }
    match make_private_file(path) {
        Err(exists) if exists.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(other) => Err(other),
        // The name must be durable, as the contents will be.
        Ok(()) => folder.map_or(Ok(()), sync_folder),
    }
}

/// Identifies a file among others of the same name.
pub(super) type FileId = (u64, u64);

/// Returns the id of the file with this name; `None` if there is none.
#[cfg(unix)]
pub(super) fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Returns the id of the file with this name; on systems without file ids, only that there is one.
#[cfg(not(unix))]
pub(super) fn file_id(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().map(|_| (0, 0))
}

/// Creates a new file for its owner only.
pub(super) fn make_private_file(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(path)?.sync_all() } else { Ok(()) }
}

/// Removes all others' access to a file, if it exists.
#[cfg(unix)]
fn keep_others_out(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    if found.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(found.permissions().mode() & 0o700))
}

#[cfg(not(unix))]
fn keep_others_out(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// The kind of a database file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DatabaseKind {
    /// It is empty.
    Empty,
    /// A record of this schema version.
    Record {
        /// The version.
        version: i64,
    },
}

/// Recognises a database. Fails for one of another program, or of a newer version than `known`.
pub(super) fn identify(conn: &Connection, path: &Path, known: i64) -> TxResult<DatabaseKind> {
    // In one snapshot: another process may be creating the database right now.
    let _reading = conn.is_autocommit().then(|| conn.unchecked_transaction()).transpose()?;
    let application: i64 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let objects: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let path = path.to_path_buf();
    match (application, version, objects) {
        (0, 0, 0) => Ok(DatabaseKind::Empty),
        (APPLICATION_ID, found, _) if found > known => {
            Err(StoreError::FutureSchema { path, found, known }.into())
        }
        (APPLICATION_ID, version, _) if version > 0 => Ok(DatabaseKind::Record { version }),
        (APPLICATION_ID, version, _) => {
            let problem = format!("there is no schema version {version}");
            Err(StoreError::Damaged { path, problem }.into())
        }
        _ => {
            let problem = "it is a database of another program".to_owned();
            Err(StoreError::NotOurs { path, problem }.into())
        }
    }
}
