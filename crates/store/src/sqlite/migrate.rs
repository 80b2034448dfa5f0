//! The schema and its versions: creating a database, and migrating an older one after a backup.
//!
//! Step `n` of the list leads from version `n` to `n + 1`; the first creates everything. All due steps run in one
//! transaction, so a database is never between two versions.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::artifacts::files::ArtifactFiles;
use crate::artifacts::folder::ArtifactFolder;
use crate::error::StoreError;
use crate::ids::Millis;

use super::connection::artifacts_beside;
use super::connection::{
    APPLICATION_ID, DatabaseKind, OpenMode, beside, connect, identify, make_private_file,
};
use super::error::{TxError, TxResult, io_error};
use super::progress::StoreProgress;
use super::{artifacts, fingerprint_index, indexing, vectors};

/// The input of a migration step.
pub(super) struct MigrationContext<'a> {
    /// The database, in the transaction of all steps.
    pub(super) conn: &'a Connection,
    /// The artifacts beside it.
    pub(super) folder: ArtifactFiles,
    /// Receives the progress of a long step.
    pub(super) progress: &'a mut dyn FnMut(StoreProgress),
}

/// A step from one version to the next.
pub(super) type MigrationStep = fn(&mut MigrationContext<'_>) -> TxResult<()>;

/// All steps, in order. The result of a released step never changes.
pub(super) const STEPS: &[MigrationStep] =
    &[create, index_by_longer_fingerprints, add_vectors, name_access_tokens];

fn create(bench: &mut MigrationContext<'_>) -> TxResult<()> {
    bench.conn.execute_batch(include_str!("schema.sql"))?;
    bench.conn.execute_batch(artifacts::SCHEMA)?;
    bench.conn.execute_batch(artifacts::PIECES_SCHEMA)?;
    Ok(bench.conn.execute_batch(fingerprint_index::SCHEMA)?)
}

/// Migrates to the second version, which indexes words by longer hashes and by pairs of neighbours. Records of the first may have such an
/// index with shorter hashes, or the two full-text tables before it; neither is supported any more, so the index and the pieces of
/// artifacts are rebuilt from the texts.
fn index_by_longer_fingerprints(bench: &mut MigrationContext<'_>) -> TxResult<()> {
    bench.conn.execute_batch(
        "DROP TABLE IF EXISTS words;
         DROP TABLE IF EXISTS grams;
         DROP TABLE IF EXISTS grams_position;
         DROP TABLE IF EXISTS clues_open;
         DROP TABLE IF EXISTS clues_sealed;
         DROP TABLE artifact_pieces;
         INSERT OR IGNORE INTO numbers (name, next) VALUES ('piece', 1);",
    )?;
    bench.conn.execute_batch(artifacts::PIECES_SCHEMA)?;
    bench.conn.execute_batch(fingerprint_index::SCHEMA)?;
    indexing::make_anew(bench.conn, &bench.folder, bench.progress)
}

/// Migrates to the third version, which has tables for vectors. They are filled later, in the background, if a model is configured.
fn add_vectors(bench: &mut MigrationContext<'_>) -> TxResult<()> {
    Ok(bench.conn.execute_batch(vectors::SCHEMA)?)
}

/// Migrates to the fourth version, which has the name of a call's access token.
fn name_access_tokens(bench: &mut MigrationContext<'_>) -> TxResult<()> {
    Ok(bench.conn.execute_batch("ALTER TABLE calls ADD COLUMN access_token TEXT")?)
}

/// Returns the version after a list of steps.
pub(super) fn version_after(steps: &[MigrationStep]) -> i64 {
    steps.len() as i64
}

/// How a database got to the newest version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SchemaState {
    /// It had it already.
    AsItWas,
    /// It was created.
    Made,
    /// It was migrated from an older version, which is in a backup.
    Migrated {
        /// The version before.
        from: i64,
        /// The backup.
        backup: PathBuf,
    },
}

/// Migrates the database of `conn` to the version after `steps`.
pub(super) fn bring_up_to_date(
    conn: &mut Connection,
    path: &Path,
    steps: &[MigrationStep],
    now_ms: Millis,
    patience: Duration,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<SchemaState> {
    let known = version_after(steps);
    if identify(conn, path, known)? == (DatabaseKind::Record { version: known }) {
        return Ok(SchemaState::AsItWas);
    }
    use_journal_beside(conn, patience)?;
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    let from = match identify(&transaction, path, known)? {
        DatabaseKind::Record { version } if version == known => return Ok(SchemaState::AsItWas),
        DatabaseKind::Record { version } => version,
        DatabaseKind::Empty => 0,
    };
    let arrival = match from {
        0 => SchemaState::Made,
        from => SchemaState::Migrated { from, backup: back_up(path, from, now_ms, patience)? },
    };
    let folder = ArtifactFiles::beside(ArtifactFolder::at(artifacts_beside(path)));
    let mut bench = MigrationContext { conn: &transaction, folder, progress };
    for step in steps.iter().skip(usize::try_from(from).unwrap_or_default()) {
        step(&mut bench)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(arrival)
}

/// Switches to the write-ahead journal. Two processes that do so at once may fail without waiting.
fn use_journal_beside(conn: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let began = Instant::now();
    loop {
        match conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                if began.elapsed() >= patience {
                    return Err(error);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            other => return other.map(drop),
        }
    }
}

/// Copies the database, in its state before the current transaction, to a file beside it.
fn back_up(path: &Path, version: i64, now_ms: Millis, patience: Duration) -> TxResult<PathBuf> {
    let time = jiff::Timestamp::from_millisecond(now_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let stamp = time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y%m%d_%H%M%S").to_string();
    let backup = beside(path, &format!(".backup-v{version}-{stamp}"));
    make_private_file(&backup).map_err(|source| io_error("making a backup", &backup, source))?;
    let reader = connect(path, OpenMode::Read, patience)?;
    let Some(name) = backup.to_str() else {
        return Err(TxError::from(StoreError::Io {
            what: "naming a backup",
            path: backup,
            source: std::io::ErrorKind::InvalidFilename.into(),
        }));
    };
    match reader.execute("VACUUM INTO ?1", [name]) {
        Ok(_) => Ok(backup),
        Err(error) => {
            // Remove an incomplete backup; if that fails too, the first error is returned.
            let _ = std::fs::remove_file(&backup);
            Err(error.into())
        }
    }
}

#[cfg(test)]
#[path = "migrate_tests.rs"]
mod tests;
