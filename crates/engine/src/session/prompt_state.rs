//! What a session sends: its view, the envelope around it, and what was last sent.

use throughline_provider::SentPrompt;
use throughline_store::Millis;

use crate::prompt::envelope::CurrentEnvelope;
use crate::prompt::request_extras::RequestExtras;
use crate::prompt::view::LiveView;

/// The messages of a session as they are sent, and the last request.
pub(super) struct PromptState {
    pub(super) view: LiveView,
    /// System prompt, tools and parameters of the newest request.
    pub(super) envelope: CurrentEnvelope,
    pub(super) last_request: Option<LastRequest>,
    /// Whether a prompt was sent with cache marks of ours: from then on texts are sent as blocks.
    pub(super) has_placed_marks: bool,
    /// When the last call was answered.
    pub(super) last_call_ms: Option<Millis>,
    /// Whether a call was made since the session was opened.
    pub(super) has_called: bool,
}

/// What was sent last.
pub(super) struct LastRequest {
    /// For the reasons of cache misses.
    pub(super) prompt: SentPrompt,
    /// How many items of the view that was; none once the view is another one.
    pub(super) items: usize,
    /// Who answered.
    pub(super) by: Responder,
    /// Tokens of it that were read from the provider's cache, where it said so.
    pub(super) cache_read_tokens: u64,
    /// What went along; not known of what another process sent.
    pub(super) extras: Option<RequestExtras>,
}

/// Who answered a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Responder {
    /// The conversation's own model.
    OwnModel,
    /// One that was asked in its place.
    Another,
}

impl PromptState {
    pub(super) fn new(view: LiveView) -> Self {
        Self {
            view,
            envelope: CurrentEnvelope::default(),
            last_request: None,
            has_placed_marks: false,
            last_call_ms: None,
            has_called: false,
        }
    }

    /// Tokens of system prompt and tools, estimated.
    pub(super) fn fixed_tokens(&self) -> u64 {
        self.view.estimate_profile(self.envelope.profile())
    }

    /// Items of the view that the last call sent.
    pub(super) fn sent_items(&self) -> usize {
        self.last_request.as_ref().map_or(0, |last| last.items)
    }

    /// The view or the model changed: the last request says nothing about the next one.
    pub(super) fn forget_sent_items(&mut self) {
        if let Some(last) = &mut self.last_request {
            last.items = 0;
        }
    }
}
