//! The managed call: prepare, send, settle, recover.

use std::sync::Arc;
use std::time::Instant;

use throughline_provider::{OutgoingCall, RequestLimits};
use throughline_store::SessionId;
use throughline_tokens::Limits;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::call_input::{CallInput, CallOutcome, RecordTiming};
use super::call_state::{CallState, SentRequest};
use super::compaction_result::{CompactionResult, CompactionSpec, action_of};
use super::{IncomingMessage, ManagedSession, SessionError};
use crate::context_engine::status::PendingRequest;
use crate::decide::trigger::{CallSince, CompactionVerdict, PreflightInput, Trigger, Urgency, before_call};
use crate::event::EngineEvent;
use crate::limits::target::ModelTarget;
use crate::prompt::envelope::Envelope;
use crate::prompt::request_extras::RequestExtras;

/// A second compaction aims at this share of the hard limit, because sizes are estimates.
const SECOND_AIM_PERCENT: u64 = 90;

/// After an attempt that found nothing to compact, the next one waits for this many messages.
const LOOK_AGAIN_AFTER_MESSAGES: usize = 4;
/// The part of the window, in percent, that stays free beside prompt and answer when a cap is fitted to an estimate.
const CAP_MARGIN_PERCENT: u64 = 2;

impl ManagedSession {
    /// Makes a call: records new messages, compacts if it must, sends, recovers, records the answer.
    ///
    /// The future may be dropped at any moment: everything recorded until then stays, and the conversation can continue. To
    /// record the received part of the answer as well, cancel the call by its token instead.
    pub async fn call(&mut self, input: CallInput) -> Result<CallOutcome, SessionError> {
        let span = tracing::debug_span!("call", session = %self.id(), task = %input.task);
        if span.is_disabled() {
            return self.call_in_span(input).await;
        }
        // Boxed, so that calls without diagnostics do not carry the wrapper.
        Box::pin(self.call_in_span(input)).instrument(span).await
    }

    async fn call_in_span(&mut self, input: CallInput) -> Result<CallOutcome, SessionError> {
        let CallInput {
            mut envelope,
            mut after_compaction,
            messages,
            pieces,
            task,
            extras,
            waiting,
            recorded,
            marking,
            cancel,
            on_recorded,
        } = input;
        if envelope.wire_format() != self.wire_format {
            let (conversation, request) = (self.wire_format, envelope.wire_format());
            return Err(SessionError::OtherWire { conversation, request });
        }
        if let Some(lock) = &mut self.persistence.lock {
            lock.renew(&self.setup, self.prompt.view.session().chain).await?;
        }
        if !self.client_owns_history() {
            // If the record cannot be read, the call is made anyway. Whether it must be written is decided below.
            let _ = self.refresh().await;
        }
        match recorded {
            RecordTiming::First => Box::pin(self.record_messages(messages)).await?,
            RecordTiming::Meanwhile => Box::pin(self.begin_recording(messages)).await?,
        }
        self.prompt.envelope.update(&envelope);
        self.note_pause();
        self.report_unknown_price().await;
        self.use_output_cap(envelope.output_cap_tokens()).await?;
        let mut state = CallState { waiting, marking, on_recorded, ..CallState::default() };
        let before = after_compaction.is_some().then(|| self.id().clone());
        or_cancelled(&cancel, Box::pin(self.preflight(&mut state))).await?;
        self.use_after_compaction(before.as_ref(), &mut envelope, &mut after_compaction);
        self.prompt.has_called = true;
        self.fit_cap(&envelope, &mut state);
        loop {
            self.use_after_compaction(before.as_ref(), &mut envelope, &mut after_compaction);
            let mut sent = self.write(&envelope, &extras, &state)?;
            self.prepare_beside_call(sent.pending.total_tokens).await;
            let target = self.called_target(&state);
            let upstream = Arc::clone(&target.upstream);
            // The body is not needed after it was sent, and an answer may take long.
            let body = std::mem::take(&mut sent.encoded.body);
            let call = OutgoingCall {
                request_limits: RequestLimits {
                    output_cap_tokens: sent.output_cap_tokens,
                    window_tokens: Some(target.policy.window_tokens),
                },
                headers: extras.headers.clone(),
                query: extras.query.clone(),
                hold_back: extras.hold_back,
                ..OutgoingCall::new(self.wire_format, envelope.request().streaming(), body)
            };
            let asked = upstream.send(call, pieces.as_ref(), &cancel);
            let branchings = self.persistence.branchings;
            let (answered, ()) = tokio::join!(asked, self.finish_recording());
            if self.persistence.branchings != branchings {
                // The session is a branch now, whose view is the one that was sent.
                sent.session = self.id().clone();
            }
            sent.to_seq = self.prompt.view.session().next_seq;
            match answered {
                Ok(received) => return Ok(Box::pin(self.settle(sent, received, state, &task)).await),
                Err(unanswered) => {
                    let failed = self.take_failure(&sent, *unanswered, &state, &task);
                    let decided = Box::pin(failed).await?;
                    or_cancelled(&cancel, Box::pin(self.recover(decided, &mut state))).await?;
                }
            }
        }
    }

    /// Switches to the waiting envelope if the session changed, because the prefix is rewritten then anyway.
    fn use_after_compaction(
        &mut self,
        before: Option<&SessionId>,
        envelope: &mut Envelope,
        waiting: &mut Option<Envelope>,
    ) {
        if let Some(waiting) =
            waiting.take_if(|waiting| Some(self.id()) != before && waiting.wire_format() == self.wire_format)
        {
            self.prompt.envelope.update(&waiting);
            *envelope = waiting;
        }
    }

    /// Records new messages without a call, for example before a compaction that a client requests.
    pub async fn append(
        &mut self,
        envelope: &Envelope,
        messages: Vec<IncomingMessage>,
    ) -> Result<(), SessionError> {
        if envelope.wire_format() != self.wire_format {
            let (conversation, request) = (self.wire_format, envelope.wire_format());
            return Err(SessionError::OtherWire { conversation, request });
        }
        self.record_messages(messages).await?;
        self.prompt.envelope.update(envelope);
        self.use_output_cap(envelope.output_cap_tokens()).await
    }

    /// Lowers an output cap that does not fit the window, if the provider is known to refuse such requests.
    fn fit_cap(&self, envelope: &Envelope, state: &mut CallState) {
        let Some(cap) = envelope.output_cap_tokens().filter(|_| self.budget.checks_caps) else { return };
        let (window, prompt) = (self.setup.target.policy.window_tokens, self.pending().total_tokens);
        let room = window.saturating_sub(prompt + window * CAP_MARGIN_PERCENT / 100);
        if 0 < room && room < cap {
            self.emit(EngineEvent::CapLowered { tokens: room, was_tokens: Some(cap) });
            state.for_this_call.output_cap_tokens = Some(room);
        }
    }

    /// The model that is called: the configured one, or an alternative.
    pub(super) fn called_target(&self, state: &CallState) -> &ModelTarget {
        state.alternative.and_then(|index| self.setup.alternatives.get(index)).unwrap_or(&self.setup.target)
    }

    /// Encodes a request, and notes its size and time.
    fn write(
        &self,
        envelope: &Envelope,
        extras: &RequestExtras,
        state: &CallState,
    ) -> Result<SentRequest, SessionError> {
        let cache = self.called_target(state).cache;
        let encoded = self.encode(envelope, cache, self.marking(state.marking), &state.for_this_call)?;
        Ok(SentRequest {
            body_bytes: encoded.body.len() as u64,
            encoded,
            extras: extras.clone(),
            pending: self.pending(),
            output_cap_tokens: state.for_this_call.output_cap_tokens.or(envelope.output_cap_tokens()),
            at_ms: self.setup.host.now_ms(),
            began: Instant::now(),
            session: self.id().clone(),
            to_seq: self.prompt.view.session().next_seq,
        })
    }

    /// Compacts before a call if that is due. If the view still does not fit, compacts again with a smaller target.
    pub(super) async fn preflight(&mut self, state: &mut CallState) -> Result<(), SessionError> {
        for pass in 0..Limits::COMPACTIONS_PER_CALL {
            let pending = self.pending();
            if pass == 0 {
                let pressure = self.budget.pressure_at(pending.total_tokens);
                self.emit(EngineEvent::Pressure { pressure, basis: pending.basis });
            }
            let room_tokens = self.budget.model.prompt_room_tokens();
            let fixed_tokens = self.budget.estimator.calibrator().correct(pending.fixed_tokens);
            if fixed_tokens >= room_tokens {
                let model = self.budget.model.model.clone();
                return Err(SessionError::FixedTooLarge { model, fixed_tokens, room_tokens });
            }
            let CompactionVerdict::Compact { trigger, urgency } = self.verdict_before(&pending).await else {
                break;
            };
            let is_cold = trigger == Trigger::ColdCache;
            // This call fills the cache again, so waiting gains nothing.
            if (pass > 0 && urgency != Urgency::Must) || (!is_cold && self.may_wait(urgency)) {
                break;
            }
            let hard_limit = self.budget.model.hard_limit_tokens();
            let target_tokens = (pass > 0).then(|| hard_limit.saturating_mul(SECOND_AIM_PERCENT) / 100);
            let trigger = match (trigger, self.compaction.due.take()) {
                (Trigger::Preflight, Some(due)) => due,
                (trigger, _) => trigger,
            };
            let ask = CompactionSpec {
                target_tokens,
                force: pass > 0 || is_cold,
                ..CompactionSpec::new(trigger, urgency)
            };
            let result = self.run_compaction(ask).await;
            // An attempt that fails here may succeed after an overflow error, which allows more.
            let CompactionResult::Completed(_) = &result else { break };
            state.tried.extend(action_of(&result));
        }
        Ok(())
    }

    /// Whether a due compaction can wait: a summary is being prepared, or nothing could be compacted a few messages ago. A
    /// prepared summary that this very call would cancel does not count.
    fn may_wait(&self, urgency: Urgency) -> bool {
        let near = |found: usize| self.prompt.view.len() < found.saturating_add(LOOK_AGAIN_AFTER_MESSAGES);
        let is_coming = self.is_preparing() && !self.setup.target.upstream.cancels_background();
        urgency == Urgency::Due && (is_coming || self.compaction.nothing_to_compact_at.is_some_and(near))
    }

    /// Decides whether to compact before a call. If the engine does not answer, only the hard limit counts.
    async fn verdict_before(&mut self, pending: &PendingRequest) -> CompactionVerdict {
        let wants = self.setup.engine.should_compress_preflight(pending).await;
        let engine_wants = self.note_engine(wants).unwrap_or(false);
        let figures = PreflightInput {
            automatic: self.setup.policy.automatic,
            // A compaction that was due after the last answer still is, because a request only grows.
            engine_wants: engine_wants || self.compaction.due.is_some(),
            pending_tokens: pending.total_tokens,
            messages: pending.messages,
            model: &self.budget.model,
            switch: self.budget.switch,
            since: if self.prompt.has_called { CallSince::AnotherCall } else { CallSince::Opened },
        };
        let verdict = self.verdict_on_cold_cache(before_call(&figures), pending.total_tokens);
        tracing::debug!(
            tokens = figures.pending_tokens,
            threshold = figures.model.limits.threshold_tokens,
            engine_wants = figures.engine_wants,
            ?verdict,
            "decided before the call"
        );
        self.budget.switch = crate::decide::trigger::ModelSwitch::No;
        verdict
    }
}

/// Waits for work, unless it is cancelled first.
async fn or_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, SessionError>>,
) -> Result<T, SessionError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(SessionError::Cancelled),
        done = work => done,
    }
}
