//! Preparation of a call: the limits in force, the size of the whole request, its body.

use std::sync::Arc;

use throughline_provider::{CachePolicy, SentPrompt};
use throughline_store::UsageKind;

use super::call_input::CacheMarking;
use super::managed::in_force;
use super::prompt_state::{LastRequest, Responder};
use super::record::LastCall;
use super::{ManagedSession, SessionError};
use crate::context_engine::snapshot::Snapshot;
use crate::context_engine::status::PendingRequest;
use crate::prompt::cached_prompt::CachedPrompt;
use crate::prompt::encode::{CallOverrides, EncodedRequest, Marking, RequestEncoding};
use crate::prompt::envelope::Envelope;

impl ManagedSession {
    /// Restores the state after the session's last call: the prompt that was sent and its size.
    pub(super) fn resume(&mut self, last: LastCall) {
        let LastCall { call, to_seq, preamble } = last;
        let Some(envelope) = Envelope::of_preamble(self.wire_format, &preamble) else { return };
        self.prompt.envelope.update(&envelope);
        self.persistence.stored_preambles.extend(self.prompt.envelope.preamble().map(|(_, id)| id.clone()));
        let target = &self.setup.target;
        let by = if call.model == target.model { Responder::OwnModel } else { Responder::Another };
        let items = self.prompt.view.items_before(to_seq);
        let measured = (call.usage_kind == UsageKind::Measured).then(|| call.usage.prompt());
        let model = Some(call.model).filter(|_| by == Responder::Another);
        let own = CallOverrides { model, output_cap_tokens: None };
        let sent = self.encoding(&envelope, target.cache, Marking::Ours, &own).fingerprint_of(items);
        let Ok(fingerprint) = sent else { return };
        if let Some(measured_tokens) = measured.filter(|_| by == Responder::OwnModel) {
            let messages: u64 = self.prompt.view.sizes().iter().take(items).sum();
            self.budget
                .estimator
                .resume(measured_tokens, self.prompt.fixed_tokens().saturating_add(messages));
        }
        // The first prompt of a conversation may have been sent without marks, so the provider did not cache it.
        let is_only_call = self.prompt.view.session().counters.calls <= 1 && self.compaction.count == 0;
        let is_cached = matches!(target.cache, CachePolicy::Key | CachePolicy::Unmarked)
            || !is_only_call
            || call.usage.cache_read + call.usage.cache_write > 0;
        let prompt = SentPrompt { fingerprint, sent_at_ms: call.at_ms, prompt_tokens: measured, is_cached };
        let cache_read_tokens = call.usage.cache_read;
        self.prompt.last_request = Some(LastRequest { prompt, items, by, cache_read_tokens, extras: None });
        self.prompt.last_call_ms = Some(call.at_ms.saturating_add_unsigned(call.latency_ms.unwrap_or(0)));
    }

    /// Sets the limits for requests with this output limit.
    pub(super) async fn use_output_cap(
        &mut self,
        output_cap_tokens: Option<u64>,
    ) -> Result<(), SessionError> {
        let fixed_tokens = self.fixed_for_limits();
        let prices = self.budget.model.prices;
        let economy = self.economy_limits();
        let model = in_force(&self.setup.target, output_cap_tokens, fixed_tokens, prices, economy)?;
        if !self.engine_link.is_informed {
            self.budget.model = model;
            self.inform_engine().await;
        } else if model != self.budget.model {
            self.budget.model = model;
            self.update_engine().await;
        }
        Ok(())
    }

    /// Informs the engine of changed limits.
    pub(super) async fn update_engine(&mut self) {
        let engine = Arc::clone(&self.setup.engine);
        let told = engine.update_model(&self.budget.model).await;
        self.engine_link.is_informed &= told.is_ok();
        self.note_engine(told);
    }

    /// Returns the size of system prompt and tools for computing limits: in tokens of the provider, and unchanged while it changes only
    /// slightly, so that limits do not move with every calibration.
    fn fixed_for_limits(&self) -> u64 {
        const STEADY_WITHIN_PERCENT: u64 = 3;
        let before = self.budget.model.limits.fixed_tokens;
        let now = self.budget.estimator.calibrator().correct(self.prompt.fixed_tokens());
        let is_steady =
            now.abs_diff(before).saturating_mul(100) <= before.saturating_mul(STEADY_WITHIN_PERCENT);
        if is_steady { before } else { now }
    }

    /// Returns the size of the request that would be sent now.
    pub(super) fn pending(&self) -> PendingRequest {
        self.budget.pending(&self.prompt)
    }

    /// Returns the conversation as an engine sees it.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            session: self.id().clone(),
            wire_format: self.wire_format,
            messages: Arc::clone(self.prompt.view.messages()),
            sizes: Arc::clone(self.prompt.view.sizes()),
            fixed_tokens: self.prompt.fixed_tokens(),
            prompt_tokens: self.pending().total_tokens,
            cached_prompt: self.cached_prompt(),
        }
    }

    /// Returns the prompt last sent to the conversation's own model, as long as the view starts with it.
    fn cached_prompt(&self) -> Option<CachedPrompt> {
        let last = self
            .prompt
            .last_request
            .as_ref()
            .filter(|last| last.items > 0 && last.by == Responder::OwnModel)?;
        Some(CachedPrompt {
            target: self.setup.target.clone(),
            envelope: Arc::clone(self.prompt.envelope.envelope()?),
            note: self.prompt.view.note(),
            conversation: self.conversation.as_str().to_owned(),
            messages: Arc::clone(self.prompt.view.messages()),
            sent: last.items,
            sent_at_ms: last.prompt.sent_at_ms,
            prompt_tokens: last.prompt.prompt_tokens,
            cache_read_tokens: last.cache_read_tokens,
            extras: last.extras.clone()?,
            // A request that extends a prompt reads it from the cache, so the prompt is marked; its bytes are those that were sent.
            marking: if self.prompt.has_placed_marks { Marking::Ours } else { Marking::OursFromNowOn },
        })
    }

    /// Returns which marks the next call carries.
    ///
    /// Writing into the cache costs 1.25 times an uncached token, reading 0.1. With a prompt of P tokens and d more in the second call,
    /// marking both calls costs 1.35 P + 1.25 d, marking only the second one 2.25 P + 1.25 d, and a single call costs 1.25 P with marks and
    /// P without. So marking the first call loses 0.25 P if no call follows, and waiting loses 0.9 P if one does: marks pay from the start
    /// if more than 0.25 / (0.25 + 0.9) = 22 % of first calls are followed by another. A program that drives the conversation knows whether
    /// it continues. A gateway does not: agents, whose conversations nearly always continue, place marks themselves (those count from the
    /// first call on), and most programs that place none make one call.
    pub(super) fn marking(&self, wish: CacheMarking) -> Marking {
        if self.prompt.has_placed_marks || wish == CacheMarking::Always {
            return Marking::Ours;
        }
        let session = self.prompt.view.session();
        // A branch or a continuation starts with messages that were sent before.
        let goes_on = session.link.as_ref().is_some_and(|link| link.kind.shares_messages());
        match self.prompt.last_request.is_some() || self.compaction.count > 0 || goes_on {
            true => Marking::OursFromNowOn,
            false => Marking::OfClient,
        }
    }

    /// Encodes the body.
    pub(super) fn encode(
        &self,
        envelope: &Envelope,
        cache: CachePolicy,
        marking: Marking,
        for_this_call: &CallOverrides,
    ) -> Result<EncodedRequest, SessionError> {
        Ok(self.encoding(envelope, cache, marking, for_this_call).encode()?)
    }

    fn encoding<'a>(
        &'a self,
        envelope: &'a Envelope,
        cache: CachePolicy,
        marking: Marking,
        for_this_call: &'a CallOverrides,
    ) -> RequestEncoding<'a> {
        RequestEncoding {
            envelope,
            messages: self.prompt.view.messages(),
            forms: self.prompt.view.forms(),
            note: self.prompt.view.note(),
            cache,
            marking,
            conversation: self.conversation.as_str(),
            sent_items: self.prompt.sent_items(),
            for_this_call,
        }
    }
}
