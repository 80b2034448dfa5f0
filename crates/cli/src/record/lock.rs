//! Locks of commands: acquired, renewed while the command runs, and released.

use throughline_store::{Lease, LockOutcome, LockRecord, LockRequest, Millis, Store};

use crate::error::CliError;
use crate::host::process::{is_alive, this_process};
use crate::record::{OpenRecord, refused};

/// How long a lock is valid without being renewed. A lock whose holder was killed on this machine counts as free at once.
const LIFETIME_MS: Millis = 10 * 60 * 1000;
/// The age at which a lock is renewed.
const RENEWED_AFTER_MS: Millis = LIFETIME_MS / 10;

/// A lock that this process holds.
pub(crate) struct Lock<'r, 'a> {
    record: &'r OpenRecord<'a>,
    request: LockRequest,
    /// The number that distinguishes the lock from earlier ones of the same name.
    fence: u64,
}

/// The result of an attempt to take a lock.
pub(crate) enum LockAttempt<'r, 'a> {
    Taken(Lock<'r, 'a>),
    HeldBy(LockRecord),
}

impl<'r, 'a> Lock<'r, 'a> {
    /// Attempts to take a lock, once.
    pub(crate) fn ask(
        record: &'r OpenRecord<'a>,
        name: String,
        what: &str,
    ) -> Result<LockAttempt<'r, 'a>, CliError> {
        let now_ms = record.app.now().ms;
        let request =
            LockRequest { name, holder: this_process(what), now_ms, expires_ms: now_ms + LIFETIME_MS };
        let (from, fence) = match record.store.lock(&request, &is_alive).map_err(refused)? {
            LockOutcome::HeldBy(held) => return Ok(LockAttempt::HeldBy(held)),
            LockOutcome::Taken { from, fence } => (from, fence),
        };
        if let Some(from) = from {
            record.app.note(&format!("took over the lock of {from}, which no longer runs"));
        }
        Ok(LockAttempt::Taken(Self { record, request, fence }))
    }

    /// The lease under which writes are made.
    pub(crate) fn lease(&self) -> Lease {
        Lease { name: self.request.name.clone(), holder: self.request.holder.clone(), fence: self.fence }
    }

    /// Renews the lock if it is due.
    pub(crate) fn keep(&mut self) -> Result<(), CliError> {
        let now_ms = self.record.app.now().ms;
        if now_ms >= self.request.now_ms + RENEWED_AFTER_MS {
            self.request.now_ms = now_ms;
            self.request.expires_ms = now_ms + LIFETIME_MS;
            self.record.store.lock(&self.request, &is_alive).map_err(refused)?;
        }
        Ok(())
    }

    /// Releases the lock.
    pub(crate) fn free(self) -> Result<(), CliError> {
        self.record.store.unlock(&self.request.name, &self.request.holder).map_err(refused)
    }
}
