//! Joins the answers of several rounds into the one answer that the client receives.
//!
//! Bytes pass unchanged until a call of a recall tool begins. After that, events are removed or renumbered, the end of a round is held
//! back until it is known whether another follows, and the beginnings of later rounds are removed. Answers that are not streamed are
//! joined at the end.

mod anthropic;
mod chat;
pub(super) mod event;
mod responses;
mod whole;

use bytes::Bytes;
use throughline_engine::{AnswerPiece, PieceSender};
use throughline_provider::Chunk;
use throughline_transcript::WireFormat;
use throughline_wire::{SseReader, Streaming};
use tokio::sync::mpsc;

use crate::recall::RecallNames;
use anthropic::AnthropicSplice;
use chat::ChatSplice;
use event::{AfterRound, EventSplice};
use responses::ResponsesSplice;
use whole::WholeSplice;

/// Joins the answers of several rounds into one.
pub(super) struct Splice {
    onward: PieceSender,
    has_begun: bool,
    form: SpliceForm,
}

enum SpliceForm {
    Whole(WholeSplice),
    Stream { reader: SseReader, events: Box<dyn EventSplice + Send + Sync> },
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

    /// Passes on the pieces of a round until its end, or until the client disconnects.
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

    /// Ends a round whose answer is complete. Rounds that broke off are not ended.
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
                // An event that is too large has already failed the call.
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

#[cfg(test)]
#[path = "splice_tests.rs"]
mod tests;
