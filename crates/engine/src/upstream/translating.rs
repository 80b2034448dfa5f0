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

/// Pieces that may wait to be translated.
const PIECES_WAITING: usize = 8;
/// Headers of the body that was translated, or of the wire it came on.
const NOT_OF_THIS_BODY: [&str; 3] = ["content-type", "content-length", "content-encoding"];
/// Headers that only an Anthropic server reads.
const ANTHROPIC_HEADERS: &str = "anthropic-";

/// Told what the other wire has no place for.
pub(crate) type OnOmission = Arc<dyn Fn(&str) + Send + Sync>;

/// An upstream that speaks another wire.
pub(crate) struct TranslatingUpstream {
    inner: Arc<dyn Upstream>,
    /// The wire it speaks.
    spoken: WireFormat,
    /// What the cap on output is called there.
    cap: CapMember,
    host: Arc<dyn Host>,
    left_out: OnOmission,
    /// What was reported already.
    told: Mutex<Vec<String>>,
}

impl TranslatingUpstream {
    /// Puts calls on the wire that `inner` speaks.
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

    /// The call as the upstream is asked.
    fn put_over(&self, call: OutgoingCall) -> Result<(OutgoingCall, TranslationBack), String> {
        let request = Request::decode(call.wire_format, &call.body).map_err(|error| error.to_string())?;
        let asked_secs = u64::try_from(self.host.now_ms() / 1_000).unwrap_or_default();
        let translated =
            request.translate(self.spoken, self.cap, asked_secs).map_err(|error| error.to_string())?;
        self.tell(&translated.left_out);
        let headers = ModelTarget::headers_on(self.spoken, call.headers);
        let over = OutgoingCall {
            wire_format: self.spoken,
            body: translated.body.into(),
            headers,
            query: None,
            ..call
        };
        Ok((over, translated.way_back))
    }

    /// Says once what is left out.
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
            // A caller that is gone misses nothing.
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

/// A stream on its way back.
struct ReverseTranslation<'a> {
    live: LiveTranslation,
    onward: PieceForwarder<'a>,
}

/// Where a stream goes, and what reads it on the way.
struct PieceForwarder<'a> {
    /// Reads what is passed on.
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

    /// What was passed on of an answer that broke off.
    fn received(self) -> Option<Answer> {
        match self.onward.reader.finish(&mut Vec::new()) {
            Ok(answer) => Some(answer),
            Err(interrupted) => Some(interrupted.received).filter(|received| !received.parts.is_empty()),
        }
    }
}

impl PieceForwarder<'_> {
    /// Passes events on, and reads them as their receiver does.
    async fn write(&mut self, events: &[WireEvent], deltas: Vec<Delta>) {
        if events.is_empty() {
            return;
        }
        let raw = Bytes::from(events.iter().flat_map(WireEvent::to_bytes).collect::<Vec<u8>>());
        // What we wrote ourselves can be read; whether all of it came is asked at the end.
        let _ = self.reader.feed(&raw, &mut Vec::new());
        self.pass_on(AnswerPiece::Chunk(Chunk { raw, deltas })).await;
    }

    async fn pass_on(&self, piece: AnswerPiece) {
        if let Some(pieces) = self.pieces
            && pieces.send(piece).await.is_err()
        {
            // The receiver is gone: reading on would cost money for nothing.
            self.cancel.cancel();
        }
    }
}

impl ModelTarget {
    /// The same model for conversations that are held on this wire.
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
            // Marks have no place on the other wires, and keys of a cache are not carried over.
            _ => CachePolicy::Unmarked,
        };
        let upstream =
            TranslatingUpstream::new(self.upstream, self.wire_format, cap, Arc::clone(host), left_out);
        Self { wire_format: client, cache, upstream: Arc::new(upstream), ..self }
    }
}

impl ModelTarget {
    /// A caller's headers as a server of this wire wants them: keys under its name, and nothing that only others read.
    #[must_use]
    pub fn headers_on(spoken: WireFormat, headers: Vec<(String, String)>) -> Vec<(String, String)> {
        headers.into_iter().filter_map(|header| header_on(spoken, header)).collect()
    }
}

/// A header as the other wire has it; `None` for what nobody reads there.
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

/// A refusal in the words of another wire.
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
