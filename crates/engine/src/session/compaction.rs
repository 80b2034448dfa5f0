//! One compaction from end to end: guards, lock, engine, checks, commit, report.

use std::sync::Arc;

use throughline_compaction::{AbortReason, NoOpReason};
use throughline_store::{LockRequest, Session, SessionId, StoreError, Summary, Version, ViewItem};
use throughline_tokens::TokenModel;
use tracing::Instrument as _;

use super::compaction_result::{CompactionDone, CompactionResult, CompactionSpec, event_of};
use super::compaction_state::LONGEST_WAIT;
use super::record::ConversationLock;
use super::shared_preparation::OthersWork;
use super::{LockPolicy, ManagedSession, SessionError, record};
use crate::context_engine::EngineError;
use crate::context_engine::lifecycle::{Boundary, BoundaryReason};
use crate::context_engine::outcome::{
    CompactedView, CompressOutcome, CompressRequest, Headroom, Profitability,
};
use crate::decide::guard::{Admission, GuardInput};
use crate::decide::trigger::{Trigger, Urgency};
use crate::event::EngineEvent;
use crate::new_view::{CommitInfo, check, continuation};

impl ManagedSession {
    /// Runs a compaction, or returns why it was not made.
    pub(super) async fn run_compaction(&mut self, ask: CompactionSpec) -> CompactionResult {
        let trigger = ask.trigger;
        let span = tracing::debug_span!("compaction", session = %self.id(), ?trigger);
        let result = match span.is_disabled() {
            true => self.try_compaction(ask).await,
            false => Box::pin(self.try_compaction(ask)).instrument(span).await,
        };
        self.store_guard().await;
        let waits = matches!(&result, CompactionResult::NoOp { reason: NoOpReason::DoesNotPay, .. });
        // The same result is not reported with every call.
        if !(waits && std::mem::replace(&mut self.compaction.is_waiting_reported, true)) {
            self.emit(event_of(trigger, &result));
        }
        result
    }

    async fn try_compaction(&mut self, ask: CompactionSpec) -> CompactionResult {
        let moment = self.moment();
        if let Admission::Blocked(block) = self.compaction.guard.admit(moment, ask.urgency) {
            return CompactionResult::Blocked(block);
        }
        if let Some(detail) = self.does_not_pay(&ask).await {
            self.compaction.nothing_to_compact_at = Some(self.prompt.view.len());
            return CompactionResult::NoOp { reason: NoOpReason::DoesNotPay, detail };
        }
        if let Err(error) = self.write_unrecorded().await {
            return aborted(format!("the record cannot be written: {error}"));
        }
        self.emit(EngineEvent::CompactionStarted { trigger: ask.trigger });
        if ask.is_particular() {
            // The summary in preparation does not fit this request, and no caller waits for it.
            self.compaction.task = None;
        }
        let wait = self.setup.engine.summary_wait().filter(|_| ask.trigger.has_caller());
        match wait {
            Some(wait) => self.finish_preparing_within(wait).await,
            None => self.finish_preparing().await,
        }
        // Held until the compaction is over, so that no other gateway prepares the same.
        let _preparation = match self.share_preparation(OthersWork::of(&ask, wait)).await {
            Ok(lock) => lock,
            Err(SessionError::Locked { holder, until_ms }) => {
                return CompactionResult::Locked { holder, until_ms };
            }
            Err(error) => return aborted(error.to_string()),
        };
        let held = match self.lock_for_compaction().await {
            Ok(held) => held,
            Err(SessionError::Locked { holder, until_ms }) => {
                return CompactionResult::Locked { holder, until_ms };
            }
            Err(error) => return aborted(error.to_string()),
        };
        let room = if ask.urgency == Urgency::Must { Headroom::None } else { Headroom::Left };
        let request = CompressRequest {
            conversation: self.snapshot(),
            trigger: ask.trigger,
            room,
            focus: ask.focus,
            force: ask.force,
            target_tokens: ask.target_tokens,
            keep_messages: ask.keep_messages,
            memory_context: ask.memory_context,
        };
        self.tell_corrections().await;
        let compressing = tokio::time::timeout(LONGEST_WAIT, self.setup.engine.compress(&request)).await;
        let outcome = match compressing.unwrap_or_else(|_| Err(too_late(self.setup.engine.name()))) {
            Ok(outcome) => outcome,
            Err(error) => {
                self.compaction.guard.aborted(AbortReason::SummariserUnavailable, &error.to_string(), moment);
                return aborted(error.to_string());
            }
        };
        // The engine's snapshot must be dropped before the conversation grows again.
        drop(request);
        match outcome {
            CompressOutcome::Completed(mut made) => {
                if !self.setup.target.policy.economy.is_off()
                    && let Some(price) = self.setup.target.input_price(moment.now_ms)
                {
                    made.report.price(price, self.budget.model.prices);
                }
                let tokens = made.report.tokens;
                let result = self.commit(*made, ask.trigger, moment, held.as_ref()).await;
                if let CompactionResult::Completed(_) = &result {
                    self.note_left_out(tokens.before.saturating_sub(tokens.after));
                    self.compaction.guard.completed(tokens, GuardInput { tokens: tokens.after, ..moment });
                }
                result
            }
            CompressOutcome::NoOp { reason, detail } => {
                self.compaction.guard.no_op(reason, moment);
                self.compaction.nothing_to_compact_at =
                    reason.is_structural().then_some(self.prompt.view.len());
                CompactionResult::NoOp { reason, detail }
            }
            CompressOutcome::Aborted { reason, detail } => {
                self.compaction.guard.aborted(reason, &detail, moment);
                CompactionResult::Aborted { reason: Some(reason), detail }
            }
        }
    }

    /// Returns why an optional compaction would not pay for itself now, by the engine's plan; computing that costs nothing.
    async fn does_not_pay(&mut self, ask: &CompactionSpec) -> Option<String> {
        if ask.urgency == Urgency::Must || !ask.trigger.must_pay() {
            return None;
        }
        let (engine, snapshot) = (Arc::clone(&self.setup.engine), self.snapshot());
        let worth = engine.worth_compressing(&snapshot, ask.trigger).await;
        match self.note_engine(worth)? {
            Profitability::Yes => None,
            Profitability::No { detail } => Some(detail),
        }
    }

    /// Checks a new view, commits it in one transaction, and continues with it.
    pub(super) async fn commit(
        &mut self,
        made: CompactedView,
        trigger: Trigger,
        moment: GuardInput,
        held: Option<&ConversationLock>,
    ) -> CompactionResult {
        let sound = match check(&self.prompt.view, &made) {
            Ok(sound) => sound,
            Err(problem) => {
                let detail = format!("the new view was refused: {problem}");
                self.compaction.guard.aborted(AbortReason::ResultInvalid, &detail, moment);
                return CompactionResult::Aborted { reason: Some(AbortReason::ResultInvalid), detail };
            }
        };
        let at_ms = self.setup.host.now_ms();
        let id = SessionId::new(at_ms, self.setup.host.random(), self.setup.policy.ids);
        let lease = held.or(self.persistence.lock.as_ref()).map(ConversationLock::lease);
        let continuation =
            continuation(&self.prompt.view, &made, &sound, CommitInfo { id, at_ms, trigger, lease });
        let expected_seq = self.prompt.view.session().next_seq;
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let has_summary = made.summary.is_some();
        let committed = self.switch_session(move || {
            let session = store.continue_session(&owner, continuation)?;
            if !has_summary {
                return Ok((session, None));
            }
            let made = store.view_items(&owner, &session.id)?.into_iter().filter_map(|item| match item {
                ViewItem::Summary { summary, .. } => Some(summary),
                _ => None,
            });
            // The new summary has the highest id in the view.
            let summary = made.max().map(|id| store.summary(&owner, id)).transpose()?;
            Ok((session, summary))
        });
        let (session, summary) = match committed.await {
            Ok(committed) => committed,
            Err(error) => return aborted(format!("the new view could not be recorded: {error}")),
        };
        if session.first_seq != expected_seq && self.client_owns_history() {
            // The view now also contains messages of another client, which are not part of this client's conversation. The next write
            // detects that, and continues as a branch of the earlier state.
            self.persistence.write = None;
            return aborted("another process wrote to the conversation meanwhile".to_owned());
        }
        let old = self.id().clone();
        if let Err(error) = self.use_committed_view(session, &made, summary, expected_seq).await {
            return aborted(format!("the new view could not be read back: {error}"));
        }
        self.persistence.write = None;
        self.compaction.count += 1;
        self.engine_link.notices.forget();
        self.enter_session(BoundaryReason::Compression, old.clone()).await;
        CompactionResult::Completed(Box::new(CompactionDone {
            quality: made.quality,
            report: made.report,
            old,
            new: self.id().clone(),
        }))
    }

    /// Replaces the view in memory with the committed one. It is loaded from the record only if messages were added since.
    async fn use_committed_view(
        &mut self,
        session: Session,
        made: &CompactedView,
        summary: Option<Summary>,
        expected_seq: u64,
    ) -> Result<(), StoreError> {
        let undisturbed = session.first_seq == expected_seq;
        let id = session.id.clone();
        let next_seq = session.next_seq;
        match self.prompt.view.refolded(session, &made.view, summary).filter(|_| undisturbed) {
            Some(view) => {
                self.prompt.view = view;
                self.persistence.version = Version { tip: id, next_seq, last: None };
            }
            None => {
                let loaded = record::load(&self.setup, &id, self.setup.host.now_ms()).await?;
                self.prompt.view = loaded.view;
                self.persistence.version = loaded.version;
            }
        }
        Ok(())
    }

    /// Continues the conversation in another session. Measured and prepared values belong to the old view and are discarded.
    pub(super) async fn enter_session(&mut self, reason: BoundaryReason, old: SessionId) {
        self.budget.estimator.forget_prompt();
        self.prompt.forget_sent_items();
        self.compaction.reset_for_new_view();
        if reason != BoundaryReason::Elsewhere {
            self.forget_prepared(&old).await;
        }
        let boundary = Boundary { reason, old, new: self.id().clone() };
        let told = self.setup.engine.boundary(&boundary).await;
        self.note_engine(told);
    }

    /// Takes the lock for changing the view, unless the session is locked as long as it is open.
    pub(super) async fn lock_for_compaction(&self) -> Result<Option<ConversationLock>, SessionError> {
        match self.setup.policy.lock {
            // The session has a lock already, which lasts longer.
            LockPolicy::WholeSession => Ok(None),
            LockPolicy::Compactions => {
                let name = LockRequest::conversation_name(self.prompt.view.session().chain);
                record::hold_renewing(&self.setup, name).await.map(Some)
            }
        }
    }

    /// Returns the figures for the guards.
    pub(super) fn moment(&self) -> GuardInput {
        GuardInput {
            now_ms: self.setup.host.now_ms(),
            tokens: self.pending().total_tokens,
            threshold_tokens: self.budget.model.limits.threshold_tokens,
        }
    }

    /// Returns the estimator for the conversation's model.
    pub(super) fn token_model(&self) -> TokenModel {
        self.setup.target.token_model()
    }
}

fn too_late(engine: &str) -> EngineError {
    let minutes = LONGEST_WAIT.as_secs() / 60;
    EngineError::Unavailable {
        engine: engine.to_owned(),
        detail: format!("it made no view within {minutes} minutes"),
    }
}

fn aborted(detail: String) -> CompactionResult {
    CompactionResult::Aborted { reason: None, detail }
}
