//! Settles an answer: records it, books its usage, and calibrates the estimator.

use std::sync::Arc;

use throughline_provider::{CacheOutcome, CachePolicy, CacheRules, ProviderError, SentPrompt};
use throughline_store::{NewCall, UsageKind};
use throughline_tokens::Usage;
use throughline_wire::Answer;

use super::call_input::CallOutcome;
use super::call_state::{CallState, SentRequest};
use super::persistence::Persistence;
use super::prompt_state::{LastRequest, Responder};
use super::record::BookingFailure;
use super::{ManagedSession, record};
use crate::accounting::{CallRecord, CallUsage};
use crate::context_engine::status::MeasuredUsage;
use crate::decide::guard::GuardInput;
use crate::decide::trigger::{CompactionVerdict, Trigger, after_answer};
use crate::prompt::estimate::counts_whole_prompt;
use crate::upstream::UpstreamAnswer;

/// The limit of calls waiting to be recorded; beyond it the oldest are dropped.
const MOST_UNBOOKED: usize = 1_000;

impl ManagedSession {
    /// Records and books an answer. It was paid for, so the caller gets it even if the record fails.
    pub(super) async fn settle(
        &mut self,
        sent: SentRequest,
        received: UpstreamAnswer,
        mut state: CallState,
        task: &str,
    ) -> CallOutcome {
        let used = CallUsage::of(&received.answer, || self.estimated_usage(&sent, &received.answer));
        let usage = used.reading.usage;
        let cache = self.cache_outcome(&sent, &used, &state);
        let made = self.call_record(&sent, &state, task);
        let (model, latency_ms) = (made.target.model.clone(), made.latency_ms);
        let cost = used.cost(made.target, sent.at_ms);
        let by = if state.alternative.is_none() { Responder::OwnModel } else { Responder::Another };
        let call = NewCall { cache_miss: missed(&cache), ..made.answered(&received, &used) };
        let call = self.with_request_reference(call, &sent);
        let answer = received.answer;
        self.remember_request(&sent, &used, by);
        self.note_spending(&usage);
        self.record_answer(&answer).await;
        self.book(&sent, call).await;
        if let Some(recorded) = state.on_recorded.take() {
            // The receiver may be gone.
            let _ = recorded.send(());
        }
        if by == Responder::OwnModel {
            self.learn_from_usage(&sent, &usage, used.kind).await;
        }
        self.store_guard().await;
        self.store_limits().await;
        let pressure = self.pressure();
        self.prepare_ahead(pressure.tokens).await;
        CallOutcome {
            answer,
            session: self.id().clone(),
            model,
            usage,
            usage_kind: used.kind,
            cost,
            cache,
            marks: sent.encoded.marks,
            pressure,
            latency_ms,
            tried: state.tried,
        }
    }

    /// The estimated usage of a call.
    fn estimated_usage(&self, sent: &SentRequest, answer: &Answer) -> Usage {
        let output = answer.messages.iter().map(|message| self.prompt.view.estimate(message)).sum();
        Usage { input: sent.pending.total_tokens, output, ..Usage::default() }
    }

    /// A call in the form for the record.
    fn call_record<'a>(&'a self, sent: &SentRequest, state: &CallState, task: &'a str) -> CallRecord<'a> {
        CallRecord {
            target: self.called_target(state),
            task,
            at_ms: sent.at_ms,
            latency_ms: sent.latency_ms(),
        }
    }

    /// A call with the size of its prompt.
    fn with_request_reference(&self, call: NewCall, sent: &SentRequest) -> NewCall {
        let preamble = self.prompt.envelope.preamble().map(|(_, id)| id.clone());
        NewCall { preamble, sent_to_seq: Some(sent.to_seq), ..call }
    }

    fn cache_outcome(&self, sent: &SentRequest, used: &CallUsage, state: &CallState) -> CacheOutcome {
        let target = self.called_target(state);
        let lifetime = match target.cache {
            CachePolicy::Marks { ttl, .. } => Some(ttl.duration()),
            CachePolicy::Key | CachePolicy::Unmarked => None,
        };
        let rules = CacheRules { lifetime, minimum_tokens: target.cache_minimum_tokens };
        let now = SentPrompt {
            fingerprint: sent.encoded.fingerprint.clone(),
            sent_at_ms: sent.at_ms,
            prompt_tokens: Some(used.reading.usage.prompt()),
            is_cached: is_cached(target.cache, sent),
        };
        let usage = used.tells_of_cache.then_some(&used.reading.usage);
        CacheOutcome::of_call(self.prompt.last_request.as_ref().map(|last| &last.prompt), &now, usage, rules)
    }

    /// Stores the figures that the next call is compared with.
    fn remember_request(&mut self, sent: &SentRequest, used: &CallUsage, by: Responder) {
        let prompt_tokens = (used.kind == UsageKind::Measured).then(|| used.reading.usage.prompt());
        let prompt = SentPrompt {
            fingerprint: sent.encoded.fingerprint.clone(),
            sent_at_ms: sent.at_ms,
            prompt_tokens,
            is_cached: is_cached(self.setup.target.cache, sent),
        };
        self.prompt.has_placed_marks |= sent.encoded.marks.are_ours();
        self.prompt.last_request = Some(LastRequest {
            prompt,
            items: sent.pending.messages,
            by,
            cache_read_tokens: used.reading.usage.cache_read,
            extras: Some(sent.extras.clone()),
        });
        self.prompt.last_call_ms = Some(self.setup.host.now_ms());
        self.note_call();
    }

    /// Evaluates the measured prompt: calibrates sizes, judges the last compaction, and decides whether the next is due.
    async fn learn_from_usage(&mut self, sent: &SentRequest, usage: &Usage, kind: UsageKind) {
        let engine = Arc::clone(&self.setup.engine);
        let session = self.id().clone();
        let is_whole = counts_whole_prompt(usage.prompt(), sent.estimated_tokens());
        let measured = (kind == UsageKind::Measured && is_whole).then_some(*usage);
        let told = engine.update_from_response(&MeasuredUsage { session, usage: measured }).await;
        self.note_engine(told);
        if measured.is_none() {
            self.compaction.guard.unmeasured();
            return;
        }
        let tokens = usage.prompt();
        self.anchor_estimate(tokens, sent.estimated_tokens()).await;
        let threshold_tokens = self.budget.model.limits.threshold_tokens;
        self.compaction.guard.measured(GuardInput {
            now_ms: self.setup.host.now_ms(),
            tokens,
            threshold_tokens,
        });
        let wants = engine.should_compress(tokens).await;
        let wants = self.note_engine(wants).unwrap_or(false);
        if let CompactionVerdict::Compact { .. } = after_answer(self.setup.policy.automatic, wants) {
            self.compaction.due = Some(Trigger::Settle);
        }
        let told = engine.messages_appended(&self.snapshot()).await;
        self.note_engine(told);
    }

    /// Anchors the estimate at a prompt size that the provider counted.
    pub(super) async fn anchor_estimate(&mut self, measured_tokens: u64, estimated_tokens: u64) {
        let Some(lesson) = self.budget.estimator.measured(measured_tokens, estimated_tokens) else { return };
        let now_ms = self.setup.host.now_ms();
        match record::learn(&self.setup, self.setup.target.scope(), lesson, now_ms).await {
            Ok(calibrator) => self.budget.estimator.set_calibrator(calibrator),
            Err(error) => self.notice(format!("what was learnt of the model could not be recorded: {error}")),
        }
    }

    /// Records a failed call, with the usage of the partial answer.
    pub(super) async fn book_failure(
        &mut self,
        sent: &SentRequest,
        error: &str,
        arrived: Option<&Answer>,
        state: &CallState,
        task: &str,
    ) {
        let used =
            arrived.map(|answer| (answer, CallUsage::of_part(answer, || self.estimated_usage(sent, answer))));
        let call = self.call_record(sent, state, task).failed(error, used);
        self.book(sent, self.with_request_reference(call, sent)).await;
    }

    /// Writes a call to the record. If that fails, the call is kept and written with the next one.
    async fn book(&mut self, sent: &SentRequest, call: NewCall) {
        // Removed while they are written, so that a cancelled write does not record them twice.
        let mut calls = std::mem::take(&mut self.persistence.unbooked);
        let access_token = Persistence::token_name(&self.persistence.access_token);
        calls.push((sent.session.clone(), NewCall { access_token, ..call }));
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let preamble = self
            .prompt
            .envelope
            .preamble()
            .filter(|(_, id)| !self.persistence.stored_preambles.contains(id))
            .cloned();
        let new_preamble = preamble.as_ref().map(|(_, id)| id.clone());
        let booked = record::blocking(move || {
            Ok(record::book(store.as_ref(), &owner, preamble.map(|(preamble, _)| preamble), calls))
        });
        match booked.await {
            Ok(Ok(())) => self.persistence.stored_preambles.extend(new_preamble),
            Ok(Err(BookingFailure { error, mut rest })) => {
                self.notice(format!("a call could not be booked yet: {error}"));
                let surplus = rest.len().saturating_sub(MOST_UNBOOKED);
                self.persistence.unbooked = rest.split_off(surplus);
            }
            Err(error) => self.notice(format!("a call could not be booked: {error}")),
        }
    }
}

/// Whether a provider caches the prompt: those that cache marked prompts cache nothing without a marker.
fn is_cached(cache: CachePolicy, sent: &SentRequest) -> bool {
    let marks = &sent.encoded.marks;
    !matches!(cache, CachePolicy::Marks { .. }) || marks.are_ours() || marks.of_client > 0
}

/// Why the cache was not read, for the record. `None` if it was read, or the reason is unknown.
fn missed(cache: &CacheOutcome) -> Option<String> {
    match cache {
        CacheOutcome::Hit | CacheOutcome::NotReported => None,
        miss => Some(miss.to_string()),
    }
}

/// Returns the text with which a failed call is recorded.
pub(super) fn failure_words(trouble: &ProviderError) -> String {
    format!("{}: {trouble}", trouble.kind.name())
}
