//! The errors of the store.

use std::path::PathBuf;

use crate::artifacts::artifact::ArtifactId;
use crate::ids::SessionId;
use crate::sessions::lock::Holder;

/// Result of an operation on the record.
pub type Result<T> = std::result::Result<T, StoreError>;

/// What kept an operation from being carried out. Nothing is half done: a failed operation has changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// This kind of store cannot do that.
    #[error("this store does not support {what}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
    },
    /// No session by this id, prefix or title, for this owner.
    #[error("there is no session `{reference}`")]
    UnknownSession {
        /// What was asked for.
        reference: String,
    },
    /// Several sessions fit a shortened id or a title.
    #[error("`{reference}` matches {} sessions", candidates.len())]
    AmbiguousSession {
        /// What was asked for.
        reference: String,
        /// Ids that fit, newest first (at most twenty).
        candidates: Vec<SessionId>,
    },
    /// A session of this id is there already.
    #[error("session {id} exists already")]
    SessionExists {
        /// The id.
        id: SessionId,
    },
    /// Words were to be added to a session that has ended.
    #[error("session {id} has ended ({reason}); {}", successor_words(.successor.as_ref()))]
    SessionEnded {
        /// The session.
        id: SessionId,
        /// Why it ended.
        reason: String,
        /// Where its conversation goes on.
        successor: Option<SessionId>,
    },
    /// The conversation is not at the version it was expected to be at: another process wrote to it. Nothing was written.
    #[error("the conversation of session {id} was changed by another writer; its newest session is {tip}")]
    VersionConflict {
        /// The session that was to be written to.
        id: SessionId,
        /// The newest session of the conversation.
        tip: SessionId,
    },
    /// A conversation cannot be made to hang on another.
    #[error("session {id} cannot be attached to {parent}: {problem}")]
    NotAttached {
        /// The session.
        id: SessionId,
        /// What it should hang on.
        parent: SessionId,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A view names a message that is not in the record.
    #[error("message {seq} of session {session} is not in the record")]
    UnknownMessage {
        /// The session.
        session: SessionId,
        /// The place in it.
        seq: u64,
    },
    /// No summary of this number, for this owner.
    #[error("there is no summary {id}")]
    UnknownSummary {
        /// What was asked for.
        id: u64,
    },
    /// What should name a node does not.
    #[error("`{text}` is not a node id; node ids look like `n12`")]
    NoNodeId {
        /// What was given.
        text: String,
    },
    /// A view that was to be kept cannot be.
    #[error("the view cannot be stored: {problem}")]
    ViewRefused {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The earlier view would not fit the window.
    #[error(
        "the earlier view with all messages since needs {needed_tokens} tokens; the limit is {limit_tokens}"
    )]
    DoesNotFit {
        /// Size of the view that was asked for.
        needed_tokens: u64,
        /// What it had to fit.
        limit_tokens: u64,
    },
    /// There is no compaction to undo, or none that was undone.
    #[error("{what}")]
    NothingToSelect {
        /// The whole sentence.
        what: &'static str,
    },
    /// Other conversations hang on the one that was to be deleted.
    #[error("{} other sessions depend on session {id}", dependants.len())]
    HasDependants {
        /// The session.
        id: SessionId,
        /// What hangs on it.
        dependants: Vec<SessionId>,
    },
    /// No artifact by this id, for this owner.
    #[error("there is no artifact `{id}`")]
    UnknownArtifact {
        /// What was asked for.
        id: String,
    },
    /// Several artifacts fit a shortened name.
    #[error("`{id}` matches {} artifacts", candidates.len())]
    AmbiguousArtifact {
        /// What was asked for.
        id: String,
        /// Names that fit (at most twenty).
        candidates: Vec<ArtifactId>,
    },
    /// The record knows the artifact, but its file is not there or not what it was.
    #[error("the file of artifact {id} is {problem}: {}", path.display())]
    ArtifactDamaged {
        /// The artifact.
        id: String,
        /// `missing` or what else is wrong.
        problem: String,
        /// Where it should be.
        path: PathBuf,
    },
    /// The lock under which something was made was released or taken over before it was written. Nothing was written.
    #[error("{name} was taken over by another process before the change was written")]
    LeaseLost {
        /// What was locked.
        name: String,
    },
    /// Somebody else holds a lock.
    #[error("{name} is locked by {holder}")]
    Locked {
        /// What is locked.
        name: String,
        /// Who holds it.
        holder: Holder,
    },
    /// The file is a database of another program, or none at all.
    #[error("{} is not a Throughline record: {problem}", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What it is.
        problem: String,
    },
    /// The database was written by a newer version.
    #[error("{} has schema version {found}; this version of Throughline supports versions up to {known}", path.display())]
    FutureSchema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest we know.
        known: i64,
    },
    /// The file is damaged.
    #[error("the record {} is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        problem: String,
    },
    /// The disk is full.
    #[error("no space left on the disk of the record ({})", path.display())]
    DiskFull {
        /// The file or folder.
        path: PathBuf,
    },
    /// Vectors could not be made.
    #[error("the embedding model failed: {0}")]
    Embedding(String),
    /// The file or its folder cannot be written.
    #[error("the record {} cannot be written: {problem}", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Another process kept the database locked for longer than we wait.
    #[error("the record {} is locked by another process", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// A record was not copied, or the copy is not the same.
    #[error("the record was not copied: {problem}")]
    NotCopied {
        /// What is wrong.
        problem: String,
    },
    /// An address of a record cannot be read.
    #[error("the address of the record cannot be used: {problem}")]
    BadAddress {
        /// What is wrong with it. Never holds a password.
        problem: String,
    },
    /// A place for large texts cannot be used, whatever it answers.
    #[error("the place for large texts cannot be used: {problem}")]
    BadArtifactPlace {
        /// What is wrong with it. Never holds credentials.
        problem: String,
    },
    /// The place for large texts does not answer, or refuses to.
    #[error("the place for large texts, {place}, cannot be used: {problem}")]
    ArtifactsUnreachable {
        /// Its address without settings.
        place: String,
        /// What the service or the network reported, and what to do.
        problem: String,
    },
    /// The server of the record does not answer, or refuses to.
    #[error("the record at {server} cannot be reached: {problem}")]
    Unreachable {
        /// Its address without password.
        server: String,
        /// What the server or the network reported.
        problem: String,
    },
    /// A file could not be read or written.
    #[error("{what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// The database refused, for a reason none of the above.
    #[error("the database refused {what}")]
    Database {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn successor_words(successor: Option<&SessionId>) -> String {
    successor.map_or_else(|| "it has no successor".to_owned(), |id| format!("it continues in {id}"))
}
