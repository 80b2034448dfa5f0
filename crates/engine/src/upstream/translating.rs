//! An upstream in another wire format than the conversation's.
//!
//! The engine, the record and the client use one wire format. Requests are translated just before they are sent, and answers
//! are translated back as they arrive; the engine reads the translated answer.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use throughline_provider::{
    CachePolicy, Chunk, EndpointKind, MarkLayout, OutgoingCall, ProviderError, ProviderErrorKind, Refusal,
    RequestComplaint,
};
use throughline_transcript::WireFormat;
use throughline_wire::{
    Answer, CapMember, Delta, ErrorBody, LiveTranslation, Request, StreamDecoder, Streaming, TranslationBack,
    WireEvent,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::host::Host;
use crate::limits::target::ModelTarget;
use crate::upstream::{AnswerPiece, PieceSender, Upstream, UpstreamAnswer, UpstreamFailure, UpstreamFuture};

/// The capacity of the channel for pieces to translate.
const PIECES_WAITING: usize = 8;
/// Headers that describe the original body rather than the translated one.
const NOT_OF_THIS_BODY: [&str; 3] = ["content-type", "content-length", "content-encoding"];
/// The prefix of headers that only an Anthropic server reads.
const ANTHROPIC_HEADERS: &str = "anthropic-";

/// Receives a description of each part that the other wire format cannot express.
pub(crate) type OnOmission = Arc<dyn Fn(&str) + Send + Sync>;

/// An upstream with another wire format.
pub(crate) struct TranslatingUpstream {
    inner: Arc<dyn Upstream>,
    /// The wire format of the upstream.
    spoken: WireFormat,
    /// The name of the output limit in that format.
    cap: CapMember,
    host: Arc<dyn Host>,
    left_out: OnOmission,
    /// Omissions that were reported already.
    told: Mutex<Vec<String>>,
}

impl TranslatingUpstream {
    /// Creates an upstream that translates calls to the wire format of `inner`.
    #[must_use]
    pub(crate) fn new(
        inner: Arc<dyn Upstream>,
        spoken: WireFormat,
        cap: CapMember,
        host: Arc<dyn Host>,
        left_out: OnOmission,
    ) -> Self {
        Self { inner, spoken, cap, host, left_out, told: Mutex::default() }
    }

    async fn ask(
        &self,
        call: OutgoingCall,
        pieces: Option<&PieceSender>,
        cancel: &CancellationToken,
    ) -> Result<UpstreamAnswer, Box<UpstreamFailure>> {
        let client = call.wire_format;
        let streaming = call.streaming;
        let (call, back) = self.put_over(call).map_err(|words| Box::new(unsendable(words)))?;
        let answered = match streaming {
            Streaming::Whole => self.ask_whole(call, pieces, cancel, &back).await,
            Streaming::Streamed => self.ask_streamed(call, pieces, cancel, back).await,
        };
        answered.map_err(|mut unanswered| {
            unanswered.refusal =
                unanswered.refusal.take().map(|refusal| Box::new(refusal_on(client, &refusal)));
            unanswered
        })
    }

    /// Returns the call as it is sent to the upstream.
    fn put_over(&self, call: OutgoingCall) -> Result<(OutgoingCall, TranslationBack), String> {
        let request = Request::decode(call.wire_format, &call.body).map_err(|error| error.to_string())?;
        let asked_secs = u64::try_from(self.host.now_ms() / 1_000).unwrap_or_default();
        let translated =
            request.translate(self.spoken, self.cap, asked_secs).map_err(|error| error.to_string())?;
        self.tell(&translated.left_out);
        let headers = headers_on(self.spoken, call.headers);
        let over = OutgoingCall {
            wire_format: self.spoken,
            body: translated.body.into(),
            headers,
            query: None,
            ..call
        };
        Ok((over, translated.way_back))
    }

    /// Reports each omission once.
    fn tell(&self, left_out: &[String]) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for what in left_out {
            if !told.contains(what) {
                told.push(what.clone());
                (self.left_out)(what);
            }
        }
    }

    async fn ask_whole(
        &self,
        call: OutgoingCall,
        pieces: Option<&PieceSender>,
        cancel: &CancellationToken,
        back: &TranslationBack,
    ) -> Result<UpstreamAnswer, Box<UpstreamFailure>> {
        let received = self.inner.send(call, None, cancel).await?;
        let body = Bytes::from(back.whole(&received.answer));
        let answer = Answer::decode(back.to, &body).map_err(|error| unreadable(&error.to_string()))?;
        if let Some(pieces) = pieces {
            let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
            let text = answer.text();
            let deltas = if text.is_empty() { Vec::new() } else { vec![Delta::Text(text)] };
            // The receiver may be gone.
            let _ = pieces.send(AnswerPiece::Begun { status: 200, headers }).await;
            let _ = pieces.send(AnswerPiece::Chunk(Chunk { raw: body, deltas })).await;
        }
        Ok(UpstreamAnswer { answer, ..received })
    }

    async fn ask_streamed(
        &self,
        call: OutgoingCall,
        pieces: Option<&PieceSender>,
        cancel: &CancellationToken,
        back: TranslationBack,
    ) -> Result<UpstreamAnswer, Box<UpstreamFailure>> {
        let (sender, mut coming) = mpsc::channel(PIECES_WAITING);
        let mut way_back = ReverseTranslation::new(back, pieces, cancel);
        let sent = async {
            let result = self.inner.send(call, Some(&sender), cancel).await;
            drop(sender);
            result
        };
        let passed_on = async {
            while let Some(piece) = coming.recv().await {
                way_back.take(piece).await;
            }
            way_back
        };
        let (result, way_back) = tokio::join!(sent, passed_on);
        match result {
            Ok(received) => {
                let answer = way_back.finish(&received.answer).await?;
                Ok(UpstreamAnswer { answer, ..received })
            }
            Err(mut unanswered) => {
                unanswered.received = way_back.received();
                Err(unanswered)
            }
        }
    }
}

/// Translates a stream back.
struct ReverseTranslation<'a> {
    live: LiveTranslation,
    onward: PieceForwarder<'a>,
}

/// Passes a stream on and decodes it meanwhile.
struct PieceForwarder<'a> {
    /// Decodes what is passed on.
    reader: StreamDecoder,
    pieces: Option<&'a PieceSender>,
    cancel: &'a CancellationToken,
}

impl<'a> ReverseTranslation<'a> {
    fn new(back: TranslationBack, pieces: Option<&'a PieceSender>, cancel: &'a CancellationToken) -> Self {
        let onward = PieceForwarder { reader: StreamDecoder::new(back.to), pieces, cancel };
        Self { live: LiveTranslation::new(back), onward }
    }

    async fn take(&mut self, piece: AnswerPiece) {
        match piece {
            AnswerPiece::Begun { status, headers } => {
                let is_own = |(name, _): &(String, String)| !NOT_OF_THIS_BODY.contains(&name.as_str());
                let kind = ("content-type".to_owned(), "text/event-stream; charset=utf-8".to_owned());
                let headers = headers.into_iter().filter(is_own).chain([kind]).collect();
                self.onward.pass_on(AnswerPiece::Begun { status, headers }).await;
            }
            AnswerPiece::Chunk(chunk) => {
                let mut events = Vec::new();
                self.live.feed(&chunk.deltas, &mut events);
                self.onward.write(&events, chunk.deltas).await;
            }
        }
    }

    async fn finish(self, answer: &Answer) -> Result<Answer, Box<UpstreamFailure>> {
        let Self { live, mut onward } = self;
        let mut events = Vec::new();
        live.finish(answer, &mut events);
        onward.write(&events, Vec::new()).await;
        onward.reader.finish(&mut Vec::new()).map_err(|_| unreadable("the translated stream has no end"))
    }

    /// Returns the part that was passed on of an answer that broke off.
    fn received(self) -> Option<Answer> {
        match self.onward.reader.finish(&mut Vec::new()) {
            Ok(answer) => Some(answer),
            Err(interrupted) => Some(interrupted.received).filter(|received| !received.parts.is_empty()),
        }
    }
}

impl PieceForwarder<'_> {
    /// Passes events on and decodes them.
    async fn write(&mut self, events: &[WireEvent], deltas: Vec<Delta>) {
        if events.is_empty() {
            return;
        }
        let raw = Bytes::from(events.iter().flat_map(WireEvent::to_bytes).collect::<Vec<u8>>());
        // Our own output can always be decoded; whether it is complete is checked at the end.
        let _ = self.reader.feed(&raw, &mut Vec::new());
        self.pass_on(AnswerPiece::Chunk(Chunk { raw, deltas })).await;
    }

    async fn pass_on(&self, piece: AnswerPiece) {
        if let Some(pieces) = self.pieces
            && pieces.send(piece).await.is_err()
        {
            // The receiver is gone: reading on would cost money without use.
            self.cancel.cancel();
        }
    }
}

impl ModelTarget {
    /// Returns the same model for conversations in this wire format.
    #[must_use]
    pub fn for_wire(self, client: WireFormat, host: &Arc<dyn Host>, left_out: OnOmission) -> Self {
        if client == self.wire_format {
            return self;
        }
        // OpenAI's newer models refuse the old name, and many other servers do not know the new one.
        let is_openai = self.provider == EndpointKind::OpenAi.name();
        let cap = if is_openai { CapMember::MaxCompletionTokens } else { CapMember::MaxTokens };
        let cache = match (self.cache, client) {
            (CachePolicy::Marks { ttl, seller, .. }, WireFormat::Chat) => {
                CachePolicy::Marks { layout: MarkLayout::ChatParts, ttl, seller }
            }
            // The other wire formats have no marks, and cache keys are not translated.
            _ => CachePolicy::Unmarked,
        };
        let upstream =
            TranslatingUpstream::new(self.upstream, self.wire_format, cap, Arc::clone(host), left_out);
        Self { wire_format: client, cache, upstream: Arc::new(upstream), ..self }
    }
}

/// Converts a caller's headers for a server of this wire format: keys under its name, and no headers that only other servers read.
#[must_use]
pub fn headers_on(spoken: WireFormat, headers: Vec<(String, String)>) -> Vec<(String, String)> {
    headers.into_iter().filter_map(|header| header_on(spoken, header)).collect()
}

/// Converts a header; `None` if no server of this format reads it.
fn header_on(spoken: WireFormat, (name, value): (String, String)) -> Option<(String, String)> {
    let key = match name.as_str() {
        "authorization" => value.strip_prefix("Bearer ").map(str::to_owned),
        "x-api-key" => Some(value.clone()),
        _ => None,
    };
    match (spoken, key) {
        (WireFormat::Anthropic, Some(key)) => Some(("x-api-key".to_owned(), key)),
        (_, Some(key)) => Some(("authorization".to_owned(), format!("Bearer {key}"))),
        (_, None) if name.starts_with(ANTHROPIC_HEADERS) && spoken != WireFormat::Anthropic => None,
        (_, None) if NOT_OF_THIS_BODY.contains(&name.as_str()) && name != "content-type" => None,
        (_, None) => Some((name, value)),
    }
}

/// Translates a refusal to another wire format.
fn refusal_on(client: WireFormat, refusal: &Refusal) -> Refusal {
    let error = ErrorBody::of_failed_response(&refusal.body);
    let is_own = |(name, _): &&(String, String)| !NOT_OF_THIS_BODY.contains(&name.as_str());
    let kind = ("content-type".to_owned(), "application/json".to_owned());
    Refusal {
        status: refusal.status,
        headers: refusal.headers.iter().filter(is_own).cloned().chain([kind]).collect(),
        body: error.to_json(client).into(),
    }
}

fn unsendable(words: String) -> UpstreamFailure {
    let trouble =
        ProviderError::of(ProviderErrorKind::MalformedRequest { complaint: RequestComplaint::Other });
    UpstreamFailure::trouble(ProviderError { status: Some(400), words, should_retry: Some(false), ..trouble })
}

fn unreadable(words: &str) -> Box<UpstreamFailure> {
    let trouble = ProviderError::of(ProviderErrorKind::Unknown);
    let trouble = ProviderError { words: words.to_owned(), should_retry: Some(false), ..trouble };
    Box::new(UpstreamFailure::trouble(trouble))
}

impl Upstream for TranslatingUpstream {
    fn send<'a>(
        &'a self,
        call: OutgoingCall,
        pieces: Option<&'a PieceSender>,
        cancel: &'a CancellationToken,
    ) -> UpstreamFuture<'a> {
        Box::pin(self.ask(call, pieces, cancel))
    }

    fn cancels_background(&self) -> bool {
        self.inner.cancels_background()
    }

    fn advice(&self, trouble: &ProviderError, model: &str) -> Option<String> {
        self.inner.advice(trouble, model)
    }
}
