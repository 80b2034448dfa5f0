//! The record in one SQLite database, with a folder of artifacts beside it.
//!
//! There is one connection for writing and several for reading. Each reads a snapshot, so readers never wait for a writer. Other processes
//! may have the same database open: writes take turns, and one that waits too long fails with an error that says so.
//!
//! Every write is one transaction. When it returns, it survives the death of the process at any point. Messages, artifacts and deletions
//! also survive a loss of power: these writes wait for the disk. The others (continuations, calls, guards, locks) do not, which makes a
//! continuation twenty times faster; they reach the disk with the next write that waits. The journal is in order, so a loss of power can
//! remove only the latest of them, never a part of one.
//!
//! Parts: `connection` opens files, `migrate` has the schema's versions, `error` the errors; the others each have the statements of one
//! subject. Not for: rules about chains and views, which all implementations of the record share.

mod artifacts;
mod backup;
mod calls;
mod commit;
mod connection;
#[cfg(feature = "postgres")]
mod copy;
mod deletion;
mod doctor;
mod error;
mod fingerprint_index;
mod guards;
mod indexing;
mod messages;
mod migrate;
mod nodes;
mod progress;
mod rows;
mod search_source;
mod sessions;
mod status;
mod store_impl;
mod upkeep;
mod vectors;
mod views;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, MAIN_DB, TransactionBehavior};

use crate::artifacts::artifact::ArtifactId;
use crate::artifacts::claim;
use crate::artifacts::extract::artifact_texts;
use crate::artifacts::files::ArtifactFiles;
use crate::artifacts::folder::ArtifactFolder;
use crate::artifacts::place::ArtifactPlace;
use crate::error::{Result, StoreError};
use crate::ids::Millis;
use crate::message::NewMessage;
use crate::message_codec;
use crate::record_search::QuestionMeaning;
use crate::search::request::SearchQuery;

use connection::{DatabaseKind, OpenMode, artifacts_beside};
use error::{TxError, TxResult};
use migrate::{STEPS, SchemaState};
use throughline_search::SearchMode;
use throughline_search::meaning::{EmbedPurpose, Embedder, QuestionVector, VectorState, VectorStep};

pub use backup::BackupReport;
pub(crate) use connection::open_foreign;
#[cfg(feature = "postgres")]
pub(crate) use doctor::checks;
pub use doctor::{
    Depth, Diagnosis, Examination, LostArtifact, RecordProblem, Remedy, RepairReport, SalvageReport,
    SalvagedTable, Severity,
};
pub use progress::StoreProgress;

/// The maximum bytes of a question from which a vector is made: some hundred words.
const MAX_EMBEDDED_BYTES: usize = 4 * 1024;
/// Number of idle connections that are reused for reading.
const READERS_KEPT: usize = 4;
/// The number of journal pages after which a heavy write moves them to the database.
const JOURNAL_PAGES: i64 = 2_000;
/// The same for light writes: needed only if there was no heavy one for long.
const JOURNAL_PAGES_AT_MOST: i64 = 16_000;

/// The record in a database file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    artifacts: ArtifactFiles,
    busy_timeout: Duration,
    /// Dropped before the writer: the last connection to close moves the journal to the database, which a reader cannot.
    readers: Mutex<Vec<Connection>>,
    /// `None` if the record is read-only.
    writer: Option<Mutex<WriteConnection>>,
    read_access: OpenMode,
    migration: Option<Migration>,
    /// The identity of the opened file.
    file: Option<connection::FileId>,
    /// For a store in memory: the folder of its artifacts. It has one connection for reading and writing.
    temporary: Option<tempfile::TempDir>,
    /// Makes vectors for search by meaning, if configured.
    embedder: OnceLock<Arc<dyn Embedder>>,
}

/// A migration of a record from an older version when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The version before.
    pub from: i64,
    /// The version after.
    pub to: i64,
    /// The backup of the earlier version.
    pub backup: PathBuf,
}

/// The kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    /// Messages, or other data that cannot be recreated: it waits for the disk, and moves the journal to the database if due.
    Heavy,
    /// A small write with a waiting caller.
    Light,
}

impl Write {
    fn synchronous(self) -> &'static str {
        match self {
            Self::Heavy => "FULL",
            Self::Light => "NORMAL",
        }
    }

    fn journal_pages(self) -> i64 {
        match self {
            Self::Heavy => JOURNAL_PAGES,
            Self::Light => JOURNAL_PAGES_AT_MOST,
        }
    }
}

/// The connection for writing.
#[derive(Debug)]
struct WriteConnection {
    conn: Connection,
    /// The kind of write that the connection is configured for.
    set_for: Option<Write>,
}

impl SqliteStore {
    /// Opens the record at `path`, creating it if necessary and migrating an older version (after a backup beside it, named by `now_ms`).
    /// Artifacts are in the folder `artifacts` beside it.
    pub fn open(path: &Path, now_ms: Millis) -> Result<Self> {
        Self::open_following(path, now_ms, &mut |_| ())
    }

    /// Like [`open`](Self::open), with progress reports during a migration, which may take a minute for a million messages.
    pub fn open_following(
        path: &Path,
        now_ms: Millis,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<Self> {
        Self::open_with(path, now_ms, STEPS, connection::BUSY_TIMEOUT, progress)
    }

    fn open_with(
        path: &Path,
        now_ms: Millis,
        steps: &[migrate::MigrationStep],
        busy_timeout: Duration,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<Self> {
        let folder = artifacts_beside(path);
        let opening = connection::opening();
        connection::prepare_file(path, &folder)?;
        let mut connect = || -> TxResult<(Connection, SchemaState)> {
            let mut conn = connection::connect(path, OpenMode::Write, busy_timeout)?;
            if conn.is_readonly(MAIN_DB)? {
                let problem = "its permissions do not allow it".to_owned();
                return Err(StoreError::ReadOnly { path: path.to_path_buf(), problem }.into());
            }
            let arrival = migrate::bring_up_to_date(&mut conn, path, steps, now_ms, busy_timeout, progress)?;
            Ok((conn, arrival))
        };
        let (writer, arrival) =
            connect().map_err(|error| error.into_store_error("opening the record", path))?;
        drop(opening);
        Ok(Self {
            path: path.to_path_buf(),
            artifacts: ArtifactFiles::beside(ArtifactFolder::open(folder)?),
            busy_timeout,
            writer: Some(Mutex::new(WriteConnection { conn: writer, set_for: None })),
            readers: Mutex::new(Vec::new()),
            read_access: OpenMode::Read,
            migration: match arrival {
                SchemaState::Migrated { from, backup } => {
                    Some(Migration { from, to: migrate::version_after(steps), backup })
                }
                SchemaState::AsItWas | SchemaState::Made => None,
            },
            file: connection::file_id(path),
            temporary: None,
            embedder: OnceLock::new(),
        })
    }

    /// Creates an empty store in memory, with all functions of a store in a file except backups and other processes. Its artifacts are in a
    /// temporary folder. Everything is lost when the store is dropped.
    pub fn in_memory() -> Result<Self> {
        let path = Path::new(connection::IN_MEMORY);
        let folder = tempfile::tempdir()
            .map_err(|source| error::io_error("making a temporary folder", path, source))?;
        let connect = || -> TxResult<Connection> {
            let mut conn = connection::connect_in_memory()?;
            migrate::bring_up_to_date(&mut conn, path, STEPS, 0, connection::BUSY_TIMEOUT, &mut |_| ())?;
            Ok(conn)
        };
        let conn = connect().map_err(|error| error.into_store_error("opening a store in memory", path))?;
        Ok(Self {
            path: path.to_path_buf(),
            artifacts: ArtifactFiles::beside(ArtifactFolder::open(
                folder.path().join(connection::ARTIFACTS),
            )?),
            busy_timeout: connection::BUSY_TIMEOUT,
            writer: Some(Mutex::new(WriteConnection { conn, set_for: None })),
            readers: Mutex::new(Vec::new()),
            read_access: OpenMode::Read,
            migration: None,
            file: None,
            temporary: Some(folder),
            embedder: OnceLock::new(),
        })
    }

    /// Opens the record at `path` for reading; nothing is created or changed. Every write fails.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        let failure = |error: TxError| error.into_store_error("opening the record", path);
        let found = std::fs::metadata(path).map_err(|source| error::io_error("opening", path, source))?;
        if found.is_dir() {
            return Err(connection::is_a_folder(path));
        }
        let _opening = connection::opening();
        let (reader, read_access) = match recognise(path, OpenMode::Read) {
            Ok(reader) => (reader, OpenMode::Read),
            // In a read-only folder, not even the files that readers share can be created. If the journal is empty, the file is the whole
            // record, and no process can be changing it.
            Err(TxError::Database(_)) if !connection::has_journal(path) => {
                (recognise(path, OpenMode::ReadUnchanging).map_err(failure)?, OpenMode::ReadUnchanging)
            }
            Err(other) => return Err(failure(other)),
        };
        Ok(Self {
            path: path.to_path_buf(),
            artifacts: ArtifactFiles::beside(ArtifactFolder::at(artifacts_beside(path))),
            busy_timeout: connection::BUSY_TIMEOUT,
            writer: None,
            readers: Mutex::new(vec![reader]),
            read_access,
            migration: None,
            file: connection::file_id(path),
            temporary: None,
            embedder: OnceLock::new(),
        })
    }

    /// Returns the path of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the migration made when it was opened, if any.
    #[must_use]
    pub fn migration(&self) -> Option<&Migration> {
        self.migration.as_ref()
    }

    /// Makes the record store large texts in a separate place, or beside the database if `None`. Texts beside the database remain there and
    /// are read from there.
    pub fn with_artifacts(mut self, place: Option<&ArtifactPlace>) -> Result<Self> {
        let Some(place) = place else {
            claim::check_unset(&self)?;
            return Ok(self);
        };
        let files = ArtifactFiles::of(place, self.artifacts.folder_beside().cloned())?;
        let fresh = match &self.writer {
            Some(_) => Some(self.read("naming the record", |conn| {
                Ok(conn.query_row("SELECT hex(randomblob(16))", [], |row| row.get::<_, String>(0))?)
            })?),
            None => None,
        };
        claim::take(&self, &files, place, fresh)?;
        self.artifacts = files;
        Ok(self)
    }

    /// Returns the texts of artifacts.
    #[must_use]
    pub(crate) fn artifact_files(&self) -> &ArtifactFiles {
        &self.artifacts
    }

    /// Enables search by meaning, with vectors of this model. Only the first call has an effect.
    pub fn use_embedder(&self, embedder: Arc<dyn Embedder>) {
        let _ = self.embedder.set(embedder);
    }

    /// Makes vectors for the next messages without any; finished if no message was examined. For a background worker: the record is not
    /// locked while the model works.
    pub fn embed_next(&self, embedder: &dyn Embedder) -> Result<VectorStep> {
        // Two processes would pay for the same texts.
        let turn = vectors::Turn::take(&self.path, self.temporary.is_some());
        if turn.is_elsewhere() {
            return Ok(VectorStep { is_elsewhere: true, ..VectorStep::default() });
        }
        let model = embedder.model();
        let pending = self.read("reading passages", |conn| vectors::pending(conn, model))?;
        if pending.is_empty() {
            return Ok(VectorStep::default());
        }
        let made = match pending.texts.is_empty() {
            true => Default::default(),
            false => embedder.embed(&pending.texts, EmbedPurpose::Record).map_err(StoreError::Embedding)?,
        };
        if made.vectors.len() != pending.texts.len()
            || made.vectors.iter().any(|vector| Some(vector.len()) != made.vectors.first().map(Vec::len))
        {
            return Err(StoreError::Embedding(format!(
                "{model} returned {} vectors for {} texts, or vectors of different lengths",
                made.vectors.len(),
                pending.texts.len()
            )));
        }
        self.write("storing vectors", Write::Light, |conn| {
            vectors::put(conn, model, &pending, &made.vectors, made.tokens)
        })
    }

    /// Sends large texts to the service before the database is locked: the write finds them there.
    fn send_ahead(&self, messages: &[NewMessage]) -> Result<()> {
        if self.artifacts.is_elsewhere() {
            for text in messages.iter().flat_map(|new| artifact_texts(&new.message)) {
                self.artifacts.put(&text.text)?;
            }
        }
        Ok(())
    }

    /// Removes the files of deleted artifacts. Nothing refers to them; one that cannot be removed now is found by a later check.
    fn sweep(&self, released: &[ArtifactId]) {
        if !released.is_empty() {
            let _ = self.write("removing artifacts", Write::Light, |conn| {
                Ok(artifacts::sweep(conn, &self.artifacts, released)??)
            });
        }
    }

    /// Overwrites deleted data: free pages, and the journal.
    fn clear_free_space(&self) -> Result<()> {
        let failure =
            |error: rusqlite::Error| TxError::from(error).into_store_error("clearing free space", &self.path);
        let writer = self.writer()?;
        writer.conn.execute_batch("VACUUM").map_err(failure)?;
        writer.conn.pragma_update_and_check(None, "wal_checkpoint", "TRUNCATE", |_| Ok(())).map_err(failure)
    }

    /// Notifies the worker that makes vectors.
    fn note_texts(&self) {
        if let Some(embedder) = self.embedder.get() {
            embedder.texts_added();
        }
    }

    /// Returns the vector of a question, if search by meaning is configured and the question is in plain words.
    fn meaning_of(&self, query: &SearchQuery) -> Option<QuestionMeaning> {
        let embedder = self.embedder.get()?;
        let is_plain = query.mode == SearchMode::Words && !query.words_only && !query.text.trim().is_empty();
        if !is_plain {
            return None;
        }
        let text = query.text.get(..query.text.floor_char_boundary(MAX_EMBEDDED_BYTES)).unwrap_or_default();
        let made = embedder.embed(&[text.to_owned()], EmbedPurpose::Question);
        let vector = made.and_then(|made| {
            let vector = made.vectors.first().and_then(|vector| QuestionVector::new(vector));
            vector.ok_or_else(|| "the model has no vector for these words".to_owned())
        });
        Some(QuestionMeaning { model: embedder.model().to_owned(), vector })
    }

    /// Returns the progress of a model's vectors.
    pub fn vector_state(&self, model: &str) -> Result<VectorState> {
        self.read("reading the state of vectors", |conn| vectors::state(conn, model))
    }

    /// Runs `work` on a snapshot of the record.
    fn read<T>(&self, what: &'static str, work: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
        let failure = |error: TxError| error.into_store_error(what, &self.path);
        if self.temporary.is_some() {
            let mut writer = self.writer()?;
            return in_transaction(&mut writer.conn, TransactionBehavior::Deferred, work).map_err(failure);
        }
        let mut conn = self.reader().map_err(|error| failure(error.into()))?;
        let answer = in_transaction(&mut conn, TransactionBehavior::Deferred, work).map_err(failure);
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < READERS_KEPT {
            readers.push(conn);
        }
        answer
    }

    fn reader(&self) -> rusqlite::Result<Connection> {
        if self.temporary.is_some() {
            return Err(rusqlite::Error::InvalidPath(self.path.clone()));
        }
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match kept {
            Some(conn) => Ok(conn),
            None => connection::connect(&self.path, self.read_access, self.busy_timeout),
        }
    }

    /// Runs `work` in one transaction, which is rolled back if it fails.
    fn write<T>(
        &self,
        what: &'static str,
        write: Write,
        work: impl FnOnce(&Connection) -> TxResult<T>,
    ) -> Result<T> {
        let failure = |error: TxError| error.into_store_error(what, &self.path);
        let mut writer = self.writer()?;
        let WriteConnection { conn, set_for } = &mut *writer;
        if *set_for != Some(write) {
            let set = conn.pragma_update(None, "synchronous", write.synchronous());
            set.map_err(|error| failure(error.into()))?;
            *set_for = Some(write);
        }
        let answer = in_transaction(conn, TransactionBehavior::Immediate, work).map_err(failure)?;
        // The write is committed whatever happens here; a journal that cannot be emptied now is emptied by a later write.
        let _ = empty_journal(conn, write.journal_pages());
        Ok(answer)
    }

    fn writer(&self) -> Result<MutexGuard<'_, WriteConnection>> {
        match &self.writer {
            Some(writer) => Ok(writer.lock().unwrap_or_else(PoisonError::into_inner)),
            None => Err(StoreError::ReadOnly {
                path: self.path.clone(),
                problem: "it was opened for reading".to_owned(),
            }),
        }
    }
}

/// Opens a record of the newest version for reading.
fn recognise(path: &Path, access: OpenMode) -> TxResult<Connection> {
    let known = migrate::version_after(STEPS);
    let conn = connection::connect(path, access, connection::BUSY_TIMEOUT)?;
    let problem = match connection::identify(&conn, path, known)? {
        DatabaseKind::Record { version } if version == known => return Ok(conn),
        DatabaseKind::Record { version } => {
            format!("its schema version is {version}; it has to be brought to {known} first")
        }
        DatabaseKind::Empty => {
            let problem = "there is nothing in it".to_owned();
            return Err(StoreError::NotOurs { path: path.to_path_buf(), problem }.into());
        }
    };
    Err(StoreError::ReadOnly { path: path.to_path_buf(), problem }.into())
}

fn in_transaction<T>(
    conn: &mut Connection,
    behavior: TransactionBehavior,
    work: impl FnOnce(&Connection) -> TxResult<T>,
) -> TxResult<T> {
    let transaction = conn.transaction_with_behavior(behavior)?;
    let answer = work(&transaction)?;
    transaction.commit()?;
    Ok(answer)
}

/// Moves the journal to the database if it has more than this many new pages. Never waits.
fn empty_journal(conn: &Connection, pages: i64) -> rusqlite::Result<()> {
    let waiting: i64 = conn
        .prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
        .query_row([], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))?;
    if waiting > pages {
        conn.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |_| Ok(()))?;
    }
    Ok(())
}

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod test_home;
#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
