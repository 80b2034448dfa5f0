//! The record of one model call: its usage, measured or estimated, and its cost. The same for every call, wherever it is made and for
//! whatever purpose.
//!
//! Not for: writing to the record.

use throughline_provider::CacheOutcome;
use throughline_store::{Millis, NewCall, UsageKind};
use throughline_tokens::{Cost, Usage, UsageReading};
use throughline_wire::Answer;

use crate::limits::target::ModelTarget;
use crate::upstream::UpstreamAnswer;

/// The tokens that a call used.
#[derive(Clone, Debug)]
pub(crate) struct CallUsage {
    pub(crate) reading: UsageReading,
    pub(crate) kind: UsageKind,
    /// Whether the provider's usage report has cache figures.
    pub(crate) tells_of_cache: bool,
}

impl CallUsage {
    /// Returns the usage that an answer reports, or the estimate if it reports none.
    pub(crate) fn of(answer: &Answer, estimated: impl FnOnce() -> Usage) -> Self {
        if let Some(Ok(reading)) = answer.usage() {
            let tells_of_cache = answer.usage_json.as_deref().is_some_and(CacheOutcome::is_reported_in);
            return Self { reading, kind: UsageKind::Measured, tells_of_cache };
        }
        Self::estimated(estimated())
    }

    /// Returns the usage of an answer that broke off. The provider may have counted it early, so the output is at least the estimate of
    /// what arrived.
    pub(crate) fn of_part(answer: &Answer, estimated: impl Fn() -> Usage) -> Self {
        let mut used = Self::of(answer, &estimated);
        if used.kind == UsageKind::Measured {
            used.reading.usage.output = used.reading.usage.output.max(estimated().output);
            used.kind = UsageKind::Estimated;
        }
        used
    }

    /// Usage that no provider counted.
    pub(crate) fn estimated(usage: Usage) -> Self {
        let reading = UsageReading { usage, ..UsageReading::default() };
        Self { reading, kind: UsageKind::Estimated, tells_of_cache: false }
    }

    pub(crate) fn cost(&self, target: &ModelTarget, at_ms: Millis) -> Cost {
        let UsageReading { usage, cache_write_1h, .. } = self.reading;
        target.price_source.cost(&target.model, at_ms, usage, cache_write_1h)
    }
}

/// A finished call, as it is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRecord<'a> {
    pub(crate) target: &'a ModelTarget,
    /// The task the call is recorded under, such as `chat` or `compression`.
    pub(crate) task: &'a str,
    pub(crate) at_ms: Millis,
    pub(crate) latency_ms: u64,
}

impl CallRecord<'_> {
    /// Returns the record of a call that was answered.
    pub(crate) fn answered(&self, received: &UpstreamAnswer, used: &CallUsage) -> NewCall {
        let first = received.first_content.map(|first| u64::try_from(first.as_millis()).unwrap_or(u64::MAX));
        NewCall {
            key: received.answer.id.clone(),
            usage_raw: received.answer.usage_json.clone(),
            first_token_ms: first,
            ..self.used(used)
        }
    }

    /// Returns the record of a call that failed. The part of the answer that arrived counts as used, because it was paid for.
    pub(crate) fn failed(&self, error: &str, arrived: Option<(&Answer, CallUsage)>) -> NewCall {
        let error = Some(error.to_owned());
        match arrived {
            Some((answer, used)) => {
                let usage_raw = answer.usage_json.clone();
                NewCall { key: answer.id.clone(), usage_raw, error, ..self.used(&used) }
            }
            None => NewCall { error, ..self.used(&CallUsage::estimated(Usage::default())) },
        }
    }

    fn used(&self, used: &CallUsage) -> NewCall {
        let cost = used.cost(self.target, self.at_ms);
        NewCall {
            model: self.target.model.clone(),
            provider: self.target.provider.clone(),
            task: self.task.to_owned(),
            usage: used.reading.usage,
            usage_kind: used.kind,
            cost_micro_usd: cost.micro_usd,
            uncached_micro_usd: cost.uncached_micro_usd,
            at_ms: self.at_ms,
            latency_ms: Some(self.latency_ms),
            ..NewCall::default()
        }
    }
}
