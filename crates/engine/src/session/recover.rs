//! Recovery from a failed call: one step at a time, each reported and counted, until the call succeeds or no step is left.

use std::time::Duration;

use throughline_provider::{ProviderError, ProviderErrorKind, Refusal};
use throughline_transcript::Message;

use super::call_state::{CallState, SentRequest};
use super::compaction_result::{CompactionResult, CompactionSpec, action_of};
use super::managed::{in_force, with_window};
use super::settle::failure_words;
use super::{ManagedSession, SessionError};
use crate::decide::recovery::{
    AlternativeModel, FailureContext, RecoveryAction, RecoveryAdvice, RecoveryFailure, RecoveryStep,
    SMALLEST_BELIEVABLE_WINDOW, next_step,
};
use crate::decide::trigger::{Trigger, Urgency};
use crate::event::EngineEvent;
use crate::prompt::images::{old_image_bytes, without_old_images};
use crate::upstream::{UpstreamFailure, UpstreamFailureCause};

/// How many times to wait one second for another process that compacts the same conversation.
const LOCK_WAITS: u32 = 10;
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// A recovery step that was decided.
pub(super) struct RecoveryPlan {
    step: RecoveryStep,
    trouble: ProviderError,
    /// The alternative model of the step, if it has one.
    alternative: Option<usize>,
    was_cap_tokens: Option<u64>,
    old_image_bytes: u64,
}

impl ManagedSession {
    /// Books a failed call and decides the next step. Returns an error if no step is left.
    pub(super) async fn take_failure(
        &mut self,
        sent: &SentRequest,
        unanswered: UpstreamFailure,
        state: &CallState,
        task: &str,
    ) -> Result<RecoveryPlan, SessionError> {
        let trouble = match &unanswered.cause {
            UpstreamFailureCause::Trouble(trouble) => trouble.clone(),
            UpstreamFailureCause::Cancelled => {
                self.book_failure(sent, "cancelled", unanswered.received.as_ref(), state, task).await;
                self.record_partial_answer(unanswered).await;
                return Err(SessionError::Cancelled);
            }
        };
        let arrived = unanswered.received.as_ref();
        self.book_failure(sent, &failure_words(&trouble), arrived, state, task).await;
        self.note_counted(sent, &trouble, state).await;
        let alternatives = self.alternatives(state);
        let names: Vec<AlternativeModel> =
            alternatives.iter().map(|(_, alternative)| alternative.clone()).collect();
        let here = FailureContext {
            automatic: self.setup.policy.automatic,
            waiting: state.waiting,
            window_tokens: self.called_target(state).policy.window_tokens,
            prompt_tokens: self.pending().total_tokens,
            body_bytes: sent.body_bytes,
            old_image_bytes: old_image_bytes(&self.prompt.view),
            output_cap_tokens: sent.output_cap_tokens,
            answer: unanswered.passed_on,
            alternatives: &names,
            jitter_permille: u64::from(self.setup.host.random() % 1_000),
        };
        let step = next_step(&trouble, &state.tried, &here);
        if let RecoveryStep::GiveUp(advice) = step {
            let refusal = self.record_partial_answer(unanswered).await;
            return Err(self.exhausted(trouble, state, advice, refusal));
        }
        let alternative = match step {
            RecoveryStep::AskAnother { alternative } => {
                alternatives.get(alternative).map(|(index, _)| *index)
            }
            _ => None,
        };
        Ok(RecoveryPlan {
            step,
            trouble,
            alternative,
            was_cap_tokens: sent.output_cap_tokens,
            old_image_bytes: here.old_image_bytes,
        })
    }

    /// Carries out a step. The caller then repeats the call.
    pub(super) async fn recover(
        &mut self,
        decided: RecoveryPlan,
        state: &mut CallState,
    ) -> Result<(), SessionError> {
        let RecoveryPlan { step, trouble, alternative, was_cap_tokens, old_image_bytes } = decided;
        let done = match step {
            RecoveryStep::GiveUp(advice) => {
                return Err(self.exhausted(trouble, state, advice, None));
            }
            RecoveryStep::Compact { learn_window_tokens, target_tokens } => {
                if let Some(window_tokens) = learn_window_tokens {
                    self.learn_window(window_tokens, state).await?;
                }
                self.compact_for_overflow(target_tokens).await
            }
            RecoveryStep::LowerCap { tokens } => {
                if let ProviderErrorKind::OutputCapTooLarge { window_tokens: Some(window), .. } = trouble.kind
                {
                    self.budget.checks_caps |= state.alternative.is_none();
                    if (SMALLEST_BELIEVABLE_WINDOW..self.called_target(state).policy.window_tokens)
                        .contains(&window)
                    {
                        self.learn_window(window, state).await?;
                    }
                }
                self.emit(EngineEvent::CapLowered { tokens, was_tokens: was_cap_tokens });
                state.for_this_call.output_cap_tokens = Some(tokens);
                RecoveryAction::LoweredCap { tokens }
            }
            RecoveryStep::RemoveOldImages => self.remove_old_images(old_image_bytes).await,
            RecoveryStep::AskAnother { .. } => self.ask_another(alternative, &trouble, state),
            RecoveryStep::Wait { ms } => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                RecoveryAction::Waited { ms }
            }
        };
        self.emit(EngineEvent::Retrying { after: done.clone(), trouble: trouble.to_string() });
        state.tried.push(done);
        Ok(())
    }

    /// Uses the prompt size that an error stated as a measurement.
    async fn note_counted(&mut self, sent: &SentRequest, trouble: &ProviderError, state: &CallState) {
        let counted = match trouble.kind {
            ProviderErrorKind::PromptTooLong { prompt_tokens, .. }
            | ProviderErrorKind::OutputCapTooLarge { prompt_tokens, .. } => prompt_tokens,
            _ => None,
        };
        if let Some(tokens) = counted.filter(|_| state.alternative.is_none()) {
            self.anchor_estimate(tokens, sent.estimated_tokens()).await;
        }
    }

    /// Models of the same wire format that were not called yet, with their indices.
    fn alternatives(&self, state: &CallState) -> Vec<(usize, AlternativeModel)> {
        let asked = |model: &str| {
            state
                .tried
                .iter()
                .any(|tried| matches!(tried, RecoveryAction::AskedAnother { model: known } if known == model))
        };
        let all = self.setup.alternatives.iter().enumerate();
        let open = all.filter(|(_, target)| target.wire_format == self.wire_format && !asked(&target.model));
        open.filter_map(|(index, target)| {
            let limits = &self.budget.model.limits;
            let model = target.in_force(None, limits.fixed_tokens, self.budget.model.prices, None).ok()?;
            let prompt_room_tokens = model.prompt_room_tokens();
            Some((index, AlternativeModel { model: target.model.clone(), prompt_room_tokens }))
        })
        .collect()
    }

    /// Sets a smaller window for this conversation, and stores it for all others.
    async fn learn_window(&mut self, window_tokens: u64, state: &mut CallState) -> Result<(), SessionError> {
        let target = self.called_target(state);
        let (model, was_tokens, scope) = (target.model.clone(), target.policy.window_tokens, target.scope());
        let smaller = with_window(target, window_tokens);
        match state.alternative.and_then(|index| self.setup.alternatives.get_mut(index)) {
            Some(alternative) => *alternative = smaller,
            None => {
                let cap = self.budget.model.limits.reserved_output_tokens;
                let in_force = in_force(
                    &smaller,
                    Some(cap),
                    self.budget.model.limits.fixed_tokens,
                    self.budget.model.prices,
                    None,
                )?;
                self.setup.target = smaller;
                self.set_summary_target();
                self.budget.model = in_force;
                self.update_engine().await;
            }
        }
        self.store_window(scope, window_tokens).await;
        self.emit(EngineEvent::WindowLearnt { model, window_tokens, was_tokens });
        state.tried.push(RecoveryAction::LearntWindow { tokens: window_tokens });
        Ok(())
    }

    /// Compacts because the request does not fit otherwise. Waits for another process that compacts the same conversation.
    async fn compact_for_overflow(&mut self, target_tokens: Option<u64>) -> RecoveryAction {
        let before = self.id().clone();
        let ask = CompactionSpec {
            force: true,
            target_tokens,
            ..CompactionSpec::new(Trigger::Overflow, Urgency::Must)
        };
        for _ in 0..LOCK_WAITS {
            let before_tokens = self.pending().total_tokens;
            let result = self.run_compaction(ask.clone()).await;
            if let Some(tried) = action_of(&result) {
                return tried;
            }
            let CompactionResult::Locked { .. } = result else { break };
            tokio::time::sleep(LOCK_WAIT).await;
            if self.reload_view().await.is_ok() && *self.id() != before {
                return RecoveryAction::Compacted {
                    before_tokens,
                    after_tokens: self.pending().total_tokens,
                };
            }
        }
        RecoveryAction::CompactedInVain { detail: "another process has locked the conversation".to_owned() }
    }

    /// Replaces older images by labels, in a new view without a summary.
    async fn remove_old_images(&mut self, bytes: u64) -> RecoveryAction {
        let made = without_old_images(&self.prompt.view, self.pending().total_tokens);
        let moment = self.moment();
        let held = match self.lock_for_compaction().await {
            Ok(held) => held,
            Err(error) => return RecoveryAction::CompactedInVain { detail: error.to_string() },
        };
        match self.commit(made, Trigger::Overflow, moment, held.as_ref()).await {
            CompactionResult::Completed(_) => RecoveryAction::RemovedImages { bytes },
            _ => {
                RecoveryAction::CompactedInVain { detail: "older pictures could not be replaced".to_owned() }
            }
        }
    }

    fn ask_another(
        &self,
        index: Option<usize>,
        trouble: &ProviderError,
        state: &mut CallState,
    ) -> RecoveryAction {
        let instead_of = self.called_target(state).model.clone();
        state.alternative = index;
        let model = self.called_target(state).model.clone();
        state.for_this_call.model = Some(model.clone());
        let trouble = trouble.to_string();
        self.emit(EngineEvent::FallbackUsed { model: model.clone(), instead_of, trouble });
        RecoveryAction::AskedAnother { model }
    }

    /// Records the received part of an answer that broke off, unless it contains tool calls: every provider refuses a
    /// conversation with an unanswered call. Returns the upstream's error response, if there was one.
    async fn record_partial_answer(&mut self, unanswered: UpstreamFailure) -> Option<Box<Refusal>> {
        let answer = unanswered.received.filter(|answer| !answer.messages.iter().any(Message::has_calls));
        if let Some(answer) = answer {
            self.record_answer(&answer).await;
        }
        unanswered.refusal
    }

    fn exhausted(
        &self,
        trouble: ProviderError,
        state: &CallState,
        advice: RecoveryAdvice,
        refusal: Option<Box<Refusal>>,
    ) -> SessionError {
        let hint = self.called_target(state).upstream.advice(&trouble, &self.called_target(state).model);
        SessionError::Exhausted(Box::new(RecoveryFailure {
            trouble,
            tried: state.tried.clone(),
            advice,
            hint,
            refusal,
        }))
    }
}
