//! A copy of a record in one file: a plain tar archive with the database, the artifacts it refers to, and instructions for restoring. Any
//! `tar` can unpack it.
//!
//! The copy of the database is a snapshot; other processes can write meanwhile. The archive gets its name only when it is complete, on
//! disk, and has been read back and compared. Only its owner can read it. An existing file is never overwritten.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::artifacts::artifact::ArtifactId;
use crate::artifacts::folder::ArtifactFolder;
use crate::error::Result;
use crate::ids::Millis;

use super::connection::{self, ARTIFACTS, OpenMode, make_private_file};
use super::error::{TxError, TxResult, io_error};
use super::progress::StoreProgress;
use super::{SqliteStore, artifacts};

/// Name of the database in a backup.
pub(super) const DATABASE: &str = "record.db";
/// Name of the note in a backup.
const NOTE: &str = "RESTORE.txt";
/// Number of pages copied between two progress reports.
const PAGES_AT_ONCE: i32 = 2_048;
/// The maximum number of check findings reported; damage rarely occurs alone.
const PROBLEMS_TOLD: i64 = 20;

/// The contents of a backup.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BackupReport {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Number of sessions in it.
    pub sessions: u64,
    /// Number of messages in it.
    pub messages: u64,
    /// Number of artifacts in it.
    pub artifacts: u64,
    /// Artifacts whose files are missing.
    pub missing_artifacts: Vec<ArtifactId>,
    /// Number of artifacts in a separate place and not in the backup.
    pub artifacts_elsewhere: u64,
    /// Problems of the database, which was copied anyway.
    pub problems: Vec<String>,
}

/// The artifacts to include in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// Those the record refers to.
    Referenced,
    /// Everything in the folder.
    Everything,
}

impl SqliteStore {
    /// Writes a backup to a new file. Other processes may read and write meanwhile.
    pub fn back_up(
        &self,
        to: &Path,
        now_ms: Millis,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<BackupReport> {
        self.back_up_with(Contents::Referenced, to, now_ms, progress)
    }

    /// Like [`back_up`](Self::back_up), including artifacts without references.
    pub(super) fn back_up_everything(
        &self,
        to: &Path,
        now_ms: Millis,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<BackupReport> {
        self.back_up_with(Contents::Everything, to, now_ms, progress)
    }

    fn back_up_with(
        &self,
        contents: Contents,
        to: &Path,
        now_ms: Millis,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<BackupReport> {
        let mut work = || -> TxResult<BackupReport> {
            let reader = self.reader()?;
            let (archive, copy) = begin(to)?;
            let copied = copy_database(&reader, &copy.path().join(DATABASE), progress)?;
            let folder = self.folder_beside();
            let mut files = present(&folder, copied.artifacts);
            if contents == Contents::Everything && folder.path().is_dir() {
                files.present = folder.list()?.artifacts.iter().map(|id| folder.file_path(id)).collect();
            }
            // Texts in a separate place remain there, and are backed up there.
            let elsewhere = match self.artifacts.is_elsewhere() {
                true => std::mem::take(&mut files.missing),
                false => Vec::new(),
            };
            let mut entries = vec![ArchiveEntry::of_file(DATABASE.to_owned(), &copy.path().join(DATABASE))?];
            for path in &files.present {
                entries.push(ArchiveEntry::of_file(name_in_archive(&folder, path), path)?);
            }
            let bytes = finish(archive, to, &entries, now_ms, progress)?;
            Ok(BackupReport {
                path: to.to_path_buf(),
                bytes,
                sessions: copied.sessions,
                messages: copied.messages,
                artifacts: files.present.len() as u64,
                missing_artifacts: files.missing,
                artifacts_elsewhere: elsewhere.len() as u64,
                problems: copied.problems,
            })
        };
        work().map_err(|error| error.into_store_error("backing up the record", self.path()))
    }

    /// Returns the folder of artifacts beside the database.
    fn folder_beside(&self) -> ArtifactFolder {
        let beside = self.artifacts.folder_beside().cloned();
        beside.unwrap_or_else(|| ArtifactFolder::at(connection::artifacts_beside(&self.path)))
    }
}

/// Archives the files of a record that cannot be opened, unchanged. No program may be using it.
pub(super) fn back_up_files(
    database: &Path,
    artifacts: &ArtifactFolder,
    to: &Path,
    now_ms: Millis,
    progress: &mut dyn FnMut(StoreProgress),
) -> Result<u64> {
    let mut work = || -> TxResult<u64> {
        let (archive, _) = begin(to)?;
        let mut entries = Vec::new();
        for suffix in ["", "-wal", "-journal"] {
            let path = connection::beside(database, suffix);
            if path.is_file() {
                entries.push(ArchiveEntry::of_file(format!("{DATABASE}{suffix}"), &path)?);
            }
        }
        if artifacts.path().is_dir() {
            for id in artifacts.list()?.artifacts {
                let path = artifacts.file_path(&id);
                entries.push(ArchiveEntry::of_file(name_in_archive(artifacts, &path), &path)?);
            }
        }
        finish(archive, to, &entries, now_ms, progress)
    };
    work().map_err(|error| error.into_store_error("backing up the record", database))
}

/// Creates the archive and a folder for the copy of the database, both beside the target.
fn begin(to: &Path) -> TxResult<(tempfile::NamedTempFile, tempfile::TempDir)> {
    let failure = |source| TxError::from(io_error("writing the backup", to, source));
    if fs::symlink_metadata(to).is_ok() {
        return Err(failure(io::ErrorKind::AlreadyExists.into()));
    }
    let folder =
        to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".throughline-backup-");
    // Temporary files are private by default; folders are made private here.
    let archive = builder.tempfile_in(folder).map_err(failure)?;
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let copy = builder.tempdir_in(folder).map_err(failure)?;
    Ok((archive, copy))
}

/// The counts of a copied database.
struct CopySummary {
    sessions: u64,
    messages: u64,
    artifacts: Vec<ArtifactId>,
    problems: Vec<String>,
}

/// Copies a snapshot of the database to a new file, and checks the copy.
fn copy_database(
    source: &Connection,
    to: &Path,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<CopySummary> {
    // A transaction holds the snapshot: without one, the copy would restart after every write of another process.
    let moment = source.unchecked_transaction()?;
    moment.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    make_private_file(to).map_err(|source| TxError::from(io_error("writing the backup", to, source)))?;
    let mut copy = connection::connect(to, OpenMode::Write, connection::BUSY_TIMEOUT)?;
    {
        let backup = Backup::new(&moment, &mut copy)?;
        loop {
            let step = backup.step(PAGES_AT_ONCE)?;
            let pages = backup.progress();
            let (total, left) = (pages.pagecount.max(0) as u64, pages.remaining.max(0) as u64);
            progress(StoreProgress { what: "copying", done: total.saturating_sub(left), total });
            match step {
                StepResult::More => {}
                StepResult::Done => break,
                _ => {
                    return Err(TxError::from(rusqlite::Error::SqliteFailure(
                        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                        None,
                    )));
                }
            }
        }
    }
    drop(moment);
    progress(StoreProgress { what: "checking", done: 0, total: 1 });
    let problems = problems_of(&copy, "quick_check", PROBLEMS_TOLD);
    progress(StoreProgress { what: "checking", done: 1, total: 1 });
    let count = |sql: &str| copy.query_row(sql, [], |row| row.get::<_, u64>(0));
    let copied = CopySummary {
        // Of a damaged database, only what can be read is counted.
        sessions: count("SELECT count(*) FROM sessions").unwrap_or_default(),
        messages: count("SELECT count(*) FROM messages").unwrap_or_default(),
        artifacts: artifacts::all(&copy).unwrap_or_default(),
        problems,
    };
    // The archive has a single file, without a journal beside it.
    copy.pragma_update_and_check(None, "wal_checkpoint", "TRUNCATE", |_| Ok(()))?;
    copy.close().map_err(|(_, error)| error)?;
    Ok(copied)
}

/// Returns the problems that a check of SQLite (`quick_check` or `integrity_check`) finds, in its words.
pub(super) fn problems_of(conn: &Connection, check: &str, at_most: i64) -> Vec<String> {
    let run = || -> rusqlite::Result<Vec<String>> {
        conn.prepare(&format!("PRAGMA {check}({at_most})"))?.query_map([], |row| row.get(0))?.collect()
    };
    match run() {
        Ok(lines) if lines == ["ok"] => Vec::new(),
        Ok(lines) => lines,
        Err(error) => vec![error.to_string()],
    }
}

/// The files of artifacts, and the missing ones.
struct PresentFiles {
    present: Vec<PathBuf>,
    missing: Vec<ArtifactId>,
}

fn present(folder: &ArtifactFolder, ids: Vec<ArtifactId>) -> PresentFiles {
    let mut files = PresentFiles { present: Vec::new(), missing: Vec::new() };
    for id in ids {
        let path = folder.file_path(&id);
        if path.is_file() { files.present.push(path) } else { files.missing.push(id) }
    }
    files
}

fn name_in_archive(folder: &ArtifactFolder, path: &Path) -> String {
    let within = path.strip_prefix(folder.path()).unwrap_or(path);
    let parts = within.iter().map(|part| part.to_string_lossy());
    std::iter::once(ARTIFACTS.into()).chain(parts).collect::<Vec<_>>().join("/")
}

/// A file for an archive.
struct ArchiveEntry {
    name: String,
    path: PathBuf,
    size: u64,
}

impl ArchiveEntry {
    fn of_file(name: String, path: &Path) -> TxResult<Self> {
        let found = fs::metadata(path).map_err(|source| TxError::from(io_error("reading", path, source)))?;
        Ok(Self { name, path: path.to_path_buf(), size: found.len() })
    }
}

/// Writes the archive, compares it with its sources, and renames it. Returns its size.
fn finish(
    archive: tempfile::NamedTempFile,
    to: &Path,
    entries: &[ArchiveEntry],
    now_ms: Millis,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<u64> {
    let failure = |source| TxError::from(io_error("writing the backup", to, source));
    let note = note(now_ms);
    let hashes = pack(archive.as_file(), entries, &note, now_ms, progress).map_err(failure)?;
    archive.as_file().sync_all().map_err(failure)?;
    verify(archive.path(), entries, &hashes, progress).map_err(failure)?;
    let bytes = archive.as_file().metadata().map_err(failure)?.len();
    archive.persist_noclobber(to).map_err(|failed| failure(failed.error))?;
    if let Some(folder) = to.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        connection::sync_folder(folder).map_err(failure)?;
    }
    Ok(bytes)
}

/// Writes the note and the files, and returns the hash of each file.
fn pack(
    archive: &File,
    entries: &[ArchiveEntry],
    note: &str,
    now_ms: Millis,
    progress: &mut dyn FnMut(StoreProgress),
) -> io::Result<Vec<blake3::Hash>> {
    let total = entries.iter().map(|entry| entry.size).sum();
    let mut done = 0;
    let mtime_secs = u64::try_from(now_ms / 1_000).unwrap_or_default();
    let mut builder = tar::Builder::new(BufWriter::new(archive));
    builder.append(&header(NOTE, note.len() as u64, mtime_secs)?, note.as_bytes())?;
    let mut hashes = Vec::with_capacity(entries.len());
    for entry in entries {
        // A file that grows meanwhile is cut at the size in its header; one that shrinks is an error.
        let mut content = HashedReader {
            inner: File::open(&entry.path)?.take(entry.size),
            hasher: blake3::Hasher::new(),
            on_bytes: |bytes| {
                done += bytes;
                progress(StoreProgress { what: "packing", done, total });
            },
        };
        builder.append(&header(&entry.name, entry.size, mtime_secs)?, &mut content)?;
        if content.inner.limit() > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        hashes.push(content.hasher.finalize());
    }
    builder.into_inner()?.flush()?;
    Ok(hashes)
}

/// The header of a file in the archive. Files are readable by their owner only.
fn header(name: &str, size: u64, mtime_secs: u64) -> io::Result<tar::Header> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name)?;
    header.set_mode(0o600);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    header.set_mtime(mtime_secs);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

/// Hashes the bytes read through it, and reports their number.
struct HashedReader<R, F> {
    inner: R,
    hasher: blake3::Hasher,
    on_bytes: F,
}

impl<R: Read, F: FnMut(u64)> Read for HashedReader<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..read).unwrap_or_default());
        (self.on_bytes)(read as u64);
        Ok(read)
    }
}

/// Reads the archive back and compares every file with its source.
fn verify(
    archive: &Path,
    entries: &[ArchiveEntry],
    hashes: &[blake3::Hash],
    progress: &mut dyn FnMut(StoreProgress),
) -> io::Result<()> {
    let differs = || io::Error::new(io::ErrorKind::InvalidData, "what was written is not what is read back");
    let total = entries.iter().map(|entry| entry.size).sum();
    let mut done = 0;
    let mut expected = entries.iter().zip(hashes);
    for found in tar::Archive::new(BufReader::new(File::open(archive)?)).entries()? {
        let found = found?;
        let (name, size) = (found.path()?.to_string_lossy().into_owned(), found.size());
        if name == NOTE {
            continue;
        }
        let (entry, hash) = expected.next().ok_or_else(differs)?;
        let mut content = HashedReader {
            inner: found,
            hasher: blake3::Hasher::new(),
            on_bytes: |bytes| {
                done += bytes;
                progress(StoreProgress { what: "comparing", done, total });
            },
        };
        io::copy(&mut content, &mut io::sink())?;
        if name != entry.name || size != entry.size || content.hasher.finalize() != *hash {
            return Err(differs());
        }
    }
    if expected.next().is_some() { Err(differs()) } else { Ok(()) }
}

/// Returns the restore instructions, a file in the archive.
fn note(now_ms: Millis) -> String {
    let time = jiff::Timestamp::from_millisecond(now_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!(
        "This is a Throughline record as it was on {}.\n\
         \n\
         record.db    the database (SQLite)\n\
         artifacts/   large texts the database refers to (zstd)\n\
         \n\
         To restore it: stop every throughline process, move record.db, record.db-wal, record.db-shm and artifacts\n\
         out of the home directory of Throughline (~/.throughline unless THROUGHLINE_HOME says otherwise), and unpack\n\
         this archive there:\n\
         \n\
         \x20   tar -xf THIS_FILE -C ~/.throughline\n\
         \n\
         `throughline doctor` then says whether everything is in place.\n",
        time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%d %H:%M UTC")
    )
}

#[cfg(test)]
#[path = "backup_tests.rs"]
mod tests;
