//! Guards and locks of the record in memory.

use crate::error::{Result, StoreError};
use crate::ids::Millis;
use crate::sessions::guard::{Guard, GuardScope};
use crate::sessions::lock::{Holder, Lease, LockDecision, LockOutcome, LockRecord, LockRequest};

use super::state::MemoryState;

/// The key of a guard. A chain is identified by its first session, so that every member finds the guard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MemoryGuardKey {
    Chain(u64),
    Model(String, String),
    Global,
}

impl MemoryGuardKey {
    /// Whether it concerns one of these chains.
    pub(super) fn is_of(&self, chains: &std::collections::BTreeSet<u64>) -> bool {
        matches!(self, Self::Chain(chain) if chains.contains(chain))
    }
}

impl MemoryState {
    fn guard_place(&self, scope: &GuardScope) -> Result<MemoryGuardKey> {
        Ok(match scope {
            GuardScope::Chain(owner, id) => MemoryGuardKey::Chain(self.find(owner, id)?.chain),
            GuardScope::Model { endpoint, model } => MemoryGuardKey::Model(endpoint.clone(), model.clone()),
            GuardScope::Global => MemoryGuardKey::Global,
        })
    }

    pub(super) fn set_guard(&mut self, scope: &GuardScope, name: &str, guard: Option<&Guard>) -> Result<()> {
        let place = (self.guard_place(scope)?, name.to_owned());
        match guard {
            // The guard is stored under the name with which it is looked up.
            Some(guard) => self.guards.insert(place, Guard { name: name.to_owned(), ..guard.clone() }),
            None => self.guards.remove(&place),
        };
        Ok(())
    }

    pub(super) fn guard(&self, scope: &GuardScope, name: &str, now_ms: Millis) -> Result<Option<Guard>> {
        let place = (self.guard_place(scope)?, name.to_owned());
        let unexpired = |guard: &&Guard| guard.expires_ms.is_none_or(|expires_ms| now_ms < expires_ms);
        Ok(self.guards.get(&place).filter(unexpired).cloned())
    }

    pub(super) fn lock(&mut self, request: &LockRequest, is_alive: &dyn Fn(&Holder) -> bool) -> LockOutcome {
        let held = self.locks.get(&request.name).cloned();
        let renewed_since = held.as_ref().map(|held| held.since_ms);
        let taken_since = request.taken_since_ms(held.as_ref());
        let (since_ms, from) = match request.decide(held, is_alive) {
            LockDecision::Leave(held) => return LockOutcome::HeldBy(held),
            LockDecision::Renew => (renewed_since.unwrap_or(taken_since), None),
            LockDecision::Take { from } => (taken_since, from),
        };
        let held = LockRecord {
            name: request.name.clone(),
            holder: request.holder.clone(),
            since_ms,
            expires_ms: request.expires_ms,
        };
        self.locks.insert(request.name.clone(), held);
        LockOutcome::Taken { from, fence: since_ms.unsigned_abs() }
    }

    /// Fails if a lease is no longer its holder's.
    pub(super) fn check_lease(&self, lease: &Lease) -> Result<()> {
        let is_held = self
            .locks
            .get(&lease.name)
            .is_some_and(|held| held.holder == lease.holder && held.since_ms.unsigned_abs() == lease.fence);
        if is_held { Ok(()) } else { Err(StoreError::LeaseLost { name: lease.name.clone() }) }
    }

    pub(super) fn unlock(&mut self, name: &str, holder: &Holder) {
        if self.locks.get(name).is_some_and(|held| held.holder == *holder) {
            self.locks.remove(name);
        }
    }
}
