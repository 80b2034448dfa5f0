//! What an operator does to a record as a whole: removing what has become old or garbage, and everything of one owner.
//!
//! Decisions are here, statements with the engines. Each step is a transaction of its own, so that others go on writing
//! meanwhile and a job that was interrupted goes on when it is run again. Not for: what owners do to their conversations.

use std::collections::BTreeMap;

use crate::artifacts::garbage::{GarbageOptions, GarbageReport};
use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::guard::{Guard, GuardScope};
use crate::sqlite::StoreProgress;
use crate::store::{Dependants, Store};

const DAY_MS: Millis = 86_400_000;
/// Guards of this name are what operators did, in order.
pub(crate) const ACTION: &str = "operator_action ";

/// How long conversations stay after the last thing was said in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Days, for owners without a policy of their own; `None` for ever.
    pub days: Option<u64>,
    /// The same for some owners.
    pub owners: BTreeMap<String, Option<u64>>,
}

impl RetentionPolicy {
    /// Whether anything is to be removed at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.days.is_none() && self.owners.values().all(Option::is_none)
    }

    /// What was last active before this time goes; `None` where everything stays.
    fn cutoff(&self, owner: &Owner, now_ms: Millis) -> Option<Millis> {
        let days = self.owners.get(owner.as_str()).copied().unwrap_or(self.days)?;
        Some(now_ms.saturating_sub(Millis::try_from(days).ok()?.saturating_mul(DAY_MS)))
    }

    /// Everything that is last active before this time may be affected.
    fn latest_cutoff(&self, now_ms: Millis) -> Option<Millis> {
        let days = self.owners.values().copied().chain([self.days]).flatten().min()?;
        Some(now_ms.saturating_sub(Millis::try_from(days).ok()?.saturating_mul(DAY_MS)))
    }
}

/// A conversation with its branches, sub-agents and side calls: what stays or goes as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleTree {
    /// Whose it is.
    pub owner: Owner,
    /// The session that all others hang on.
    pub root: SessionId,
    /// When the last thing was said in any of them.
    pub active_ms: Millis,
    /// Sessions.
    pub sessions: u64,
    /// Messages.
    pub messages: u64,
}

/// What retention or the erasure of an owner removed, or would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RemovalReport {
    /// Conversations with all that hangs on them.
    pub conversations: u64,
    /// Their sessions.
    pub sessions: u64,
    /// Their messages.
    pub messages: u64,
}

impl RemovalReport {
    fn add(&mut self, tree: &IdleTree) {
        self.conversations += 1;
        self.sessions += tree.sessions;
        self.messages += tree.messages;
    }
}

/// What an operator did to the record, as noted in it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OperatorAction {
    /// `retention`, `export-owner` or `erase-owner`.
    pub action: String,
    /// To whose data; empty where it was not about one owner.
    pub owner: String,
    /// When.
    pub at_ms: Millis,
    /// The user and machine, as far as known.
    pub by: String,
    /// Conversations that were concerned.
    pub conversations: u64,
    /// Messages that were concerned.
    pub messages: u64,
}

/// A record that can be looked after by an operator.
pub trait StoreUpkeep: Store {
    /// Removes what nobody refers to from the place of large texts, if they have one of their own.
    fn collect_garbage(
        &self,
        options: &GarbageOptions,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<GarbageReport>;
    /// Conversations of all owners that were last active before a time.
    fn idle_trees(&self, before_ms: Millis) -> Result<Vec<IdleTree>>;
    /// Every session of an owner, in order of opening.
    fn sessions_of(&self, owner: &Owner) -> Result<Vec<SessionId>>;
    /// Whether everything of a conversation was last active before a time, while nobody writes to it; then it is deleted.
    fn delete_idle(&self, tree: &IdleTree, before_ms: Millis) -> Result<bool>;
    /// Removes what is left of an owner without sessions: artifacts in a place of their own, preambles that only their calls
    /// named, and traces in the index and in free space, as far as the engine has any.
    fn erase_rest(&self, owner: &Owner, left: &OwnerTraces) -> Result<()>;
    /// What [`erase_rest`](Self::erase_rest) has to know from before the sessions went.
    fn traces_of(&self, owner: &Owner) -> Result<OwnerTraces>;
    /// What operators did, oldest first.
    fn actions(&self) -> Result<Vec<OperatorAction>>;
}

/// What an owner's sessions refer to and may be the last to refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerTraces {
    /// Preambles of their calls.
    pub(crate) preambles: Vec<String>,
    /// Names of their large texts.
    pub(crate) artifacts: Vec<String>,
}

impl RetentionPolicy {
    /// Removes what it says is to go; counts only, in a dry run. Before each conversation `go_on` is asked, whose failure
    /// ends it.
    pub fn apply(
        &self,
        store: &dyn StoreUpkeep,
        now_ms: Millis,
        is_dry_run: bool,
        go_on: &mut dyn FnMut(StoreProgress) -> Result<()>,
    ) -> Result<RemovalReport> {
        let mut report = RemovalReport::default();
        let Some(latest) = self.latest_cutoff(now_ms) else { return Ok(report) };
        let trees = store.idle_trees(latest)?;
        for (done, tree) in (0..).zip(&trees) {
            go_on(StoreProgress { what: "removing old conversations", done, total: trees.len() as u64 })?;
            let Some(cutoff) = self.cutoff(&tree.owner, now_ms) else { continue };
            if tree.active_ms < cutoff && (is_dry_run || store.delete_idle(tree, cutoff)?) {
                report.add(tree);
            }
        }
        Ok(report)
    }
}

impl dyn StoreUpkeep + '_ {
    /// Deletes everything of an owner.
    pub fn erase_owner(
        &self,
        owner: &Owner,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<RemovalReport> {
        let mut report = RemovalReport::default();
        let traces = self.traces_of(owner)?;
        let all = self.idle_trees(Millis::MAX)?;
        let trees: Vec<IdleTree> = all.into_iter().filter(|tree| tree.owner == *owner).collect();
        for (done, tree) in (0..).zip(&trees) {
            progress(StoreProgress { what: "erasing", done, total: trees.len() as u64 });
            match self.delete(owner, &tree.root, Dependants::Delete) {
                Ok(_) => report.add(tree),
                Err(StoreError::UnknownSession { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        self.erase_rest(owner, &traces)?;
        Ok(report)
    }
}

impl OperatorAction {
    /// Notes it in the record.
    pub fn note(&self, store: &dyn Store) -> Result<()> {
        let value = serde_json::to_value(self).map_err(|error| StoreError::Database {
            what: "writing a value as JSON",
            source: Box::new(error),
        })?;
        let hash = blake3::hash(value.to_string().as_bytes()).to_hex();
        let name = format!("{ACTION}{:015} {}", self.at_ms.max(0), &hash.as_str()[..8]);
        let guard = Guard { name: name.clone(), value, set_ms: self.at_ms, expires_ms: None };
        store.set_guard(&GuardScope::Global, &name, Some(&guard))
    }
}

#[cfg(test)]
#[path = "upkeep_tests.rs"]
mod tests;
