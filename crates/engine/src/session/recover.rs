//! After trouble: one step at a time, each told and counted, until the call gets through or nothing helps.

use std::time::Duration;

use throughline_provider::{Refusal, Trouble, TroubleKind};
use throughline_transcript::Message;

use super::call::{CallState, SentRequest, tried};
use super::compaction::{CompactionResult, CompactionSpec};
use super::settle::failure_words;
use super::{ManagedSession, SessionError, in_force, with_window};
use crate::decide::recovery::{
    AlternativeModel, FailureContext, RecoveryAction, RecoveryAdvice, RecoveryFailure, RecoveryStep,
    SMALLEST_BELIEVABLE_WINDOW, next_step,
};
use crate::decide::trigger::{Trigger, Urgency};
use crate::event::EngineEvent;
use crate::prompt::images::{old_image_bytes, without_old_images};
use crate::upstream::{UpstreamFailure, UpstreamFailureCause};

/// How often another process is waited for that compacts the same conversation, a second each.
const LOCK_WAITS: u32 = 10;
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// A step that was decided on.
pub(super) struct RecoveryPlan {
    step: RecoveryStep,
    trouble: Trouble,
    /// Which alternative the step means, if it means one.
    alternative: Option<usize>,
    was_cap_tokens: Option<u64>,
    old_image_bytes: u64,
}

impl ManagedSession {
    /// Books a call that failed and decides what to do about it. An error means: nothing.
    pub(super) async fn take_failure(
        &mut self,
        sent: &SentRequest,
        unanswered: UpstreamFailure,
        way: &CallState,
        task: &str,
    ) -> Result<RecoveryPlan, SessionError> {
        let trouble = match &unanswered.cause {
            UpstreamFailureCause::Trouble(trouble) => trouble.clone(),
            UpstreamFailureCause::Cancelled => {
                self.book_failure(sent, "cancelled", unanswered.received.as_ref(), way, task).await;
                self.keep_received(unanswered).await;
                return Err(SessionError::Cancelled);
            }
        };
        let arrived = unanswered.received.as_ref();
        self.book_failure(sent, &failure_words(&trouble), arrived, way, task).await;
        self.note_counted(sent, &trouble, way).await;
        let alternatives = self.alternatives(way);
        let names: Vec<AlternativeModel> =
            alternatives.iter().map(|(_, alternative)| alternative.clone()).collect();
        let here = FailureContext {
            automatic: self.setup.policy.automatic,
            waiting: way.waiting,
            window_tokens: self.asked(way).policy.window_tokens,
            prompt_tokens: self.pending().total_tokens,
            body_bytes: sent.body_bytes,
            old_image_bytes: old_image_bytes(&self.view),
            output_cap_tokens: sent.output_cap_tokens,
            answer: unanswered.passed_on,
            alternatives: &names,
            jitter_permille: u64::from(self.setup.host.random() % 1_000),
        };
        let step = next_step(&trouble, &way.tried, &here);
        if let RecoveryStep::GiveUp(advice) = step {
            let refusal = self.keep_received(unanswered).await;
            return Err(self.gave_up(trouble, way, advice, refusal));
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

    /// Does what was decided; then the call is made again.
    pub(super) async fn recover(
        &mut self,
        decided: RecoveryPlan,
        way: &mut CallState,
    ) -> Result<(), SessionError> {
        let RecoveryPlan { step, trouble, alternative, was_cap_tokens, old_image_bytes } = decided;
        let done = match step {
            RecoveryStep::GiveUp(advice) => return Err(self.gave_up(trouble, way, advice, None)),
            RecoveryStep::Compact { learn_window_tokens, target_tokens } => {
                if let Some(window_tokens) = learn_window_tokens {
                    self.learn_window(window_tokens, way).await?;
                }
                self.fold_for_room(target_tokens).await
            }
            RecoveryStep::LowerCap { tokens } => {
                if let TroubleKind::OutputCapTooLarge { window_tokens: Some(window), .. } = trouble.kind {
                    self.checks_caps |= way.alternative.is_none();
                    if (SMALLEST_BELIEVABLE_WINDOW..self.asked(way).policy.window_tokens).contains(&window) {
                        self.learn_window(window, way).await?;
                    }
                }
                self.tell(EngineEvent::CapLowered { tokens, was_tokens: was_cap_tokens });
                way.for_this_call.output_cap_tokens = Some(tokens);
                RecoveryAction::LoweredCap { tokens }
            }
            RecoveryStep::RemoveOldImages => self.remove_old_images(old_image_bytes).await,
            RecoveryStep::AskAnother { .. } => self.ask_another(alternative, &trouble, way),
            RecoveryStep::Wait { ms } => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                RecoveryAction::Waited { ms }
            }
        };
        self.tell(EngineEvent::Retrying { after: done.clone(), trouble: trouble.to_string() });
        way.tried.push(done);
        Ok(())
    }

    /// A refusal that says how large the prompt was has counted it.
    async fn note_counted(&mut self, sent: &SentRequest, trouble: &Trouble, way: &CallState) {
        let counted = match trouble.kind {
            TroubleKind::PromptTooLong { prompt_tokens, .. }
            | TroubleKind::OutputCapTooLarge { prompt_tokens, .. } => prompt_tokens,
            _ => None,
        };
        if let Some(tokens) = counted.filter(|_| way.alternative.is_none()) {
            self.anchor_at(tokens, sent.estimated_tokens()).await;
        }
    }

    /// Models that have not been asked yet and speak the same wire, with their places.
    fn alternatives(&self, way: &CallState) -> Vec<(usize, AlternativeModel)> {
        let asked = |model: &str| {
            way.tried
                .iter()
                .any(|tried| matches!(tried, RecoveryAction::AskedAnother { model: known } if known == model))
        };
        let all = self.setup.alternatives.iter().enumerate();
        let open = all.filter(|(_, target)| target.wire_format == self.wire_format && !asked(&target.model));
        open.filter_map(|(index, target)| {
            let limits = &self.model.limits;
            let model = target.in_force(None, limits.fixed_tokens, self.model.prices).ok()?;
            let prompt_room_tokens = model.prompt_room_tokens();
            Some((index, AlternativeModel { model: target.model.clone(), prompt_room_tokens }))
        })
        .collect()
    }

    /// A smaller window holds from now on: for this conversation, and, written down, for every other.
    async fn learn_window(&mut self, window_tokens: u64, way: &mut CallState) -> Result<(), SessionError> {
        let target = self.asked(way);
        let (model, was_tokens, scope) = (target.model.clone(), target.policy.window_tokens, target.scope());
        let smaller = with_window(target, window_tokens);
        match way.alternative.and_then(|index| self.setup.alternatives.get_mut(index)) {
            Some(alternative) => *alternative = smaller,
            None => {
                let cap = self.model.limits.reserved_output_tokens;
                let in_force =
                    in_force(&smaller, Some(cap), self.model.limits.fixed_tokens, self.model.prices)?;
                self.setup.target = smaller;
                self.tell_target();
                self.model = in_force;
                self.update_engine().await;
            }
        }
        self.keep_window(scope, window_tokens).await;
        self.tell(EngineEvent::WindowLearnt { model, window_tokens, was_tokens });
        way.tried.push(RecoveryAction::LearntWindow { tokens: window_tokens });
        Ok(())
    }

    /// Compacts because nothing can be sent otherwise. Another process that does the same is waited for.
    async fn fold_for_room(&mut self, target_tokens: Option<u64>) -> RecoveryAction {
        let before = self.id().clone();
        let ask = CompactionSpec {
            force: true,
            target_tokens,
            ..CompactionSpec::new(Trigger::Overflow, Urgency::Must)
        };
        for _ in 0..LOCK_WAITS {
            let before_tokens = self.pending().total_tokens;
            let result = self.fold(ask.clone()).await;
            if let Some(tried) = tried(&result) {
                return tried;
            }
            let CompactionResult::Locked { .. } = result else { break };
            tokio::time::sleep(LOCK_WAIT).await;
            if self.follow_elsewhere().await.is_ok() && *self.id() != before {
                return RecoveryAction::Compacted {
                    before_tokens,
                    after_tokens: self.pending().total_tokens,
                };
            }
        }
        RecoveryAction::CompactedInVain { detail: "another process holds the conversation".to_owned() }
    }

    /// Puts labels in place of older pictures: a new view without a summary.
    async fn remove_old_images(&mut self, bytes: u64) -> RecoveryAction {
        let made = without_old_images(&self.view, self.pending().total_tokens);
        let moment = self.moment();
        match self.commit(made, Trigger::Overflow, moment).await {
            CompactionResult::Completed(_) => RecoveryAction::RemovedImages { bytes },
            _ => {
                RecoveryAction::CompactedInVain { detail: "older pictures could not be replaced".to_owned() }
            }
        }
    }

    fn ask_another(&self, index: Option<usize>, trouble: &Trouble, way: &mut CallState) -> RecoveryAction {
        let instead_of = self.asked(way).model.clone();
        way.alternative = index;
        let model = self.asked(way).model.clone();
        way.for_this_call.model = Some(model.clone());
        let trouble = trouble.to_string();
        self.tell(EngineEvent::FallbackUsed { model: model.clone(), instead_of, trouble });
        RecoveryAction::AskedAnother { model }
    }

    /// What was received of an answer that broke off goes into the record, unless it asks for tools: a conversation that
    /// goes on after a call without a result is refused everywhere. Gives back what came instead of an answer.
    async fn keep_received(&mut self, unanswered: UpstreamFailure) -> Option<Box<Refusal>> {
        let answer = unanswered.received.filter(|answer| !answer.messages.iter().any(Message::has_calls));
        if let Some(answer) = answer {
            self.take_answer(&answer).await;
        }
        unanswered.refusal
    }

    fn gave_up(
        &self,
        trouble: Trouble,
        way: &CallState,
        advice: RecoveryAdvice,
        refusal: Option<Box<Refusal>>,
    ) -> SessionError {
        let hint = self.asked(way).upstream.advice(&trouble, &self.asked(way).model);
        SessionError::Exhausted(Box::new(RecoveryFailure {
            trouble,
            tried: way.tried.clone(),
            advice,
            hint,
            refusal,
        }))
    }
}
