//! `read_file`: lines of a text file with their numbers, or an image.
//!
//! Files of any size are read line by line, never as a whole. Lines that the model has read and still has in view are not repeated:
//! reading the same lines of an unchanged file again costs one line, until the view changes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use throughline_engine::ToolSchema;
use throughline_transcript::counted;
use tokio_util::sync::CancellationToken;

use super::text_file::failed;
use crate::arguments::read;
use crate::output_limit::OutputLimit;
use crate::tool::{Effect, Extent, Image, Proposal, Tool, ToolError, ToolFuture, ToolOutput};
use crate::workspace::{FolderIdentity, PathLocation, Workspace};

const NAME: &str = "read_file";
/// The default number of lines: most source files are shorter, and are read completely.
const DEFAULT_LINES: usize = 2_000;
/// The longest line, in characters; longer ones are cut: they are data, and one could fill a window.
const MAX_LINE_CHARS: usize = 2_000;
/// The size of the largest image that Anthropic accepts.
const MAX_IMAGE_BYTES: u64 = 5_000_000;
/// The number of first bytes that are searched for NUL, which marks a binary file.
const SNIFFED_BYTES: usize = 8_192;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadFileArguments {
    path: String,
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    limit: Option<usize>,
}

/// The parts of files that the model has read and still sees.
#[derive(Debug, Default)]
pub(crate) struct SeenFiles {
    seen: Mutex<HashMap<(PathBuf, u64, usize), FileVersion>>,
}

/// The version of a file, by size and modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl SeenFiles {
    fn seen(&self) -> MutexGuard<'_, HashMap<(PathBuf, u64, usize), FileVersion>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads files.
#[derive(Debug)]
pub(crate) struct ReadFile {
    workspace: Workspace,
    limit: OutputLimit,
    seen: SeenFiles,
}

impl ReadFile {
    /// Creates the tool for this workspace. Text beyond the limit needs another call.
    #[must_use]
    pub(crate) fn new(workspace: Workspace, limit: OutputLimit) -> Self {
        Self { workspace, limit, seen: SeenFiles::default() }
    }

    fn place(&self, arguments: &Value) -> Result<(ReadFileArguments, PathLocation), ToolError> {
        let arguments: ReadFileArguments = read(NAME, arguments)?;
        let place = self.workspace.place(&arguments.path).map_err(|e| failed("read", &arguments.path, &e))?;
        Ok((arguments, place))
    }

    fn look(&self, arguments: &ReadFileArguments, place: &PathLocation) -> Result<ToolOutput, ToolError> {
        let shown = place.shown.as_str();
        let error = |e: io::Error| failed("read", shown, &e);
        let metadata = fs::metadata(&place.path).map_err(error)?;
        if metadata.is_dir() {
            return Ok(ToolOutput::text(listing(&place.path).map_err(error)?));
        }
        if !metadata.is_file() {
            return Err(ToolError::Failed(format!("{shown} is neither a file nor a folder")));
        }
        let mut file = BufReader::with_capacity(SNIFFED_BYTES, File::open(&place.path).map_err(error)?);
        let start = file.fill_buf().map_err(error)?;
        if let Some(media_type) = image_type(start) {
            return picture(file, media_type, metadata.len(), shown);
        }
        if start.contains(&0) {
            let bytes = metadata.len();
            return Err(ToolError::Failed(format!("{shown} is binary ({bytes} bytes), not text")));
        }
        let first = arguments.offset.unwrap_or(1).max(1);
        let limit = arguments.limit.unwrap_or(DEFAULT_LINES).clamp(1, DEFAULT_LINES);
        let version = FileVersion { bytes: metadata.len(), modified: metadata.modified().ok() };
        let key = (place.path.clone(), first, limit);
        if self.seen.seen().get(&key) == Some(&version) {
            return Ok(ToolOutput::text(format!(
                "{shown} is unchanged since these lines were read; they stand above"
            )));
        }
        let text = numbered(file, first, limit, self.limit.chars(), shown).map_err(error)?;
        self.seen.seen().insert(key, version);
        Ok(ToolOutput::text(text))
    }
}

/// Formats lines with their numbers, followed by a note on how to read the next ones.
fn numbered(
    mut file: impl io::BufRead,
    first: u64,
    limit: usize,
    max_chars: usize,
    shown: &str,
) -> io::Result<String> {
    let mut out = String::new();
    let mut line = Vec::new();
    let mut number = 0u64;
    let mut taken = 0usize;
    let mut chars = 0usize;
    let mut more = false;
    loop {
        line.clear();
        // A long line is read in pieces, and the part beyond the limit is skipped.
        let read = file.by_ref().take(MAX_LINE_CHARS as u64 * 4).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        let is_cut = !line.ends_with(b"\n") && read == MAX_LINE_CHARS * 4;
        if is_cut {
            skip_line(&mut file)?;
        }
        number += 1;
        if number < first {
            continue;
        }
        if taken == limit || chars > max_chars {
            more = true;
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        let kept: String = text.chars().take(MAX_LINE_CHARS).collect();
        let mark = if is_cut || kept.len() < text.len() { " [line cut]" } else { "" };
        out.push_str(&format!("{number:>6}\t{kept}{mark}\n"));
        chars += kept.len() + 8;
        taken += 1;
    }
    if taken == 0 {
        return Ok(match number {
            0 => format!("{shown} is empty"),
            _ => {
                let lines = counted(number, "line", "lines");
                format!("{shown} has {lines}, so there is nothing from line {first} on")
            }
        });
    }
    if more {
        out.push_str(&format!("[there is more: go on with offset {}]", first + taken as u64));
    }
    Ok(out)
}

fn skip_line(file: &mut impl io::BufRead) -> io::Result<()> {
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let (used, done) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        file.consume(used);
        if done {
            return Ok(());
        }
    }
}

/// Lists the entries of a folder.
fn listing(path: &Path) -> io::Result<String> {
    const MAX_ENTRIES: usize = 500;
    let mut names: Vec<String> = fs::read_dir(path)?
        .filter_map(Result::ok)
        .map(|entry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            format!("{}{}", entry.file_name().to_string_lossy(), if is_folder { "/" } else { "" })
        })
        .collect();
    names.sort();
    let left_out = names.len().saturating_sub(MAX_ENTRIES);
    names.truncate(MAX_ENTRIES);
    let mut out = names.join("\n");
    if left_out > 0 {
        out.push_str(&format!("\n... {left_out} more"));
    }
    Ok(if out.is_empty() { "the folder is empty".to_owned() } else { out })
}

fn picture(
    mut file: impl io::Read,
    media_type: &'static str,
    bytes: u64,
    shown: &str,
) -> Result<ToolOutput, ToolError> {
    if bytes > MAX_IMAGE_BYTES {
        return Err(ToolError::Failed(format!(
            "{shown} is a picture of {bytes} bytes; at most {MAX_IMAGE_BYTES} can be looked at"
        )));
    }
    let mut content = Vec::new();
    file.by_ref()
        .take(MAX_IMAGE_BYTES)
        .read_to_end(&mut content)
        .map_err(|error| failed("read", shown, &error))?;
    let image = Image { media_type, base64: STANDARD.encode(&content) };
    let text = format!("{shown}: {media_type}, {bytes} bytes");
    Ok(ToolOutput { images: vec![image], ..ToolOutput::text(text) })
}

/// The media type of an image, by its first bytes.
fn image_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

impl Tool for ReadFile {
    fn schema(&self) -> ToolSchema {
        ToolSchema {
            name: NAME.to_owned(),
            description: "Reads a text file with line numbers, a picture, or what is in a folder. Long files are read in \
                          pieces by offset and limit."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The file, relative to the working folder."},
                    "offset": {"type": "integer", "minimum": 1, "description": "The first line, from 1."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": DEFAULT_LINES, "description": "How many lines."}
                },
                "required": ["path"],
                "additionalProperties": false
            }),
        }
    }

    fn propose(&self, arguments: &Value) -> Result<Proposal, ToolError> {
        let (arguments, place) = self.place(arguments)?;
        let from = arguments.offset.map(|offset| format!(" from line {offset}")).unwrap_or_default();
        let extent = if place.path.is_dir() { Extent::Listing } else { Extent::File };
        Ok(Proposal {
            title: format!("read {}{from}", place.shown),
            effects: vec![Effect::Reads {
                folder: FolderIdentity::of(&place.path),
                path: place.path,
                inside: place.inside,
                extent,
            }],
        })
    }

    fn run<'a>(&'a self, arguments: &'a Value, _cancel: &'a CancellationToken) -> ToolFuture<'a> {
        Box::pin(async move {
            let (arguments, place) = self.place(arguments)?;
            self.look(&arguments, &place)
        })
    }

    fn view_changed(&self) {
        self.seen.seen().clear();
    }
}

#[cfg(test)]
#[path = "read_file_tests.rs"]
mod tests;
