//! For tests: a scripted model, and the setup for summaries by models.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use throughline_compaction::Section;
use throughline_provider::{CachePolicy, Chunk, OutgoingCall, ProviderError, ProviderErrorKind};
use throughline_store::{Holder, Millis, NewCall, SessionId};
use throughline_tokens::{LimitPolicy, Usage};
use throughline_transcript::WireFormat;
use throughline_wire::{Answer, AnswerDraft, Delta};
use tokio_util::sync::CancellationToken;

use super::host::{BookingFuture, SummaryCalls};
use super::route::SummaryRoute;
use crate::host::Host;
use crate::limits::price_source::PriceSource;
use crate::limits::target::ModelTarget;
use crate::limits::threshold_origin::ThresholdOrigin;
use crate::upstream::{AnswerPiece, PieceSender, Upstream, UpstreamAnswer, UpstreamFailure, UpstreamFuture};

/// The start time of every test.
pub(crate) const START_MS: Millis = 1_763_200_000_000;

/// A clock that is set by hand.
#[derive(Default)]
pub(crate) struct TestHost {
    pub(crate) passed_ms: AtomicI64,
    random: AtomicU32,
}

impl Host for TestHost {
    fn now_ms(&self) -> Millis {
        START_MS + self.passed_ms.load(Ordering::Relaxed)
    }

    fn random(&self) -> u32 {
        self.random.fetch_add(1, Ordering::Relaxed) + 0xabc0_0000
    }

    fn holder(&self) -> Holder {
        Holder { host: "here".to_owned(), process_id: 1, process_start: 1, what: "test".to_owned() }
    }

    fn is_alive(&self, _holder: &Holder) -> bool {
        true
    }
}

/// A step of the script.
pub(crate) enum Act {
    /// Answer with this text.
    Say(String),
    /// Answer with this draft.
    Draft(AnswerDraft),
    /// Fail with this error.
    Fail(ProviderError),
    /// Never answer.
    Silent,
    /// Send this many pieces at this interval, then answer with this text.
    Drip(usize, Duration, String),
}

impl Act {
    pub(crate) fn fail(kind: ProviderErrorKind) -> Self {
        Self::Fail(ProviderError::of(kind))
    }
}

/// A model that follows a script; after its end, every call fails as overloaded.
pub(crate) struct Scripted {
    wire_format: WireFormat,
    acts: Mutex<VecDeque<Act>>,
    calls: Mutex<Vec<OutgoingCall>>,
}

impl Scripted {
    pub(crate) fn new(wire_format: WireFormat, acts: Vec<Act>) -> Arc<Self> {
        Arc::new(Self { wire_format, acts: Mutex::new(acts.into()), calls: Mutex::default() })
    }

    pub(crate) fn then(&self, act: Act) {
        self.acts.lock().unwrap().push_back(act);
    }

    pub(crate) fn calls(&self) -> Vec<OutgoingCall> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn bodies(&self) -> Vec<String> {
        self.calls().iter().map(|call| String::from_utf8(call.body.to_vec()).unwrap()).collect()
    }

    fn answer(&self, draft: AnswerDraft) -> UpstreamAnswer {
        let number = self.calls().len();
        let draft = AnswerDraft { id: format!("summary_{number}"), ..draft };
        let draft = draft.with_usage(Usage { input: 1_000, output: 100, ..Usage::default() });
        let json = draft.to_response(self.wire_format);
        let answer = Answer::decode(self.wire_format, json.as_bytes()).unwrap();
        UpstreamAnswer { answer, first_content: Some(Duration::from_millis(5)) }
    }
}

impl Upstream for Scripted {
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        pieces: Option<&'a PieceSender>,
        _cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&call.body).is_ok());
        self.calls.lock().unwrap().push(call);
        let act = self.acts.lock().unwrap().pop_front();
        Box::pin(async move {
            match act {
                Some(Act::Say(text)) => Ok(self.answer(AnswerDraft::text(text))),
                Some(Act::Draft(draft)) => Ok(self.answer(draft)),
                Some(Act::Fail(trouble)) => Err(Box::new(UpstreamFailure::trouble(trouble))),
                Some(Act::Silent) => std::future::pending().await,
                Some(Act::Drip(times, apart, text)) => {
                    for _ in 0..times {
                        tokio::time::sleep(apart).await;
                        let chunk = Chunk {
                            raw: Bytes::from_static(b"."),
                            deltas: vec![Delta::Text(".".to_owned())],
                        };
                        pieces.unwrap().send(AnswerPiece::Chunk(chunk)).await.unwrap();
                    }
                    Ok(self.answer(AnswerDraft::text(text)))
                }
                None => {
                    Err(Box::new(UpstreamFailure::trouble(ProviderError::of(ProviderErrorKind::Overload))))
                }
            }
        })
    }
}

/// A scripted model of this name.
pub(crate) fn target(model: &str, window_tokens: u64, script: &Arc<Scripted>) -> ModelTarget {
    ModelTarget {
        model: model.to_owned(),
        provider: "test".to_owned(),
        endpoint: "http://127.0.0.1/v1".to_owned(),
        wire_format: script.wire_format,
        policy: LimitPolicy::for_window(window_tokens),
        window_origin: String::new(),
        threshold_origin: ThresholdOrigin::General,
        cache: CachePolicy::Key,
        price_source: PriceSource::of_seller("test".to_owned()),
        cache_minimum_tokens: None,
        upstream: Arc::<Scripted>::clone(script),
    }
}

pub(crate) fn route(model: &str, window_tokens: u64, script: &Arc<Scripted>) -> SummaryRoute {
    SummaryRoute { target: target(model, window_tokens, script), time_limit: Duration::from_secs(60) }
}

/// Collects recorded calls.
#[derive(Default)]
pub(crate) struct Book(pub(crate) Mutex<Vec<NewCall>>);

impl SummaryCalls for Book {
    fn finished<'a>(&'a self, _session: &'a SessionId, call: NewCall) -> BookingFuture<'a> {
        self.0.lock().unwrap().push(call);
        Box::pin(std::future::ready(()))
    }
}

/// A summary with text in every section.
pub(crate) fn notes(about: &str) -> String {
    Section::ALL.map(|section| format!("## {}\n- {about}\n", section.heading())).concat()
}
