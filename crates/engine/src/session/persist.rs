//! Writes new messages to the record and the view. Whatever happens to the call, nothing is written twice or in part.
//!
//! A call may be cancelled at any moment, also during a write, which then continues without it. So a pending write is kept
//! until it has ended: the next operation on the conversation waits for it first.

use std::sync::Arc;

use throughline_store::{
    Millis, NewArtifact, NewMessage, Owner, Store, StoreError, StoredRendition, Version,
};
use throughline_transcript::{Message, SharedText, decode_message};
use throughline_wire::Answer;

use super::persistence::{PendingMessage, PendingWrite, SessionMove};
use super::{IncomingMessage, ManagedSession, RecordPolicy, SessionError, record};
use crate::context_engine::lifecycle::BoundaryReason;
use crate::event::EngineEvent;
use crate::prompt::pairs::{Stubs, as_words, open_calls, stubs};
use crate::prompt::tool_output::{FittedResult, ResultFitter, StoredOutput};
use crate::prompt::view::RecordLocation;

/// A message that is new, with what is kept of it beside the record.
struct FittedMessage {
    incoming: IncomingMessage,
    set_aside: Vec<StoredOutput>,
}

/// The name of a rendition that shows the beginning and the end of what is kept as an artifact.
const ARTIFACT: &str = "artifact";
/// The name of a rendition that holds results which were missing.
const MENDED: &str = "mended";

impl ManagedSession {
    /// Takes messages into the view, and begins to write them to the record.
    pub(super) async fn begin_recording(
        &mut self,
        mut messages: Vec<IncomingMessage>,
    ) -> Result<(), SessionError> {
        let _ = self.finish_writing().await;
        self.add_recalled(&mut messages).await;
        self.accept(messages)?;
        if !self.persistence.unrecorded.is_empty() {
            self.begin_to_append();
        }
        Ok(())
    }

    /// Waits until what was taken in is written. Where it cannot be, it stays in memory and people are told.
    pub(super) async fn finish_recording(&mut self) {
        if self.persistence.write.is_none() {
            return;
        }
        let written = match self.finish_writing().await {
            Err(StoreError::VersionConflict { .. }) => self.write_after_conflict().await,
            other => other,
        };
        if let Err(error) = written {
            self.report_unrecorded(&error);
        }
    }

    /// New messages as they are shown, in the view.
    fn accept(&mut self, messages: Vec<IncomingMessage>) -> Result<(), SessionError> {
        let messages = self.fit_results(self.pair_calls(messages));
        let asides: Vec<EngineEvent> =
            messages.iter().flat_map(|fitted| &fitted.set_aside).map(told).collect();
        self.push_new(messages)?;
        for event in asides {
            self.emit(event);
        }
        Ok(())
    }

    /// Takes messages into the record and the view. Where that fails and must not, they are not said.
    pub(super) async fn record_messages(
        &mut self,
        mut messages: Vec<IncomingMessage>,
    ) -> Result<(), SessionError> {
        // What is left from before is not part of this: it stays whatever happens.
        let _ = self.finish_writing().await;
        let before = self.persistence.unrecorded.len();
        self.add_recalled(&mut messages).await;
        self.accept(messages)?;
        match self.write_unrecorded().await {
            Ok(()) => Ok(()),
            Err(error) if self.setup.policy.record == RecordPolicy::GoOn => {
                self.report_unrecorded(&error);
                Ok(())
            }
            Err(error) => {
                self.drop_new(before);
                Err(error.into())
            }
        }
    }

    /// Takes an answer into the record and the view. It stays in memory where it cannot be written, and is written
    /// before anything else is.
    pub(super) async fn record_answer(&mut self, answer: &Answer) {
        let said = self.push_new(
            answer
                .messages
                .iter()
                .cloned()
                .map(|message| FittedMessage { incoming: message.into(), set_aside: Vec::new() }),
        );
        debug_assert!(said.is_ok(), "an answer is shown as it is");
        if let Err(error) = self.write_unrecorded().await {
            self.report_unrecorded(&error);
        }
    }

    fn report_unrecorded(&self, error: &StoreError) {
        self.notice(format!("what was just said could not be recorded and is kept in memory: {error}"));
    }

    /// New messages with every call answered and every result asked for: stubs and words stand in for what is not.
    fn pair_calls(&self, mut messages: Vec<IncomingMessage>) -> Vec<IncomingMessage> {
        let open = open_calls(self.wire_format, self.prompt.view.messages());
        if open.is_empty() && !messages.iter().any(|incoming| incoming.message.has_results()) {
            return messages;
        }
        let said: Vec<&Message> = messages.iter().map(|incoming| &incoming.message).collect();
        let words = as_words(self.wire_format, &open, &said);
        for (incoming, json) in messages.iter_mut().zip(words) {
            if let Some(json) = json.filter(|_| incoming.rendition.is_none()) {
                // No person said this, whatever it looks like.
                incoming.message = incoming.message.clone().marked_machine_written();
                incoming.rendition = Some(mended(json));
            }
        }
        // Words among the results of a step go behind them: nothing may stand between a call and its results.
        let is_result = |incoming: &IncomingMessage| incoming.message.has_results();
        for step in messages.chunk_by_mut(|one, two| is_result(one) && is_result(two)) {
            step.sort_by_key(|incoming| shown_as(incoming).is_some_and(|shown| !shown.has_results()));
        }
        if open.is_empty() {
            return messages;
        }
        let shown: Vec<Message> = messages.iter().filter_map(shown_as).collect();
        let said: Vec<&Message> = shown.iter().collect();
        let Some(Stubs { messages: stubs, before, inside }) = stubs(self.wire_format, open, &said) else {
            return messages;
        };
        self.notice("tool calls that were never answered got a stub in place of their results");
        if let (Some(json), Some(incoming)) = (inside, messages.get_mut(before)) {
            incoming.rendition = Some(mended(json));
        }
        messages.splice(before..before, stubs.into_iter().map(IncomingMessage::from));
        messages
    }

    /// Long tool results among new messages give way to what is shown of them.
    fn fit_results(&mut self, messages: Vec<IncomingMessage>) -> Vec<FittedMessage> {
        let budgets = self.setup.target.tool_budgets();
        let mut names = std::mem::take(&mut self.prompt.view.names);
        let policy = self.tool_output();
        let fitting = ResultFitter::new(&budgets, &policy).shortening(self.shortening());
        let own: Vec<&Message> = messages.iter().map(|incoming| &incoming.message).collect();
        let fitted = fitting.fit(&own, &mut names);
        self.prompt.view.names = names;
        let mut fitted = fitted.into_iter().flatten();
        let fit = |mut incoming: IncomingMessage| {
            let FittedResult { json, set_aside } = fitted.next().unwrap_or_default();
            match json {
                Some(json) if incoming.rendition.is_none() => {
                    let kinds = vec![ARTIFACT.to_owned()];
                    incoming.rendition = Some(StoredRendition { kinds, json, tokens: 0 });
                    FittedMessage { incoming, set_aside }
                }
                _ => FittedMessage { incoming, set_aside: Vec::new() },
            }
        };
        messages.into_iter().map(fit).collect()
    }

    /// Puts messages into the view, to be recorded.
    fn push_new(&mut self, messages: impl IntoIterator<Item = FittedMessage>) -> Result<(), SessionError> {
        let at_ms = self.setup.host.now_ms();
        let before = self.persistence.unrecorded.len();
        for FittedMessage { incoming, set_aside } in messages {
            let (new, shown) = match self.read_incoming(incoming, at_ms) {
                Ok(read) => read,
                Err(error) => {
                    self.drop_new(before);
                    return Err(error);
                }
            };
            let changes = new.rendition.as_ref().map(|rendition| rendition.kinds.clone()).unwrap_or_default();
            // Where it is in the record is known once it is written.
            let place = RecordLocation::Message { session: self.id().clone(), seq: u64::MAX, changes };
            self.prompt.view.push(place, shown);
            self.persistence.unrecorded.push(PendingMessage { new, set_aside });
        }
        Ok(())
    }

    /// Takes back what was not written, down to so many messages: the conversation is as it was.
    fn drop_new(&mut self, kept: usize) {
        let surplus = self.persistence.unrecorded.len().saturating_sub(kept);
        self.prompt.view.truncate(self.prompt.view.len().saturating_sub(surplus));
        self.persistence.unrecorded.truncate(kept);
    }

    /// A message as it goes into the record, and as it is shown.
    fn read_incoming(
        &mut self,
        incoming: IncomingMessage,
        at_ms: Millis,
    ) -> Result<(NewMessage, Message), SessionError> {
        let shown = shown_as(&incoming).ok_or(StoreError::ViewRefused {
            problem: "the rendition of a message in it is not a message",
        })?;
        let IncomingMessage { message, mut rendition } = incoming;
        let shown = if message.is_machine_written() { shown.marked_machine_written() } else { shown };
        if let Some(rendition) = &mut rendition {
            rendition.tokens = self.prompt.view.estimate(&shown);
        }
        let tokens = self.prompt.view.estimate(&message);
        let tools = self.prompt.view.names.tools_of(&message);
        Ok((NewMessage { message, tokens, at_ms, tools, rendition }, shown))
    }

    /// Writes what the record does not have yet, on the condition that nobody else wrote since the view was loaded.
    /// Otherwise the conversation follows the other writer, or becomes a branch.
    pub(super) async fn write_unrecorded(&mut self) -> Result<(), StoreError> {
        let written = match self.finish_writing().await {
            Ok(()) if self.persistence.unrecorded.is_empty() => return Ok(()),
            Ok(()) => self.append_now().await,
            Err(error) => Err(error),
        };
        match written {
            Err(StoreError::VersionConflict { .. }) => self.write_after_conflict().await,
            other => other,
        }
    }

    pub(super) async fn append_now(&mut self) -> Result<(), StoreError> {
        self.begin_to_append();
        self.finish_writing().await
    }

    fn begin_to_append(&mut self) {
        let (store, owner) = (Arc::clone(&self.setup.store), self.setup.owner.clone());
        let (version, unrecorded) = (self.persistence.version.clone(), self.persistence.unrecorded.clone());
        let write =
            tokio::task::spawn_blocking(move || append_now(store.as_ref(), &owner, &version, unrecorded));
        self.persistence.write = Some(PendingWrite::Append(write));
    }

    /// Waits for a write and takes in what came of it. Nothing may be said between a write and this.
    pub(super) async fn finish_writing(&mut self) -> Result<(), StoreError> {
        match &mut self.persistence.write {
            None => return Ok(()),
            Some(PendingWrite::Ahead) => {}
            Some(PendingWrite::Append(write)) => {
                let appended = record::joined(write.await);
                self.persistence.write = None;
                let version = appended?;
                let first_item = self.prompt.view.len().saturating_sub(self.persistence.unrecorded.len());
                self.prompt.view.placed(first_item, self.persistence.version.next_seq);
                self.prompt.view.set_next_seq(version.next_seq);
                self.persistence.version = version;
                self.persistence.unrecorded.clear();
                return Ok(());
            }
            Some(PendingWrite::Move(write)) => {
                let moved = record::joined(write.await);
                self.persistence.write = moved.is_ok().then_some(PendingWrite::Ahead);
                moved?;
            }
        }
        self.reload_view().await?;
        self.persistence.write = None;
        Ok(())
    }

    /// Moves the conversation on to another session. Until the view is that session's, the record is ahead.
    pub(super) async fn switch_session(
        &mut self,
        act: impl FnOnce() -> Result<SessionMove, StoreError> + Send + 'static,
    ) -> Result<SessionMove, StoreError> {
        self.persistence.write = Some(PendingWrite::Move(tokio::task::spawn_blocking(act)));
        let Some(PendingWrite::Move(write)) = &mut self.persistence.write else {
            return Err(StoreError::ViewRefused { problem: "two writes at once" });
        };
        let moved = record::joined(write.await);
        self.persistence.write = moved.is_ok().then_some(PendingWrite::Ahead);
        moved
    }

    /// Another process may have moved the conversation on: the record's view is ours now, with what was not written yet
    /// behind it.
    pub(super) async fn reload_view(&mut self) -> Result<(), StoreError> {
        let old = self.id().clone();
        let loaded = record::load(&self.setup, &old, self.setup.host.now_ms()).await?;
        let kept = self.prompt.view.len().saturating_sub(self.persistence.unrecorded.len());
        let unwritten: Vec<Message> = self.prompt.view.messages().iter().skip(kept).cloned().collect();
        let places: Vec<RecordLocation> =
            self.prompt.view.items().iter().skip(kept).map(|item| item.place.clone()).collect();
        self.prompt.view = loaded.view;
        self.persistence.version = loaded.version;
        self.compaction.count = loaded.compactions;
        self.compaction.guard = loaded.guard.clone();
        self.compaction.stored_guard = loaded.guard;
        for (place, message) in places.into_iter().zip(unwritten) {
            self.prompt.view.push(place, message);
        }
        if *self.id() != old {
            self.enter_session(BoundaryReason::Elsewhere, old).await;
        } else {
            // Others said more: what was measured is about a part of it.
            self.budget.estimator.forget_prompt();
            self.prompt.forget_sent_items();
        }
        Ok(())
    }
}

fn mended(json: String) -> StoredRendition {
    StoredRendition { kinds: vec![MENDED.to_owned()], json, tokens: 0 }
}

/// A new message as the model is shown it.
fn shown_as(incoming: &IncomingMessage) -> Option<Message> {
    match &incoming.rendition {
        None => Some(incoming.message.clone()),
        Some(rendition) => decode_message(SharedText::new(rendition.json.clone())),
    }
}

/// Writes messages, and before them the artifacts they name: one that nobody names does no harm.
fn append_now(
    store: &dyn Store,
    owner: &Owner,
    version: &Version,
    unrecorded: Vec<PendingMessage>,
) -> Result<Version, StoreError> {
    for PendingMessage { new, set_aside } in &unrecorded {
        for aside in set_aside {
            let label = aside.tool.as_deref().unwrap_or("tool result");
            store.put_artifact(
                owner,
                NewArtifact { session: &version.tip, text: &aside.text, label, at_ms: new.at_ms },
            )?;
        }
    }
    store.append_at(owner, version, unrecorded.into_iter().map(|message| message.new).collect())
}

fn told(aside: &StoredOutput) -> EngineEvent {
    EngineEvent::OutputSetAside {
        tool: aside.tool.clone(),
        chars: aside.chars,
        shown_chars: aside.shown_chars,
        artifact: aside.artifact.clone(),
    }
}
