//! What is said goes into the record and the view; whatever happens to the call, nothing is written twice or half.
//!
//! A call may be given up at any moment, also while the record is being written, and the write goes on without it. So a
//! write is kept until its end has been seen: the next thing that is done with the conversation waits for it first.

use std::sync::Arc;

use throughline_store::{Appended, Millis, NewMessage, Session, StoreError, Summary};
use throughline_transcript::{Message, SharedText, decode_message};
use throughline_wire::Answer;
use tokio::task::JoinHandle;

use super::{CallError, Incoming, ManagedSession, RecordPolicy, record};
use crate::lifecycle::BoundaryReason;
use crate::view::Place;

/// A write whose end has not been seen yet.
pub(super) enum Writing {
    /// What was not recorded is being appended.
    Append(JoinHandle<Result<Appended, StoreError>>),
    /// The conversation is being moved on to another session.
    Move(JoinHandle<Result<Moved, StoreError>>),
    /// The record has what the view in memory has not.
    Ahead,
}

/// The session a conversation was moved on to, and its new summary, if it has one.
pub(super) type Moved = (Session, Option<Summary>);

impl ManagedSession {
    /// Takes messages into the record and the view. Where that fails and must not, they are not said.
    pub(super) async fn take_in(&mut self, messages: Vec<Incoming>) -> Result<(), CallError> {
        // What is left from before is not part of this: it stays whatever happens.
        let _ = self.finish_writing().await;
        let before = self.unrecorded.len();
        self.say(messages)?;
        match self.write_unrecorded().await {
            Ok(()) => Ok(()),
            Err(error) if self.setup.policy.record == RecordPolicy::GoOn => {
                self.tell_of_unrecorded(&error);
                Ok(())
            }
            Err(error) => {
                self.unsay(before);
                Err(error.into())
            }
        }
    }

    /// Takes an answer into the record and the view. It stays in memory where it cannot be written, and is written
    /// before anything else is.
    pub(super) async fn take_answer(&mut self, answer: &Answer) {
        let said = self.say(answer.messages.iter().cloned().map(Incoming::from));
        debug_assert!(said.is_ok(), "an answer is shown as it is");
        if let Err(error) = self.write_unrecorded().await {
            self.tell_of_unrecorded(&error);
        }
    }

    fn tell_of_unrecorded(&self, error: &StoreError) {
        self.notice(format!("what was just said could not be recorded and is kept in memory: {error}"));
    }

    /// Puts messages into the view, to be recorded.
    fn say(&mut self, messages: impl IntoIterator<Item = Incoming>) -> Result<(), CallError> {
        let at_ms = self.setup.host.now_ms();
        let before = self.unrecorded.len();
        for incoming in messages {
            let (new, shown) = match self.read_incoming(incoming, at_ms) {
                Ok(read) => read,
                Err(error) => {
                    self.unsay(before);
                    return Err(error);
                }
            };
            let changes = new.rendition.as_ref().map(|rendition| rendition.kinds.clone()).unwrap_or_default();
            // Where it is in the record is known once it is written.
            let place = Place::Message { session: self.id().clone(), seq: u64::MAX, changes };
            self.view.push(place, shown);
            self.unrecorded.push(new);
        }
        Ok(())
    }

    /// Takes back what was not written, down to so many messages: the conversation is as it was.
    fn unsay(&mut self, kept: usize) {
        let surplus = self.unrecorded.len().saturating_sub(kept);
        self.view.truncate(self.view.len().saturating_sub(surplus));
        self.unrecorded.truncate(kept);
    }

    /// A message as it goes into the record, and as it is shown.
    fn read_incoming(
        &mut self,
        incoming: Incoming,
        at_ms: Millis,
    ) -> Result<(NewMessage, Message), CallError> {
        let Incoming { message, rendition } = incoming;
        let shown = match &rendition {
            None => message.clone(),
            Some(rendition) => {
                let shown = decode_message(SharedText::new(rendition.json.clone()));
                let shown = shown.ok_or_else(|| StoreError::ViewRefused {
                    problem: "what stands for a message in it is no message",
                })?;
                if message.is_machine_written() { shown.marked_machine_written() } else { shown }
            }
        };
        let tokens = self.view.estimate(&message);
        let tools = self.view.names.tools_of(&message);
        Ok((NewMessage { message, tokens, at_ms, tools, rendition }, shown))
    }

    /// Writes what the record does not have yet. When another process moved the conversation on, goes after it.
    pub(super) async fn write_unrecorded(&mut self) -> Result<(), StoreError> {
        self.finish_writing().await?;
        if self.unrecorded.is_empty() {
            return Ok(());
        }
        match self.append().await {
            Err(StoreError::SessionEnded { successor: Some(_), .. }) => {
                self.writing = Some(Writing::Ahead);
                self.finish_writing().await?;
                self.append().await
            }
            other => other,
        }
    }

    async fn append(&mut self) -> Result<(), StoreError> {
        let (store, owner, id) = (Arc::clone(&self.setup.store), self.setup.owner.clone(), self.id().clone());
        let messages = self.unrecorded.clone();
        let write = tokio::task::spawn_blocking(move || store.append(&owner, &id, messages));
        self.writing = Some(Writing::Append(write));
        self.finish_writing().await
    }

    /// Waits for a write and takes in what came of it. Nothing may be said between a write and this.
    pub(super) async fn finish_writing(&mut self) -> Result<(), StoreError> {
        match &mut self.writing {
            None => return Ok(()),
            Some(Writing::Ahead) => {}
            Some(Writing::Append(write)) => {
                let appended = record::joined(write.await);
                self.writing = None;
                let Appended { first_seq, next_seq } = appended?;
                let expected_seq = self.view.session().next_seq;
                let first_item = self.view.len().saturating_sub(self.unrecorded.len());
                self.view.placed(first_item, first_seq);
                self.view.set_next_seq(next_seq);
                self.unrecorded.clear();
                if first_seq == expected_seq {
                    return Ok(());
                }
                // Somebody else said something in between.
                self.writing = Some(Writing::Ahead);
            }
            Some(Writing::Move(write)) => {
                let moved = record::joined(write.await);
                self.writing = moved.is_ok().then_some(Writing::Ahead);
                moved?;
            }
        }
        self.follow_elsewhere().await?;
        self.writing = None;
        Ok(())
    }

    /// Moves the conversation on to another session. Until the view is that session's, the record is ahead.
    pub(super) async fn move_on(
        &mut self,
        act: impl FnOnce() -> Result<Moved, StoreError> + Send + 'static,
    ) -> Result<Moved, StoreError> {
        self.writing = Some(Writing::Move(tokio::task::spawn_blocking(act)));
        let Some(Writing::Move(write)) = &mut self.writing else {
            return Err(StoreError::ViewRefused { problem: "two writes at once" });
        };
        let moved = record::joined(write.await);
        self.writing = moved.is_ok().then_some(Writing::Ahead);
        moved
    }

    /// Another process may have moved the conversation on: the record's view is ours now, with what was not written yet
    /// behind it.
    pub(super) async fn follow_elsewhere(&mut self) -> Result<(), StoreError> {
        let old = self.id().clone();
        let loaded = record::load(&self.setup, &old, self.setup.host.now_ms()).await?;
        let kept = self.view.len().saturating_sub(self.unrecorded.len());
        let unwritten: Vec<Message> = self.view.messages().iter().skip(kept).cloned().collect();
        let places: Vec<Place> = self.view.items().iter().skip(kept).map(|item| item.place.clone()).collect();
        self.view = loaded.view;
        self.compactions = loaded.compactions;
        self.guard = loaded.guard.clone();
        self.guard_as_kept = loaded.guard;
        for (place, message) in places.into_iter().zip(unwritten) {
            self.view.push(place, message);
        }
        if *self.id() != old {
            self.moved_on(BoundaryReason::Elsewhere, old).await;
        }
        Ok(())
    }
}
