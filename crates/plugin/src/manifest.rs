//! The manifest of an engine: a directory with a `plugin.yaml` in it.

use std::path::{Path, PathBuf};

use throughline_config::{ConfigErrors, FlatEntry, FlatValue};

use crate::connection::Launch;

/// The file that makes a directory an engine.
const MANIFEST_FILE: &str = "plugin.yaml";

/// The manifest of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// A description in one sentence.
    pub description: String,
    /// The program and its arguments.
    pub command: Vec<String>,
}

/// Why a manifest is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not a valid file.
    #[error(transparent)]
    Unreadable(#[from] ConfigErrors),
    /// A key is missing.
    #[error("{MANIFEST_FILE}: `{key}` is missing")]
    Missing {
        /// The missing key.
        key: &'static str,
    },
    /// A value has the wrong type.
    #[error("{MANIFEST_FILE}:{line}: `{key}` must be {wanted}")]
    WrongKind {
        /// The key with the wrong value.
        key: String,
        /// Its line, counted from one.
        line: usize,
        /// The required type.
        wanted: &'static str,
    },
    /// It names another engine than its directory.
    #[error("{MANIFEST_FILE}: it names the engine `{name}`, but its directory is called `{directory}`")]
    OtherName {
        /// The name in it.
        name: String,
        /// The name of the directory.
        directory: String,
    },
}

impl Manifest {
    /// The file that makes a directory an engine.
    pub const FILE_NAME: &str = MANIFEST_FILE;

    /// Parses the manifest of the directory of this name.
    pub fn read(directory: &str, bytes: &[u8]) -> Result<Self, ManifestError> {
        let entries = FlatEntry::read_all(MANIFEST_FILE, bytes)?;
        let find = |key: &str| entries.iter().find(|entry| entry.key == key);
        let text = |key: &'static str| find(key).map(text_of).transpose();
        let name = text("name")?.unwrap_or_else(|| directory.to_owned());
        if name != directory {
            return Err(ManifestError::OtherName { name, directory: directory.to_owned() });
        }
        let command = find("command").ok_or(ManifestError::Missing { key: "command" })?;
        Ok(Self {
            name,
            version: text("version")?.unwrap_or_default(),
            description: text("description")?.unwrap_or_default(),
            command: command_of(command)?,
        })
    }

    /// Returns the command that starts it in its directory. A program in the directory takes precedence over one of the same name
    /// elsewhere.
    #[must_use]
    pub fn launch(&self, folder: &Path, is_file: impl Fn(&Path) -> bool) -> Launch {
        let (program, arguments) = match self.command.split_first() {
            Some((program, arguments)) => (program.as_str(), arguments.to_vec()),
            None => ("", Vec::new()),
        };
        let beside = folder.join(program);
        let program = if is_file(&beside) { beside } else { PathBuf::from(program) };
        Launch { program, arguments, folder: folder.to_path_buf() }
    }
}

fn text_of(entry: &FlatEntry) -> Result<String, ManifestError> {
    match &entry.value {
        FlatValue::Text(text) => Ok(text.trim().to_owned()),
        FlatValue::List(_) | FlatValue::Other => Err(wrong(entry, "a text")),
    }
}

/// Parses a program with its arguments: a list, or a text split at spaces.
fn command_of(entry: &FlatEntry) -> Result<Vec<String>, ManifestError> {
    let words = match &entry.value {
        FlatValue::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
        FlatValue::List(words) => words.clone(),
        FlatValue::Other => Vec::new(),
    };
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => Err(wrong(entry, "a program with what it is given, as a list of texts")),
    }
}

fn wrong(entry: &FlatEntry, wanted: &'static str) -> ManifestError {
    ManifestError::WrongKind { key: entry.key.clone(), line: entry.line, wanted }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
