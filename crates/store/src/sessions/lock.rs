//! Locks between processes. A lock names its holder, expires, and can be taken over at once when its holder is dead.

use std::fmt;

use crate::ids::Millis;

/// The holder of a lock. A process id may be reused; the start time distinguishes the processes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Holder {
    /// The machine.
    pub host: String,
    /// The process.
    pub process_id: u32,
    /// The start time of the process, in the machine's own unit.
    pub process_start: u64,
    /// Its purpose: `chat`, `serve`, ...
    pub what: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {} on {})", self.what, self.process_id, self.host)
    }
}

impl LockRequest {
    /// Returns the name of the lock on a conversation, shared by all sessions of its chain. A process holds it while it appends to,
    /// compacts or otherwise changes the conversation.
    #[must_use]
    pub fn conversation_name(chain: u64) -> String {
        format!("conversation {chain}")
    }

    /// Returns the name of the lock under which the next summary of a conversation is prepared, so that only one gateway pays for it. It
    /// does not block other access to the conversation.
    #[must_use]
    pub fn preparation_name(chain: u64) -> String {
        format!("preparation {chain}")
    }
}

/// A request for a lock.
#[derive(Clone, Debug)]
pub struct LockRequest {
    /// The name of the lock.
    pub name: String,
    /// The requester.
    pub holder: Holder,
    /// The current time.
    pub now_ms: Millis,
    /// The expiry unless renewed. A repeated request by the holder renews it. A store with its own clock (a server) adds the duration from
    /// `now_ms` to its own time, because the clocks of machines differ.
    pub expires_ms: Millis,
}

/// A held lock. A write that names it fails once the lock was released or taken over, however late the write is and whatever the clocks say
/// ([`StoreError::LeaseLost`](crate::StoreError::LeaseLost)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The name of the lock.
    pub name: String,
    /// The holder.
    pub holder: Holder,
    /// The fencing number assigned by the record: see [`LockOutcome::Taken`].
    pub fence: u64,
}

impl LockRequest {
    /// Decides a request while `held` is recorded: the requester has the lock already, it is free, its holder is late or (on the
    /// requester's machine, where this can be checked) dead, or another process holds it.
    pub(crate) fn decide(
        &self,
        held: Option<LockRecord>,
        is_alive: &dyn Fn(&Holder) -> bool,
    ) -> LockDecision {
        match held {
            None => LockDecision::Take { from: None },
            Some(held) if held.holder == self.holder => LockDecision::Renew,
            Some(held) if held.expires_ms <= self.now_ms => LockDecision::Take { from: Some(held.holder) },
            Some(held) if held.holder.host == self.holder.host && !is_alive(&held.holder) => {
                LockDecision::Take { from: Some(held.holder) }
            }
            Some(held) => LockDecision::Leave(held),
        }
    }

    /// Returns the start time of a lock that is taken now: later than that of the previous holder, even if the clock was set back. Together
    /// with its holder this identifies a lease, so an engine without its own numbers uses it as the fencing number.
    pub(crate) fn taken_since_ms(&self, held: Option<&LockRecord>) -> Millis {
        held.map_or(self.now_ms, |held| self.now_ms.max(held.since_ms.saturating_add(1)))
    }
}

/// A recorded lock.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LockRecord {
    /// The name of the lock.
    pub name: String,
    /// The holder.
    pub holder: Holder,
    /// The time when it was taken.
    pub since_ms: Millis,
    /// The time when it expires.
    pub expires_ms: Millis,
}

/// The decision about a requested lock.
pub(crate) enum LockDecision {
    /// The requester holds it: extend it.
    Renew,
    /// The requester gets it.
    Take { from: Option<Holder> },
    /// Another process holds it.
    Leave(LockRecord),
}

/// The result of a request for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    /// The requester holds it now.
    Taken {
        /// The dead or late holder it was taken from.
        from: Option<Holder>,
        /// The fencing number of the lease: different each time the lock is taken, the same while it is renewed.
        fence: u64,
    },
    /// Another holder has it.
    HeldBy(LockRecord),
}
