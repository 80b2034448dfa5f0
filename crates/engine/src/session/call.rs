//! The managed call: prepare, send, settle, recover.

use std::sync::Arc;
use std::time::Instant;

use throughline_provider::{AskedFor, CacheOutcome, HoldBack, OutgoingCall, PlacedMarks};
use throughline_store::{Millis, SessionId, UsageKind};
use throughline_tokens::{COMPACTIONS_PER_CALL, Cost, Usage};
use throughline_wire::Answer;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{IncomingMessage, ManagedSession, SessionError, record};
use crate::context_engine::status::{PendingRequest, Pressure};
use crate::decide::recovery::{RecoveryAction, WaitPolicy};
use crate::decide::trigger::{CallSince, CompactionVerdict, PreflightInput, Trigger, Urgency, before_call};
use crate::event::EngineEvent;
use crate::limits::target::ModelTarget;
use crate::prompt::encode::{CallOverrides, EncodedRequest};
use crate::prompt::envelope::Envelope;
use crate::session::compaction::{CompactionResult, CompactionSpec};
use crate::upstream::PieceSender;

/// Of the hard limit, a second compaction aims at this share: sizes are estimates.
const SECOND_AIM_PERCENT: u64 = 90;

/// Where nothing could be folded, it is looked again after so many messages.
const LOOK_AGAIN_AFTER_MESSAGES: usize = 4;
/// How much of the window stays free beside prompt and answer when a cap is fitted to an estimate, in percent.
const CAP_MARGIN_PERCENT: u64 = 2;

/// A call to be made.
#[derive(Debug)]
pub struct CallInput {
    /// System prompt, tools and parameters.
    pub envelope: Envelope,
    /// The same to be sent once a compaction has written the prefix anew, where that differs.
    pub after_compaction: Option<Envelope>,
    /// What is new in the conversation.
    pub messages: Vec<IncomingMessage>,
    /// Where the answer goes while it is being written, if anyone wants it.
    pub pieces: Option<PieceSender>,
    /// What the call is for: `chat`, `title`, ...
    pub task: String,
    /// What goes along with the request without being part of it.
    pub along: RequestExtras,
    /// Who waits when a provider is busy.
    pub waiting: WaitPolicy,
    /// When what is new is written to the record.
    pub recorded: RecordTiming,
    /// From when on cache marks are added.
    pub marking: CacheMarking,
    /// Calls the call off; what was received until then is kept.
    pub cancel: CancellationToken,
    /// Told as soon as a whole answer is in the record and booked, so that it is found by its id, and before anything is
    /// learnt from it; also when it could not be written, after people were told so.
    pub on_recorded: Option<oneshot::Sender<()>>,
}

/// From when on cache marks are added to the prompts of a conversation whose client places none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMarking {
    /// From the first call on: the conversation will go on.
    #[default]
    Always,
    /// From the second call on: nobody knows whether the conversation goes on.
    FromSecondCall,
}

/// When what is new is written to the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordTiming {
    /// Before anyone is asked: whatever happens then, it was said.
    #[default]
    First,
    /// While the provider works on it, for callers who keep what they say until it is answered. It has been written, or
    /// people were told that it could not be, before the call is over.
    Meanwhile,
}

impl CallInput {
    /// A call with nothing special about it, whose answer is wanted whole.
    #[must_use]
    pub fn new(envelope: Envelope, messages: Vec<IncomingMessage>) -> Self {
        Self {
            envelope,
            after_compaction: None,
            messages,
            pieces: None,
            task: "chat".to_owned(),
            along: RequestExtras::default(),
            waiting: WaitPolicy::default(),
            recorded: RecordTiming::default(),
            marking: CacheMarking::default(),
            cancel: CancellationToken::new(),
            on_recorded: None,
        }
    }
}

/// What goes along with a request without being part of it.
#[derive(Clone, Debug)]
pub struct RequestExtras {
    /// Headers, sent after the endpoint's and in this order.
    pub headers: Vec<(String, String)>,
    /// What stands behind the question mark of the address.
    pub query: Option<String>,
    /// How long the beginning of a stream is held back.
    pub hold_back: HoldBack,
}

impl Default for RequestExtras {
    fn default() -> Self {
        Self { headers: Vec::new(), query: None, hold_back: HoldBack::UntilContent }
    }
}

/// An answer and what it took.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    /// The answer. It is in the record already.
    pub answer: Answer,
    /// The session it was written to.
    pub session: SessionId,
    /// The model that was asked.
    pub model: String,
    /// What it used.
    pub usage: Usage,
    /// Whether that was measured.
    pub usage_kind: UsageKind,
    /// What it cost.
    pub cost: Cost,
    /// How it fared with the provider's cache.
    pub cache: CacheOutcome,
    /// Where the prompt was marked for it.
    pub marks: PlacedMarks,
    /// How full the conversation is now.
    pub pressure: Pressure,
    /// How long it took.
    pub latency_ms: u64,
    /// What had to be done to get it through, in order.
    pub tried: Vec<RecoveryAction>,
}

/// A call on its way: what was tried so far, and what differs for it.
#[derive(Debug, Default)]
pub(super) struct CallState {
    pub(super) tried: Vec<RecoveryAction>,
    pub(super) for_this_call: CallOverrides,
    /// Which of the alternatives is asked instead of the model.
    pub(super) alternative: Option<usize>,
    pub(super) waiting: WaitPolicy,
    pub(super) marking: CacheMarking,
    /// Told when the answer is in the record.
    pub(super) on_recorded: Option<oneshot::Sender<()>>,
}

/// What was sent and when.
#[derive(Debug)]
pub(super) struct SentRequest {
    /// What was sent; its body is on its way.
    pub(super) encoded: EncodedRequest,
    pub(super) body_bytes: u64,
    pub(super) along: RequestExtras,
    pub(super) pending: PendingRequest,
    pub(super) output_cap_tokens: Option<u64>,
    pub(super) at_ms: Millis,
    pub(super) began: Instant,
    /// The session whose view it is, ...
    pub(super) session: SessionId,
    /// ... up to this place.
    pub(super) to_seq: u64,
}

impl SentRequest {
    pub(super) fn latency_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The whole prompt by the estimate alone.
    pub(super) fn estimated_tokens(&self) -> u64 {
        self.pending.fixed_tokens.saturating_add(self.pending.message_tokens)
    }
}

impl ManagedSession {
    /// Makes a call: records what is new, makes room if it must, sends, recovers, records the answer.
    ///
    /// May be dropped at any moment: what was recorded until then is recorded, and the conversation goes on. Whoever wants
    /// what had arrived of the answer kept as well cancels it by its token instead.
    pub async fn call(&mut self, input: CallInput) -> Result<CallOutcome, SessionError> {
        let CallInput {
            mut envelope,
            mut after_compaction,
            messages,
            pieces,
            task,
            along,
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
        if self.held.is_some() {
            let chain = self.view.session().chain;
            record::lock(&self.setup, chain).await?;
        }
        if !self.client_holds_history() {
            // A record that cannot be read is no reason not to ask; whether it has to be written is decided below.
            let _ = self.refresh().await;
        }
        match recorded {
            RecordTiming::First => Box::pin(self.take_in(messages)).await?,
            RecordTiming::Meanwhile => Box::pin(self.begin_to_take_in(messages)).await?,
        }
        self.known.update(&envelope);
        self.use_output_cap(envelope.output_cap_tokens()).await?;
        let mut way = CallState { waiting, marking, on_recorded, ..CallState::default() };
        let before = after_compaction.is_some().then(|| self.id().clone());
        unless(&cancel, Box::pin(self.preflight(&mut way))).await?;
        self.use_after_compaction(before.as_ref(), &mut envelope, &mut after_compaction);
        self.has_called = true;
        self.fit_cap(&envelope, &mut way);
        loop {
            self.use_after_compaction(before.as_ref(), &mut envelope, &mut after_compaction);
            let mut sent = self.write(&envelope, &along, &way)?;
            self.prepare_beside_call(sent.pending.total_tokens).await;
            let target = self.asked(&way);
            let upstream = Arc::clone(&target.upstream);
            // Nobody needs it any more once it is sent, and an answer may take long.
            let body = std::mem::take(&mut sent.encoded.body);
            let call = OutgoingCall {
                asked: AskedFor {
                    output_cap_tokens: sent.output_cap_tokens,
                    window_tokens: Some(target.policy.window_tokens),
                },
                headers: along.headers.clone(),
                query: along.query.clone(),
                hold_back: along.hold_back,
                ..OutgoingCall::new(self.wire_format, envelope.request().streaming(), body)
            };
            let asked = upstream.send(call, pieces.as_ref(), &cancel);
            let branchings = self.branchings;
            let (answered, ()) = tokio::join!(asked, self.finish_taking_in());
            if self.branchings != branchings {
                // It is a branch now, whose view is what was sent.
                sent.session = self.id().clone();
            }
            sent.to_seq = self.view.session().next_seq;
            match answered {
                Ok(received) => return Ok(Box::pin(self.settle(sent, received, way, &task)).await),
                Err(unanswered) => {
                    let failed = self.take_failure(&sent, *unanswered, &way, &task);
                    let decided = Box::pin(failed).await?;
                    unless(&cancel, Box::pin(self.recover(decided, &mut way))).await?;
                }
            }
        }
    }

    /// Another session means that the prefix is new: what was waiting for that takes its place.
    fn use_after_compaction(
        &mut self,
        before: Option<&SessionId>,
        envelope: &mut Envelope,
        waiting: &mut Option<Envelope>,
    ) {
        if let Some(waiting) =
            waiting.take_if(|waiting| Some(self.id()) != before && waiting.wire_format() == self.wire_format)
        {
            self.known.update(&waiting);
            *envelope = waiting;
        }
    }

    /// Records what is new without asking anyone, for a client that wants something else done with the conversation.
    pub async fn hear(
        &mut self,
        envelope: &Envelope,
        messages: Vec<IncomingMessage>,
    ) -> Result<(), SessionError> {
        if envelope.wire_format() != self.wire_format {
            let (conversation, request) = (self.wire_format, envelope.wire_format());
            return Err(SessionError::OtherWire { conversation, request });
        }
        self.take_in(messages).await?;
        self.known.update(envelope);
        self.use_output_cap(envelope.output_cap_tokens()).await
    }

    /// Lowers a cap on output for which there is no room, where the provider is known to refuse the request otherwise.
    fn fit_cap(&self, envelope: &Envelope, way: &mut CallState) {
        let Some(cap) = envelope.output_cap_tokens().filter(|_| self.checks_caps) else { return };
        let (window, prompt) = (self.setup.target.policy.window_tokens, self.pending().total_tokens);
        let room = window.saturating_sub(prompt + window * CAP_MARGIN_PERCENT / 100);
        if 0 < room && room < cap {
            self.tell(EngineEvent::CapLowered { tokens: room, was_tokens: Some(cap) });
            way.for_this_call.output_cap_tokens = Some(room);
        }
    }

    /// Whoever is asked.
    pub(super) fn asked(&self, way: &CallState) -> &ModelTarget {
        way.alternative.and_then(|index| self.setup.alternatives.get(index)).unwrap_or(&self.setup.target)
    }

    /// The body of a request, with what is known about it at this moment.
    fn write(
        &self,
        envelope: &Envelope,
        along: &RequestExtras,
        way: &CallState,
    ) -> Result<SentRequest, SessionError> {
        let cache = self.asked(way).cache;
        let encoded = self.encode(envelope, cache, self.marking(way.marking), &way.for_this_call)?;
        Ok(SentRequest {
            body_bytes: encoded.body.len() as u64,
            encoded,
            along: along.clone(),
            pending: self.pending(),
            output_cap_tokens: way.for_this_call.output_cap_tokens.or(envelope.output_cap_tokens()),
            at_ms: self.setup.host.now_ms(),
            began: Instant::now(),
            session: self.id().clone(),
            to_seq: self.view.session().next_seq,
        })
    }

    /// Compacts before a call if that is due. A view that still does not fit is tried again with a smaller aim.
    pub(super) async fn preflight(&mut self, way: &mut CallState) -> Result<(), SessionError> {
        for pass in 0..COMPACTIONS_PER_CALL {
            let pending = self.pending();
            if pass == 0 {
                let pressure = self.pressure_at(pending.total_tokens);
                self.tell(EngineEvent::Pressure { pressure, basis: pending.basis });
            }
            let room_tokens = self.model.prompt_room_tokens();
            let fixed_tokens = self.estimator.calibrator().correct(pending.fixed_tokens);
            if fixed_tokens >= room_tokens {
                let model = self.model.model.clone();
                return Err(SessionError::FixedTooLarge { model, fixed_tokens, room_tokens });
            }
            let CompactionVerdict::Compact { trigger, urgency } = self.verdict_before(&pending).await else {
                break;
            };
            if (pass > 0 && urgency != Urgency::Must) || self.may_wait(urgency) {
                break;
            }
            let hard_limit = self.model.hard_limit_tokens();
            let target_tokens = (pass > 0).then(|| hard_limit.saturating_mul(SECOND_AIM_PERCENT) / 100);
            let trigger = match (trigger, self.due.take()) {
                (Trigger::Preflight, Some(due)) => due,
                (trigger, _) => trigger,
            };
            let ask =
                CompactionSpec { target_tokens, force: pass > 0, ..CompactionSpec::new(trigger, urgency) };
            let result = self.fold(ask).await;
            // What is in vain now may not be once the provider has refused and more is at stake.
            let CompactionResult::Completed(_) = &result else { break };
            way.tried.extend(tried(&result));
        }
        Ok(())
    }

    /// Whether a compaction that is due is better made later: a summary is on its way and nobody has to wait for it, or
    /// nothing could be folded a few messages ago. A summary that this very call would cancel is not on its way.
    fn may_wait(&self, urgency: Urgency) -> bool {
        let near = |found: usize| self.view.len() < found.saturating_add(LOOK_AGAIN_AFTER_MESSAGES);
        let is_coming = self.is_preparing() && !self.setup.target.upstream.cancels_background();
        urgency == Urgency::Due && (is_coming || self.nothing_to_fold_at.is_some_and(near))
    }

    /// What is to be done before a call. An engine that does not answer leaves the decision to the last net.
    async fn verdict_before(&mut self, pending: &PendingRequest) -> CompactionVerdict {
        let wants = self.setup.engine.should_compress_preflight(pending).await;
        let engine_wants = self.note_engine(wants).unwrap_or(false);
        let figures = PreflightInput {
            automatic: self.setup.policy.automatic,
            // What the last answer showed still holds: a request only grows.
            engine_wants: engine_wants || self.due.is_some(),
            pending_tokens: pending.total_tokens,
            messages: pending.messages,
            model: &self.model,
            switch: self.switch,
            since: if self.has_called { CallSince::AnotherCall } else { CallSince::Opened },
        };
        let verdict = before_call(&figures);
        self.switch = crate::decide::trigger::ModelSwitch::No;
        verdict
    }
}

/// Waits for work unless it is called off first.
async fn unless<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, SessionError>>,
) -> Result<T, SessionError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(SessionError::Cancelled),
        done = work => done,
    }
}

/// A compaction as something that was tried; `None` for one that was put off.
pub(super) fn tried(result: &CompactionResult) -> Option<RecoveryAction> {
    match result {
        CompactionResult::Completed(done) => Some(RecoveryAction::Compacted {
            before_tokens: done.report.tokens.before,
            after_tokens: done.report.tokens.after,
        }),
        CompactionResult::NoOp { detail, .. } | CompactionResult::Aborted { detail, .. } => {
            Some(RecoveryAction::CompactedInVain { detail: detail.clone() })
        }
        CompactionResult::Blocked(_) | CompactionResult::Locked { .. } => None,
    }
}
