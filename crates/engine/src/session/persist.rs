//! Writes new messages to the record and the view. Nothing is written twice or in part, whatever happens to the call.
//!
//! A call may be cancelled at any moment, also during a write, which then continues without it. So a pending write is kept until it has
//! ended: the next operation on the conversation waits for it first.

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

/// A new message, and the form in which the model is shown it.
struct FittedMessage {
    incoming: IncomingMessage,
    set_aside: Vec<StoredOutput>,
}

/// The name of a rendition with the beginning and end of a text stored as an artifact.
const ARTIFACT: &str = "artifact";
/// The name of a rendition with added results for unanswered calls.
const MENDED: &str = "mended";

impl ManagedSession {
    /// Adds messages to the view, and begins to write them to the record.
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

    /// Waits until pending messages are written. If they cannot be written, they stay in memory and an event says so.
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

    /// Adds new messages to the view, as they are shown.
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

    /// Adds messages to the record and the view. If the record is required and fails, they are added to neither.
    pub(super) async fn record_messages(
        &mut self,
        mut messages: Vec<IncomingMessage>,
    ) -> Result<(), SessionError> {
        // Earlier unwritten messages are not part of this and stay in any case.
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

    /// Adds an answer to the record and the view. If it cannot be written, it stays in memory and is written before anything
    /// else.
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

    /// Pairs the calls and results in new messages: stubs replace missing results, and text replaces results without a call.
    fn pair_calls(&self, mut messages: Vec<IncomingMessage>) -> Vec<IncomingMessage> {
        let open = open_calls(self.wire_format, self.prompt.view.messages());
        if open.is_empty() && !messages.iter().any(|incoming| incoming.message.has_results()) {
            return messages;
        }
        let said: Vec<&Message> = messages.iter().map(|incoming| &incoming.message).collect();
        let words = as_words(self.wire_format, &open, &said);
        for (incoming, json) in messages.iter_mut().zip(words) {
            if let Some(json) = json.filter(|_| incoming.rendition.is_none()) {
                // This is not a human message, although it has the user's role.
                incoming.message = incoming.message.clone().marked_machine_written();
                incoming.rendition = Some(mended(json));
            }
        }
        // Text between the results of a step is moved after them: nothing may be between a call and its results.
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

    /// Replaces long tool results in new messages by what the model is shown of them.
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

    /// Adds messages to the view, to be recorded later.
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
            // Its position in the record is known once it is written.
            let place = RecordLocation::Message { session: self.id().clone(), seq: u64::MAX, changes };
            self.prompt.view.push(place, shown);
            self.persistence.unrecorded.push(PendingMessage { new, set_aside });
        }
        Ok(())
    }

    /// Removes unwritten messages from the view, down to this many messages.
    fn drop_new(&mut self, kept: usize) {
        let surplus = self.persistence.unrecorded.len().saturating_sub(kept);
        self.prompt.view.truncate(self.prompt.view.len().saturating_sub(surplus));
        self.persistence.unrecorded.truncate(kept);
    }

    /// A message in the form for the record, and in the form for the model.
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

    /// Writes the unrecorded messages, on the condition that no other process wrote since the view was loaded. Otherwise the
    /// messages are written after the other's, or the conversation becomes a branch.
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

    /// Waits for a write and applies its result. No message may be added between a write and this.
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

    /// Continues the conversation in another session. The record is ahead of the view until the view is that session's.
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

    /// Reloads the view, because another process may have continued the conversation. Unwritten messages follow it.
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
            // Others added messages, so the measured size covers only a part of the view.
            self.budget.estimator.forget_prompt();
            self.prompt.forget_sent_items();
        }
        Ok(())
    }
}

fn mended(json: String) -> StoredRendition {
    StoredRendition { kinds: vec![MENDED.to_owned()], json, tokens: 0 }
}

/// A new message in the form that the model is shown.
fn shown_as(incoming: &IncomingMessage) -> Option<Message> {
    match &incoming.rendition {
        None => Some(incoming.message.clone()),
        Some(rendition) => decode_message(SharedText::new(rendition.json.clone())),
    }
}

/// Writes messages, and before them the artifacts they refer to. An artifact without a reference does no harm.
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
