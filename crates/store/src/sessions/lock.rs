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
    /// The name of the lock on a conversation, shared by every session of its chain. Whoever appends to, compacts or
    /// otherwise changes a conversation holds it.
    #[must_use]
    pub fn conversation_name(chain: u64) -> String {
        format!("conversation {chain}")
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
    /// When it expires unless renewed. A request by the holder renews it.
    pub expires_ms: Millis,
}

impl LockRequest {
    /// Decides what comes of asking while `held` is recorded: the asker has it already, it is free, its holder is late or
    /// (on the asker's machine, where that can be known) dead, or another holder keeps it.
    pub(crate) fn decide(&self, held: Option<LockRecord>, is_alive: &dyn Fn(&Holder) -> bool) -> LockOutcome {
        match held {
            None => LockOutcome::Taken { from: None },
            Some(held) if held.holder == self.holder => LockOutcome::Taken { from: None },
            Some(held) if held.expires_ms <= self.now_ms => LockOutcome::Taken { from: Some(held.holder) },
            Some(held) if held.holder.host == self.holder.host && !is_alive(&held.holder) => {
                LockOutcome::Taken { from: Some(held.holder) }
            }
            Some(held) => LockOutcome::HeldBy(held),
        }
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

/// What came of asking for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    /// It is the asker's now.
    Taken {
        /// The dead or late holder it was taken from.
        from: Option<Holder>,
    },
    /// Another holder has it.
    HeldBy(LockRecord),
}
