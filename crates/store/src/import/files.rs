//! Finds the files of an import and reads their bytes.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use throughline_transcript::Note;

use crate::error::{Result, StoreError};
use crate::ids::Millis;

/// The maximum depth of folders.
const DEEPEST_FOLDER: usize = 32;
/// The maximum size of a text, limited by offsets inside a document.
const LARGEST_BYTES: u64 = u32::MAX as u64;
/// The first bytes of a database file.
const DATABASE_MAGIC: &[u8] = b"SQLite format 3\0";
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// Why a file is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListedBy {
    /// It was named: every problem is a failure.
    ByName,
    /// It is in a named folder: a file without a conversation is skipped.
    ByFolder,
}

/// A file to import.
#[derive(Clone, Debug)]
pub(super) struct ListedFile {
    pub(super) path: PathBuf,
    pub(super) asked: ListedBy,
}

/// The contents of a path.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Files to import.
    pub(super) files: Vec<ListedFile>,
    /// Files and folders that cannot be read, with the errors.
    pub(super) unreadable: Vec<(PathBuf, std::io::Error)>,
}

/// Lists the files at a path: the file itself, or those below a folder that may contain conversations. Links to folders are not followed.
/// Ordered by name, with those of sub-agents last.
pub(super) fn list(path: &Path) -> Listing {
    let mut found = Listing::default();
    match fs::metadata(path) {
        Ok(file) if !file.is_dir() => {
            found.files.push(ListedFile { path: path.to_owned(), asked: ListedBy::ByName });
        }
        Ok(_) => walk(path, 0, &mut found),
        Err(source) => found.unreadable.push((path.to_owned(), source)),
    }
    found.files.sort_by_cached_key(|listed| (is_agents_file(&listed.path), listed.path.clone()));
    found
}

fn walk(folder: &Path, depth: usize, found: &mut Listing) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(source) => return found.unreadable.push((folder.to_owned(), source)),
    };
    for entry in entries {
        match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?.is_dir()))) {
            Ok((path, true)) if depth < DEEPEST_FOLDER => walk(&path, depth + 1, found),
            Ok((path, false)) if may_hold_conversations(&path) => {
                found.files.push(ListedFile { path, asked: ListedBy::ByFolder });
            }
            Ok(_) => {}
            Err(source) => found.unreadable.push((folder.to_owned(), source)),
        }
    }
}

fn may_hold_conversations(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name == "state.db" || [".jsonl", ".json", ".traj"].iter().any(|end| name.ends_with(end))
}

/// Claude Code writes the conversation of a sub-agent to a file of its own.
fn is_agents_file(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("agent-"))
}

/// Returns the name of a file without its extensions: programs name files after their sessions.
pub(super) fn stem(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.split('.').next().unwrap_or_default()
}

/// Returns the modification time of a file.
pub(super) fn written_ms(path: &Path) -> Option<Millis> {
    let modified = fs::metadata(path).ok()?.modified().ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    Millis::try_from(since.as_millis()).ok()
}

/// Whether a file is a database.
pub(super) fn is_database(path: &Path) -> Result<bool> {
    let mut head = Vec::new();
    let file = fs::File::open(path).map_err(|source| unreadable(path, source))?;
    file.take(DATABASE_MAGIC.len() as u64)
        .read_to_end(&mut head)
        .map_err(|source| unreadable(path, source))?;
    Ok(head == DATABASE_MAGIC)
}

/// The contents of a file.
pub(super) struct FileText {
    /// Its bytes, decompressed if necessary.
    pub(super) bytes: Vec<u8>,
    /// The reason if it breaks off before its end. Everything before can be read.
    pub(super) break_off: Option<String>,
}

/// Reads a file. A line that is not text is emptied, with a note.
pub(super) fn read(path: &Path, notes: &mut Vec<Note>) -> Result<FileText> {
    let raw = fs::read(path).map_err(|source| unreadable(path, source))?;
    let mut file = if raw.starts_with(GZIP_MAGIC) {
        unpacked(path, &raw)?
    } else {
        FileText { break_off: half_a_line(&raw), bytes: raw }
    };
    file.bytes = without_bad_lines(file.bytes, notes);
    Ok(file)
}

fn unpacked(path: &Path, raw: &[u8]) -> Result<FileText> {
    let mut bytes = Vec::new();
    let outcome = MultiGzDecoder::new(raw).take(LARGEST_BYTES).read_to_end(&mut bytes);
    match outcome {
        Ok(_) => Ok(FileText { break_off: half_a_line(&bytes), bytes }),
        Err(source) if bytes.is_empty() => Err(unreadable(path, source)),
        Err(source) => {
            Ok(FileText { bytes, break_off: Some(format!("the packed file breaks off: {source}")) })
        }
    }
}

/// Returns a message if the last of several lines is incomplete.
fn half_a_line(bytes: &[u8]) -> Option<String> {
    let end = memchr::memrchr(b'\n', bytes)?;
    let (before, last) = (bytes.get(..end)?, bytes.get(end + 1..)?);
    let error = serde_json::from_slice::<serde::de::IgnoredAny>(last).err()?;
    let is_half = error.is_eof() && !last.trim_ascii().is_empty();
    is_half.then(|| {
        let number = memchr::memchr_iter(b'\n', before).count() + 2;
        format!("it breaks off in line {number}")
    })
}

/// Empties the lines that are not UTF-8, if the text has more than one: the other lines of a log can be read without them.
fn without_bad_lines(bytes: Vec<u8>, notes: &mut Vec<Note>) -> Vec<u8> {
    if std::str::from_utf8(&bytes).is_ok() || !bytes.contains(&b'\n') {
        return bytes;
    }
    let mut kept = Vec::with_capacity(bytes.len());
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        match std::str::from_utf8(line) {
            Ok(_) => kept.extend_from_slice(line),
            Err(_) => {
                notes.push(Note { line: Some(index + 1), text: "not UTF-8, skipped".into() });
                kept.push(b'\n');
            }
        }
    }
    kept
}

fn unreadable(path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io { what: "reading", path: path.to_owned(), source }
}
