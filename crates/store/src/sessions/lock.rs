//! Locks between processes. A lock names its holder, expires, and can be taken over at once when its holder is dead.

use std::fmt;

use crate::ids::Millis;

/// Who holds a lock. A process id alone may be given to another process later; the start time tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Holder {
    /// The machine.
    pub host: String,
    /// The process.
    pub process_id: u32,
    /// When the process started, in whatever unit the machine counts it.
    pub process_start: u64,
    /// What it is: `chat`, `serve`, ...
    pub what: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {} on {})", self.what, self.process_id, self.host)
    }
}

impl LockRequest {
    /// The name of the lock on a conversation, shared by every session of its chain. A process holds it
    /// while it appends to, compacts or otherwise changes the conversation.
    #[must_use]
    pub fn conversation_name(chain: u64) -> String {
        format!("conversation {chain}")
    }

    /// The name of the lock under which the next summary of a conversation is prepared, so that only one gateway pays for it. Nobody
    /// else is kept from the conversation by it.
    #[must_use]
    pub fn preparation_name(chain: u64) -> String {
        format!("preparation {chain}")
    }
}

/// A lock that is wanted.
#[derive(Clone, Debug)]
pub struct LockRequest {
    /// What is to be locked.
    pub name: String,
    /// Who wants it.
    pub holder: Holder,
    /// The current time.
    pub now_ms: Millis,
    /// When it is let go unless renewed. Asking again as the holder renews it. A store with a clock of its own (a server) counts
    /// the time from `now_ms` to here from its own present: clocks of machines differ.
    pub expires_ms: Millis,
}

/// A lock as its holder has it. A write that names it fails once the lock was released or somebody else took it over, however
/// late the write comes and whatever the clocks say ([`StoreError::LeaseLost`](crate::StoreError::LeaseLost)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What is locked.
    pub name: String,
    /// By whom.
    pub holder: Holder,
    /// The number the record gave it: see [`LockOutcome::Taken`].
    pub fence: u64,
}

impl LockRequest {
    /// Decides what comes of asking while `held` is recorded: the asker has it already, it is free, its holder is late or
    /// (on the asker's machine, where that can be known) dead, or somebody else keeps it.
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

    /// Since when a lock is held that is taken now: later than that of the holder before, also where the clock was set back.
    /// Together with its holder this tells one lease from every other, so an engine without numbers of its own uses it as
    /// the fencing number.
    pub(crate) fn taken_since_ms(&self, held: Option<&LockRecord>) -> Millis {
        held.map_or(self.now_ms, |held| self.now_ms.max(held.since_ms.saturating_add(1)))
    }
}

/// A lock as recorded.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LockRecord {
    /// What is locked.
    pub name: String,
    /// By whom.
    pub holder: Holder,
    /// Since when.
    pub since_ms: Millis,
    /// Until when.
    pub expires_ms: Millis,
}

/// What to do about a lock that is asked for.
pub(crate) enum LockDecision {
    /// The asker has it: it lasts longer now.
    Renew,
    /// It is the asker's now.
    Take { from: Option<Holder> },
    /// Somebody else has it.
    Leave(LockRecord),
}

/// What came of asking for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    /// It is the asker's now.
    Taken {
        /// The dead or late holder it was taken from.
        from: Option<Holder>,
        /// The fencing number of the lease: another one each time the lock is taken, the same while it is renewed.
        fence: u64,
    },
    /// Another holder has it.
    HeldBy(LockRecord),
}
