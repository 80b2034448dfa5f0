//! Operations between calls: begin, end, manual compaction, switch of model, idle work, undo.

use std::sync::Arc;

use throughline_provider::CachePolicy;
use throughline_store::{EndReason, Millis, NewSession, Selection, SessionId, ViewSelection};
use throughline_tokens::{LimitPolicy, ToolBudgets};

use super::compaction_result::{CompactionResult, CompactionSpec, ManualCompaction};
use super::managed::in_force;
use super::record::ConversationLock;
use super::{ManagedSession, SessionError, record};
use crate::compressor::{Compressor, CompressorSetup};
use crate::context_engine::lifecycle::{BoundaryReason, SessionEnd, SessionStart};
use crate::context_engine::outcome::{CompressOutcome, CompressRequest, Headroom};
use crate::context_engine::status::EngineStatus;
use crate::context_engine::tool::{ToolAnswer, ToolRequest, ToolSchema};
use crate::context_engine::{ContextEngine, EngineError};
use crate::decide::trigger::{
    CompactionVerdict, IdleInput, ModelSwitch, Trigger, Urgency, idle_in_ms, switch, while_idle,
};
use crate::limits::in_force::ModelInForce;
use crate::limits::target::ModelTarget;
use crate::prompt::estimate::Estimator;

/// The name under which the notice about a raised threshold is stored as shown.
const RAISE_TOLD: &str = "notice_codex_autoraise";
/// The assumed cache lifetime of a provider that does not state one.
const USUAL_CACHE_TTL_MS: u64 = 5 * 60 * 1_000;
/// The cache lifetime of a prompt that a client marked for an hour.
const AN_HOUR_MS: u64 = 60 * 60 * 1_000;

impl ManagedSession {
    /// Starts the conversation: tells the engine about its model and session.
    pub(super) async fn begin(&mut self) {
        self.set_summary_booking();
        self.set_summary_target();
        self.inform_engine().await;
        self.report_raised_threshold().await;
    }

    /// Initialises the engine. If that fails, the conversation continues without compaction, an event says so, and the next
    /// call tries again.
    pub(super) async fn inform_engine(&mut self) {
        let engine = Arc::clone(&self.setup.engine);
        let start = SessionStart {
            session: self.id().clone(),
            conversation: self.conversation.clone(),
            wire_format: self.wire_format,
            program: self.prompt.view.session().origin.program.clone(),
            compactions: self.compaction.count,
        };
        let told = match engine.update_model(&self.budget.model).await {
            Ok(()) => engine.session_started(&start).await,
            Err(error) => Err(error),
        };
        self.engine_link.is_informed = told.is_ok();
        if let Err(error) = told
            && self.engine_link.notices.is_news(&error)
        {
            self.notice(format!("{error}; the conversation goes on, and is not compacted until it answers"));
        }
    }

    /// Returns the engine's answer. Reports a failure as an event, once as long as it stays the same.
    pub(super) fn note_engine<T>(&mut self, answer: Result<T, EngineError>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(error) => {
                if self.engine_link.notices.is_news(&error) {
                    self.notice(error.to_string());
                }
                None
            }
        }
    }

    async fn report_raised_threshold(&self) {
        let target = &self.setup.target;
        if let Some(text) = target.threshold_origin.notice(&target.model) {
            self.notice_once(RAISE_TOLD, text).await;
        }
    }

    /// The status of the engine.
    pub async fn status(&self) -> Result<EngineStatus, EngineError> {
        self.setup.engine.status().await
    }

    /// Compacts on a user's request: also below the threshold, regardless of guards, and even if automatic compaction is
    /// off.
    pub async fn compact(&mut self, manual: ManualCompaction) -> CompactionResult {
        let ManualCompaction { focus, keep_exchanges, memory_context } = manual;
        let keep_messages = keep_exchanges.map(|exchanges| self.messages_of_last(exchanges));
        let usual = CompactionSpec::new(Trigger::Manual, Urgency::Overdue);
        let ask = CompactionSpec { force: true, focus, keep_messages, memory_context, ..usual };
        self.run_compaction(ask).await
    }

    /// Previews a manual compaction, with a summary by rules: no model is called and nothing is changed.
    pub async fn preview(&self, manual: &ManualCompaction) -> Result<CompressOutcome, EngineError> {
        self.preview_with(manual, &Compressor::new(CompressorSetup::by_rules()), None).await
    }

    /// The same with another engine, which must call no model and store nothing, or with another threshold. An impossible
    /// threshold is reported as the engine's answer.
    pub async fn preview_with(
        &self,
        manual: &ManualCompaction,
        engine: &dyn ContextEngine,
        threshold_tokens: Option<u64>,
    ) -> Result<CompressOutcome, EngineError> {
        match threshold_tokens {
            None => engine.update_model(&self.budget.model).await?,
            Some(tokens) => engine.update_model(&self.model_with_threshold(tokens)?).await?,
        }
        let request = CompressRequest {
            conversation: self.snapshot(),
            trigger: Trigger::Manual,
            room: Headroom::Left,
            focus: manual.focus.clone(),
            force: true,
            target_tokens: None,
            keep_messages: manual.keep_exchanges.map(|exchanges| self.messages_of_last(exchanges)),
            memory_context: manual.memory_context.clone(),
        };
        let mut outcome = engine.compress(&request).await?;
        if let CompressOutcome::Completed(done) = &mut outcome
            && let Some(price) = self.setup.target.input_price(self.setup.host.now_ms())
        {
            done.report.price(price, self.budget.model.prices);
        }
        Ok(outcome)
    }

    /// The model with the limits for another threshold.
    fn model_with_threshold(&self, tokens: u64) -> Result<ModelInForce, EngineError> {
        let target = &self.setup.target;
        let policy = LimitPolicy { threshold_tokens: Some(tokens), ..target.policy };
        let (fixed_tokens, prices) = (self.budget.model.limits.fixed_tokens, self.budget.model.prices);
        let model = ModelTarget { policy, ..target.clone() }.in_force(None, fixed_tokens, prices, None);
        model.map_err(|error| EngineError::BadAnswer {
            engine: self.setup.engine.name().to_owned(),
            detail: error.to_string(),
        })
    }

    /// How many messages the newest exchanges have. An exchange begins with a human message.
    #[must_use]
    pub fn messages_of_last(&self, exchanges: usize) -> usize {
        let messages = self.prompt.view.messages();
        let mut human = messages.iter().enumerate().rev().filter(|(_, message)| message.is_human());
        let first = human.nth(exchanges.saturating_sub(1)).map_or(0, |(index, _)| index);
        messages.len() - first
    }

    /// Switches to another model. If its window is smaller, the next call compacts first if it must.
    pub async fn switch_model(&mut self, target: ModelTarget) -> Result<(), SessionError> {
        if target.wire_format != self.wire_format {
            return Err(SessionError::OtherWire {
                conversation: self.wire_format,
                request: target.wire_format,
            });
        }
        let prices = target.prices(self.setup.host.now_ms());
        let model = in_force(&target, None, self.budget.model.limits.fixed_tokens, prices, None)?;
        let calibrator = record::calibrator(&self.setup, target.scope(), self.setup.host.now_ms()).await?;
        self.budget.switch = switch(&self.budget.model, &model);
        self.setup.target = target;
        self.set_summary_target();
        self.budget.model = model;
        self.update_engine().await;
        self.prompt.view.set_model(self.token_model(), self.setup.target.cache);
        self.budget.estimator = Estimator::new(calibrator);
        self.compaction.reset_for_new_model();
        self.prompt.forget_sent_items();
        self.store_guard().await;
        self.report_raised_threshold().await;
        Ok(())
    }

    /// How long until [`idle`](Self::idle) should be called. `None` if waiting makes no difference.
    #[must_use]
    pub fn idle_in_ms(&self) -> Option<u64> {
        idle_in_ms(&self.while_idle()?)
    }

    /// Compacts if the provider's cache has expired and the view is large enough for it to pay.
    pub async fn idle(&mut self) -> Option<CompactionResult> {
        let figures = self.while_idle()?;
        let CompactionVerdict::Compact { trigger, urgency } = while_idle(&figures) else { return None };
        // The same view is not examined again, whatever the result is.
        self.compaction.idle_checked_at = Some(self.prompt.view.len());
        let has_content = self.setup.engine.has_content_to_compress(&self.snapshot()).await;
        match self.note_engine(has_content) {
            Some(true) => Some(
                self.run_compaction(CompactionSpec { force: true, ..CompactionSpec::new(trigger, urgency) })
                    .await,
            ),
            Some(false) | None => None,
        }
    }

    fn while_idle(&self) -> Option<IdleInput> {
        if self.compaction.idle_checked_at == Some(self.prompt.view.len()) {
            return None;
        }
        let cache_ttl_ms = self.cache_ttl_ms();
        Some(IdleInput {
            automatic: self.setup.policy.automatic,
            tokens: self.pending().total_tokens,
            fixed_tokens: self.budget.model.limits.fixed_tokens,
            threshold_tokens: self.budget.model.limits.threshold_tokens,
            cold_tokens: self.cold_tokens(),
            last_call_ms: self.prompt.last_call_ms?,
            cache_ttl_ms,
            now_ms: self.setup.host.now_ms(),
        })
    }

    /// Restores the view before the last compaction, with all messages since. Refused if that would not fit.
    pub async fn undo(&mut self) -> Result<(), SessionError> {
        self.select(Selection::Undo, BoundaryReason::Undo).await
    }

    /// Restores the view of a compaction that was undone.
    pub async fn redo(&mut self) -> Result<(), SessionError> {
        self.select(Selection::Redo, BoundaryReason::Redo).await
    }

    async fn select(&mut self, selection: Selection, reason: BoundaryReason) -> Result<(), SessionError> {
        self.write_unrecorded().await?;
        let old = self.id().clone();
        let at_ms = self.setup.host.now_ms();
        let successor = SessionId::new(at_ms, self.setup.host.random(), self.setup.policy.ids);
        let limit_tokens = self.budget.model.prompt_room_tokens().saturating_sub(self.prompt.fixed_tokens());
        let held = self.lock_for_compaction().await?;
        let lease = held.as_ref().or(self.persistence.lock.as_ref()).map(ConversationLock::lease);
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let wanted = ViewSelection { session: old.clone(), selection, successor, at_ms, limit_tokens, lease };
        let select = move || store.select_view(&owner, wanted).map(|session| (session, None));
        let (session, _) = self.switch_session(select).await?;
        drop(held);
        let loaded = record::load(&self.setup, &session.id, at_ms).await?;
        self.prompt.view = loaded.view;
        self.persistence.version = loaded.version;
        self.compaction.count = loaded.compactions;
        self.persistence.write = None;
        self.enter_session(reason, old).await;
        self.forget_left_out();
        // The user chose this view, so it is not compacted automatically right away.
        self.compaction.idle_checked_at = Some(self.prompt.view.len());
        Ok(())
    }

    /// The tools that the engine offers to the model. They stay the same for the whole conversation, because a change would
    /// invalidate the cached prefix.
    pub async fn tool_schemas(&mut self) -> Vec<ToolSchema> {
        let schemas = self.setup.engine.tool_schemas().await;
        self.note_engine(schemas).unwrap_or_default()
    }

    /// Runs a tool of the engine. `calls_in_step` is the number of calls in the answer, whose results share the limit.
    pub async fn handle_tool_call(
        &self,
        name: &str,
        arguments: serde_json::Value,
        calls_in_step: usize,
    ) -> Result<ToolAnswer, EngineError> {
        let max_chars = Some(self.lookup_chars(calls_in_step));
        let call = ToolRequest { session: self.id().clone(), name: name.to_owned(), arguments, max_chars };
        self.setup.engine.handle_tool_call(&call).await
    }

    /// The characters that each of this many lookups in one answer may return without exceeding the limits.
    #[must_use]
    pub fn lookup_chars(&self, calls_in_step: usize) -> u64 {
        let LimitPolicy { window_tokens, tool_result_chars, tool_step_chars, tool_preview_chars, .. } =
            self.setup.target.policy;
        let budgets =
            ToolBudgets::compute(Some(window_tokens), tool_result_chars, tool_step_chars, tool_preview_chars);
        let calls = u64::try_from(calls_in_step).unwrap_or(u64::MAX).max(1);
        budgets.result_chars.effective.min(budgets.step_chars.effective / calls)
    }

    /// Exempts tools whose results are never stored as artifacts, because they have limits of their own.
    pub fn exempt_tools(&mut self, tools: impl IntoIterator<Item = String>) {
        let lookups = &mut self.setup.tool_output.lookups;
        for tool in tools {
            if !lookups.contains(&tool) {
                lookups.push(tool);
            }
        }
    }

    /// Whether the last prompt has expired in the provider's cache, so that a new prefix costs nothing extra.
    #[must_use]
    pub fn is_cache_cold(&self) -> bool {
        let age_ms = |last: Millis| u64::try_from(self.setup.host.now_ms().saturating_sub(last)).unwrap_or(0);
        self.prompt.last_call_ms.is_some_and(|last| age_ms(last) > self.cache_ttl_ms())
    }

    /// How long the provider caches a prompt.
    fn cache_ttl_ms(&self) -> u64 {
        if self.client_marks_an_hour() {
            return AN_HOUR_MS;
        }
        match self.setup.target.cache {
            CachePolicy::Marks { ttl, .. } => u64::try_from(ttl.duration().as_millis()).unwrap_or(u64::MAX),
            CachePolicy::Key | CachePolicy::Unmarked => USUAL_CACHE_TTL_MS,
        }
    }

    /// Ends the conversation and begins another with the same engine, whose state is reset.
    pub async fn start_over(mut self, reason: EndReason, new: NewSession) -> Result<Self, SessionError> {
        let setup = self.setup.clone();
        self.close(reason).await?;
        let reset = setup.engine.session_reset().await;
        self.note_engine(reset);
        // The lock of the conversation is released when this value is dropped.
        drop(self);
        Self::create(setup, new).await
    }

    /// Ends the conversation.
    pub async fn end(mut self, reason: EndReason) -> Result<(), SessionError> {
        self.close(reason).await
    }

    async fn close(&mut self, reason: EndReason) -> Result<(), SessionError> {
        self.write_unrecorded().await?;
        let at_ms: Millis = self.setup.host.now_ms();
        let (store, owner, id) = (Arc::clone(&self.setup.store), self.setup.owner.clone(), self.id().clone());
        let why = reason.clone();
        record::blocking(move || store.end_session(&owner, &id, &why, at_ms)).await?;
        let end = SessionEnd { session: self.id().clone(), reason };
        let ended = self.setup.engine.session_ended(&end).await;
        self.note_engine(ended);
        Ok(())
    }

    /// Whether the session has just switched to a model with a smaller window.
    #[must_use]
    pub fn has_switched_to_smaller(&self) -> bool {
        self.budget.switch == ModelSwitch::ToSmallerWindow
    }
}
