//! Summaries prepared in advance, shared through the record: what one gateway prepared is used by another, or by itself after a restart.
//!
//! A prepared summary is a guard of its conversation. It names the session it was prepared for, so that one that is out of date is
//! not used; a compaction takes it away. While one gateway prepares, a lock keeps the others from paying for the same.
//!
//! Not for: what was prepared and whether it still fits (the engine). Where the record does not answer, each gateway prepares for
//! itself.

use std::sync::Arc;
use std::time::Duration;

use throughline_store::{Guard, GuardScope, LockRequest, Millis, SessionId};
use tokio::time::Instant;

use super::compaction_result::CompactionSpec;
use super::compaction_state::LONGEST_WAIT;
use super::record::{ConversationLock, blocking, hold_renewing};
use super::{ManagedSession, SessionError, SessionSetup};
use crate::context_engine::EngineError;
use crate::context_engine::outcome::PrepareOutcome;
use crate::context_engine::prepared::PreparedState;
use crate::context_engine::snapshot::Snapshot;
use crate::decide::trigger::Urgency;

/// A prepared summary is kept under this name.
const PREPARED: &str = "prepared_summary";
/// How long it is kept. A conversation that continues later gets a new summary.
const KEPT_MS: Millis = 24 * 60 * 60 * 1_000;
/// How often a gateway that waits for another's summary looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Prepares a summary and records it; waits for that of a gateway which is preparing one.
pub(super) async fn prepare(
    setup: SessionSetup,
    chain: u64,
    snapshot: Snapshot,
) -> Result<PrepareOutcome, EngineError> {
    let engine = &setup.engine;
    if !engine.prepares_for_others(&snapshot) {
        return engine.prepare(&snapshot).await;
    }
    let lock = until_nobody_prepares(&setup, chain, LONGEST_WAIT).await;
    take_over(&setup, &snapshot).await;
    if !engine.prepares_for_others(&snapshot) {
        return engine.prepare(&snapshot).await;
    }
    let outcome = engine.prepare(&snapshot).await;
    if let (Ok(PrepareOutcome::Ready { .. }), Some(prepared)) = (&outcome, engine.prepared()) {
        keep(&setup, prepared).await;
    }
    drop(lock);
    outcome
}

/// The lock under which a summary is prepared. `None` where another has it all the time, or the record does not answer: this gateway
/// then does what it would do alone.
async fn until_nobody_prepares(setup: &SessionSetup, chain: u64, wait: Duration) -> Option<ConversationLock> {
    let until = Instant::now() + wait;
    loop {
        match hold_renewing(setup, LockRequest::preparation_name(chain)).await {
            Err(SessionError::Locked { .. }) if Instant::now() < until => {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            other => return other.ok(),
        }
    }
}

/// Has the engine take over what another gateway prepared for this conversation, if one did.
async fn take_over(setup: &SessionSetup, snapshot: &Snapshot) {
    let (store, scope, now_ms) =
        (Arc::clone(&setup.store), scope(setup, &snapshot.session), setup.host.now_ms());
    let kept = blocking(move || store.guard(&scope, PREPARED, now_ms)).await;
    // What cannot be read is made again.
    let kept = kept.ok().flatten().and_then(|kept| serde_json::from_value::<PreparedState>(kept.value).ok());
    if let Some(prepared) = kept {
        setup.engine.take_over(snapshot, &prepared);
    }
}

/// Records what was prepared. Where that fails, only this gateway has it.
async fn keep(setup: &SessionSetup, prepared: PreparedState) {
    let (store, scope, now_ms) =
        (Arc::clone(&setup.store), scope(setup, &prepared.session), setup.host.now_ms());
    let kept = blocking(move || {
        let Ok(value) = serde_json::to_value(&prepared) else { return Ok(()) };
        let expires_ms = Some(now_ms.saturating_add(KEPT_MS));
        let guard = Guard { name: PREPARED.to_owned(), value, set_ms: now_ms, expires_ms };
        store.set_guard(&scope, PREPARED, Some(&guard))
    })
    .await;
    if let Err(error) = kept {
        tracing::debug!(%error, "a prepared summary could not be recorded");
    }
}

fn scope(setup: &SessionSetup, session: &SessionId) -> GuardScope {
    GuardScope::Chain(setup.owner.clone(), session.clone())
}

/// What a compaction does about a summary that another gateway is preparing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OthersWork {
    /// It is of no use for it.
    Ignored,
    /// The compaction comes later, as there is room for more messages.
    Preferred,
    /// It is waited for, at most so long.
    WaitedFor(Duration),
}

impl OthersWork {
    /// For a compaction that is wanted this much. `wait` is how long its caller waits for a summary, if that is limited.
    pub(super) fn of(ask: &CompactionSpec, wait: Option<Duration>) -> Self {
        match ask.urgency {
            _ if ask.is_particular() => Self::Ignored,
            Urgency::Due => Self::Preferred,
            _ => Self::WaitedFor(wait.unwrap_or(LONGEST_WAIT)),
        }
    }
}

impl ManagedSession {
    /// Takes over what another gateway prepared. As long as what is returned is held, no other begins to prepare a summary. The error
    /// names one that is preparing.
    pub(super) async fn share_preparation(
        &self,
        others: OthersWork,
    ) -> Result<Option<ConversationLock>, SessionError> {
        let snapshot = self.snapshot();
        // A summary of this gateway that comes too late has the lock already.
        let asks_model =
            self.compaction.late_task.is_none() && self.setup.engine.prepares_for_others(&snapshot);
        let chain = self.prompt.view.session().chain;
        let lock = match others {
            OthersWork::Ignored => None,
            _ if !asks_model => None,
            OthersWork::Preferred => {
                match hold_renewing(&self.setup, LockRequest::preparation_name(chain)).await {
                    Err(error @ SessionError::Locked { .. }) => return Err(error),
                    // A record that does not answer is no reason to do without a summary.
                    other => other.ok(),
                }
            }
            OthersWork::WaitedFor(wait) => until_nobody_prepares(&self.setup, chain, wait).await,
        };
        take_over(&self.setup, &snapshot).await;
        Ok(lock)
    }

    /// Takes away what was prepared for a view that is over.
    pub(super) async fn forget_prepared(&self, session: &SessionId) {
        let (store, scope) = (Arc::clone(&self.setup.store), scope(&self.setup, session));
        // One that stays is not used: it names its session.
        let _ = blocking(move || store.set_guard(&scope, PREPARED, None)).await;
    }
}
