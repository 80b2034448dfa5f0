//! The upstream of a replay: answers with the recorded messages, and computes bills by the rules of the cache.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_engine::{Host, PieceSender, Upstream, UpstreamAnswer, UpstreamFailure, UpstreamFuture};
use throughline_provider::{OutgoingCall, PrefixCache, ProviderError, ProviderErrorKind, RequestComplaint};
use throughline_store::{Holder, Millis};
use throughline_tokens::{ContentProfile, TokenModel};
use throughline_transcript::{Message, WireFormat};
use throughline_wire::{Answer, AnswerDraft, ReportedUsage, Request, Streaming};
use tokio_util::sync::CancellationToken;

use crate::bill::{Bill, Purpose, Tariff};
use crate::observer::{RequestObserver, SentRequest};

/// The clock of the recording, with fixed random numbers.
#[derive(Debug, Default)]
pub(crate) struct ReplayClock {
    now_ms: AtomicI64,
    drawn: AtomicU32,
}

impl ReplayClock {
    /// Sets the time, which never goes back.
    pub(crate) fn set(&self, now_ms: i64) {
        self.now_ms.fetch_max(now_ms, Ordering::SeqCst);
    }
}

impl Host for ReplayClock {
    fn now_ms(&self) -> Millis {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn random(&self) -> u32 {
        self.drawn.fetch_add(1, Ordering::SeqCst)
    }

    fn holder(&self) -> Holder {
        Holder { host: "replay".to_owned(), process_id: 1, process_start: 1, what: "replay".to_owned() }
    }

    fn is_alive(&self, _holder: &Holder) -> bool {
        true
    }
}

/// Answers calls and computes bills.
pub(crate) struct FakeProvider {
    pub(crate) wire_format: WireFormat,
    pub(crate) token_model: TokenModel,
    pub(crate) tariff: Tariff,
    pub(crate) clock: Arc<ReplayClock>,
    pub(crate) observer: Option<RequestObserver>,
    state: Mutex<ProviderState>,
}

struct ProviderState {
    cache: PrefixCache,
    bill: Bill,
    next: Option<(Vec<Message>, Purpose)>,
    summary: String,
}

impl FakeProvider {
    pub(crate) fn new(
        wire_format: WireFormat,
        token_model: TokenModel,
        tariff: Tariff,
        clock: Arc<ReplayClock>,
        cache: PrefixCache,
    ) -> Self {
        let state =
            Mutex::new(ProviderState { cache, bill: Bill::default(), next: None, summary: String::new() });
        Self { wire_format, token_model, tariff, clock, observer: None, state }
    }

    // Plain figures, usable after a panic elsewhere.
    fn state(&self) -> MutexGuard<'_, ProviderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the answer to the next call.
    pub(crate) fn will_answer(&self, messages: Vec<Message>, purpose: Purpose) {
        self.state().next = Some((messages, purpose));
    }

    /// Sets the answer to the next call for a summary.
    pub(crate) fn will_summarise(&self, markdown: String) {
        self.state().summary = markdown;
    }

    /// Returns the cost so far.
    pub(crate) fn bill(&self) -> Bill {
        self.state().bill.clone()
    }

    /// Prices a prompt and adds it with an answer of this many tokens.
    fn charge(
        &self,
        body: &[u8],
        purpose: Purpose,
        answered_tokens: u64,
    ) -> Result<ReportedUsage, Box<UpstreamFailure>> {
        let refused = |words: String| {
            let kind = ProviderErrorKind::MalformedRequest { complaint: RequestComplaint::Other };
            Box::new(UpstreamFailure::trouble(ProviderError { words, ..ProviderError::of(kind) }))
        };
        let request = Request::decode(self.wire_format, body).map_err(|error| refused(error.to_string()))?;
        let now_ms = self.clock.now_ms();
        let mut state = self.state();
        let ProviderState { cache, bill, .. } = &mut *state;
        let priced = cache.ask(&request, now_ms).map_err(|complaint| refused(complaint.to_string()))?;
        cache.answer_began(&priced, now_ms);
        let mut reported = priced.reported;
        reported.usage.output = answered_tokens;
        if let Some(observer) = self.observer.as_ref().filter(|_| purpose == Purpose::Conversation) {
            observer.see(&SentRequest { call: bill.after_calls.len(), request: &request });
        }
        bill.book(&self.tariff, purpose, reported, priced.fixed_tokens, now_ms);
        Ok(reported)
    }

    /// Returns the answer to a call. Summaries are requested as streams, everything else in one piece.
    fn answer(&self, call: &OutgoingCall) -> Result<UpstreamAnswer, Box<UpstreamFailure>> {
        let size =
            |message: &Message| self.token_model.estimate_content(&ContentProfile::of_message(message));
        let (mut answer, purpose) = match call.streaming {
            Streaming::Streamed => (self.summary()?, Purpose::Summary),
            Streaming::Whole => {
                let (messages, purpose) =
                    self.state().next.take().unwrap_or((Vec::new(), Purpose::Conversation));
                (Answer { messages, ..Answer::empty(self.wire_format) }, purpose)
            }
        };
        let written = answer.messages.iter().map(size).sum();
        let reported = self.charge(&call.body, purpose, written)?;
        answer.usage_json = Some(reported.to_json(self.wire_format));
        Ok(UpstreamAnswer { answer, first_content: None })
    }

    fn summary(&self) -> Result<Answer, Box<UpstreamFailure>> {
        let draft = AnswerDraft::text(self.state().summary.clone());
        let body = draft.to_response(self.wire_format);
        let unread = |_| Box::new(UpstreamFailure::trouble(ProviderError::of(ProviderErrorKind::Unknown)));
        Answer::decode(self.wire_format, body.as_bytes()).map_err(unread)
    }
}

impl Upstream for FakeProvider {
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        _pieces: Option<&'a PieceSender>,
        _cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        let answered = self.answer(&call);
        Box::pin(async move {
            // Background work runs while a model answers.
            tokio::task::yield_now().await;
            answered
        })
    }
}
