//! What the record has of a session, and what is only in memory so far.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use throughline_store::{NewCall, NewMessage, PreambleId, Session, SessionId, StoreError, Summary, Version};
use tokio::task::JoinHandle;

use super::record::ConversationLock;
use super::setup::History;
use crate::limits::in_use::LimitsInUse;
use crate::prompt::tool_output::StoredOutput;

/// A write whose result is not known yet.
pub(super) enum PendingWrite {
    /// Unrecorded messages are being appended.
    Append(JoinHandle<Result<Version, StoreError>>),
    /// The conversation is being continued in another session.
    Move(JoinHandle<Result<SessionMove, StoreError>>),
    /// The record has changes that the view in memory does not have.
    Ahead,
}

/// A message that the record does not have yet.
#[derive(Clone)]
pub(super) struct PendingMessage {
    pub(super) new: NewMessage,
    /// Results in it that are stored as artifacts.
    pub(super) set_aside: Vec<StoredOutput>,
}

/// The session in which a conversation is continued, and its new summary, if it has one.
pub(super) type SessionMove = (Session, Option<Summary>);

/// The copy of a version of the record, and everything that is not written yet.
pub(super) struct Persistence {
    /// The version of the record that the view is a copy of, without the unrecorded messages.
    pub(super) version: Version,
    /// How often the conversation became a branch.
    pub(super) branchings: u32,
    pub(super) history: History,
    /// Messages not written to the record yet; they are the last ones of the view.
    pub(super) unrecorded: Vec<PendingMessage>,
    /// Calls not recorded yet, with their sessions.
    pub(super) unbooked: Vec<(SessionId, NewCall)>,
    pub(super) write: Option<PendingWrite>,
    /// The limits in use, as stored in the record.
    pub(super) stored_limits: Option<LimitsInUse>,
    pub(super) stored_preambles: HashSet<PreambleId>,
    /// The name of the access token under which further calls are recorded, including those for notes.
    pub(super) access_token: Arc<Mutex<Option<String>>>,
    /// The lock of the conversation, if it is held as long as the session is open.
    pub(super) lock: Option<ConversationLock>,
}

impl Persistence {
    pub(super) fn new(version: Version, lock: Option<ConversationLock>) -> Self {
        Self {
            version,
            branchings: 0,
            history: History::default(),
            unrecorded: Vec::new(),
            unbooked: Vec::new(),
            write: None,
            stored_limits: None,
            stored_preambles: HashSet::new(),
            access_token: Arc::default(),
            lock,
        }
    }

    /// Returns the name of the access token under which a call is recorded.
    pub(super) fn token_name(access_token: &Mutex<Option<String>>) -> Option<String> {
        access_token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether everything is in the record.
    pub(super) fn is_written(&self) -> bool {
        self.unrecorded.is_empty() && self.unbooked.is_empty() && self.write.is_none()
    }
}
