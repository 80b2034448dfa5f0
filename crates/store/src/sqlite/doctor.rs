//! The doctor: checks a record, reports problems with their meaning, and repairs what can be repaired.
//!
//! A check changes nothing. A repair begins with a backup of everything, damaged or not. A file that might still be readable is never
//! removed.
//!
//! Parts: `examination` has the options of a check, `problem` the possible findings. `files` checks files and folders, `relations` rows
//! that refer to each other, `nodes` summaries of summaries, `duplicates` turns recorded twice, `index` the search index, `message_bytes`
//! every message. `repair` repairs, `salvage` copies what can be read of a damaged database (`file_header` if not even its schema can be
//! read).

mod duplicates;
mod examination;
mod file_header;
mod files;
mod index;
mod message_bytes;
mod nodes;
mod problem;
mod relations;
mod repair;
mod salvage;

use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use crate::artifacts::folder::FolderListing;
use crate::error::{Result, StoreError};

use super::backup::problems_of;
use super::connection::artifacts_beside;
use super::connection::{self, DatabaseKind, OpenMode};
use super::error::{TxError, TxResult};
use super::guards;
use super::migrate::{STEPS, version_after};
use super::progress::StoreProgress;

use examination::CheckedStore;

/// Checks that are the same in every engine.
#[cfg(feature = "postgres")]
pub(crate) mod checks {
    pub(crate) use super::duplicates::{MessageDigest, doubled};
    pub(crate) use super::examination::NAMED;
    pub(crate) use super::problem::MessageLocation;
    pub(crate) use super::relations::{
        RelationCheck, RelationChecks, SessionTotals, ViewRun, dead_ends, has_wrong_counters,
        relation_findings, right_places, sessions_with_broken_views as broken_views,
    };
}

pub use examination::{Depth, Examination};
pub use problem::{LostArtifact, RecordProblem, Remedy, Severity};
pub use repair::RepairReport;
pub use salvage::{SalvageReport, SalvagedTable};

/// The maximum number of SQLite's findings reported; damage rarely occurs alone.
const PROBLEMS_TOLD: i64 = 20;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Diagnosis {
    /// The problems found, the worst first.
    pub findings: Vec<RecordProblem>,
    /// Number of sessions checked.
    pub sessions: u64,
    /// Number of messages checked.
    pub messages: u64,
    /// Number of artifacts checked.
    pub artifacts: u64,
    /// Size of the database, including new data in its journal.
    pub database_bytes: u64,
}

impl Diagnosis {
    /// Whether only notices were found.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity() == Severity::Notice)
    }

    /// Checks the record at `path` and the folder of artifacts beside it. Nothing is changed.
    pub fn of_file(
        path: &Path,
        examination: &Examination<'_>,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<Diagnosis> {
        let folder = examination.files(path)?;
        let mut diagnosis = Diagnosis {
            database_bytes: file_bytes(path) + file_bytes(&connection::beside(path, "-wal")),
            ..Diagnosis::default()
        };
        // Before a connection creates files, and before the snapshot: files added after the snapshot are not its artifacts.
        let open_to_others = files::open_to_others(path, &artifacts_beside(path));
        let listing = files::listing(&folder)?;
        match recognise(path, &listing, version_after(STEPS))? {
            FileState::Nothing(finding) => diagnosis.findings.push(finding),
            FileState::Record(conn) => {
                diagnosis.findings.extend(open_to_others);
                let failure = |error: TxError| error.into_store_error("looking the record over", path);
                // One snapshot for all checks. It is rolled back, not committed: a damaged database may refuse an empty commit.
                let moment = conn.unchecked_transaction().map_err(|error| failure(error.into()))?;
                let place = CheckedStore { conn: &moment, folder: &folder, listing };
                examine(&place, examination, &mut diagnosis, progress).map_err(failure)?;
            }
        }
        diagnosis.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
        Ok(diagnosis)
    }
}

/// The state of a record's file.
enum FileState {
    Record(Connection),
    Nothing(RecordProblem),
}

fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

/// Determines the state of a record's file, for a program that supports schema versions up to `known`.
fn recognise(path: &Path, listing: &FolderListing, known: i64) -> Result<FileState> {
    let has_traces = || connection::has_journal(path) || !listing.artifacts.is_empty();
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let path = path.to_path_buf();
            return Ok(FileState::Nothing(match has_traces() {
                true => RecordProblem::MissingDatabase { path },
                false => RecordProblem::NoRecord { path },
            }));
        }
        Err(error) => return Ok(FileState::Nothing(inaccessible(path, error.to_string()))),
    };
    if found.is_dir() {
        return Ok(FileState::Nothing(inaccessible(path, "it is a folder".to_owned())));
    }
    if found.len() == 0 {
        return Ok(FileState::Nothing(match has_traces() {
            true => RecordProblem::Damage { problems: vec!["the file is empty".to_owned()] },
            false => RecordProblem::NoRecord { path: path.to_path_buf() },
        }));
    }
    match open_for_reading(path, known) {
        Ok((conn, DatabaseKind::Record { version })) if version == known => Ok(FileState::Record(conn)),
        Ok((_, DatabaseKind::Record { version: found })) => {
            Ok(FileState::Nothing(RecordProblem::OldSchema { found, known }))
        }
        Ok((_, DatabaseKind::Empty)) => Ok(FileState::Nothing(match has_traces() {
            true => RecordProblem::Damage { problems: vec!["there is nothing in the database".to_owned()] },
            false => RecordProblem::NoRecord { path: path.to_path_buf() },
        })),
        Err(error) => unrecognised(path, error).map(FileState::Nothing),
    }
}

/// Opens a database for reading, even in a read-only folder.
fn open_for_reading(path: &Path, known: i64) -> TxResult<(Connection, DatabaseKind)> {
    let open = |access| -> TxResult<(Connection, DatabaseKind)> {
        let conn = connection::connect(path, access, connection::BUSY_TIMEOUT)?;
        let identity = connection::identify(&conn, path, known)?;
        Ok((conn, identity))
    };
    let _opening = connection::opening();
    match open(OpenMode::Read) {
        Err(TxError::Database(_)) if !connection::has_journal(path) => open(OpenMode::ReadUnchanging),
        other => other,
    }
}

/// Returns the reason why a file was not recognised, as a finding; an error if the reason is not in the file.
fn unrecognised(path: &Path, error: TxError) -> Result<RecordProblem> {
    let code = match &error {
        TxError::Database(error) => error.sqlite_error_code(),
        TxError::Refused(_) => None,
    };
    match error.into_store_error("opening the record", path) {
        StoreError::NotOurs { path, problem } if code == Some(ErrorCode::NotADatabase) => {
            Ok(RecordProblem::NotADatabase { path, problem })
        }
        StoreError::NotOurs { path, .. } if salvage::looks_like_ours(&path) => Ok(RecordProblem::Damage {
            problems: vec!["the mark that it is a record was overwritten".to_owned()],
        }),
        StoreError::NotOurs { path, .. } => Ok(RecordProblem::OtherProgram { path }),
        StoreError::FutureSchema { found, known, .. } => Ok(RecordProblem::FutureSchema { found, known }),
        StoreError::Damaged { problem, .. } => Ok(RecordProblem::Damage { problems: vec![problem] }),
        StoreError::ReadOnly { path, problem } => Ok(inaccessible(&path, problem)),
        StoreError::Io { path, source, .. } => Ok(inaccessible(&path, source.to_string())),
        other => Err(other),
    }
}

fn inaccessible(path: &Path, problem: String) -> RecordProblem {
    RecordProblem::Inaccessible { path: path.to_path_buf(), problem }
}

/// Checks a database that could be opened. A check that meets damage reports it, and the others continue.
fn examine(
    place: &CheckedStore<'_>,
    examination: &Examination<'_>,
    diagnosis: &mut Diagnosis,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<()> {
    let CheckedStore { conn, folder, .. } = *place;
    progress(StoreProgress { what: "pages", done: 0, total: 1 });
    let mut damage = match examination.depth {
        Depth::Quick => problems_of(conn, "quick_check", PROBLEMS_TOLD),
        Depth::Thorough => problems_of(conn, "integrity_check", PROBLEMS_TOLD),
    };
    progress(StoreProgress { what: "pages", done: 1, total: 1 });
    let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, u64>(0));
    diagnosis.sessions = count("SELECT count(*) FROM sessions").unwrap_or_default();
    diagnosis.messages = count("SELECT count(*) FROM messages").unwrap_or_default();
    diagnosis.artifacts = count("SELECT count(*) FROM artifacts").unwrap_or_default();
    let mut add = |found: TxResult<Vec<RecordProblem>>| -> TxResult<()> {
        match found {
            Ok(findings) => diagnosis.findings.extend(findings),
            Err(error) => damage.push(damage_of(error)?),
        }
        Ok(())
    };
    add(relations::check(conn, progress))?;
    add(nodes::check(conn))?;
    add(duplicates::check(conn))?;
    add(index::check(conn, folder, examination.depth, progress))?;
    add(files::check_artifacts(place, examination.depth, progress))?;
    add(stale_locks(conn, examination))?;
    if examination.depth == Depth::Thorough {
        add(message_bytes::check(conn, folder, progress))?;
    }
    if !damage.is_empty() {
        damage.dedup();
        diagnosis.findings.push(RecordProblem::Damage { problems: damage });
    }
    Ok(())
}

/// Returns the damage that prevented a check; an error for any other cause.
fn damage_of(error: TxError) -> TxResult<String> {
    let path = Path::new("");
    match error.into_store_error("looking the record over", path) {
        StoreError::Damaged { problem, .. } => Ok(problem),
        // A missing table or a statement that does not match: the schema itself is damaged.
        StoreError::Database { source, .. } => Ok(source.to_string()),
        other => Err(other.into()),
    }
}

fn stale_locks(conn: &Connection, examination: &Examination<'_>) -> TxResult<Vec<RecordProblem>> {
    let is_stale = |lock: &crate::sessions::lock::LockRecord| {
        lock.expires_ms <= examination.now_ms || !(examination.is_alive)(&lock.holder)
    };
    let locks: Vec<_> = guards::locks(conn)?.into_iter().filter(is_stale).collect();
    Ok(if locks.is_empty() { Vec::new() } else { vec![RecordProblem::StaleLocks { locks }] })
}

#[cfg(test)]
#[path = "doctor_repair_tests.rs"]
mod repair_tests;
#[cfg(test)]
#[path = "doctor_salvage_tests.rs"]
mod salvage_tests;
#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
