//! The folder of artifacts: one compressed file per text, named by the hash of the text.
//!
//! A file is a sequence of independent zstd frames of about 256 KB of text, then a skippable frame with a table of them.
//! Any zstd tool can read the text, and we can read part of it without decompressing the rest. Files appear whole or not
//! at all, and only their owner may read them. Frames have checksums; a whole read is also checked against the name.
//!
//! Not for: which sessions refer to an artifact; that is in the database.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::artifacts::artifact::{ArtifactId, ArtifactRange};
use crate::artifacts::frame_table::{FrameTable, TRAILER_BYTES};
use crate::artifacts::frames::{read_piece, unpack_frames, write_frames};
use crate::error::{Result, StoreError};

const EXTENSION: &str = "zst";

/// The folder.
#[derive(Clone, Debug)]
pub(crate) struct ArtifactFolder {
    path: PathBuf,
}

/// The sizes of an artifact's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArtifactFile {
    /// Size of the text.
    pub(crate) bytes: u64,
    /// Lines of the text.
    pub(crate) lines: u64,
    /// Size of the file.
    pub(crate) stored_bytes: u64,
}

/// The contents of the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderListing {
    /// The artifacts, ordered by name.
    pub(crate) artifacts: Vec<ArtifactId>,
    /// Other files: left by a process that died, or by other programs.
    pub(crate) strangers: Vec<PathBuf>,
}

impl ArtifactFolder {
    /// Opens the folder, creating it if necessary.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        make_private_folder(&path).map_err(|source| write_error("making the folder", &path, source))?;
        Ok(Self { path })
    }

    /// Returns the folder for reading; it need not exist.
    #[must_use]
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns its path.
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of an artifact's file, whether or not it exists.
    #[must_use]
    pub(crate) fn file_path(&self, id: &ArtifactId) -> PathBuf {
        let name = id.as_str();
        self.path.join(name.get(..2).unwrap_or("__")).join(format!("{name}.{EXTENSION}"))
    }

    /// Stores a text. It is on disk when this returns; an existing text is not written again.
    pub(crate) fn put(&self, text: &str) -> Result<(ArtifactId, ArtifactFile)> {
        let id = ArtifactId::of(text.as_bytes());
        if let Ok(present) = self.stat(&id)
            && present.bytes == text.len() as u64
        {
            return Ok((id, present));
        }
        let path = self.file_path(&id);
        let folder = path.parent().unwrap_or(&self.path);
        let table = self
            .write_file(text, folder, &path)
            .map_err(|source| write_error("writing the artifact", &path, source))?;
        let stored_bytes = table.file_bytes();
        Ok((id, ArtifactFile { bytes: table.text_bytes(), lines: table.lines(), stored_bytes }))
    }

    fn write_file(&self, text: &str, folder: &Path, path: &Path) -> io::Result<FrameTable> {
        if !folder.is_dir() {
            make_private_folder(folder)?;
            sync_folder(&self.path)?;
        }
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
        let table = write_frames(text, &mut file)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|failed| failed.error)?;
        sync_folder(folder)?;
        Ok(table)
    }

    /// Returns the sizes of an artifact without decompressing it.
    pub(crate) fn stat(&self, id: &ArtifactId) -> Result<ArtifactFile> {
        let (_, table) = self.open_file(id)?;
        let stored_bytes = table.file_bytes();
        Ok(ArtifactFile { bytes: table.text_bytes(), lines: table.lines(), stored_bytes })
    }

    /// Reads a piece, as far as the text has it.
    pub(crate) fn read(&self, id: &ArtifactId, range: ArtifactRange) -> Result<String> {
        let (mut file, table) = self.open_file(id)?;
        let text = read_piece(&table, range, |frames| self.read_frames(id, &mut file, &table, frames))?;
        match range {
            ArtifactRange::All if &ArtifactId::of(text.as_bytes()) != id => {
                Err(self.damaged(id, "not what its name says"))
            }
            _ => Ok(text),
        }
    }

    /// Reads the whole text and compares it with the name.
    #[cfg(test)]
    pub(crate) fn verify(&self, id: &ArtifactId) -> Result<()> {
        self.read(id, ArtifactRange::All).map(drop)
    }

    /// Lists everything in the folder.
    pub(crate) fn list(&self) -> Result<FolderListing> {
        let mut listing = FolderListing::default();
        let fail = |source| StoreError::Io { what: "listing", path: self.path.clone(), source };
        let mut folders = vec![self.path.clone()];
        if !self.path.exists() {
            return Ok(listing);
        }
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(fail)? {
                let entry = entry.map_err(fail)?;
                let path = entry.path();
                if folder == self.path && entry.file_type().map_err(fail)?.is_dir() {
                    folders.push(path);
                    continue;
                }
                match self.id_of(&path) {
                    Some(id) => listing.artifacts.push(id),
                    None => listing.strangers.push(path),
                }
            }
        }
        listing.artifacts.sort();
        listing.strangers.sort();
        Ok(listing)
    }

    /// Removes an artifact's file. A missing one is not an error.
    pub(crate) fn remove(&self, id: &ArtifactId) -> Result<()> {
        let path = self.file_path(id);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(write_error("removing the artifact", &path, source))
            }
            _ => Ok(()),
        }
    }

    /// Returns every file in the folder and its subfolders: its relative name, its size, and its modification time.
    pub(crate) fn walk(&self) -> Result<Vec<(String, u64, i64)>> {
        let fail = |source| StoreError::Io { what: "listing", path: self.path.clone(), source };
        let mut files = Vec::new();
        let mut folders = vec![(self.path.clone(), String::new())];
        while let Some((folder, name)) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(fail(error)),
            };
            for entry in entries {
                let entry = entry.map_err(fail)?;
                let name = format!("{name}{}", entry.file_name().to_string_lossy());
                if entry.file_type().map_err(fail)?.is_dir() {
                    folders.push((entry.path(), format!("{name}/")));
                    continue;
                }
                // The file may be gone already.
                let Ok(found) = entry.metadata() else { continue };
                let modified = found.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                let modified_ms = modified.and_then(|since| i64::try_from(since.as_millis()).ok());
                files.push((name, found.len(), modified_ms.unwrap_or_default()));
            }
        }
        Ok(files)
    }

    /// Removes a file by its relative name. A missing one is not an error.
    pub(crate) fn remove_named(&self, name: &str) -> Result<()> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(write_error("removing the file", &path, source))
            }
            _ => Ok(()),
        }
    }

    /// Returns a small file as text; `None` if there is none.
    pub(crate) fn text_of(&self, name: &str) -> Result<Option<String>> {
        let path = self.path.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Io { what: "reading", path, source }),
        }
    }

    /// Writes a small file, unless one of this name exists.
    pub(crate) fn write_new(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path.join(name);
        let write = || -> io::Result<()> {
            make_private_folder(&self.path)?;
            let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.path)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            match file.persist_noclobber(&path) {
                Err(failed) if failed.error.kind() != ErrorKind::AlreadyExists => Err(failed.error),
                _ => sync_folder(&self.path),
            }
        };
        write().map_err(|source| write_error("writing", &path, source))
    }

    /// Returns the artifact of a file path.
    fn id_of(&self, path: &Path) -> Option<ArtifactId> {
        let name = path.file_name()?.to_str()?.strip_suffix(EXTENSION)?.strip_suffix('.')?;
        let is_name = name.len() == 32 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let id = ArtifactId::from_text(name);
        (is_name && self.file_path(&id) == path).then_some(id)
    }

    fn open_file(&self, id: &ArtifactId) -> Result<(File, FrameTable)> {
        let path = self.file_path(id);
        let mut file = File::open(&path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => self.damaged(id, "missing"),
            _ => StoreError::Io { what: "opening the artifact", path: path.clone(), source },
        })?;
        match read_table(&mut file) {
            Ok(Some(table)) => Ok((file, table)),
            Ok(None) => Err(self.damaged(id, "cut short or not an artifact")),
            Err(source) => Err(StoreError::Io { what: "reading the artifact", path, source }),
        }
    }

    fn read_frames(
        &self,
        id: &ArtifactId,
        file: &mut File,
        table: &FrameTable,
        frames: std::ops::Range<usize>,
    ) -> Result<String> {
        let offset = table.offset_of(frames.start);
        let wanted = table.frames().get(frames).unwrap_or_default();
        let packed_bytes = wanted.iter().map(|frame| frame.packed_bytes as usize).sum::<usize>();
        let mut packed = vec![0; packed_bytes];
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(&mut packed))
            .map_err(|_| self.damaged(id, "cut short"))?;
        unpack_frames(&packed, wanted).ok_or_else(|| self.damaged(id, "damaged"))
    }

    fn damaged(&self, id: &ArtifactId, problem: &str) -> StoreError {
        StoreError::ArtifactDamaged {
            id: id.as_str().to_owned(),
            problem: problem.to_owned(),
            path: self.file_path(id),
        }
    }
}

/// Reads the table at the end of a file; `None` if there is none or it does not match the file.
fn read_table(file: &mut File) -> io::Result<Option<FrameTable>> {
    let file_bytes = file.metadata()?.len();
    if file_bytes < TRAILER_BYTES as u64 {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(file_bytes - TRAILER_BYTES as u64))?;
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact(&mut trailer)?;
    let Some(table_bytes) = FrameTable::encoded_bytes(&trailer).filter(|&bytes| bytes <= file_bytes) else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(file_bytes - table_bytes))?;
    let mut encoded = Vec::new();
    file.read_to_end(&mut encoded)?;
    Ok(FrameTable::decode(&encoded).filter(|table| table.file_bytes() == file_bytes))
}

fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes changes of a folder's entries durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

fn write_error(what: &'static str, path: &Path, source: io::Error) -> StoreError {
    let path = path.to_path_buf();
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::DiskFull { path },
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            StoreError::ReadOnly { path, problem: source.to_string() }
        }
        _ => StoreError::Io { what, path, source },
    }
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
