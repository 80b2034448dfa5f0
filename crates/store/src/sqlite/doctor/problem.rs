//! The possible findings of a check, with their meanings and remedies.

use std::fmt;
use std::path::PathBuf;

use crate::artifacts::artifact::ArtifactId;
use crate::ids::SessionId;
use crate::sessions::lock::LockRecord;

/// Something that is not as it should be. Lists name the first few; counts count all.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecordProblem {
    /// There is no record yet.
    NoRecord {
        /// Where it would be.
        path: PathBuf,
    },
    /// The database is gone, but its journal or its artifacts are there.
    MissingDatabase {
        /// Where it should be.
        path: PathBuf,
    },
    /// The file is no database, or no longer one.
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// In the words of SQLite.
        problem: String,
    },
    /// The file is a database of another program.
    OtherProgram {
        /// The file.
        path: PathBuf,
    },
    /// The database was written by a newer version.
    FutureSchema {
        /// Its version.
        found: i64,
        /// The newest we know.
        known: i64,
    },
    /// The database was written by an older version and has not been opened since.
    OldSchema {
        /// Its version.
        found: i64,
        /// The newest we know.
        known: i64,
    },
    /// A file cannot be read.
    Inaccessible {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Pages of the database are damaged.
    Damage {
        /// In the words of SQLite.
        problems: Vec<String>,
    },
    /// Others than the owner may read or write files.
    OpenToOthers {
        /// How many files and folders.
        count: u64,
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// Artifacts the record refers to are missing or damaged.
    LostArtifacts {
        /// How many.
        count: u64,
        /// The artifacts.
        artifacts: Vec<LostArtifact>,
    },
    /// Artifacts without references.
    OrphanedArtifacts {
        /// How many.
        count: u64,
        /// Size of their files.
        bytes: u64,
        /// The artifacts.
        artifacts: Vec<ArtifactId>,
    },
    /// Files a process left behind when it died.
    AbandonedFiles {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// Files among the artifacts that are none of ours.
    StrangeFiles {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// Sessions that ended by a compaction whose successor is not there.
    DeadEnds {
        /// How many.
        count: u64,
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// Sessions whose parent is not there.
    LostParents {
        /// How many.
        count: u64,
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// Sessions whose place among others is recorded wrongly.
    WrongLinks {
        /// How many.
        count: u64,
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// Views that name messages that are not there, or do not grow with their session.
    BrokenViews {
        /// How many.
        count: u64,
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// Sessions whose counters disagree with their messages and calls.
    WrongCounters {
        /// How many.
        count: u64,
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// Messages that should be there and are not.
    LostMessages {
        /// How many.
        count: u64,
        /// Sessions they were said in.
        sessions: Vec<SessionId>,
    },
    /// Messages that two gateways on one home recorded a second time.
    DoubledMessages {
        /// How many are copies.
        count: u64,
        /// Sessions they stand in.
        sessions: Vec<SessionId>,
    },
    /// Messages whose bytes are not what was said.
    UnreadableMessages {
        /// How many.
        count: u64,
        /// Where the first few are.
        places: Vec<MessageLocation>,
    },
    /// Rows that belong to no session.
    OrphanedRows {
        /// How many.
        count: u64,
        /// Of which tables.
        tables: Vec<String>,
    },
    /// Nodes that do not hold together with what they took up.
    BrokenNodes {
        /// How many.
        count: u64,
        /// Which, and what is wrong with each.
        problems: Vec<String>,
    },
    /// Calls whose preamble is not there.
    LostPreambles {
        /// How many preambles.
        count: u64,
    },
    /// The index that searches use disagrees with the messages and artifacts.
    SearchIndex {
        /// Texts that should be covered and are not, or not as they are.
        missing: u64,
        /// Entries of texts that are not there.
        surplus: u64,
    },
    /// Locks of processes that are dead or late.
    StaleLocks {
        /// The locks.
        locks: Vec<LockRecord>,
    },
}

/// An artifact whose text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LostArtifact {
    /// The artifact.
    pub id: ArtifactId,
    /// `missing`, or what else is wrong.
    pub problem: String,
    /// Where its file should be.
    pub path: PathBuf,
    /// Sessions that refer to it.
    pub sessions: Vec<SessionId>,
    /// Messages it is a part of, which cannot be read without it.
    pub messages: u64,
}

/// Where a message is.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MessageLocation {
    /// The session.
    pub session: SessionId,
    /// The place in it.
    pub seq: u64,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Notice,
    /// Nothing is lost, but something does not work as it should.
    Warning,
    /// Something is lost, or the record cannot be used.
    Serious,
}

/// What can be done about a finding.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// Mending does this.
    Mend(&'static str),
    /// Only a person can.
    ByHand(&'static str),
    /// Nothing has to be done, or nothing can be.
    Nothing(&'static str),
}

impl fmt::Display for RecordProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRecord { path } => write!(f, "there is no record at {} yet", path.display()),
            Self::MissingDatabase { path } => write!(f, "the database {} is missing", path.display()),
            Self::NotADatabase { path, problem } => {
                write!(f, "{} is not a database: {problem}", path.display())
            }
            Self::OtherProgram { path } => write!(f, "{} is a database of another program", path.display()),
            Self::FutureSchema { found, known } => {
                write!(
                    f,
                    "the record has schema version {found}; this version supports versions up to {known}"
                )
            }
            Self::OldSchema { found, known } => {
                write!(f, "the record has schema version {found}; the newest is {known}")
            }
            Self::Inaccessible { path, problem } => write!(f, "{} cannot be read: {problem}", path.display()),
            Self::Damage { problems } => {
                write!(
                    f,
                    "the database is damaged: {}",
                    problems.first().map_or("unreadable", String::as_str)
                )
            }
            Self::OpenToOthers { count, .. } => {
                write!(f, "{count} files or folders are readable by other users")
            }
            Self::LostArtifacts { count, .. } => write!(f, "{count} artifacts are missing or damaged"),
            Self::OrphanedArtifacts { count, bytes, .. } => {
                write!(f, "nothing refers to {count} artifacts ({bytes} bytes)")
            }
            Self::AbandonedFiles { paths } => write!(f, "{} files were left behind", paths.len()),
            Self::StrangeFiles { paths } => {
                write!(f, "{} files among the artifacts are not ours", paths.len())
            }
            Self::DeadEnds { count, .. } => write!(f, "{count} compacted sessions have no successor"),
            Self::LostParents { count, .. } => {
                write!(f, "{count} sessions depend on a session that is missing")
            }
            Self::WrongLinks { count, .. } => {
                write!(f, "{count} sessions are linked wrongly")
            }
            Self::BrokenViews { count, .. } => write!(f, "{count} views do not match their messages"),
            Self::WrongCounters { count, .. } => write!(f, "the counters of {count} sessions are wrong"),
            Self::LostMessages { count, .. } => write!(f, "{count} messages are missing"),
            Self::DoubledMessages { count, .. } => write!(f, "{count} messages were recorded twice"),
            Self::UnreadableMessages { count, .. } => {
                write!(f, "{count} messages do not match their checksum")
            }
            Self::OrphanedRows { count, tables } => {
                write!(f, "{count} rows belong to no session ({})", tables.join(", "))
            }
            Self::BrokenNodes { count, problems } => write!(
                f,
                "{count} nodes contradict each other: {}",
                problems.first().map_or("unreadable", String::as_str)
            ),
            Self::LostPreambles { count } => write!(f, "{count} preambles of calls are missing"),
            Self::SearchIndex { missing, surplus } => {
                write!(f, "the search index lacks {missing} texts and has {surplus} too many")
            }
            Self::StaleLocks { locks } => {
                write!(f, "{} locks belong to processes that ended or are overdue", locks.len())
            }
        }
    }
}

impl RecordProblem {
    /// How bad it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::NoRecord { .. }
            | Self::OldSchema { .. }
            | Self::AbandonedFiles { .. }
            | Self::StrangeFiles { .. }
            | Self::DeadEnds { .. }
            | Self::LostPreambles { .. }
            | Self::StaleLocks { .. } => Severity::Notice,
            Self::OpenToOthers { .. }
            | Self::OrphanedArtifacts { .. }
            | Self::LostParents { .. }
            | Self::WrongLinks { .. }
            | Self::BrokenViews { .. }
            | Self::WrongCounters { .. }
            | Self::DoubledMessages { .. }
            | Self::OrphanedRows { .. }
            | Self::BrokenNodes { .. }
            | Self::SearchIndex { .. } => Severity::Warning,
            Self::MissingDatabase { .. }
            | Self::NotADatabase { .. }
            | Self::OtherProgram { .. }
            | Self::FutureSchema { .. }
            | Self::Inaccessible { .. }
            | Self::Damage { .. }
            | Self::LostArtifacts { .. }
            | Self::LostMessages { .. }
            | Self::UnreadableMessages { .. } => Severity::Serious,
        }
    }

    /// What it means for the user.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        match self {
            Self::NoRecord { .. } => "nothing has been recorded or imported",
            Self::MissingDatabase { .. } => {
                "sessions and messages cannot be read; large results may still be there"
            }
            Self::NotADatabase { .. } => {
                "the beginning of the file was overwritten, or it is some other file"
            }
            Self::OtherProgram { .. } => "it will not be touched",
            Self::FutureSchema { .. } => "an older program would misread it, so it is refused",
            Self::OldSchema { .. } => "it is brought up to date, after a backup, when it is opened next",
            Self::Inaccessible { .. } => "its contents cannot be checked",
            Self::Damage { .. } => "some of what was recorded may be unreadable; writing to it can lose more",
            Self::OpenToOthers { .. } => "other users of this machine may read or change the record",
            Self::LostArtifacts { .. } => {
                "messages with these results cannot be read completely; all others can"
            }
            Self::OrphanedArtifacts { .. } => "they only take up space: what referred to them was deleted",
            Self::AbandonedFiles { .. } => "a process died while it was writing them; nothing refers to them",
            Self::StrangeFiles { .. } => "they are left alone",
            Self::DeadEnds { .. } => "all messages are there, but the conversation has no open session",
            Self::LostParents { .. } => "the messages they shared with it are gone; their own are there",
            Self::WrongLinks { .. } => "lists and trees may show them in the wrong place",
            Self::BrokenViews { .. } => "messages are missing from what would be sent to the model",
            Self::WrongCounters { .. } => "lists show wrong totals; messages and calls themselves are right",
            Self::LostMessages { .. } => "they cannot be shown or found",
            Self::DoubledMessages { .. } => {
                "two gateways wrote to these conversations at a time when they did not notice each other; \
                 the model was shown those turns twice"
            }
            Self::UnreadableMessages { .. } => "their bytes changed on disk; they cannot be trusted",
            Self::OrphanedRows { .. } => "the sessions they belong to are gone",
            Self::BrokenNodes { .. } => {
                "expanding these nodes fails or shows the wrong messages; the messages themselves are there"
            }
            Self::LostPreambles { .. } => "these requests cannot be rebuilt exactly; their figures are right",
            Self::SearchIndex { .. } => "searches miss messages that are there",
            Self::StaleLocks { .. } => "the next process that needs them takes them over",
        }
    }

    /// What can be done about it.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::NoRecord { .. } => Remedy::Nothing("it is created when something is recorded"),
            Self::MissingDatabase { .. } => Remedy::ByHand("restore the database from a backup"),
            Self::NotADatabase { .. } => Remedy::Mend(
                "what can be read is saved into a new database; if that is nothing, restore a backup",
            ),
            Self::OtherProgram { .. } => {
                Remedy::ByHand("move the file away, or choose another home directory")
            }
            Self::FutureSchema { .. } => Remedy::ByHand("use the newer version of Throughline"),
            Self::OldSchema { .. } => Remedy::Mend("it is brought up to date"),
            Self::Inaccessible { .. } => {
                Remedy::ByHand("make it a file you can read, or choose another home directory")
            }
            Self::Damage { .. } => Remedy::Mend(
                "everything that can be read is copied into a new database; the damaged one is kept beside it",
            ),
            Self::OpenToOthers { .. } => Remedy::Mend("the permissions of other users are removed"),
            Self::LostArtifacts { .. } => {
                Remedy::ByHand("copy the files from a backup; without one the texts are lost")
            }
            Self::OrphanedArtifacts { .. } | Self::AbandonedFiles { .. } => {
                Remedy::Mend("the files are removed")
            }
            Self::StrangeFiles { .. } => Remedy::ByHand("move them somewhere else"),
            Self::DeadEnds { .. } => Remedy::Mend("those that were not imported are opened again"),
            Self::LostParents { .. } => Remedy::Nothing("they can be used as they are"),
            Self::WrongLinks { .. } => Remedy::Mend("their links are computed again"),
            Self::BrokenViews { .. } => Remedy::Mend("missing messages are left out of them"),
            Self::WrongCounters { .. } => Remedy::Mend("they are counted again"),
            Self::LostMessages { .. } => Remedy::ByHand("restore a backup if you need them"),
            Self::DoubledMessages { .. } => Remedy::ByHand(
                "nothing is deleted; go on from a message before the first copy, or begin a new conversation",
            ),
            Self::UnreadableMessages { .. } => Remedy::ByHand("restore a backup if you need them"),
            Self::OrphanedRows { .. } => {
                Remedy::Mend("messages are put into sessions of their own, everything else is removed")
            }
            Self::BrokenNodes { .. } => Remedy::Mend("they are replaced by references to their messages"),
            Self::LostPreambles { .. } => Remedy::Nothing("the requests are not stored anywhere else"),
            Self::SearchIndex { .. } => Remedy::Mend("the index is completed"),
            Self::StaleLocks { .. } => Remedy::Mend("they are removed"),
        }
    }

    /// Whether mending does something about it.
    #[must_use]
    pub fn is_mendable(&self) -> bool {
        matches!(self.remedy(), Remedy::Mend(_))
    }
}
