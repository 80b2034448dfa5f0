//! The prompt that was last sent, to be sent again with an instruction at its end.
//!
//! This is the cheapest way to ask the same model about the same conversation, because the provider has the prompt in its
//! cache: the same system prompt, tools, parameters and messages, byte for byte, and one more message. Nothing is encoded
//! before [`CachedPrompt::body`] is called.
//!
//! Not for: deciding whether this is cheaper than a separate prompt, or the text of the instruction.

use std::sync::Arc;

use bytes::Bytes;
use throughline_store::Millis;
use throughline_transcript::{Message, Role, SharedText, decode_message, text_message};
use throughline_wire::{Request, RequestError, Streaming};

use crate::limits::target::ModelTarget;
use crate::prompt::encode::{CallOverrides, Marking, RequestEncoding};
use crate::prompt::envelope::{Envelope, SystemNote};
use crate::prompt::request_extras::RequestExtras;
use crate::prompt::wire_form::WireForms;

/// A prompt that was sent, whose beginning may still be in the provider's cache.
#[derive(Clone, Debug)]
pub struct CachedPrompt {
    pub(crate) target: ModelTarget,
    pub(crate) envelope: Arc<Envelope>,
    pub(crate) note: SystemNote,
    pub(crate) conversation: String,
    pub(crate) messages: Arc<Vec<Message>>,
    pub(crate) sent: usize,
    pub(crate) sent_at_ms: Millis,
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) cache_read_tokens: u64,
    pub(crate) extras: RequestExtras,
    pub(crate) marking: Marking,
}

impl CachedPrompt {
    /// Returns the model it was sent to.
    #[must_use]
    pub fn target(&self) -> &ModelTarget {
        &self.target
    }

    /// Returns the number of messages in it: the first ones of the conversation.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.sent
    }

    /// Returns the time it was sent.
    #[must_use]
    pub fn sent_at_ms(&self) -> Millis {
        self.sent_at_ms
    }

    /// Returns its size as the provider counted it, if it did.
    #[must_use]
    pub fn prompt_tokens(&self) -> Option<u64> {
        self.prompt_tokens
    }

    /// Returns how many of its tokens the provider read from its cache, if reported.
    #[must_use]
    pub fn cache_read_tokens(&self) -> u64 {
        self.cache_read_tokens
    }

    /// Returns the extras of its request.
    #[must_use]
    pub fn extras(&self) -> &RequestExtras {
        &self.extras
    }

    /// Returns its output limit.
    #[must_use]
    pub fn output_cap_tokens(&self) -> Option<u64> {
        self.envelope.output_cap_tokens()
    }

    /// Returns the request around its messages.
    pub(crate) fn request(&self) -> &Request {
        self.envelope.request()
    }

    /// Returns whether its answer is streamed.
    #[must_use]
    pub fn streaming(&self) -> Streaming {
        self.envelope.request().streaming()
    }

    /// Returns the body with one more user message at the end.
    pub fn body(&self, instruction: &str) -> Result<Bytes, RequestError> {
        let mut messages: Vec<Message> = self.messages.iter().take(self.sent).cloned().collect();
        let asked = text_message(self.target.wire_format, Role::User, instruction);
        messages.extend(decode_message(SharedText::new(asked)));
        let encoding = RequestEncoding {
            envelope: &self.envelope,
            forms: &WireForms::of_messages(self.target.cache, &messages),
            messages: &messages,
            note: self.note,
            cache: self.target.cache,
            marking: self.marking,
            conversation: &self.conversation,
            sent_items: self.sent,
            for_this_call: &CallOverrides::default(),
        };
        Ok(encoding.encode()?.body)
    }
}
