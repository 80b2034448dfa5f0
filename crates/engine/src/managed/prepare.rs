//! Before a call: the limits in force, the size of the whole request, its body.

use std::sync::Arc;

use throughline_provider::CachePolicy;

use super::{AnsweredBy, CallError, ManagedSession, in_force};
use crate::encode::{Encoded, Encoding, ForThisCall};
use crate::envelope::Envelope;
use crate::ride::Ride;
use crate::snapshot::Snapshot;
use crate::status::PendingRequest;

impl ManagedSession {
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
            ride: self.ride(),
        }
    }

    /// The prompt as the conversation's own model was last sent it, as long as it is the beginning of the view.
    fn ride(&self) -> Option<Ride> {
        let last =
            self.last_sent.as_ref().filter(|last| last.items > 0 && last.by == AnsweredBy::OwnModel)?;
        Some(Ride {
            target: self.setup.target.clone(),
            envelope: Arc::clone(self.known.envelope()?),
            note: self.view.note(),
            conversation: self.conversation.as_str().to_owned(),
            messages: Arc::clone(self.view.messages()),
            sent: last.items,
            sent_at_ms: last.prompt.sent_at_ms,
            prompt_tokens: last.prompt.prompt_tokens,
            cache_read_tokens: last.cache_read_tokens,
            along: last.along.clone(),
        })
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
            messages: self.view.messages(),
            forms: self.view.forms(),
            note: self.view.note(),
            cache,
            conversation: self.conversation.as_str(),
            sent_items: self.sent_items(),
            for_this_call,
        };
        Ok(encoding.encode()?)
    }
}
