//! Reads inputs and replaces files. No other module opens files of the user.
//!
//! An input may be compressed with gzip, which is recognised by its first bytes. An output is written to a temporary file beside its
//! target and renamed over it, so that a file is never half written.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use throughline_engine::EngineDirectory;

use crate::error::{CliError, Exit, io_words, path_words};

/// The path that means stdin or stdout.
pub(crate) const STANDARD_STREAM: &str = "-";

/// Transcripts are addressed with 32-bit offsets.
const MAX_INPUT_BYTES: u64 = u32::MAX as u64;
/// A small file may unpack to any size; this limit is far above any transcript and below the memory of any machine.
const MAX_UNPACKED_BYTES: u64 = 1 << 30;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
/// Formats that are only recognised for their error message: magic bytes, name, and how to unpack them.
const OTHER_FORMATS: [(&[u8], &str, &str); 4] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "unpack it first, for example with `zstd -d`"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0x00], "xz", "unpack it first, for example with `xz -d`"),
    (b"BZh", "bzip2", "unpack it first, for example with `bzip2 -d`"),
    (b"PK\x03\x04", "a zip archive", "unpack it first and pass one of its files"),
];

/// The name of an input in messages.
pub(crate) fn input_name(path: &Path) -> String {
    if path.as_os_str() == STANDARD_STREAM { "stdin".to_owned() } else { path_words(path) }
}

/// Reads a file, or stdin for `-`, and decompresses gzip.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>, CliError> {
    let name = input_name(path);
    let bytes = if path.as_os_str() == STANDARD_STREAM {
        read_bounded(io::stdin().lock(), MAX_INPUT_BYTES).map_err(|error| unreadable(&name, &error))?
    } else {
        let open = || -> io::Result<Option<Vec<u8>>> {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            if metadata.len() > MAX_INPUT_BYTES {
                return Ok(None);
            }
            read_bounded(file, MAX_INPUT_BYTES)
        };
        open().map_err(|error| unreadable(&name, &error))?
    };
    let Some(bytes) = bytes else {
        return Err(CliError::new(Exit::BadInput, format!("{name} is too large"))
            .because("at most 4 GiB can be read at once"));
    };
    if bytes.starts_with(GZIP_MAGIC) {
        return unpack(&name, &bytes);
    }
    if let Some((_, format, advice)) = OTHER_FORMATS.iter().find(|(magic, _, _)| bytes.starts_with(magic)) {
        return Err(CliError::new(Exit::BadInput, format!("cannot read {name}"))
            .because(format!("it is {format}; of compressed files only gzip is read"))
            .hint(*advice));
    }
    Ok(bytes)
}

fn unreadable(name: &str, error: &io::Error) -> CliError {
    let failure =
        CliError::new(Exit::InputUnreadable, format!("cannot read {name}")).because(io_words(error));
    match error.kind() {
        io::ErrorKind::NotFound => failure.hint("check the spelling, or pass - to read from stdin"),
        io::ErrorKind::IsADirectory => failure.hint("pass a transcript file inside it"),
        _ => failure,
    }
}

/// A file that may be a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TranscriptFile {
    pub(crate) path: PathBuf,
    /// Whether the user named the file itself, not a folder that contains it.
    pub(crate) was_named: bool,
}

/// How deep folders are searched.
const MAX_DEPTH: usize = 16;
/// File extensions, without `.gz`, of possible transcripts in a folder.
const TRANSCRIPT_ENDINGS: [&str; 4] = [".jsonl", ".json", ".ndjson", ".traj"];

/// Returns the named files, and in place of each folder the possible transcripts in it, sorted by path.
pub(crate) fn transcript_files(paths: &[PathBuf]) -> Result<Vec<TranscriptFile>, CliError> {
    let mut found = Vec::new();
    for path in paths {
        if path.as_os_str() == STANDARD_STREAM {
            found.push(TranscriptFile { path: path.clone(), was_named: true });
            continue;
        }
        let metadata = fs::metadata(path).map_err(|error| unreadable(&path_words(path), &error))?;
        if metadata.is_dir() {
            let mut inside = Vec::new();
            files_in(path, MAX_DEPTH, &mut inside).map_err(|error| unreadable(&path_words(path), &error))?;
            inside.sort();
            found.extend(inside.into_iter().map(|path| TranscriptFile { path, was_named: false }));
        } else {
            found.push(TranscriptFile { path: path.clone(), was_named: true });
        }
    }
    Ok(found)
}

/// Links to folders are not followed: they may form circles.
fn files_in(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && depth > 0 {
            files_in(&path, depth - 1, found)?;
        } else if !kind.is_dir() && may_be_transcript(&path) {
            found.push(path);
        }
    }
    Ok(())
}

fn may_be_transcript(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    TRANSCRIPT_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Reads a source to its end; `None` if it is longer than the limit.
fn read_bounded(source: impl Read, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    source.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

fn unpack(name: &str, packed: &[u8]) -> Result<Vec<u8>, CliError> {
    match read_bounded(MultiGzDecoder::new(packed), MAX_UNPACKED_BYTES) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(CliError::new(Exit::BadInput, format!("{name} unpacks to more than 1 GiB"))
            .hint("if that is right, unpack it first with `gzip -d` and pass the plain file")),
        Err(error) => {
            let cause = if error.kind() == io::ErrorKind::UnexpectedEof {
                "the gzip data ends too early; the file was probably cut off".to_owned()
            } else {
                format!("the gzip data is broken: {}", io_words(&error))
            };
            Err(CliError::new(Exit::BadInput, format!("cannot unpack {name}"))
                .because(cause)
                .hint("get a whole copy of the file; `gzip -t` tests one"))
        }
    }
}

/// Who may read a newly created file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    /// Everyone, as far as the umask of the process allows.
    AsUsual,
    /// Its owner only.
    Owner,
}

/// Replaces or creates a file. Its permissions are kept; a link stays a link.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    write_for(path, bytes, Readers::AsUsual)
}

/// Does the same, but a new file is readable by its owner only: recorded conversations are confidential.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    write_for(path, bytes, Readers::Owner)
}

fn write_for(path: &Path, bytes: &[u8], readers: Readers) -> Result<(), CliError> {
    let fail = |cause: String| {
        CliError::new(Exit::OutputFailed, format!("cannot write {}", path_words(path))).because(cause)
    };
    let existing = match fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(fail(io_words(&error))),
    };
    if let Some(metadata) = &existing {
        if metadata.is_dir() {
            return Err(fail("it is a folder".to_owned()).hint("name a file inside it"));
        }
        if metadata.permissions().readonly() {
            return Err(
                fail("it is marked read-only".to_owned()).hint("make it writable or choose another name")
            );
        }
        if !metadata.is_file() {
            // A pipe or a device cannot be replaced, only written to.
            let write = || File::options().write(true).open(path)?.write_all(bytes);
            return write().map_err(|error| fail(io_words(&error)));
        }
    } else if path.is_symlink() {
        return Err(fail("it is a link whose target does not exist".to_owned()));
    }
    let target = if path.is_symlink() {
        fs::canonicalize(path).map_err(|error| fail(io_words(&error)))?
    } else {
        path.to_owned()
    };
    let folder = folder_of(&target);
    if !folder.is_dir() {
        let cause = format!("the folder {} does not exist", path_words(&folder));
        return Err(fail(cause).hint("make the folder first"));
    }
    replace(&target, &folder, existing.as_ref(), bytes, readers).map_err(|error| fail(io_words(&error)))
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn replace(
    target: &Path,
    folder: &Path,
    existing: Option<&fs::Metadata>,
    bytes: &[u8],
    readers: Readers,
) -> io::Result<()> {
    #[cfg(not(unix))]
    let _ = readers;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".throughline-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(match readers {
            // The mode of a new file, to which the umask applies.
            Readers::AsUsual => 0o666,
            Readers::Owner => 0o600,
        }));
    }
    let mut temporary = builder.tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    if let Some(existing) = existing {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            // Only the administrator may change the owner of a file; for others this has no effect.
            let _ = std::os::unix::fs::chown(temporary.path(), Some(existing.uid()), Some(existing.gid()));
        }
        fs::set_permissions(temporary.path(), existing.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(target).map_err(|error| error.error)?;
    // The rename is durable only once the folder is synced; not every file system supports that.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Returns the engines in the plugins folder; empty if it cannot be read.
pub(crate) fn engine_directories(home: &Path) -> Vec<EngineDirectory> {
    let Ok(entries) = fs::read_dir(home.join("plugins").join("context_engine")) else { return Vec::new() };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_dir());
    paths
        .filter_map(|path| Some(EngineDirectory { name: path.file_name()?.to_str()?.to_owned(), path }))
        .collect()
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
