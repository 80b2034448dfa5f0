//! The parts of a request around its messages: system prompt, tools and parameters.
//!
//! An envelope is what the caller wants to send. What is sent may differ in three ways, all decided here and none stored: a
//! note after the system prompt once the conversation was compacted, cache markers, and a lower output cap or another model
//! for one call.
//!
//! Not for: the messages.

use std::borrow::Cow;
use std::sync::Arc;

use throughline_compaction::{SYSTEM_NOTE, append_note};
use throughline_provider::{CachePolicy, MarkLayout};
use throughline_store::{PreambleId, StoredPreamble};
use throughline_tokens::ContentProfile;
use throughline_transcript::{RawJson, SharedText, WireFormat, compact_json_string};
use throughline_wire::{Request, RequestError, RequestParts, System};

use crate::prompt::tool_list::in_prompt;

/// All parts of a request except its messages.
#[derive(Clone, Debug)]
pub struct Envelope {
    request: Request,
    /// The system prompt of a chat request that was built from parts: it precedes the messages.
    leading_system: Option<SharedText>,
}

impl Envelope {
    /// Creates the envelope of an existing request. Its messages are not sent: those of the session are.
    #[must_use]
    pub fn of_request(request: Request) -> Self {
        Self { request, leading_system: None }
    }

    /// Builds an envelope from parts.
    pub fn build(wire_format: WireFormat, parts: &RequestParts<'_>) -> Result<Self, RequestError> {
        let apart = (wire_format == WireFormat::Chat).then_some(parts.system).flatten();
        let leading_system = apart.map(|system| match system {
            System::Text(text) => SharedText::new(compact_json_string(text)),
            System::Blocks(blocks) => SharedText::new(blocks.0.to_owned()),
        });
        let system = if leading_system.is_some() { None } else { parts.system };
        let request = Request::build(wire_format, &RequestParts { system, ..*parts }, Vec::new())?;
        Ok(Self { request, leading_system })
    }

    /// Returns the envelope of a recorded call; `None` if the record has no valid one.
    pub(crate) fn of_preamble(wire_format: WireFormat, preamble: &StoredPreamble) -> Option<Self> {
        let parameters = preamble.parameters.as_deref().unwrap_or("{}");
        let parameters = parameters.strip_suffix('}')?;
        let comma = if parameters.ends_with('{') { "" } else { "," };
        let list = if wire_format == WireFormat::Responses { "input" } else { "messages" };
        let body = format!("{parameters}{comma}\"{list}\":[]}}");
        let mut request = Request::decode(wire_format, body).ok()?;
        let mut leading_system = None;
        match (&preamble.system, wire_format) {
            (None, _) => {}
            (Some(system), WireFormat::Chat) => leading_system = Some(SharedText::new(system.clone())),
            (Some(system), WireFormat::Responses) => request.set_member("instructions", system).ok()?,
            (Some(system), WireFormat::Anthropic) => request.set_member("system", system).ok()?,
        }
        if let Some(tools) = &preamble.tools {
            request.set_member("tools", tools).ok()?;
        }
        Some(Self { request, leading_system })
    }

    /// Returns the request it was made from.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Returns its wire format.
    #[must_use]
    pub fn wire_format(&self) -> WireFormat {
        self.request.wire_format()
    }

    /// Returns its own output limit.
    #[must_use]
    pub fn output_cap_tokens(&self) -> Option<u64> {
        self.request.output_cap_tokens()
    }

    /// Returns the system prompt if it is outside the list of messages.
    pub(crate) fn system(&self) -> Option<RawJson<'_>> {
        match &self.leading_system {
            Some(system) => Some(RawJson(system.as_str())),
            None => self.request.system(),
        }
    }

    pub(crate) fn has_leading_system(&self) -> bool {
        self.leading_system.is_some()
    }

    /// Whether the client asks the provider to mark the end of the prompt automatically.
    pub(crate) fn has_automatic_mark(&self) -> bool {
        self.request.member("cache_control").is_some_and(|value| value.0 != "null")
    }

    /// Returns the content profile that determines its size.
    fn profile(&self) -> ContentProfile {
        let mut found = ContentProfile::default();
        if let Some(system) = self.system() {
            found += ContentProfile::of_system(system.0);
        }
        if let Some(tools) = self.request.tools() {
            found += ContentProfile::of_tools(&in_prompt(tools.0));
        }
        found
    }

    /// Returns it in the form in which it is recorded.
    fn preamble(&self) -> StoredPreamble {
        StoredPreamble {
            system: self.system().map(|system| system.0.to_owned()),
            tools: self.request.tools().map(|tools| tools.0.to_owned()),
            parameters: Some(self.request.parameters_json()),
        }
    }

    /// Returns the system prompt as it is sent, without marks: with a note at the end once the conversation was compacted. Also returns how
    /// many blocks at its end are ours.
    pub(crate) fn noted_system(&self, note: SystemNote, cache: CachePolicy) -> (Option<Cow<'_, str>>, usize) {
        let Some(system) = self.system() else { return (None, 0) };
        if note == SystemNote::None {
            return (Some(Cow::Borrowed(system.0)), 0);
        }
        // A block of its own leaves the cached text before it unchanged; where blocks are not possible, the note is appended to the text.
        let in_blocks = self.wire_format() == WireFormat::Anthropic
            || matches!(cache, CachePolicy::Marks { layout: MarkLayout::ChatParts, .. });
        let text = RawJson(system.0).as_text();
        let is_text = text.is_some();
        // Providers refuse a block of white space.
        let has_words = text.is_some_and(|text| !text.trim().is_empty());
        if in_blocks && has_words {
            let note = compact_json_string(SYSTEM_NOTE);
            let blocks = format!(
                "[{{\"type\":\"text\",\"text\":{}}},{{\"type\":\"text\",\"text\":{note}}}]",
                system.0
            );
            return (Some(Cow::Owned(blocks)), 1);
        }
        match append_note(system.0, SYSTEM_NOTE) {
            Some(noted) => (Some(Cow::Owned(noted)), usize::from(!is_text)),
            None => (Some(Cow::Borrowed(system.0)), 0),
        }
    }
}

/// Whether the system prompt mentions a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemNote {
    /// The conversation was not compacted.
    None,
    /// The conversation was compacted.
    Compacted,
}

/// Values computed from the current envelope, recomputed only when it changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct CurrentEnvelope {
    envelope: Option<Arc<Envelope>>,
    parameters: String,
    profile: ContentProfile,
    preamble: Option<(StoredPreamble, PreambleId)>,
}

impl CurrentEnvelope {
    /// Updates the values for the envelope of the next call.
    pub(crate) fn update(&mut self, envelope: &Envelope) {
        let known = self.envelope.as_deref();
        let same_text = known.is_some_and(|known| {
            known.system() == envelope.system() && known.request.tools() == envelope.request.tools()
        });
        let parameters = envelope.request.parameters_json();
        if same_text && self.parameters == parameters {
            return;
        }
        if !same_text {
            self.profile = envelope.profile();
        }
        let preamble = envelope.preamble();
        let id = preamble.id();
        self.parameters = parameters;
        self.preamble = Some((preamble, id));
        self.envelope = Some(Arc::new(envelope.clone()));
    }

    /// Returns the envelope.
    pub(crate) fn envelope(&self) -> Option<&Arc<Envelope>> {
        self.envelope.as_ref()
    }

    /// Returns the content profile of the fixed part.
    pub(crate) fn profile(&self) -> &ContentProfile {
        &self.profile
    }

    /// Returns the preamble for the record.
    pub(crate) fn preamble(&self) -> Option<&(StoredPreamble, PreambleId)> {
        self.preamble.as_ref()
    }
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
