//! Summaries prepared in the background while the conversation continues.

use super::compaction_state::{LONGEST_WAIT, PreparationProgress, PreparationTask};
use super::{ManagedSession, shared_preparation};
use crate::context_engine::outcome::PrepareOutcome;
use crate::decide::trigger::{may_prepare_again, near_threshold};
use crate::event::EngineEvent;
use std::sync::Arc;
use std::time::Duration;

impl ManagedSession {
    /// Whether a summary is being prepared in the background.
    #[must_use]
    pub fn is_preparing(&self) -> bool {
        self.compaction.task.as_ref().is_some_and(|preparing| !preparing.0.is_finished())
    }

    /// Starts preparing before a call is sent, so that summary and answer are written at the same time. Not done where foreground requests
    /// cancel background ones, because the call itself would cancel it; nor where the client pays for the notes. Those are requested after
    /// the answer, when the provider has the whole prompt in its cache and reading it costs a tenth.
    pub(super) async fn prepare_beside_call(&mut self, tokens: u64) {
        let client_pays = self.setup.engine.summary_wait().is_some();
        if !client_pays && !self.setup.target.upstream.cancels_background() {
            self.prepare_ahead(tokens).await;
        }
    }

    /// Starts preparing a summary if the threshold is near and none is in preparation. Reports one that has become ready.
    pub(super) async fn prepare_ahead(&mut self, tokens: u64) {
        if self.is_preparing() {
            return;
        }
        self.finish_preparing().await;
        let threshold_tokens = self.budget.model.limits.threshold_tokens;
        if !near_threshold(self.setup.policy.automatic, tokens, threshold_tokens) {
            return;
        }
        // If started again immediately, it would be cancelled again.
        if self
            .compaction
            .postponed_at_tokens
            .is_some_and(|at| !may_prepare_again(tokens, at, threshold_tokens))
        {
            return;
        }
        if self.pays_notes_from_savings() && !self.has_notes() && !self.affords_notes(tokens) {
            return;
        }
        let (engine, snapshot) = (Arc::clone(&self.setup.engine), self.snapshot());
        // A compaction that does not pay yet is due later, when a summary prepared now would be outdated.
        let due = engine.compaction_due_at(&snapshot).await;
        let due_at = self.note_engine(due).flatten().unwrap_or(threshold_tokens).max(threshold_tokens);
        if !near_threshold(self.setup.policy.automatic, tokens, due_at) {
            return;
        }
        self.tell_corrections().await;
        self.compaction.task_started_at_tokens = tokens;
        if self.compaction.progress.is_none() {
            self.compaction.progress = Some(PreparationProgress::Begun);
            self.emit(EngineEvent::PreparationStarted);
        }
        let chain = self.prompt.view.session().chain;
        let task = tokio::spawn(shared_preparation::prepare(self.setup.clone(), chain, snapshot));
        self.compaction.task = Some(PreparationTask(task));
    }

    /// Waits until a summary in preparation is ready: for callers that control the clock of a conversation and need all due work done
    /// before the next call, and for callers that report progress to a person. May be dropped at any moment.
    pub async fn until_prepared(&mut self) {
        self.finish_preparing().await;
    }

    /// Waits at most `wait` for a summary in preparation. One that is not ready then is continued in the background and used in the next
    /// compaction.
    pub(super) async fn finish_preparing_within(&mut self, wait: Duration) {
        let waited = tokio::time::timeout(wait, self.finish_preparing()).await;
        if waited.is_err() {
            self.compaction.late_task = self.compaction.task.take();
        }
    }

    /// Waits for a summary in preparation.
    pub(super) async fn finish_preparing(&mut self) {
        // The preparation continues if the caller stops waiting.
        let Some(preparing) = &mut self.compaction.task else { return };
        let outcome = match tokio::time::timeout(LONGEST_WAIT, &mut preparing.0).await {
            Ok(Ok(Ok(outcome))) => outcome,
            Ok(Ok(Err(error))) => PrepareOutcome::Failed { detail: error.to_string() },
            Ok(Err(error)) => PrepareOutcome::Failed { detail: error.to_string() },
            Err(_) => PrepareOutcome::Failed { detail: "it took too long".to_owned() },
        };
        self.compaction.task = None;
        let (reached, event) = match outcome {
            PrepareOutcome::Nothing => return,
            PrepareOutcome::Postponed => {
                self.compaction.postponed_at_tokens = Some(self.compaction.task_started_at_tokens);
                (PreparationProgress::Postponed, EngineEvent::PreparationPostponed)
            }
            PrepareOutcome::Ready { messages } => {
                (PreparationProgress::Covered(messages), EngineEvent::PreparationReady { messages })
            }
            PrepareOutcome::Failed { detail } => {
                (PreparationProgress::Failed, EngineEvent::PreparationFailed { detail })
            }
        };
        // The same progress is not reported with every call.
        let before = self.compaction.progress.replace(reached);
        if before != Some(reached) {
            if matches!(reached, PreparationProgress::Covered(_)) {
                self.note_notes(self.compaction.task_started_at_tokens);
            }
            self.emit(event);
        }
    }
}
