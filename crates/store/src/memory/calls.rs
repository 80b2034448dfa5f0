//! Calls, preambles and their totals, in memory.

use std::collections::{BTreeMap, BTreeSet};

use crate::call::{
    CallFilter, NewCall, PreambleId, StoredCall, StoredPreamble, ToolCount, UsageBy, UsageKind, UsageTotal,
    miss_reason,
};
use crate::error::Result;
use crate::ids::{Millis, Owner, SessionId};
use crate::sessions::session::Session;

use super::state::MemoryState;

impl MemoryState {
    pub(super) fn record_calls(&mut self, owner: &Owner, id: &SessionId, calls: Vec<NewCall>) -> Result<u64> {
        let ordinal = self.find(owner, id)?.ordinal;
        let mut added = 0;
        for call in calls {
            if call.key.is_some()
                && self.calls.values().any(|known| known.session == *id && known.call.key == call.key)
            {
                continue;
            }
            if let Some(session) = self.sessions.get_mut(&ordinal) {
                let counters = &mut session.counters;
                counters.calls += 1;
                counters.usage += call.usage;
                match call.cost_micro_usd {
                    Some(cost) => counters.cost_micro_usd = counters.cost_micro_usd.saturating_add(cost),
                    None => counters.unpriced_calls += 1,
                }
                session.active_ms = session.active_ms.max(call.at_ms);
            }
            self.last_call += 1;
            self.calls.insert(self.last_call, StoredCall { id: self.last_call, session: id.clone(), call });
            added += 1;
        }
        Ok(added)
    }

    pub(super) fn calls_of_chain(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredCall>> {
        let members: BTreeSet<SessionId> =
            self.chain(owner, id)?.into_iter().map(|session| session.id).collect();
        Ok(self.calls.values().filter(|call| members.contains(&call.session)).cloned().collect())
    }

    pub(super) fn call_by_key(&self, owner: &Owner, key: &str) -> Option<StoredCall> {
        let is_meant = |call: &&StoredCall| {
            call.call.key.as_deref() == Some(key)
                && call.call.error.is_none()
                && self.find(owner, &call.session).is_ok()
        };
        self.calls.values().rev().find(is_meant).cloned()
    }

    pub(super) fn usage(&self, owner: &Owner, filter: &CallFilter, by: UsageBy) -> Result<Vec<UsageTotal>> {
        let chain = filter
            .chain_of
            .as_ref()
            .map(|id| self.find(owner, id).map(|session| session.chain))
            .transpose()?;
        let mut groups: BTreeMap<String, (UsageTotal, BTreeSet<u64>)> = BTreeMap::new();
        for StoredCall { session, call, .. } in self.calls.values() {
            let Ok(session) = self.find(owner, session) else { continue };
            if chain.is_some_and(|chain| session.chain != chain)
                || filter.since_ms.is_some_and(|since_ms| call.at_ms < since_ms)
                || filter.until_ms.is_some_and(|until_ms| call.at_ms >= until_ms)
            {
                continue;
            }
            let group = group_of(session, call, by);
            let (total, sessions) = groups.entry(group).or_default();
            add(total, call);
            sessions.insert(session.ordinal);
        }
        let finish = |(group, (mut total, sessions)): (String, (UsageTotal, BTreeSet<u64>))| {
            total.group = group;
            total.sessions = sessions.len() as u64;
            total
        };
        Ok(groups.into_iter().map(finish).collect())
    }

    pub(super) fn tool_counts(&self, owner: &Owner, since_ms: Option<Millis>) -> Vec<ToolCount> {
        let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (_, message) in self.messages_of(owner) {
            if since_ms.is_some_and(|since_ms| message.at_ms < since_ms) {
                continue;
            }
            for tool in &message.tools {
                let (messages, tokens) = counts.entry(tool).or_default();
                *messages += 1;
                *tokens = tokens.saturating_add(message.tokens);
            }
        }
        let mut counts: Vec<ToolCount> = counts
            .into_iter()
            .map(|(tool, (messages, tokens))| ToolCount { tool: tool.to_owned(), messages, tokens })
            .collect();
        counts
            .sort_by(|one, other| other.messages.cmp(&one.messages).then_with(|| one.tool.cmp(&other.tool)));
        counts
    }

    pub(super) fn put_preamble(&mut self, preamble: &StoredPreamble) -> PreambleId {
        let id = preamble.id();
        self.preambles.entry(id.clone()).or_insert_with(|| preamble.clone());
        id
    }
}

/// Returns the group of a call in a total.
fn group_of(session: &Session, call: &NewCall, by: UsageBy) -> String {
    match by {
        UsageBy::Everything => String::new(),
        UsageBy::Day { offset_minutes } => UsageBy::day_name(call.at_ms, offset_minutes),
        UsageBy::Model => call.model.clone(),
        UsageBy::Project => session.origin.project.clone().unwrap_or_default(),
        UsageBy::Task => call.task.clone(),
        UsageBy::Program => session.origin.program.clone(),
        UsageBy::CacheMiss => call.cache_miss.as_deref().map(miss_reason).unwrap_or_default().to_owned(),
        UsageBy::AccessToken => call.access_token.clone().unwrap_or_default(),
    }
}

fn add(total: &mut UsageTotal, call: &NewCall) {
    total.calls += 1;
    total.failed += u64::from(call.error.is_some());
    total.estimated += u64::from(call.usage_kind == UsageKind::Estimated);
    total.usage += call.usage;
    total.latency_ms = total.latency_ms.saturating_add(call.latency_ms.unwrap_or_default());
    match call.cost_micro_usd {
        Some(cost) => {
            // Without a figure of its own, the cache made no difference.
            let uncached = call.uncached_micro_usd.unwrap_or(cost);
            total.cost_micro_usd = total.cost_micro_usd.saturating_add(cost);
            total.uncached_micro_usd = total.uncached_micro_usd.saturating_add(uncached);
        }
        None => total.unpriced += 1,
    }
}
