//! What the record has of a session, and what is only in memory so far.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use throughline_store::{NewCall, NewMessage, PreambleId, Session, SessionId, StoreError, Summary, Version};
use tokio::task::JoinHandle;

use super::record::ConversationLock;
use super::setup::History;
use crate::limits::in_use::LimitsInUse;
use crate::prompt::tool_output::StoredOutput;

/// A write whose end has not been seen yet.
pub(super) enum PendingWrite {
    /// What was not recorded is being appended.
    Append(JoinHandle<Result<Version, StoreError>>),
    /// The conversation is being moved on to another session.
    Move(JoinHandle<Result<SessionMove, StoreError>>),
    /// The record has what the view in memory has not.
    Ahead,
}

/// A message that the record does not have yet.
#[derive(Clone)]
pub(super) struct PendingMessage {
    pub(super) new: NewMessage,
    /// Results of it that are kept as artifacts.
    pub(super) set_aside: Vec<StoredOutput>,
}

/// The session a conversation was moved on to, and its new summary, if it has one.
pub(super) type SessionMove = (Session, Option<Summary>);

/// The copy of a version of the record, and everything that is not written yet.
pub(super) struct Persistence {
    /// The version of the record that the view is a copy of, without what is unrecorded.
    pub(super) version: Version,
    /// How often the conversation became a branch.
    pub(super) branchings: u32,
    pub(super) history: History,
    /// Messages that could not be written to the record yet, the last of the view.
    pub(super) unrecorded: Vec<PendingMessage>,
    /// Calls that could not be booked yet, with the sessions they were made for.
    pub(super) unbooked: Vec<(SessionId, NewCall)>,
    pub(super) write: Option<PendingWrite>,
    /// The limits as the record has them.
    pub(super) stored_limits: Option<LimitsInUse>,
    pub(super) stored_preambles: HashSet<PreambleId>,
    /// The name of the access token that calls are booked under from now on; those for notes too.
    pub(super) access_token: Arc<Mutex<Option<String>>>,
    /// The lock of the conversation, where it lasts as long as the session is open.
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

    /// The name of the access token that a call is booked under.
    pub(super) fn token_name(access_token: &Mutex<Option<String>>) -> Option<String> {
        access_token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the record has everything.
    pub(super) fn is_written(&self) -> bool {
        self.unrecorded.is_empty() && self.unbooked.is_empty() && self.write.is_none()
    }
}
