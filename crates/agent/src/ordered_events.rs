//! Pieces of an answer and events of the context arrive over two channels. This passes them on in the order of their arrival; otherwise a
//! notice could appear within a word that arrived before it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use throughline_engine::{AnswerPiece, EngineEvent, EventSink};
use throughline_wire::Delta;
use tokio::sync::mpsc;

use crate::event::{AgentEvent, AgentEvents};

/// The capacity of the channel for pieces of an answer.
const PIECES_WAITING: usize = 64;

/// Passes on pieces and events in order.
pub(crate) struct OrderedEvents {
    events: Arc<dyn AgentEvents>,
    /// The pieces of the current answer.
    waiting: Mutex<Option<mpsc::Receiver<AnswerPiece>>>,
}

impl OrderedEvents {
    pub(crate) fn new(events: Arc<dyn AgentEvents>) -> Self {
        Self { events, waiting: Mutex::new(None) }
    }

    // The receiver is replaced as a whole, so a panic elsewhere leaves it usable.
    fn waiting(&self) -> MutexGuard<'_, Option<mpsc::Receiver<AnswerPiece>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sender for the next answer.
    pub(crate) fn begin(&self) -> mpsc::Sender<AnswerPiece> {
        let (sender, receiver) = mpsc::channel(PIECES_WAITING);
        *self.waiting() = Some(receiver);
        sender
    }

    /// Shows pieces as they arrive, until the answer ends.
    pub(crate) async fn show_coming(&self) {
        while let Some(piece) = self.next().await {
            self.show(piece);
        }
    }

    async fn next(&self) -> Option<AnswerPiece> {
        poll_fn(|context| match self.waiting().as_mut() {
            Some(receiver) => receiver.poll_recv(context),
            None => Poll::Ready(None),
        })
        .await
    }

    /// Shows the pieces that have arrived.
    pub(crate) fn show_waiting(&self) {
        loop {
            let piece = self.waiting().as_mut().and_then(|receiver| receiver.try_recv().ok());
            let Some(piece) = piece else { return };
            self.show(piece);
        }
    }

    fn show(&self, piece: AnswerPiece) {
        let AnswerPiece::Chunk(chunk) = piece else { return };
        for delta in chunk.deltas {
            match delta {
                Delta::Text(text) | Delta::Refusal(text) => self.events.tell(AgentEvent::Text(text)),
                Delta::Reasoning(text) => self.events.tell(AgentEvent::Reasoning(text)),
                Delta::ToolCallStart { name, .. } => self.events.tell(AgentEvent::CallBegun { tool: name }),
                Delta::Started { .. } | Delta::ToolCallArguments { .. } | Delta::ToolCallEnd { .. } => {}
            }
        }
    }
}

impl EventSink for OrderedEvents {
    fn tell(&self, event: EngineEvent) {
        self.show_waiting();
        self.events.tell(AgentEvent::Engine(event));
    }
}

#[cfg(test)]
#[path = "ordered_events_tests.rs"]
mod tests;
