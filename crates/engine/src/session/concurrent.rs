//! Conversations that other processes write to as well: what is in memory is a copy of one version of the record.
//!
//! The versions are compared before the copy is used ([`ManagedSession::refresh`]), and every write has the condition that
//! the record is still at that version. Of two concurrent writers, one is first. If the record owns the history, the other
//! writes after it. If the client owns the history, its call continues as a branch, because its prompt does not contain what
//! the first one wrote. So nothing is lost and nothing is recorded twice.

use std::sync::Arc;

use throughline_store::{
    Link, LinkKind, NewSession, Origin, Owner, Session, SessionId, Store, StoreError, Version,
};

use super::{Freshness, History, ManagedSession, record};
use crate::context_engine::lifecycle::BoundaryReason;

/// How often a write is retried when other writers are faster.
const WRITES_IN_A_ROW: usize = 8;

impl ManagedSession {
    /// Sets which side owns the history.
    pub fn set_history(&mut self, history: History) {
        self.persistence.history = history;
    }

    /// Whether the client owns the history.
    #[must_use]
    pub fn client_owns_history(&self) -> bool {
        matches!(self.persistence.history, History::Client { .. })
    }

    /// The version of the record that the view is a copy of.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.persistence.version
    }

    /// Compares the session with the record, and reloads it if another process wrote to the conversation. Unwritten messages
    /// are written first.
    pub async fn refresh(&mut self) -> Result<Freshness, StoreError> {
        let before = self.persistence.write.is_some().then(|| self.persistence.version.clone());
        self.write_unrecorded().await?;
        let (store, owner, id) = (Arc::clone(&self.setup.store), self.setup.owner.clone(), self.id().clone());
        let now = record::blocking(move || store.version(&owner, &id)).await?;
        if now == self.persistence.version {
            // Only a write whose end was not awaited may have reloaded the view meanwhile.
            let is_current = before.is_none_or(|before| self.persistence.version == before);
            return Ok(if is_current { Freshness::Current } else { Freshness::Reloaded });
        }
        self.reload_view().await?;
        Ok(Freshness::Reloaded)
    }

    /// Retries a write that failed because another process wrote to the conversation.
    pub(super) async fn write_after_conflict(&mut self) -> Result<(), StoreError> {
        let mut written = Ok(());
        for _ in 0..WRITES_IN_A_ROW {
            if !self.client_owns_history() || self.is_only_continued().await? {
                self.reload_view().await?;
            } else {
                self.become_branch().await?;
            }
            written = self.append_now().await;
            if !matches!(written, Err(StoreError::VersionConflict { .. })) {
                return written;
            }
        }
        written
    }

    /// Whether no message was added since the view was loaded: the conversation was only compacted, or a compaction undone.
    async fn is_only_continued(&self) -> Result<bool, StoreError> {
        let (store, owner, id) = (Arc::clone(&self.setup.store), self.setup.owner.clone(), self.id().clone());
        let now = record::blocking(move || store.version(&owner, &id)).await?;
        Ok(now.tip != self.persistence.version.tip && now.next_seq == self.persistence.version.next_seq)
    }

    /// Continues as a branch that leaves the conversation at the end of the loaded view.
    async fn become_branch(&mut self) -> Result<(), StoreError> {
        let old = self.id().clone();
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let (conversation, version) = (self.conversation.clone(), self.persistence.version.clone());
        let at_ms = self.setup.host.now_ms();
        let id = SessionId::new(at_ms, self.setup.host.random(), self.setup.policy.ids);
        let key = match &self.persistence.history {
            History::Client { branch_key } => branch_key.clone(),
            History::Record => None,
        };
        let from = self.prompt.view.session().clone();
        let opened = record::blocking(move || {
            let link = branch_link(store.as_ref(), &owner, &conversation, &from, &version)?;
            let new = NewSession {
                id,
                owner,
                link,
                started_ms: at_ms,
                model: from.model.clone(),
                title: None,
                origin: Origin { key: None, ..from.origin.clone() },
                wire_format: from.wire_format,
            };
            open_with_free_key(store.as_ref(), &new, key.as_deref())
        })
        .await?;
        self.notice(format!(
            "another process wrote to {old} at the same time; this call is recorded as the branch {}",
            opened.id
        ));
        self.persistence.version = Version { tip: opened.id.clone(), next_seq: opened.next_seq, last: None };
        self.conversation = opened.id.clone();
        self.persistence.branchings += 1;
        self.compaction.count = 0;
        self.prompt.view.set_session(opened);
        self.enter_session(BoundaryReason::Elsewhere, old).await;
        Ok(())
    }
}

/// The link of a branch to the conversation it leaves. Without a shared message it is not a branch, and gets the link of
/// the conversation itself.
fn branch_link(
    store: &dyn Store,
    owner: &Owner,
    conversation: &SessionId,
    from: &Session,
    version: &Version,
) -> Result<Option<Link>, StoreError> {
    if version.next_seq == 0 {
        return Ok(store.session(owner, conversation)?.link);
    }
    // The messages up to this position are in the record, which can only have grown since, unless it was replaced.
    let now = store.session(owner, &from.id)?;
    if now.next_seq < version.next_seq {
        return Err(StoreError::VersionConflict { id: from.id.clone(), tip: now.id });
    }
    Ok(Some(Link { parent: from.id.clone(), kind: LinkKind::Branch, leaves_at: version.next_seq }))
}

/// Opens a session under the first key that no session of its program has yet. Another process may take that key first,
/// and the next one is tried then.
fn open_with_free_key(store: &dyn Store, new: &NewSession, key: Option<&str>) -> Result<Session, StoreError> {
    for number in 1..=Session::MAX_NUMBERED {
        let Some(key) = key.map(|key| Session::numbered_key(key, number)) else { break };
        if store.session_by_origin(&new.owner, &new.origin.program, &key)?.is_some() {
            continue;
        }
        let named = NewSession { origin: Origin { key: Some(key), ..new.origin.clone() }, ..new.clone() };
        match store.open_session(named, None) {
            Err(StoreError::SessionExists { id }) if id != new.id => {}
            opened => return opened,
        }
    }
    store.open_session(new.clone(), None)
}
