//! The history of a conversation: the sessions of its transcript, and the position at which each started.

use std::collections::HashSet;

use serde::Serialize;

use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};
use crate::message::StoredMessage;
use crate::sessions::session::{EndReason, LinkKind, Session};
use crate::store::Store;
use crate::views::item::ViewMessage;
use crate::views::summary::{MessageRun, Summary};

/// The maximum number of candidates named by a store; there may be more.
const ALL_CANDIDATES: usize = 20;

/// A change of a conversation's view.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ViewChange {
    /// The cause: `compression`, `undo`, `redo`, `branch`, or another end reason of the session.
    pub kind: String,
    /// The message before which it occurred.
    pub at_seq: u64,
    /// The time of the change.
    pub at_ms: Millis,
    /// The session that ended or was branched off.
    pub from: Option<SessionId>,
    /// The session that continues.
    pub to: SessionId,
    /// The author of the summary, or the program that made the compaction.
    pub author: Option<String>,
    /// Number of messages in the view before.
    pub messages_before: Option<u64>,
    /// Number of messages in the view after.
    pub messages_after: Option<u64>,
    /// Tokens of the view before.
    pub tokens_before: Option<u64>,
    /// Tokens of the view after.
    pub tokens_after: Option<u64>,
    /// The retained entries in the notes, as the compaction reported them.
    pub notes: Option<serde_json::Value>,
}

impl ViewChange {
    /// Whether it is a compaction.
    #[must_use]
    pub fn is_compaction(&self) -> bool {
        self.kind == EndReason::COMPRESSION.as_str()
    }

    /// Whether it is a compaction without recorded figures.
    #[must_use]
    pub fn needs_figures(&self) -> bool {
        self.is_compaction() && self.tokens_before.is_none()
    }

    /// Computes the figures from the views. A view that starts with the next message has none of its own.
    pub fn measure(&mut self, before: &[ViewMessage], after: &[ViewMessage]) {
        let tokens = |view: &[ViewMessage]| view.iter().map(ViewMessage::tokens).sum::<u64>();
        self.messages_before = Some(before.len() as u64);
        self.tokens_before = Some(tokens(before));
        if !after.is_empty() {
            self.messages_after = Some(after.len() as u64);
            self.tokens_after = Some(tokens(after));
        }
    }
}

impl Session {
    /// Finds a session by its id, a unique prefix, its title or `last`. A prefix that matches only sessions of one conversation means the
    /// newest of them.
    pub fn find(store: &dyn Store, owner: &Owner, reference: &str) -> Result<Session> {
        let (reference, candidates) = match store.resolve(owner, reference) {
            Err(StoreError::AmbiguousSession { reference, candidates }) => (reference, candidates),
            found => return found,
        };
        let sessions =
            candidates.iter().map(|id| store.session(owner, id)).collect::<Result<Vec<Session>>>()?;
        let is_one = sessions.windows(2).all(|pair| matches!(pair, [a, b] if a.chain == b.chain));
        match sessions.into_iter().max_by_key(|session| session.ordinal) {
            Some(newest) if is_one && candidates.len() < ALL_CANDIDATES => Ok(newest),
            _ => Err(StoreError::AmbiguousSession { reference, candidates }),
        }
    }

    /// Finds the newest session of the conversation that a reference names.
    pub fn find_tip(store: &dyn Store, owner: &Owner, reference: &str) -> Result<Session> {
        let session = Session::find(store, owner, reference)?;
        let chain = store.chain(owner, &session.id)?;
        Ok(chain.into_iter().next_back().unwrap_or(session))
    }
}

/// Returns the sessions of a transcript, oldest first, following the links that share messages.
fn lineage(store: &dyn Store, owner: &Owner, session: &Session) -> Result<Vec<Session>> {
    let mut lineage = vec![session.clone()];
    let mut seen: HashSet<SessionId> = HashSet::from([session.id.clone()]);
    while let Some(link) = lineage.last().and_then(|session| session.link.clone()) {
        if !link.kind.shares_messages() || !seen.insert(link.parent.clone()) {
            break;
        }
        match store.session(owner, &link.parent) {
            Ok(parent) => lineage.push(parent),
            // It may have been deleted; the rest is shown.
            Err(StoreError::UnknownSession { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    lineage.reverse();
    Ok(lineage)
}

impl Session {
    /// Returns a part of a session's transcript: the messages from one position up to another. Only these are read.
    pub fn transcript_part(
        &self,
        store: &dyn Store,
        owner: &Owner,
        places: std::ops::Range<u64>,
    ) -> Result<Vec<StoredMessage>> {
        let lineage = lineage(store, owner, self)?;
        let mut messages = Vec::new();
        for (at, session) in lineage.iter().enumerate() {
            // The part that a branch shares with its parent ends where it branches off.
            let link = lineage.get(at + 1).and_then(|next| next.link.as_ref());
            let end = link.map_or(session.next_seq, |link| link.leaves_at.min(session.next_seq));
            let run = MessageRun {
                session: session.id.clone(),
                first_seq: places.start.max(session.first_seq),
                end_seq: places.end.min(end),
            };
            if run.first_seq < run.end_seq {
                messages.extend(store.messages_of_run(owner, &run)?);
            }
        }
        Ok(messages)
    }
}

impl ViewChange {
    /// Returns the view changes of a session's conversation, oldest first. A compaction without recorded figures is measured by the views
    /// before and after it.
    pub fn all(store: &dyn Store, owner: &Owner, session: &Session) -> Result<Vec<ViewChange>> {
        let lineage = lineage(store, owner, session)?;
        let mut chains: HashSet<u64> = HashSet::new();
        let mut summaries = Vec::new();
        for session in lineage.iter().filter(|session| chains.insert(session.chain)) {
            summaries.extend(store.summaries(owner, &session.id)?);
        }
        let mut view_changes = ViewChange::along(&lineage, &summaries);
        let pairs = lineage.iter().zip(lineage.iter().skip(1));
        for (turning, (before, after)) in view_changes.iter_mut().zip(pairs) {
            if turning.needs_figures() {
                let before = store.view(owner, &before.id, None)?;
                turning.measure(&before, &store.view(owner, &after.id, Some(after.first_seq))?);
            }
        }
        Ok(view_changes)
    }
}

impl ViewChange {
    /// Returns the view changes of a lineage, from the sessions and summaries.
    #[must_use]
    pub fn along(lineage: &[Session], summaries: &[Summary]) -> Vec<ViewChange> {
        let pairs = lineage.iter().zip(lineage.iter().skip(1));
        pairs
            .map(|(before, after)| {
                let summary = summaries.iter().find(|summary| summary.session == after.id);
                let figure = |path: &str| summary.and_then(|summary| summary.figures.pointer(path)?.as_u64());
                let is_branch = after.link.as_ref().is_some_and(|link| link.kind != LinkKind::Continuation);
                let ended = before.end_reason.as_ref().map_or("continuation", |reason| reason.as_str());
                let kind = if is_branch { "branch" } else { ended };
                let author = summary.map(|summary| summary.author.clone());
                let is_compaction = kind == EndReason::COMPRESSION.as_str();
                ViewChange {
                    author: author.or_else(|| is_compaction.then(|| before.origin.program.clone())),
                    kind: kind.to_owned(),
                    at_seq: after.first_seq,
                    at_ms: after.started_ms,
                    from: Some(before.id.clone()),
                    to: after.id.clone(),
                    messages_before: figure("/messages/before"),
                    messages_after: figure("/messages/after"),
                    tokens_before: figure("/tokens/before"),
                    tokens_after: figure("/tokens/after"),
                    notes: summary
                        .and_then(|summary| summary.figures.get("notes"))
                        .filter(|notes| notes.is_object())
                        .cloned(),
                }
            })
            .collect()
    }
}
