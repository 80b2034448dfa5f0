//! Files and folders of a record: permissions, missing artifacts, unexpected files.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::artifacts::artifact::ArtifactId;
use crate::artifacts::files::ArtifactFiles;
use crate::artifacts::folder::FolderListing;
use crate::error::{Result, StoreError};
use crate::ids::SessionId;

use super::super::connection;
use super::super::error::TxResult;
use super::super::progress::StoreProgress;
use super::examination::{CheckedStore, Depth, NAMED};
use super::problem::{LostArtifact, RecordProblem};

/// The prefix of the names of unfinished files.
const UNFINISHED: &str = ".new-";

/// Returns the contents of the folder; empty if there is none.
pub(super) fn listing(folder: &ArtifactFiles) -> Result<FolderListing> {
    folder.list()
}

/// Returns the files of a record that others may read or write.
pub(super) fn open_to_others(database: &Path, artifacts: &Path) -> Option<RecordProblem> {
    let mut paths = Vec::new();
    let files = ["", "-wal", "-shm", "-journal"].map(|suffix| connection::beside(database, suffix));
    let mut folders = vec![artifacts.to_path_buf()];
    paths.extend(files.into_iter().filter(|path| is_open_to_others(path)));
    while let Some(folder) = folders.pop() {
        if is_open_to_others(&folder) {
            paths.push(folder.clone());
        }
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() && is_open_to_others(&entry.path()) => paths.push(entry.path()),
                _ => {}
            }
        }
    }
    paths.sort();
    let count = paths.len() as u64;
    (count > 0).then_some(RecordProblem::OpenToOthers { count, paths })
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::symlink_metadata(path)
        .is_ok_and(|found| found.permissions().mode() & 0o077 != 0 && !found.is_symlink())
}

#[cfg(not(unix))]
fn is_open_to_others(_path: &Path) -> bool {
    false
}

/// Compares the artifacts of the record with the files in the folder.
pub(super) fn check_artifacts(
    place: &CheckedStore<'_>,
    depth: Depth,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<Vec<RecordProblem>> {
    let CheckedStore { conn, folder, .. } = *place;
    let mut findings = Vec::new();
    let known = known_artifacts(conn)?;
    let mut lost = Vec::new();
    let total = known.len() as u64;
    for (done, artifact) in (0..).zip(&known) {
        progress(StoreProgress { what: "artifacts", done, total });
        if let Some(problem) = problem_of(folder, artifact, depth) {
            lost.push((artifact, problem));
        }
    }
    progress(StoreProgress { what: "artifacts", done: total, total });
    if !lost.is_empty() {
        let count = lost.len() as u64;
        let describe =
            |(artifact, problem): (&ArtifactRow, String)| describe(conn, folder, artifact, problem);
        let artifacts = lost.into_iter().take(NAMED).map(describe).collect::<TxResult<_>>()?;
        findings.push(RecordProblem::LostArtifacts { count, artifacts });
    }
    findings.extend(superfluous(place, &known)?);
    Ok(findings)
}

/// An artifact of the record.
struct ArtifactRow {
    number: i64,
    id: ArtifactId,
    bytes: u64,
    stored_bytes: u64,
}

fn known_artifacts(conn: &Connection) -> rusqlite::Result<Vec<ArtifactRow>> {
    conn.prepare("SELECT n, name, bytes, stored_bytes FROM artifacts ORDER BY n")?
        .query_map([], |row| {
            let id = ArtifactId::from_text(row.get::<_, String>(1)?);
            Ok(ArtifactRow { number: row.get(0)?, id, bytes: row.get(2)?, stored_bytes: row.get(3)? })
        })?
        .collect()
}

/// Returns the problem of an artifact's file, if any.
fn problem_of(folder: &ArtifactFiles, artifact: &ArtifactRow, depth: Depth) -> Option<String> {
    let failure = |error: StoreError| match error {
        StoreError::ArtifactDamaged { problem, .. } => problem,
        StoreError::Io { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    match folder.stat(&artifact.id) {
        Err(error) => Some(failure(error)),
        Ok(file) if (file.bytes, file.stored_bytes) != (artifact.bytes, artifact.stored_bytes) => {
            Some("not the size it was".to_owned())
        }
        Ok(_) if depth == Depth::Thorough => folder.verify(&artifact.id).err().map(failure),
        Ok(_) => None,
    }
}

fn describe(
    conn: &Connection,
    folder: &ArtifactFiles,
    artifact: &ArtifactRow,
    problem: String,
) -> TxResult<LostArtifact> {
    let sessions = conn
        .prepare_cached(
            "SELECT DISTINCT s.id FROM artifact_refs r JOIN sessions s ON s.ordinal = r.session
             WHERE r.artifact = ?1 ORDER BY s.ordinal",
        )?
        .query_map([artifact.number], |row| row.get::<_, String>(0).map(SessionId::from_text))?
        .collect::<rusqlite::Result<_>>()?;
    let messages = conn
        .prepare_cached("SELECT count(*) FROM artifact_refs WHERE artifact = ?1 AND message <> 0")?
        .query_row([artifact.number], |row| row.get(0))?;
    let path = folder.file_path(&artifact.id);
    Ok(LostArtifact { id: artifact.id.clone(), problem, path, sessions, messages })
}

/// Returns files and rows of artifacts without references, and unexpected files.
fn superfluous(place: &CheckedStore<'_>, known: &[ArtifactRow]) -> TxResult<Vec<RecordProblem>> {
    let CheckedStore { conn, folder, listing } = place;
    let mut findings = Vec::new();
    let unreferenced: Vec<ArtifactId> = conn
        .prepare(
            "SELECT name FROM artifacts a WHERE NOT EXISTS (
                 SELECT 1 FROM artifact_refs r JOIN sessions s ON s.ordinal = r.session WHERE r.artifact = a.n)",
        )?
        .query_map([], |row| row.get::<_, String>(0).map(ArtifactId::from_text))?
        .collect::<rusqlite::Result<_>>()?;
    let known: HashSet<&ArtifactId> = known.iter().map(|artifact| &artifact.id).collect();
    let mut orphans: Vec<ArtifactId> =
        listing.artifacts.iter().filter(|id| !known.contains(id)).cloned().chain(unreferenced).collect();
    orphans.sort();
    if !orphans.is_empty() {
        let size = |id: &ArtifactId| fs::metadata(folder.file_path(id)).map_or(0, |found| found.len());
        findings.push(RecordProblem::OrphanedArtifacts {
            count: orphans.len() as u64,
            bytes: orphans.iter().map(size).sum(),
            artifacts: orphans.into_iter().take(NAMED).collect(),
        });
    }
    let (abandoned, strange): (Vec<PathBuf>, Vec<PathBuf>) =
        listing.strangers.iter().cloned().partition(|path| is_unfinished(path));
    if !abandoned.is_empty() {
        findings.push(RecordProblem::AbandonedFiles { paths: abandoned });
    }
    if !strange.is_empty() {
        findings.push(RecordProblem::StrangeFiles { paths: strange });
    }
    Ok(findings)
}

/// Whether a file was being written when its writer died.
pub(super) fn is_unfinished(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(UNFINISHED)) && path.is_file()
}
