//! One answer made of several: what a client is sent while the model is asked again and again.
//!
//! Bytes go through as they come until a call of a recall tool begins. From there on events are left out or numbered
//! anew, the end of a round is held back until it is known whether another follows, and the beginnings of later rounds
//! are left out. An answer that comes whole is put together at the end.

mod anthropic;
mod chat;
mod responses;
mod whole;

use bytes::Bytes;
use serde_json::Value;
use throughline_engine::{AnswerPiece, PieceSender};
use throughline_provider::Chunk;
use throughline_transcript::WireFormat;
use throughline_wire::{SseFrame, SseReader, Streaming, write_event};
use tokio::sync::mpsc;

use crate::recall::RecallNames;
use anthropic::AnthropicSplice;
use chat::ChatSplice;
use responses::ResponsesSplice;
use whole::WholeSplice;

/// What follows a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterRound {
    /// The model is asked again.
    Round,
    /// Nothing: this was the last.
    Nothing,
}

/// Makes one answer of several.
pub(super) struct Splice {
    onward: PieceSender,
    has_begun: bool,
    form: SpliceForm,
}

enum SpliceForm {
    Whole(WholeSplice),
    Stream { reader: SseReader, events: Box<dyn EventSplice + Send + Sync> },
}

/// The events of a wire, round after round.
trait EventSplice {
    /// Takes an event; what the client is sent of it goes to `out`.
    fn take(&mut self, frame: &SseFrame<'_>, out: &mut Vec<u8>);

    /// A round is over.
    fn end(&mut self, next: AfterRound, out: &mut Vec<u8>);
}

impl Splice {
    pub(super) fn new(
        wire: WireFormat,
        streaming: Streaming,
        names: &RecallNames,
        onward: PieceSender,
    ) -> Self {
        let names = names.clone();
        let form = match (streaming, wire) {
            (Streaming::Whole, _) => SpliceForm::Whole(WholeSplice::new(wire, names)),
            (Streaming::Streamed, WireFormat::Anthropic) => stream(AnthropicSplice::new(names)),
            (Streaming::Streamed, WireFormat::Chat) => stream(ChatSplice::new(names)),
            (Streaming::Streamed, WireFormat::Responses) => stream(ResponsesSplice::new(names)),
        };
        Self { onward, has_begun: false, form }
    }

    /// Passes on what comes in a round. Ends when all of it has come, or nobody wants it any more.
    pub(super) async fn pass(&mut self, mut coming: mpsc::Receiver<AnswerPiece>) {
        while let Some(piece) = coming.recv().await {
            let passed = match piece {
                AnswerPiece::Begun { status, headers } => self.begin(status, headers).await,
                AnswerPiece::Chunk(chunk) => self.take(&chunk.raw).await,
            };
            if !passed {
                return;
            }
        }
    }

    /// A round is over, and is whole: what broke off is for nobody.
    pub(super) async fn end(&mut self, next: AfterRound) {
        let mut out = Vec::new();
        match &mut self.form {
            SpliceForm::Stream { reader, events } => {
                if let Some(rest) = reader.finish() {
                    events.take(&rest, &mut out);
                }
                *reader = SseReader::default();
                events.end(next, &mut out);
            }
            SpliceForm::Whole(whole) => {
                let Some((status, headers, body)) = whole.end(next) else { return };
                if self.onward.send(AnswerPiece::Begun { status, headers }).await.is_err() {
                    return;
                }
                out = body;
            }
        }
        self.send(out).await;
    }

    async fn begin(&mut self, status: u16, headers: Vec<(String, String)>) -> bool {
        match &mut self.form {
            SpliceForm::Whole(whole) => {
                whole.begin(status, headers);
                true
            }
            SpliceForm::Stream { .. } if self.has_begun => true,
            SpliceForm::Stream { .. } => {
                self.has_begun = true;
                let headers = headers.into_iter().filter(|(name, _)| name != "content-length").collect();
                self.onward.send(AnswerPiece::Begun { status, headers }).await.is_ok()
            }
        }
    }

    async fn take(&mut self, raw: &[u8]) -> bool {
        let mut out = Vec::new();
        match &mut self.form {
            SpliceForm::Whole(whole) => whole.take(raw),
            SpliceForm::Stream { reader, events } => {
                let mut frames = reader.read(raw);
                // What is too large for an event has failed the call already.
                while let Ok(Some(frame)) = frames.next() {
                    events.take(&frame, &mut out);
                }
            }
        }
        self.send(out).await
    }

    async fn send(&self, out: Vec<u8>) -> bool {
        if out.is_empty() {
            return true;
        }
        let chunk = Chunk { raw: Bytes::from(out), deltas: Vec::new() };
        self.onward.send(AnswerPiece::Chunk(chunk)).await.is_ok()
    }
}

fn stream(events: impl EventSplice + Send + Sync + 'static) -> SpliceForm {
    SpliceForm::Stream { reader: SseReader::default(), events: Box::new(events) }
}

/// An event that is held back, or written anew.
struct SpliceEvent {
    name: Option<String>,
    data: Value,
}

impl SpliceEvent {
    fn of(frame: &SseFrame<'_>) -> Option<Self> {
        let data = serde_json::from_str(frame.data.as_deref()?).ok()?;
        Some(Self { name: frame.name.as_deref().map(str::to_owned), data })
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_event(self.name.as_deref(), &self.data.to_string(), out);
    }
}

/// The kind of an event, where its name or its data says it.
fn kind_of(frame: &SseFrame<'_>) -> Option<String> {
    if let Some(name) = &frame.name {
        return Some(name.clone().into_owned());
    }
    let data: Value = serde_json::from_str(frame.data.as_deref()?).ok()?;
    Some(data.get("type")?.as_str()?.to_owned())
}

/// Adds to a number under a path, where there is one.
fn add_to(value: &mut Value, pointer: &str, more: u64) {
    if let Some(place) = value.pointer_mut(pointer)
        && let Some(number) = place.as_u64()
    {
        *place = Value::from(number.saturating_add(more));
    }
}

/// A number under a path.
fn number_at(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
#[path = "splice_tests.rs"]
mod tests;
