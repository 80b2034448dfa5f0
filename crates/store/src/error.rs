//! The errors of the store.

use std::path::PathBuf;

use crate::artifacts::artifact::ArtifactId;
use crate::ids::SessionId;
use crate::sessions::lock::Holder;

/// Result of an operation on the record.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Why an operation failed. A failed operation has changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store does not support the operation.
    #[error("this store does not support {what}")]
    Unsupported {
        /// The operation.
        what: &'static str,
    },
    /// No session of this owner has this id, prefix or title.
    #[error("there is no session `{reference}`")]
    UnknownSession {
        /// The id, prefix or title.
        reference: String,
    },
    /// Several sessions match a shortened id or a title.
    #[error("`{reference}` matches {} sessions", candidates.len())]
    AmbiguousSession {
        /// The id, prefix or title.
        reference: String,
        /// Matching ids, newest first (at most twenty).
        candidates: Vec<SessionId>,
    },
    /// A session with this id exists already.
    #[error("session {id} exists already")]
    SessionExists {
        /// The id.
        id: SessionId,
    },
    /// Messages cannot be appended to a session that has ended.
    #[error("session {id} has ended ({reason}); {}", successor_words(.successor.as_ref()))]
    SessionEnded {
        /// The session.
        id: SessionId,
        /// Why it ended.
        reason: String,
        /// The session that continues its conversation.
        successor: Option<SessionId>,
    },
    /// The conversation is not at the expected version: another process wrote to it. Nothing was written.
    #[error("the conversation of session {id} was changed by another writer; its newest session is {tip}")]
    VersionConflict {
        /// The session to write to.
        id: SessionId,
        /// The newest session of the conversation.
        tip: SessionId,
    },
    /// A conversation cannot be attached to another.
    #[error("session {id} cannot be attached to {parent}: {problem}")]
    NotAttached {
        /// The session.
        id: SessionId,
        /// The session to attach it to.
        parent: SessionId,
        /// The reason.
        problem: &'static str,
    },
    /// A view refers to a message that is not in the record.
    #[error("message {seq} of session {session} is not in the record")]
    UnknownMessage {
        /// The session.
        session: SessionId,
        /// The position in it.
        seq: u64,
    },
    /// No summary of this owner has this id.
    #[error("there is no summary {id}")]
    UnknownSummary {
        /// The id.
        id: u64,
    },
    /// A text is not a node id.
    #[error("`{text}` is not a node id; node ids look like `n12`")]
    NoNodeId {
        /// The text.
        text: String,
    },
    /// A view cannot be stored.
    #[error("the view cannot be stored: {problem}")]
    ViewRefused {
        /// The reason.
        problem: &'static str,
    },
    /// The earlier view would not fit the window.
    #[error(
        "the earlier view with all messages since needs {needed_tokens} tokens; the limit is {limit_tokens}"
    )]
    DoesNotFit {
        /// Size of the earlier view.
        needed_tokens: u64,
        /// The limit.
        limit_tokens: u64,
    },
    /// There is no compaction to undo or redo.
    #[error("{what}")]
    NothingToSelect {
        /// The whole message.
        what: &'static str,
    },
    /// Other conversations depend on the session to delete.
    #[error("{} other sessions depend on session {id}", dependants.len())]
    HasDependants {
        /// The session.
        id: SessionId,
        /// The sessions that depend on it.
        dependants: Vec<SessionId>,
    },
    /// No artifact of this owner has this id.
    #[error("there is no artifact `{id}`")]
    UnknownArtifact {
        /// The id.
        id: String,
    },
    /// Several artifacts match a shortened name.
    #[error("`{id}` matches {} artifacts", candidates.len())]
    AmbiguousArtifact {
        /// The shortened name.
        id: String,
        /// Matching names (at most twenty).
        candidates: Vec<ArtifactId>,
    },
    /// The file of a recorded artifact is missing or damaged.
    #[error("the file of artifact {id} is {problem}: {}", path.display())]
    ArtifactDamaged {
        /// The artifact.
        id: String,
        /// `missing`, or the damage.
        problem: String,
        /// The path of the file.
        path: PathBuf,
    },
    /// The lock for a write was released or taken over before the write. Nothing was written.
    #[error("{name} was taken over by another process before the change was written")]
    LeaseLost {
        /// What the lock protects.
        name: String,
    },
    /// Another process holds a lock.
    #[error("{name} is locked by {holder}")]
    Locked {
        /// What the lock protects.
        name: String,
        /// The holder.
        holder: Holder,
    },
    /// The file is not a database, or one of another program.
    #[error("{} is not a Throughline record: {problem}", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What the file is.
        problem: String,
    },
    /// The database was written by a newer version.
    #[error("{} has schema version {found}; this version of Throughline supports versions up to {known}", path.display())]
    FutureSchema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest supported version.
        known: i64,
    },
    /// The file is damaged.
    #[error("the record {} is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        problem: String,
    },
    /// The disk is full.
    #[error("no space left on the disk of the record ({})", path.display())]
    DiskFull {
        /// The file or folder.
        path: PathBuf,
    },
    /// The embedding model failed to make vectors.
    #[error("the embedding model failed: {0}")]
    Embedding(String),
    /// The file or its folder cannot be written.
    #[error("the record {} cannot be written: {problem}", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// Another process kept the database locked beyond the time limit.
    #[error("the record {} is locked by another process", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// A record was not copied, or the copy differs.
    #[error("the record was not copied: {problem}")]
    NotCopied {
        /// The reason.
        problem: String,
    },
    /// The address of a record is invalid.
    #[error("the address of the record cannot be used: {problem}")]
    BadAddress {
        /// The problem, without a password.
        problem: String,
    },
    /// The place for large texts is invalid or cannot be used.
    #[error("the place for large texts cannot be used: {problem}")]
    BadArtifactPlace {
        /// The problem, without credentials.
        problem: String,
    },
    /// The place for large texts does not respond, or refuses requests.
    #[error("the place for large texts, {place}, cannot be used: {problem}")]
    ArtifactsUnreachable {
        /// Its address without settings.
        place: String,
        /// The error of the service or the network, and what to do.
        problem: String,
    },
    /// The server of the record does not respond, or refuses connections.
    #[error("the record at {server} cannot be reached: {problem}")]
    Unreachable {
        /// Its address without password.
        server: String,
        /// The error of the server or the network.
        problem: String,
    },
    /// A file could not be read or written.
    #[error("{what} {}", path.display())]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The database failed for another reason.
    #[error("the database refused {what}")]
    Database {
        /// The operation that failed.
        what: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn successor_words(successor: Option<&SessionId>) -> String {
    successor.map_or_else(|| "it has no successor".to_owned(), |id| format!("it continues in {id}"))
}
