//! After an answer: recorded, booked, learnt from.

use std::sync::Arc;

use throughline_provider::{
    CacheOutcome, CachePolicy, CacheRules, SentPrompt, Trouble, cache_outcome, reports_cache,
};
use throughline_store::{NewCall, UsageKind};
use throughline_tokens::{PricedCall, Usage, UsageReading, cost};
use throughline_wire::Answer;

use super::call::{CallOutcome, OnItsWay, Sent};
use super::{CallError, Incoming, ManagedSession, RecordPolicy, record};
use crate::guard::Moment;
use crate::status::MeasuredUsage;
use crate::trigger::{Trigger, Verdict, after_answer, settled_tokens};
use crate::upstream::Received;

/// What a call used, measured or not.
struct Used {
    reading: UsageReading,
    kind: UsageKind,
    /// Whether the report says anything about a cache.
    tells_of_cache: bool,
}

impl ManagedSession {
    /// Takes an answer in.
    pub(super) async fn settle(
        &mut self,
        sent: Sent,
        received: Received,
        way: OnItsWay,
        task: &str,
    ) -> Result<CallOutcome, CallError> {
        let latency_ms = sent.latency_ms();
        let answer = received.answer;
        let used = self.used(&sent, &answer);
        let usage = used.reading.usage;
        let cache = self.cache_outcome(&sent, &used, &way);
        let target = self.asked(&way);
        let (model, provider) = (target.model.clone(), target.provider.clone());
        let cost = cost(&PricedCall {
            model: &model,
            provider: &provider,
            at_ms: sent.at_ms,
            usage,
            cache_write_1h: used.reading.cache_write_1h,
        });
        let is_own_model = way.alternative.is_none();
        let call = NewCall {
            key: answer.id.clone(),
            model: model.clone(),
            provider,
            task: task.to_owned(),
            usage,
            usage_kind: used.kind,
            usage_raw: answer.usage_json.clone(),
            cost_micro_usd: cost.micro_usd,
            uncached_micro_usd: cost.uncached_micro_usd,
            latency_ms: Some(latency_ms),
            first_token_ms: received
                .first_content
                .map(|first| u64::try_from(first.as_millis()).unwrap_or(u64::MAX)),
            cache_miss: missed(&cache),
            ..self.booked(&sent)
        };
        self.book(call).await?;
        let said = answer.messages.iter().cloned().map(Incoming::from).collect();
        // From here on the answer is the caller's, whatever the record says.
        self.note_sent(&sent, &usage, used.kind);
        self.take_in(said).await?;
        if is_own_model {
            self.learn_from(&sent, &usage, used.kind).await;
        }
        self.keep_guard().await;
        let pressure = self.pressure();
        self.prepare_ahead(pressure.tokens).await;
        Ok(CallOutcome {
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
            tried: way.tried,
        })
    }

    /// What an answer reports, or what it must have been.
    fn used(&self, sent: &Sent, answer: &Answer) -> Used {
        if let Some(Ok(reading)) = answer.usage() {
            let tells_of_cache = answer.usage_json.as_deref().is_some_and(reports_cache);
            return Used { reading, kind: UsageKind::Measured, tells_of_cache };
        }
        let output = answer.messages.iter().map(|message| self.view.estimate(message)).sum();
        let usage = Usage { input: sent.pending.total_tokens, output, ..Usage::default() };
        let reading = UsageReading { usage, ..UsageReading::default() };
        Used { reading, kind: UsageKind::Estimated, tells_of_cache: false }
    }

    fn cache_outcome(&self, sent: &Sent, used: &Used, way: &OnItsWay) -> CacheOutcome {
        let target = self.asked(way);
        let lifetime = match target.cache {
            CachePolicy::Marks { ttl, .. } => Some(ttl.duration()),
            CachePolicy::Key | CachePolicy::Unmarked => None,
        };
        let rules = CacheRules { lifetime, minimum_tokens: target.cache_minimum_tokens };
        let now = SentPrompt {
            fingerprint: sent.encoded.fingerprint.clone(),
            sent_at_ms: sent.at_ms,
            prompt_tokens: Some(used.reading.usage.prompt()),
        };
        let usage = used.tells_of_cache.then_some(&used.reading.usage);
        cache_outcome(self.sent.as_ref(), &now, usage, rules)
    }

    /// What the next call is compared with.
    fn note_sent(&mut self, sent: &Sent, usage: &Usage, kind: UsageKind) {
        self.sent = Some(SentPrompt {
            fingerprint: sent.encoded.fingerprint.clone(),
            sent_at_ms: sent.at_ms,
            prompt_tokens: (kind == UsageKind::Measured).then(|| usage.prompt()),
        });
        self.sent_items = sent.pending.messages;
        self.last_call_ms = Some(self.setup.host.now_ms());
    }

    /// What the measured prompt teaches: sizes, whether the last compaction was worth it, whether the next is due.
    async fn learn_from(&mut self, sent: &Sent, usage: &Usage, kind: UsageKind) {
        let engine = Arc::clone(&self.setup.engine);
        let session = self.id().clone();
        let measured = (kind == UsageKind::Measured).then_some(*usage);
        if let Err(error) = engine.update_from_response(&MeasuredUsage { session, usage: measured }).await {
            self.notice(error.to_string());
        }
        if measured.is_none() {
            self.guard.unmeasured();
            return;
        }
        let tokens = settled_tokens(usage);
        self.anchor_at(tokens, sent.estimated_tokens()).await;
        let threshold_tokens = self.model.limits.threshold_tokens;
        self.guard.measured(Moment { now_ms: self.setup.host.now_ms(), tokens, threshold_tokens });
        let wants = engine.should_compress(tokens).await.unwrap_or(false);
        if let Verdict::Compact { .. } = after_answer(self.setup.policy.automatic, wants) {
            self.due = Some(Trigger::Settle);
        }
        if let Err(error) = engine.messages_appended(&self.snapshot()).await {
            self.notice(error.to_string());
        }
    }

    /// A provider counted a prompt that had been estimated: the next one is measured from there.
    pub(super) async fn anchor_at(&mut self, measured_tokens: u64, estimated_tokens: u64) {
        let Some(lesson) = self.estimator.measured(measured_tokens, estimated_tokens) else { return };
        let now_ms = self.setup.host.now_ms();
        match record::learn(&self.setup, self.setup.target.scope(), lesson, now_ms).await {
            Ok(calibrator) => self.estimator.set_calibrator(calibrator),
            Err(error) => self.notice(format!("what was learnt of the model could not be recorded: {error}")),
        }
    }

    /// The part of a call's row that is known when it is sent.
    fn booked(&self, sent: &Sent) -> NewCall {
        NewCall {
            at_ms: sent.at_ms,
            preamble: self.known.preamble().map(|(_, id)| id.clone()),
            sent_to_seq: Some(sent.to_seq),
            ..NewCall::default()
        }
    }

    /// Books a call that failed.
    pub(super) async fn book_failure(
        &mut self,
        sent: &Sent,
        error: &str,
        way: &OnItsWay,
        task: &str,
    ) -> Result<(), CallError> {
        let target = self.asked(way);
        let call = NewCall {
            model: target.model.clone(),
            provider: target.provider.clone(),
            task: task.to_owned(),
            usage_kind: UsageKind::Estimated,
            latency_ms: Some(sent.latency_ms()),
            error: Some(error.to_owned()),
            ..self.booked(sent)
        };
        self.book(call).await
    }

    async fn book(&mut self, call: NewCall) -> Result<(), CallError> {
        let (store, owner, id) = (Arc::clone(&self.setup.store), self.setup.owner.clone(), self.id().clone());
        let preamble = self.known.preamble().filter(|(_, id)| !self.kept_preambles.contains(id)).cloned();
        let new_preamble = preamble.as_ref().map(|(_, id)| id.clone());
        let booked = record::blocking(move || {
            if let Some((preamble, _)) = preamble {
                store.put_preamble(&preamble)?;
            }
            store.record_calls(&owner, &id, vec![call])
        })
        .await;
        match booked {
            Ok(_) => {
                self.kept_preambles.extend(new_preamble);
                Ok(())
            }
            Err(error) if self.setup.policy.record == RecordPolicy::GoOn => {
                self.notice(format!("the call could not be booked: {error}"));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Why the cache was not read, for the record; `None` where it was, or nobody knows.
fn missed(cache: &CacheOutcome) -> Option<String> {
    match cache {
        CacheOutcome::Hit | CacheOutcome::NotReported => None,
        miss => Some(miss.to_string()),
    }
}

/// The words a failed call is booked with.
pub(super) fn failure_words(trouble: &Trouble) -> String {
    format!("{}: {trouble}", trouble.kind.name())
}
