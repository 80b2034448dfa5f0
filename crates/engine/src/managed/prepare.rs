//! Before a call: what is new goes into the record and the view, the whole request is measured, the body is written.

use std::sync::Arc;

use throughline_provider::CachePolicy;
use throughline_store::{Appended, Millis, NewMessage, StoreError};
use throughline_transcript::{Message, SharedText, decode_message};

use super::{CallError, Incoming, ManagedSession, RecordPolicy, in_force, record};
use crate::encode::{Encoded, Encoding, ForThisCall};
use crate::envelope::Envelope;
use crate::lifecycle::BoundaryReason;
use crate::snapshot::Snapshot;
use crate::status::PendingRequest;
use crate::view::Place;

impl ManagedSession {
    /// Takes messages into the record and the view.
    pub(super) async fn take_in(&mut self, messages: Vec<Incoming>) -> Result<(), CallError> {
        let at_ms = self.setup.host.now_ms();
        for incoming in messages {
            let (new, shown) = self.read_incoming(incoming, at_ms)?;
            let changes = new.rendition.as_ref().map(|rendition| rendition.kinds.clone()).unwrap_or_default();
            // Where it is in the record is known once it is written.
            let place = Place::Message { session: self.id().clone(), seq: u64::MAX, changes };
            self.view.push(place, shown);
            self.unrecorded.push(new);
        }
        match self.write_unrecorded().await {
            Ok(()) => Ok(()),
            Err(error) if self.setup.policy.record == RecordPolicy::GoOn => {
                self.notice(format!(
                    "what was just said could not be recorded and is kept in memory: {error}"
                ));
                Ok(())
            }
            Err(error) => {
                self.forget_unrecorded();
                Err(error.into())
            }
        }
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
        if self.unrecorded.is_empty() {
            return Ok(());
        }
        match self.append().await {
            Err(StoreError::SessionEnded { successor: Some(_), .. }) => {
                self.follow_elsewhere().await?;
                self.append().await
            }
            other => other,
        }
    }

    async fn append(&mut self) -> Result<(), StoreError> {
        let (store, owner, id) = (Arc::clone(&self.setup.store), self.setup.owner.clone(), self.id().clone());
        let messages = self.unrecorded.clone();
        let Appended { first_seq, next_seq } =
            record::blocking(move || store.append(&owner, &id, messages)).await?;
        let first_item = self.view.len().saturating_sub(self.unrecorded.len());
        self.view.placed(first_item, first_seq);
        self.view.set_next_seq(next_seq);
        self.unrecorded.clear();
        Ok(())
    }

    /// Takes back what was not written: the call is refused, the conversation is as it was.
    fn forget_unrecorded(&mut self) {
        let kept = self.view.len().saturating_sub(self.unrecorded.len());
        self.view.truncate(kept);
        self.unrecorded.clear();
    }

    /// Another process compacted the conversation: its view is ours now, with what was not written yet behind it.
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

    /// The limits that hold for a request with this cap on output.
    pub(super) async fn use_output_cap(&mut self, output_cap_tokens: Option<u64>) -> Result<(), CallError> {
        let model = in_force(&self.setup.target, output_cap_tokens)?;
        if model != self.model {
            self.setup.engine.update_model(&model).await?;
            self.model = model;
        }
        Ok(())
    }

    /// Tokens of system prompt and tools, estimated.
    pub(super) fn fixed_tokens(&self) -> u64 {
        self.setup.target.token_model().estimate_content(self.known.profile())
    }

    /// The whole request as it would be sent now.
    pub(super) fn pending(&self) -> PendingRequest {
        self.estimator.pending(self.fixed_tokens(), self.view.estimated_tokens(), self.view.len())
    }

    /// The conversation as an engine sees it.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            session: self.id().clone(),
            dialect: self.dialect,
            messages: Arc::clone(self.view.messages()),
            sizes: Arc::clone(self.view.sizes()),
            fixed_tokens: self.fixed_tokens(),
            prompt_tokens: self.pending().total_tokens,
        }
    }

    /// Writes the body.
    pub(super) fn encode(
        &self,
        envelope: &Envelope,
        cache: CachePolicy,
        for_this_call: &ForThisCall,
    ) -> Result<Encoded, CallError> {
        let encoding = Encoding {
            envelope,
            view: &self.view,
            cache,
            conversation: self.conversation.as_str(),
            sent_items: self.sent_items,
            for_this_call,
        };
        Ok(encoding.encode()?)
    }
}
