//! The result of an import, file by file, and its progress events.

use std::path::{Path, PathBuf};

use throughline_transcript::Note;

/// An event of an import.
#[derive(Clone, Copy, Debug)]
pub enum ImportEvent<'a> {
    /// The files have been listed.
    Listed {
        /// The number of files.
        files: usize,
    },
    /// A file is being read.
    Began {
        /// The file.
        path: &'a Path,
        /// Its number, counted from one.
        number: usize,
        /// The number of files.
        of: usize,
    },
    /// A conversation in a file with several was recorded.
    Recorded {
        /// The number of conversations so far.
        conversations: usize,
        /// The number in the file.
        of: usize,
    },
    /// A file was finished.
    Ended(&'a FileReport),
}

/// Counts of conversations by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ImportCounts {
    /// Conversations that were not recorded before.
    pub new: u64,
    /// Conversations with new messages.
    pub grown: u64,
    /// Conversations without changes.
    pub unchanged: u64,
    /// Conversations that differ from the recorded version: the record has both.
    pub branched: u64,
    /// Messages added to the record.
    pub messages: u64,
    /// Calls added to the record.
    pub calls: u64,
    /// Messages of unfinished answers, left for the next import.
    pub held_back: u64,
}

impl std::ops::AddAssign for ImportCounts {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.grown += other.grown;
        self.unchanged += other.unchanged;
        self.branched += other.branched;
        self.messages += other.messages;
        self.calls += other.calls;
        self.held_back += other.held_back;
    }
}

/// The result of importing a file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "snake_case")]
pub enum FileOutcome {
    /// The file was read completely.
    Imported,
    /// It has nothing to import.
    Skipped(String),
    /// It could not be read beyond some point; everything before is recorded.
    Failed(String),
}

/// The import of one file.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// The program it is from, once known.
    pub program: Option<&'static str>,
    /// The results for its conversations.
    pub counts: ImportCounts,
    /// Notes, such as on lines that could not be read.
    pub notes: Vec<Note>,
    /// The result.
    #[serde(flatten)]
    pub outcome: FileOutcome,
}

impl FileReport {
    pub(crate) fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            program: None,
            counts: ImportCounts::default(),
            notes: Vec::new(),
            outcome: FileOutcome::Imported,
        }
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(Note { line: None, text: text.into() });
    }
}

/// The result of an import.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct ImportReport {
    /// The files, in the order in which they were imported.
    pub files: Vec<FileReport>,
}

impl ImportReport {
    /// Returns the totals of all files.
    #[must_use]
    pub fn totals(&self) -> ImportCounts {
        self.files.iter().fold(ImportCounts::default(), |mut sum, file| {
            sum += file.counts;
            sum
        })
    }

    /// Returns the files that could not be read completely.
    pub fn failures(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.files.iter().filter_map(|file| match &file.outcome {
            FileOutcome::Failed(reason) => Some((file.path.as_path(), reason.as_str())),
            FileOutcome::Imported | FileOutcome::Skipped(_) => None,
        })
    }

    /// Returns the number of files with nothing to import.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.files.iter().filter(|file| matches!(file.outcome, FileOutcome::Skipped(_))).count()
    }
}
