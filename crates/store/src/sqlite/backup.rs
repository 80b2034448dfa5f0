//! A copy of a record in one file: a plain tar archive with the database, the artifacts it refers to, and instructions
//! for restoring. Any `tar` can unpack it.
//!
//! The database is copied as it was at one moment while other processes continue to write. The archive gets its name
//! only when it is complete, on disk, and has been read back and compared. Only its owner can read it. An existing file
//! is never overwritten.

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
/// Pages copied between two reports of progress.
const PAGES_AT_ONCE: i32 = 2_048;
/// Findings of a check that are reported; damage seldom comes alone.
const PROBLEMS_TOLD: i64 = 20;

/// What went into a backup.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BackupReport {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Sessions in it.
    pub sessions: u64,
    /// Messages in it.
    pub messages: u64,
    /// Artifacts in it.
    pub artifacts: u64,
    /// Artifacts the record refers to whose files are not there.
    pub missing_artifacts: Vec<ArtifactId>,
    /// Artifacts that are in a place of their own and not in the backup.
    pub artifacts_elsewhere: u64,
    /// What is wrong with the database that was copied; it was copied all the same.
    pub problems: Vec<String>,
}

/// Which artifacts go into a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// Those the record refers to.
    Referenced,
    /// Everything in the folder.
    Everything,
}

impl SqliteStore {
    /// Writes a backup to a file that is not there yet. Others may go on reading and writing meanwhile.
    pub fn back_up(
        &self,
        to: &Path,
        now_ms: Millis,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<BackupReport> {
        self.back_up_with(Contents::Referenced, to, now_ms, progress)
    }

    /// As [`back_up`](Self::back_up), with artifacts without references.
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
            // What is in a place of its own stays there, and is backed up there.
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

    /// The folder of artifacts beside the database.
    fn folder_beside(&self) -> ArtifactFolder {
        let beside = self.artifacts.folder_beside().cloned();
        beside.unwrap_or_else(|| ArtifactFolder::at(connection::artifacts_beside(&self.path)))
    }
}

/// Packs the files of a record as they lie there, for one that cannot be opened. No program may be using it.
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

/// The archive to be, and a folder for the copy of the database, both where the backup will be.
fn begin(to: &Path) -> TxResult<(tempfile::NamedTempFile, tempfile::TempDir)> {
    let failure = |source| TxError::from(io_error("writing the backup", to, source));
    if fs::symlink_metadata(to).is_ok() {
        return Err(failure(io::ErrorKind::AlreadyExists.into()));
    }
    let folder =
        to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".throughline-backup-");
    // Files of this kind are private to begin with; folders are made so.
    let archive = builder.tempfile_in(folder).map_err(failure)?;
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let copy = builder.tempdir_in(folder).map_err(failure)?;
    Ok((archive, copy))
}

/// What a copied database holds.
struct CopySummary {
    sessions: u64,
    messages: u64,
    artifacts: Vec<ArtifactId>,
    problems: Vec<String>,
}

/// Copies the database as it is at this moment to a new file, and checks the copy.
fn copy_database(
    source: &Connection,
    to: &Path,
    progress: &mut dyn FnMut(StoreProgress),
) -> TxResult<CopySummary> {
    // A transaction holds the moment: without one the copy would begin anew at every write of another process.
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
        // Of a damaged database, what can be read is reported.
        sessions: count("SELECT count(*) FROM sessions").unwrap_or_default(),
        messages: count("SELECT count(*) FROM messages").unwrap_or_default(),
        artifacts: artifacts::all(&copy).unwrap_or_default(),
        problems,
    };
    // One file, without a journal beside it, is what goes into the archive.
    copy.pragma_update_and_check(None, "wal_checkpoint", "TRUNCATE", |_| Ok(()))?;
    copy.close().map_err(|(_, error)| error)?;
    Ok(copied)
}

/// What a check of SQLite's (`quick_check` or `integrity_check`) finds wrong with a database, in its words.
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

/// Files of artifacts, and those that are not there.
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

/// A file that goes into an archive.
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

/// Writes the archive, compares it with what was to go in, and gives it its name. Returns its size.
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
        // A file that grew meanwhile is cut at the size its header says; one that shrank is an error.
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

/// Hashes what is read through it, and reports how many bytes were read.
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

/// Reads the archive back and compares every file with what was to go in.
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

/// How to restore the record, as a file in the archive.
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
