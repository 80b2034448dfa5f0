//! Totals of calls, by the groupings that reports use.

use serde::Serialize;

use crate::call::{CallFilter, UsageBy, UsageTotal};
use crate::error::Result;
use crate::ids::Owner;
use crate::store::Store;

/// Totals of calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UsageOverview {
    /// All of them.
    pub total: UsageTotal,
    /// By model.
    pub by_model: Vec<UsageTotal>,
    /// By task.
    pub by_task: Vec<UsageTotal>,
    /// By the program of their session.
    pub by_program: Vec<UsageTotal>,
    /// By the reason why the provider's cache was not read. Calls that read it, and calls without figures, are not counted.
    pub by_cache_miss: Vec<UsageTotal>,
}

impl UsageOverview {
    /// Returns the totals of the calls that match a filter.
    pub fn of(store: &dyn Store, owner: &Owner, filter: &CallFilter) -> Result<Self> {
        let by = |by| store.usage(owner, filter, by);
        Ok(Self {
            total: by(UsageBy::Everything)?.into_iter().next().unwrap_or_default(),
            by_model: by(UsageBy::Model)?,
            by_task: by(UsageBy::Task)?,
            by_program: by(UsageBy::Program)?,
            by_cache_miss: UsageTotal::largest_misses(by(UsageBy::CacheMiss)?),
        })
    }
}

impl UsageTotal {
    /// Returns the groups of calls that missed the cache, those with the most tokens first.
    #[must_use]
    pub fn largest_misses(mut groups: Vec<UsageTotal>) -> Vec<UsageTotal> {
        groups.retain(|group| !group.group.is_empty());
        groups.sort_by_key(|group| std::cmp::Reverse((group.unread_tokens(), group.calls)));
        groups
    }
}
