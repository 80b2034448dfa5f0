//! The prompt of a session: its view, the envelope around it, and the last request.

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
    /// Whether a prompt was sent with our cache marks: from then on, texts are sent as blocks.
    pub(super) has_placed_marks: bool,
    /// The time of the last answer.
    pub(super) last_call_ms: Option<Millis>,
    /// Whether a call was made since the session was opened.
    pub(super) has_called: bool,
}

/// The last request that was sent.
pub(super) struct LastRequest {
    /// The prompt, for finding the reasons of cache misses.
    pub(super) prompt: SentPrompt,
    /// Number of items of the view in it; zero once the view was replaced.
    pub(super) items: usize,
    /// The model that answered.
    pub(super) by: Responder,
    /// Number of its tokens read from the provider's cache, if reported.
    pub(super) cache_read_tokens: u64,
    /// Its headers and query; `None` if another process sent it.
    pub(super) extras: Option<RequestExtras>,
}

/// The model that answered a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Responder {
    /// The conversation's own model.
    OwnModel,
    /// A fallback model.
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

    /// Returns the estimated tokens of system prompt and tools.
    pub(super) fn fixed_tokens(&self) -> u64 {
        self.view.estimate_profile(self.envelope.profile())
    }

    /// Returns the number of items that the last call sent.
    pub(super) fn sent_items(&self) -> usize {
        self.last_request.as_ref().map_or(0, |last| last.items)
    }

    /// Forgets which items were sent, because the view or the model changed.
    pub(super) fn forget_sent_items(&mut self) {
        if let Some(last) = &mut self.last_request {
            last.items = 0;
        }
    }
}
