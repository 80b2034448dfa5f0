//! The result of an import, file by file, and its progress events.

use std::path::{Path, PathBuf};

use throughline_transcript::Note;

/// Something that happened during an import.
#[derive(Clone, Copy, Debug)]
pub enum ImportEvent<'a> {
    /// What is there to be read is known.
    Listed {
        /// How many files.
        files: usize,
    },
    /// A file is being read.
    Began {
        /// The file.
        path: &'a Path,
        /// Its number, counted from one.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// A conversation of a file with several was recorded.
    Recorded {
        /// How many so far.
        conversations: usize,
        /// How many the file has.
        of: usize,
    },
    /// A file is done.
    Ended(&'a FileReport),
}

/// What became of the conversations of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ImportCounts {
    /// Conversations that were not in the record before.
    pub new: u64,
    /// Those that had more to say.
    pub grown: u64,
    /// Those of which everything was there.
    pub unchanged: u64,
    /// Those that went another way than the record knew: it has both.
    pub branched: u64,
    /// Messages added to the record.
    pub messages: u64,
    /// Calls added to the record.
    pub calls: u64,
    /// Messages of answers that were still being written, left for the next import.
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

/// How the import of a file ended.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "snake_case")]
pub enum FileOutcome {
    /// Read to its end.
    Imported,
    /// Nothing to import in it.
    Skipped(String),
    /// It could not be read on from some point; what came before is in the record.
    Failed(String),
}

/// What was done with one file.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// The program it is from, once that is known.
    pub program: Option<&'static str>,
    /// What became of its conversations.
    pub counts: ImportCounts,
    /// Lines that could not be read, and the like.
    pub notes: Vec<Note>,
    /// How it ended.
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

/// What an import did.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct ImportReport {
    /// File by file, in the order in which they were done.
    pub files: Vec<FileReport>,
}

impl ImportReport {
    /// Everything together.
    #[must_use]
    pub fn totals(&self) -> ImportCounts {
        self.files.iter().fold(ImportCounts::default(), |mut sum, file| {
            sum += file.counts;
            sum
        })
    }

    /// Files that could not be read to their end.
    pub fn failures(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.files.iter().filter_map(|file| match &file.outcome {
            FileOutcome::Failed(reason) => Some((file.path.as_path(), reason.as_str())),
            FileOutcome::Imported | FileOutcome::Skipped(_) => None,
        })
    }

    /// How many files had nothing to import.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.files.iter().filter(|file| matches!(file.outcome, FileOutcome::Skipped(_))).count()
    }
}
