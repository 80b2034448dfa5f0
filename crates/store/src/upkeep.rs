//! Operations on a record as a whole: removing old conversations, garbage, and all data of one owner.
//!
//! Decisions are here, statements in the engines. Each step is a transaction of its own, so that others can write meanwhile and an
//! interrupted job continues when it is run again. Not for: operations of owners on their conversations.

use std::collections::BTreeMap;

use crate::artifacts::garbage::{GarbageOptions, GarbageReport};
use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::guard::{Guard, GuardScope};
use crate::sqlite::StoreProgress;
use crate::store::{Dependants, Store};

const DAY_MS: Millis = 86_400_000;
/// The prefix of the guards that record operators' actions, in order.
pub(crate) const ACTION: &str = "operator_action ";

/// How long conversations are stored after their last message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Days, for owners without a policy of their own; `None` for no limit.
    pub days: Option<u64>,
    /// The same for some owners.
    pub owners: BTreeMap<String, Option<u64>>,
}

impl RetentionPolicy {
    /// Whether nothing is removed at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.days.is_none() && self.owners.values().all(Option::is_none)
    }

    /// Returns the time before which idle conversations are removed; `None` if none are.
    fn cutoff(&self, owner: &Owner, now_ms: Millis) -> Option<Millis> {
        let days = self.owners.get(owner.as_str()).copied().unwrap_or(self.days)?;
        Some(now_ms.saturating_sub(Millis::try_from(days).ok()?.saturating_mul(DAY_MS)))
    }

    /// Returns the latest such time of all owners.
    fn latest_cutoff(&self, now_ms: Millis) -> Option<Millis> {
        let days = self.owners.values().copied().chain([self.days]).flatten().min()?;
        Some(now_ms.saturating_sub(Millis::try_from(days).ok()?.saturating_mul(DAY_MS)))
    }
}

/// A conversation with its branches, sub-agents and side calls, which are removed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleTree {
    /// The owner.
    pub owner: Owner,
    /// The session that all others depend on.
    pub root: SessionId,
    /// The last activity in any of them.
    pub active_ms: Millis,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of messages.
    pub messages: u64,
}

/// The data that retention or the erasure of an owner removed, or would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RemovalReport {
    /// Number of conversations, with everything that depends on them.
    pub conversations: u64,
    /// Number of their sessions.
    pub sessions: u64,
    /// Number of their messages.
    pub messages: u64,
}

impl RemovalReport {
    fn add(&mut self, tree: &IdleTree) {
        self.conversations += 1;
        self.sessions += tree.sessions;
        self.messages += tree.messages;
    }
}

/// A recorded action of an operator.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OperatorAction {
    /// `retention`, `export-owner` or `erase-owner`.
    pub action: String,
    /// The owner concerned; empty if it did not concern a single owner.
    pub owner: String,
    /// Its time.
    pub at_ms: Millis,
    /// The user and machine, as far as known.
    pub by: String,
    /// Number of conversations concerned.
    pub conversations: u64,
    /// Number of messages concerned.
    pub messages: u64,
}

/// A record that an operator can maintain.
pub trait StoreUpkeep: Store {
    /// Removes unreferenced objects from a separate place of large texts, if there is one.
    fn collect_garbage(
        &self,
        options: &GarbageOptions,
        progress: &mut dyn FnMut(StoreProgress),
    ) -> Result<GarbageReport>;
    /// Returns conversations of all owners without activity since a time.
    fn idle_trees(&self, before_ms: Millis) -> Result<Vec<IdleTree>>;
    /// Returns every session of an owner, in order of opening.
    fn sessions_of(&self, owner: &Owner) -> Result<Vec<SessionId>>;
    /// Deletes a conversation if all of it is still idle since before a time, under a lock against writes. Returns whether it was deleted.
    fn delete_idle(&self, tree: &IdleTree, before_ms: Millis) -> Result<bool>;
    /// Removes the remaining data of an owner without sessions: artifacts in a separate place, preambles that only their calls used, and
    /// traces in the index and in free space, as far as the engine has any.
    fn erase_rest(&self, owner: &Owner, left: &OwnerTraces) -> Result<()>;
    /// Returns the data that [`erase_rest`](Self::erase_rest) needs from before the sessions were deleted.
    fn traces_of(&self, owner: &Owner) -> Result<OwnerTraces>;
    /// Returns the actions of operators, oldest first.
    fn actions(&self) -> Result<Vec<OperatorAction>>;
}

/// References of an owner's sessions that may be the last ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerTraces {
    /// Ids of their calls' preambles.
    pub(crate) preambles: Vec<String>,
    /// Names of their large texts.
    pub(crate) artifacts: Vec<String>,
}

/// Removes conversations by a policy; only counts in a dry run. `go_on` is called before each conversation and ends the run by failing.
pub fn apply_retention(
    store: &dyn StoreUpkeep,
    policy: &RetentionPolicy,
    now_ms: Millis,
    is_dry_run: bool,
    go_on: &mut dyn FnMut(StoreProgress) -> Result<()>,
) -> Result<RemovalReport> {
    let mut report = RemovalReport::default();
    let Some(latest) = policy.latest_cutoff(now_ms) else { return Ok(report) };
    let trees = store.idle_trees(latest)?;
    for (done, tree) in (0..).zip(&trees) {
        go_on(StoreProgress { what: "removing old conversations", done, total: trees.len() as u64 })?;
        let Some(cutoff) = policy.cutoff(&tree.owner, now_ms) else { continue };
        if tree.active_ms < cutoff && (is_dry_run || store.delete_idle(tree, cutoff)?) {
            report.add(tree);
        }
    }
    Ok(report)
}

/// Deletes all data of an owner.
pub fn erase_owner(
    store: &dyn StoreUpkeep,
    owner: &Owner,
    progress: &mut dyn FnMut(StoreProgress),
) -> Result<RemovalReport> {
    let mut report = RemovalReport::default();
    let traces = store.traces_of(owner)?;
    let all = store.idle_trees(Millis::MAX)?;
    let trees: Vec<IdleTree> = all.into_iter().filter(|tree| tree.owner == *owner).collect();
    for (done, tree) in (0..).zip(&trees) {
        progress(StoreProgress { what: "erasing", done, total: trees.len() as u64 });
        match store.delete(owner, &tree.root, Dependants::Delete) {
            Ok(_) => report.add(tree),
            Err(StoreError::UnknownSession { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    store.erase_rest(owner, &traces)?;
    Ok(report)
}

/// Records an action of an operator.
pub fn note_action(store: &dyn Store, action: &OperatorAction) -> Result<()> {
    let value = serde_json::to_value(action)
        .map_err(|error| StoreError::Database { what: "writing a value as JSON", source: Box::new(error) })?;
    let hash = blake3::hash(value.to_string().as_bytes()).to_hex();
    let name = format!("{ACTION}{:015} {}", action.at_ms.max(0), &hash.as_str()[..8]);
    let guard = Guard { name: name.clone(), value, set_ms: action.at_ms, expires_ms: None };
    store.set_guard(&GuardScope::Global, &name, Some(&guard))
}

#[cfg(test)]
#[path = "upkeep_tests.rs"]
mod tests;
