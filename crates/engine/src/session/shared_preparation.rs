//! Summaries prepared in advance, shared through the record: what one gateway prepared is used by another, or by itself after a restart.
//!
//! A prepared summary is stored as a guard of its conversation. It names the session it was prepared for, so an outdated one is not used; a
//! compaction removes it. While one gateway prepares, a lock keeps the others from paying for the same.
//!
//! Not for: what was prepared and whether it still fits (the engine). If the record does not answer, each gateway prepares for itself.

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

/// The name under which a prepared summary is stored.
const PREPARED: &str = "prepared_summary";
/// How long it is stored. A conversation that continues later gets a new summary.
const KEPT_MS: Millis = 24 * 60 * 60 * 1_000;
/// How often a gateway checks for the summary of another.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Prepares a summary and records it, or waits for the gateway that is preparing one.
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

/// Takes the lock under which a summary is prepared. `None` if another gateway holds it all the time, or if the record does not answer:
/// this gateway then prepares for itself.
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

/// Passes the engine what another gateway prepared for this conversation, if it did.
async fn take_over(setup: &SessionSetup, snapshot: &Snapshot) {
    let (store, scope, now_ms) =
        (Arc::clone(&setup.store), scope(setup, &snapshot.session), setup.host.now_ms());
    let kept = blocking(move || store.guard(&scope, PREPARED, now_ms)).await;
    // A value that cannot be read is prepared again.
    let kept = kept.ok().flatten().and_then(|kept| serde_json::from_value::<PreparedState>(kept.value).ok());
    if let Some(prepared) = kept {
        setup.engine.take_over(snapshot, &prepared);
    }
}

/// Records what was prepared. If that fails, only this gateway has it.
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
    /// Ignores it, because it cannot use it.
    Ignored,
    /// Prefers it: the compaction is postponed, because more messages fit.
    Preferred,
    /// Waits for it, at most this long.
    WaitedFor(Duration),
}

impl OthersWork {
    /// Returns the choice for a compaction. `wait` is how long its caller waits for a summary, if limited.
    pub(super) fn of(ask: &CompactionSpec, wait: Option<Duration>) -> Self {
        match ask.urgency {
            _ if ask.is_particular() => Self::Ignored,
            Urgency::Due => Self::Preferred,
            _ => Self::WaitedFor(wait.unwrap_or(LONGEST_WAIT)),
        }
    }
}

impl ManagedSession {
    /// Adopts what another gateway prepared. While the returned lock is held, no other gateway starts to prepare a summary. The error is
    /// the holder that is preparing one.
    pub(super) async fn share_preparation(
        &self,
        others: OthersWork,
    ) -> Result<Option<ConversationLock>, SessionError> {
        let snapshot = self.snapshot();
        // A late summary of this gateway holds the lock already.
        let asks_model =
            self.compaction.late_task.is_none() && self.setup.engine.prepares_for_others(&snapshot);
        let chain = self.prompt.view.session().chain;
        let lock = match others {
            OthersWork::Ignored => None,
            _ if !asks_model => None,
            OthersWork::Preferred => {
                match hold_renewing(&self.setup, LockRequest::preparation_name(chain)).await {
                    Err(error @ SessionError::Locked { .. }) => return Err(error),
                    // If the record does not answer, the summary is prepared anyway.
                    other => other.ok(),
                }
            }
            OthersWork::WaitedFor(wait) => until_nobody_prepares(&self.setup, chain, wait).await,
        };
        take_over(&self.setup, &snapshot).await;
        Ok(lock)
    }

    /// Removes what was prepared for a previous view.
    pub(super) async fn forget_prepared(&self, session: &SessionId) {
        let (store, scope) = (Arc::clone(&self.setup.store), scope(&self.setup, session));
        // If it remains, it is not used: it names its session.
        let _ = blocking(move || store.set_guard(&scope, PREPARED, None)).await;
    }
}
