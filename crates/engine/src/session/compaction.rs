//! A compaction from end to end: admitted, locked, made by the engine, checked, committed, told.

use std::sync::Arc;

use throughline_store::{Holder, Millis, Session, SessionId, StoreError, Summary, Version, ViewItem};
use throughline_tokens::TokenModel;

use super::background::LONGEST_WAIT;
use super::{ConversationLock, LockPolicy, ManagedSession, SessionError, record};
use crate::context_engine::EngineError;
use crate::context_engine::lifecycle::{Boundary, BoundaryReason};
use crate::context_engine::outcome::{
    AbortReason, CompactedView, CompressOutcome, CompressReport, CompressRequest, Headroom, NoOpReason,
    Quality, Worth,
};
use crate::decide::guard::{Admission, CompactionBlock, GuardInput};
use crate::decide::trigger::{Trigger, Urgency};
use crate::event::EngineEvent;
use crate::new_view::{CommitInfo, check, continuation};

/// How a compaction ended, whatever stood in its way.
#[derive(Clone, Debug, PartialEq)]
pub enum CompactionResult {
    /// The conversation goes on with a new view.
    Completed(Box<CompactionDone>),
    /// There was nothing to be done.
    NoOp {
        /// Why.
        reason: NoOpReason,
        /// In words.
        detail: String,
    },
    /// Given up; the conversation is as it was.
    Aborted {
        /// Why; `None` when it was neither the summary nor the view.
        reason: Option<AbortReason>,
        /// In words.
        detail: String,
    },
    /// Put off by a guard.
    Blocked(CompactionBlock),
    /// Somebody else is at work on the conversation.
    Locked {
        /// Who.
        holder: Holder,
        /// Until when at most.
        until_ms: Millis,
    },
}

/// A compaction that was committed.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionDone {
    /// How good the summary is.
    pub quality: Quality,
    /// In figures.
    pub report: CompressReport,
    /// The session that was.
    pub old: SessionId,
    /// The session that is.
    pub new: SessionId,
}

/// A compaction that a person asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManualCompaction {
    /// What most of the summary shall be about.
    pub focus: Option<String>,
    /// Newest exchanges, counted by what a person said, that stay as they are while all before them is folded.
    pub keep_exchanges: Option<usize>,
    /// What a memory has to say about the folded part.
    pub memory_context: Option<String>,
}

/// A compaction to be made.
#[derive(Clone, Debug)]
pub(super) struct CompactionSpec {
    pub(super) trigger: Trigger,
    pub(super) urgency: Urgency,
    pub(super) force: bool,
    pub(super) target_tokens: Option<u64>,
    pub(super) focus: Option<String>,
    pub(super) keep_messages: Option<usize>,
    pub(super) memory_context: Option<String>,
}

impl CompactionSpec {
    pub(super) fn new(trigger: Trigger, urgency: Urgency) -> Self {
        Self {
            trigger,
            urgency,
            force: false,
            target_tokens: None,
            focus: None,
            keep_messages: None,
            memory_context: None,
        }
    }

    /// Whether it asks for something that nobody could have prepared.
    fn is_particular(&self) -> bool {
        self.focus.is_some()
            || self.target_tokens.is_some()
            || self.keep_messages.is_some()
            || self.memory_context.is_some()
    }
}

impl ManagedSession {
    /// Makes a compaction, or says why not.
    pub(super) async fn fold(&mut self, ask: CompactionSpec) -> CompactionResult {
        let trigger = ask.trigger;
        let result = self.try_to_fold(ask).await;
        self.keep_guard().await;
        let waits = matches!(&result, CompactionResult::NoOp { reason: NoOpReason::DoesNotPay, .. });
        // The same is not told with every call.
        if !(waits && std::mem::replace(&mut self.told_of_waiting, true)) {
            self.tell(told(trigger, &result));
        }
        result
    }

    async fn try_to_fold(&mut self, ask: CompactionSpec) -> CompactionResult {
        let moment = self.moment();
        if let Admission::Blocked(block) = self.guard.admit(moment, ask.urgency) {
            return CompactionResult::Blocked(block);
        }
        if let Some(detail) = self.does_not_pay(&ask).await {
            self.nothing_to_fold_at = Some(self.view.len());
            return CompactionResult::NoOp { reason: NoOpReason::DoesNotPay, detail };
        }
        if let Err(error) = self.write_unrecorded().await {
            return aborted(format!("the record cannot be written: {error}"));
        }
        self.tell(EngineEvent::CompactionStarted { trigger: ask.trigger });
        if ask.is_particular() {
            // What is being prepared does not answer this; nobody waits for it.
            self.preparing = None;
        }
        self.finish_preparing().await;
        let _held = match self.hold_for_compaction().await {
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
        let compressing = tokio::time::timeout(LONGEST_WAIT, self.setup.engine.compress(&request)).await;
        let outcome = match compressing.unwrap_or_else(|_| Err(too_late(self.setup.engine.name()))) {
            Ok(outcome) => outcome,
            Err(error) => {
                self.guard.aborted(AbortReason::SummariserUnavailable, &error.to_string(), moment);
                return aborted(error.to_string());
            }
        };
        // The engine's view of the conversation must be gone before the conversation grows again.
        drop(request);
        match outcome {
            CompressOutcome::Completed(made) => {
                let tokens = made.report.tokens;
                let result = self.commit(*made, ask.trigger, moment).await;
                if let CompactionResult::Completed(_) = &result {
                    self.guard.completed(tokens, GuardInput { tokens: tokens.after, ..moment });
                }
                result
            }
            CompressOutcome::NoOp { reason, detail } => {
                self.guard.no_op(reason, moment);
                self.nothing_to_fold_at = reason.is_structural().then_some(self.view.len());
                CompactionResult::NoOp { reason, detail }
            }
            CompressOutcome::Aborted { reason, detail } => {
                self.guard.aborted(reason, &detail, moment);
                CompactionResult::Aborted { reason: Some(reason), detail }
            }
        }
    }

    /// Why a compaction that could wait would not pay for itself now, by the engine's plan; nothing is paid for that.
    async fn does_not_pay(&mut self, ask: &CompactionSpec) -> Option<String> {
        if ask.urgency == Urgency::Must || !ask.trigger.must_pay() {
            return None;
        }
        let (engine, snapshot) = (Arc::clone(&self.setup.engine), self.snapshot());
        let worth = engine.worth_compressing(&snapshot, ask.trigger).await;
        match self.note_engine(worth)? {
            Worth::Yes => None,
            Worth::No { detail } => Some(detail),
        }
    }

    /// Checks a new view, makes it the conversation's in one transaction, and goes on with it.
    pub(super) async fn commit(
        &mut self,
        made: CompactedView,
        trigger: Trigger,
        moment: GuardInput,
    ) -> CompactionResult {
        let sound = match check(&self.view, &made) {
            Ok(sound) => sound,
            Err(problem) => {
                let detail = format!("the new view was refused: {problem}");
                self.guard.aborted(AbortReason::ResultInvalid, &detail, moment);
                return CompactionResult::Aborted { reason: Some(AbortReason::ResultInvalid), detail };
            }
        };
        let at_ms = self.setup.host.now_ms();
        let id = SessionId::new(at_ms, self.setup.host.random(), self.setup.policy.ids);
        let continuation = continuation(&self.view, &made, &sound, CommitInfo { id, at_ms, trigger });
        let expected_seq = self.view.session().next_seq;
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let has_summary = made.summary.is_some();
        let committed = self.move_on(move || {
            let session = store.continue_session(&owner, continuation)?;
            if !has_summary {
                return Ok((session, None));
            }
            let made = store.view_items(&owner, &session.id)?.into_iter().filter_map(|item| match item {
                ViewItem::Summary { summary, .. } => Some(summary),
                _ => None,
            });
            // The new one has the highest number of those the view shows.
            let summary = made.max().map(|id| store.summary(&owner, id)).transpose()?;
            Ok((session, summary))
        });
        let (session, summary) = match committed.await {
            Ok(committed) => committed,
            Err(error) => return aborted(format!("the new view could not be recorded: {error}")),
        };
        if session.first_seq != expected_seq && self.client_holds_history() {
            // The view now shows what somebody else said as well, which is not part of this client's conversation. The
            // next write finds that, and goes on as a branch of what was there before.
            self.writing = None;
            return aborted("another process wrote to the conversation meanwhile".to_owned());
        }
        let old = self.id().clone();
        if let Err(error) = self.go_on_in(session, &made, summary, expected_seq).await {
            return aborted(format!("the new view could not be read back: {error}"));
        }
        self.writing = None;
        self.compactions += 1;
        self.told_of_engine.forget();
        self.moved_on(BoundaryReason::Compression, old.clone()).await;
        CompactionResult::Completed(Box::new(CompactionDone {
            quality: made.quality,
            report: made.report,
            old,
            new: self.id().clone(),
        }))
    }

    /// The view in memory becomes the one that was committed; it is read from the record only where more was said since.
    async fn go_on_in(
        &mut self,
        session: Session,
        made: &CompactedView,
        summary: Option<Summary>,
        expected_seq: u64,
    ) -> Result<(), StoreError> {
        let undisturbed = session.first_seq == expected_seq;
        let id = session.id.clone();
        let next_seq = session.next_seq;
        match self.view.refolded(session, &made.view, summary).filter(|_| undisturbed) {
            Some(view) => {
                self.view = view;
                self.version = Version { tip: id, next_seq, last: None };
            }
            None => {
                let loaded = record::load(&self.setup, &id, self.setup.host.now_ms()).await?;
                self.view = loaded.view;
                self.version = loaded.version;
            }
        }
        Ok(())
    }

    /// The conversation goes on in another session: what was measured and prepared is about the old view.
    pub(super) async fn moved_on(&mut self, reason: BoundaryReason, old: SessionId) {
        self.estimator.forget_prompt();
        self.forget_sent_items();
        self.due = None;
        self.preparing = None;
        self.prepared = None;
        self.postponed_at_tokens = None;
        self.nothing_to_fold_at = None;
        self.told_of_waiting = false;
        self.idle_looked_at = None;
        let boundary = Boundary { reason, old, new: self.id().clone() };
        let told = self.setup.engine.boundary(&boundary).await;
        self.note_engine(told);
    }

    async fn hold_for_compaction(&self) -> Result<Option<ConversationLock>, SessionError> {
        match self.setup.policy.lock {
            // Held already, and for longer.
            LockPolicy::WholeSession => Ok(None),
            LockPolicy::Compactions => record::hold(&self.setup, self.view.session().chain).await.map(Some),
        }
    }

    /// Figures for the guards.
    pub(super) fn moment(&self) -> GuardInput {
        GuardInput {
            now_ms: self.setup.host.now_ms(),
            tokens: self.pending().total_tokens,
            threshold_tokens: self.model.limits.threshold_tokens,
        }
    }

    /// The estimator of the conversation's model.
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

/// A result as it is told.
fn told(trigger: Trigger, result: &CompactionResult) -> EngineEvent {
    match result {
        CompactionResult::Completed(done) => EngineEvent::CompactionCompleted {
            trigger,
            quality: done.quality,
            report: Box::new(done.report.clone()),
            old: done.old.clone(),
            new: done.new.clone(),
        },
        CompactionResult::NoOp { reason, detail } => {
            EngineEvent::CompactionNoOp { trigger, reason: *reason, detail: detail.clone() }
        }
        CompactionResult::Aborted { reason, detail } => {
            EngineEvent::CompactionAborted { trigger, reason: *reason, detail: detail.clone() }
        }
        CompactionResult::Blocked(block) => EngineEvent::CompactionBlocked {
            trigger,
            cause: block.cause,
            detail: block.detail.clone(),
            until_ms: block.until_ms,
            released_at_tokens: block.released_at_tokens,
        },
        CompactionResult::Locked { holder, until_ms } => {
            EngineEvent::CompactionLocked { trigger, holder: holder.clone(), until_ms: *until_ms }
        }
    }
}
