//! The possible findings of a check, with their meanings and remedies.

use std::fmt;
use std::path::PathBuf;

use crate::artifacts::artifact::ArtifactId;
use crate::ids::SessionId;
use crate::sessions::lock::LockRecord;

/// A problem of a record. Lists name the first few items; counts cover all.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecordProblem {
    /// There is no record yet.
    NoRecord {
        /// The expected path.
        path: PathBuf,
    },
    /// The database is missing, but its journal or its artifacts exist.
    MissingDatabase {
        /// The expected path.
        path: PathBuf,
    },
    /// The file is not, or no longer, a database.
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// SQLite's message.
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
        /// The newest supported version.
        known: i64,
    },
    /// The database was written by an older version and has not been opened since.
    OldSchema {
        /// Its version.
        found: i64,
        /// The newest supported version.
        known: i64,
    },
    /// A file cannot be read.
    Inaccessible {
        /// The file.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// Pages of the database are damaged.
    Damage {
        /// SQLite's messages.
        problems: Vec<String>,
    },
    /// Others than the owner may read or write files.
    OpenToOthers {
        /// Number of files and folders.
        count: u64,
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// Recorded artifacts are missing or damaged.
    LostArtifacts {
        /// Their number.
        count: u64,
        /// The artifacts.
        artifacts: Vec<LostArtifact>,
    },
    /// Artifacts without references.
    OrphanedArtifacts {
        /// Their number.
        count: u64,
        /// Size of their files.
        bytes: u64,
        /// The artifacts.
        artifacts: Vec<ArtifactId>,
    },
    /// Files left by a process that died.
    AbandonedFiles {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// Unexpected files in the folder of artifacts.
    StrangeFiles {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// Sessions that ended by a compaction without a successor.
    DeadEnds {
        /// Their number.
        count: u64,
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// Sessions with a missing parent.
    LostParents {
        /// Their number.
        count: u64,
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// Sessions with a wrong position in the tree.
    WrongLinks {
        /// Their number.
        count: u64,
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// Views with missing messages, or that do not grow with their session.
    BrokenViews {
        /// Their number.
        count: u64,
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// Sessions whose counters differ from their messages and calls.
    WrongCounters {
        /// Their number.
        count: u64,
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// Missing messages.
    LostMessages {
        /// Their number.
        count: u64,
        /// Their sessions.
        sessions: Vec<SessionId>,
    },
    /// Messages that two gateways on one home recorded twice.
    DoubledMessages {
        /// The number of copies.
        count: u64,
        /// Their sessions.
        sessions: Vec<SessionId>,
    },
    /// Messages with damaged bytes.
    UnreadableMessages {
        /// Their number.
        count: u64,
        /// The locations of the first few.
        places: Vec<MessageLocation>,
    },
    /// Rows without a session.
    OrphanedRows {
        /// Their number.
        count: u64,
        /// Their tables.
        tables: Vec<String>,
    },
    /// Nodes that are inconsistent with the nodes they include.
    BrokenNodes {
        /// Their number.
        count: u64,
        /// The nodes with their problems.
        problems: Vec<String>,
    },
    /// Calls with a missing preamble.
    LostPreambles {
        /// The number of preambles.
        count: u64,
    },
    /// The search index differs from the messages and artifacts.
    SearchIndex {
        /// Number of texts that are not, or wrongly, covered.
        missing: u64,
        /// Number of entries of missing texts.
        surplus: u64,
    },
    /// Locks of dead or late processes.
    StaleLocks {
        /// The locks.
        locks: Vec<LockRecord>,
    },
}

/// An artifact with an unreadable text.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LostArtifact {
    /// The artifact.
    pub id: ArtifactId,
    /// `missing`, or the damage.
    pub problem: String,
    /// The expected path of its file.
    pub path: PathBuf,
    /// Sessions that refer to it.
    pub sessions: Vec<SessionId>,
    /// Number of messages that cannot be read without it.
    pub messages: u64,
}

/// The location of a message.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MessageLocation {
    /// The session.
    pub session: SessionId,
    /// The position in it.
    pub seq: u64,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For information.
    Notice,
    /// Nothing is lost, but something does not work properly.
    Warning,
    /// Something is lost, or the record cannot be used.
    Serious,
}

/// The remedy of a finding.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// A repair fixes it.
    Mend(&'static str),
    /// The user has to fix it.
    ByHand(&'static str),
    /// Nothing needs to be done, or nothing can be.
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
    /// Returns the severity.
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

    /// Returns the meaning for the user.
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

    /// Returns the remedy.
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

    /// Whether a repair fixes it.
    #[must_use]
    pub fn is_mendable(&self) -> bool {
        matches!(self.remedy(), Remedy::Mend(_))
    }
}
