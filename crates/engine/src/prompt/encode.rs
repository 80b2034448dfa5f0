//! Encodes the body of a request: the same bytes for messages that were sent before, and cache markers as the last step.
//!
//! Every message is already in the form in which it is sent. Markers change only the system prompt and a few of the last
//! messages, so everything before them is copied. A client's own markers are kept; then the whole list is checked, because
//! there may be too many.
//!
//! Not for: sizes, or whether a request should be sent.

use std::borrow::Cow;

use bytes::Bytes;
use throughline_provider::{
    CacheMarks, CachePolicy, CacheTtl, Fingerprint, MarkLayout, PieceHash, PlacedMarks, UnmarkedRequest,
};
use throughline_transcript::{Message, RawJson, WireFormat};
use throughline_wire::{Request, RequestError};

use crate::prompt::envelope::{Envelope, SystemNote};
use crate::prompt::spare_body::{spare_body, written_body};
use crate::prompt::wire_form::WireForms;

/// Number of messages before the end of the last call that are checked for marks, in case the last of them cannot carry one.
const MARK_REACH: usize = 8;

/// The changes to a request for one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallOverrides {
    /// A lower output limit.
    pub(crate) output_cap_tokens: Option<u64>,
    /// Another model.
    pub(crate) model: Option<String>,
}

/// Which cache marks a body carries. If none of ours are placed, every byte is the client's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Marking {
    /// Ours where the client has none. Texts are lists of blocks, even where the client has marks, because ours may have been there before.
    #[default]
    Ours,
    /// Ours where the client has none, for the first time in this conversation.
    OursFromNowOn,
    /// Only the client's.
    OfClient,
}

/// The parts of a request to encode.
pub(crate) struct RequestEncoding<'a> {
    pub(crate) envelope: &'a Envelope,
    /// The messages, ...
    pub(crate) messages: &'a [Message],
    /// ... and the form in which each is sent.
    pub(crate) forms: &'a WireForms,
    /// Whether the system prompt mentions a summary.
    pub(crate) note: SystemNote,
    pub(crate) cache: CachePolicy,
    pub(crate) marking: Marking,
    /// The conversation's key, for a provider that routes by it.
    pub(crate) conversation: &'a str,
    /// Number of items in the previous call.
    pub(crate) sent_items: usize,
    pub(crate) for_this_call: &'a CallOverrides,
}

/// An encoded body and the record of what it contains.
#[derive(Debug)]
pub(crate) struct EncodedRequest {
    pub(crate) body: Bytes,
    pub(crate) marks: PlacedMarks,
    pub(crate) fingerprint: Fingerprint,
}

impl RequestEncoding<'_> {
    /// Writes the body.
    pub(crate) fn encode(&self) -> Result<EncodedRequest, RequestError> {
        let (system, notes) = self.envelope.noted_system(self.note, self.cache);
        let system_hash = system.as_deref().map(PieceHash::of);
        let of_client = self.has_client_marks(system.as_deref());
        let as_written = match self.marking {
            Marking::Ours => false,
            Marking::OursFromNowOn => of_client,
            Marking::OfClient => true,
        };
        let marked = match self.cache {
            CachePolicy::Marks { layout, ttl, .. } if of_client || !as_written => {
                let form = if as_written { ContentForm::AsWritten } else { ContentForm::Blocks };
                self.mark(CacheMarks { layout, ttl }, system.as_deref(), notes, (of_client, form))
            }
            // The messages of several requests together may carry more marks than a provider accepts.
            CachePolicy::Unmarked if of_client && self.envelope.wire_format() == WireFormat::Anthropic => {
                let marks = CacheMarks { layout: MarkLayout::Anthropic, ttl: CacheTtl::default() };
                self.mark(marks, system.as_deref(), notes, (of_client, ContentForm::AsWritten))
            }
            CachePolicy::Marks { .. } => MarkedRequest::as_written(self.messages),
            CachePolicy::Key | CachePolicy::Unmarked => MarkedRequest::nothing(self.messages.len()),
        };
        let system = marked.system.map(Cow::Owned).or(system);
        let request = self.request(system.as_deref())?;
        let leading = system.filter(|_| self.envelope.has_leading_system());
        let leading = leading.map(|content| format!("{{\"role\":\"system\",\"content\":{content}}}"));
        let untouched = self.forms.all().iter().take(marked.first).skip(marked.lead.len());
        let items = leading.iter().chain(&marked.lead).map(String::as_str);
        let items = items.chain(untouched.map(|form| form.json.as_str()));
        let items = items.chain(marked.tail.iter().map(String::as_str));
        let list_bytes = self.forms.bytes() as usize + self.messages.len() + 4_096;
        let mut body = spare_body();
        body.reserve(list_bytes + request_bytes(&request));
        request.write_with_messages(items, &mut body);
        Ok(EncodedRequest {
            body: written_body(body),
            marks: marked.marks,
            fingerprint: self.fingerprint(&request, system_hash),
        })
    }

    /// Returns the fingerprint of a body with the first `items` items.
    pub(crate) fn fingerprint_of(&self, items: usize) -> Result<Fingerprint, RequestError> {
        let (system, _) = self.envelope.noted_system(self.note, self.cache);
        let request = self.request(system.as_deref())?;
        let mut fingerprint = self.fingerprint(&request, system.as_deref().map(PieceHash::of));
        fingerprint.items.truncate(items);
        Ok(fingerprint)
    }

    /// Returns the request with the overrides of this call.
    fn request(&self, system: Option<&str>) -> Result<Cow<'_, Request>, RequestError> {
        let mut request = Cow::Borrowed(self.envelope.request());
        let system_member = request.system().is_some().then_some(match self.envelope.wire_format() {
            WireFormat::Responses => "instructions",
            _ => "system",
        });
        if let (Some(member), Some(system)) = (system_member, system)
            && request.system().is_some_and(|known| known.0 != system)
        {
            request.to_mut().set_member(member, system)?;
        }
        if let Some(tokens) = self.for_this_call.output_cap_tokens {
            request.to_mut().set_output_cap(tokens);
        }
        if let Some(model) = &self.for_this_call.model {
            request.to_mut().set_model(model);
        }
        if self.cache == CachePolicy::Key && request.member("prompt_cache_key").is_none() {
            let key = format!("\"{}\"", CachePolicy::prompt_cache_key(self.conversation));
            request.to_mut().set_member("prompt_cache_key", &key)?;
        }
        Ok(request)
    }

    /// Whether the client placed marks.
    fn has_client_marks(&self, system: Option<&str>) -> bool {
        let tools = self.envelope.request().tools();
        self.forms.has_client_marks()
            || self.envelope.has_automatic_mark()
            || [system, tools.map(|tools| tools.0)]
                .into_iter()
                .flatten()
                .any(|json| CacheMarks::count_in(json) > 0)
    }

    /// Places marks. Only the first message, which may be the system prompt, and those near the end are examined.
    fn mark(
        &self,
        marks: CacheMarks,
        system: Option<&str>,
        notes: usize,
        (of_client, form): (bool, ContentForm),
    ) -> MarkedRequest {
        let messages = self.messages;
        let tools = self.envelope.request().tools();
        let lead = usize::from(messages.first().is_some_and(|first| first.role().is_instructions()));
        let near = if of_client { 0 } else { self.sent_items.saturating_sub(MARK_REACH) };
        let first = near.clamp(lead, messages.len());
        let looked_at: Vec<Message> =
            messages.iter().take(lead).chain(messages.iter().skip(first)).cloned().collect();
        let placed = marks.place(&UnmarkedRequest {
            system: system.map(RawJson),
            notes_after_system: notes,
            tools,
            has_automatic_mark: self.envelope.has_automatic_mark(),
            messages: &looked_at,
        });
        let place = |index: usize| if index < lead { index } else { index + first - lead };
        let on_messages = placed.marks.on_messages.iter().copied().map(place).collect();
        let intermediate = placed.marks.intermediate.map(place);
        let left_alone = placed.marks.of_client > 0;
        let mut lead_and_tail = placed.messages.into_iter().enumerate().map(|(index, message)| {
            // Messages without a client's marks have the form that they have with ours, because ours may have been there before.
            let known = self.forms.all().get(place(index));
            let known =
                known.filter(|known| left_alone && form == ContentForm::Blocks && known.client_marks == 0);
            known.map_or_else(|| message.into_owned(), |form| form.json.as_str().to_owned())
        });
        let system = placed.system.map(|system| match form {
            ContentForm::Blocks if left_alone => in_blocks(system),
            ContentForm::Blocks | ContentForm::AsWritten => system,
        });
        MarkedRequest {
            system: system.map(Cow::into_owned),
            lead: lead_and_tail.by_ref().take(lead).collect(),
            first,
            tail: lead_and_tail.collect(),
            marks: PlacedMarks { on_messages, intermediate, ..placed.marks },
        }
    }

    fn fingerprint(&self, request: &Request, system: Option<PieceHash>) -> Fingerprint {
        let items = self.forms.all().iter().map(|form| form.hash).collect();
        let mut fingerprint = Fingerprint::of(request, self.messages, items);
        // The system prompt is hashed without marks, wherever it is.
        fingerprint.system = system;
        fingerprint
    }
}

/// The examined parts of a request, as they are sent. Everything between `lead` and `first` is sent in its known form.
struct MarkedRequest {
    system: Option<String>,
    /// The first message, if it is a system prompt.
    lead: Vec<String>,
    /// The index at which `tail` starts in the list.
    first: usize,
    tail: Vec<String>,
    marks: PlacedMarks,
}

/// The form of messages without marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContentForm {
    /// The form used where marks are placed: a text is a list of one block.
    Blocks,
    /// As the client wrote them.
    AsWritten,
}

impl MarkedRequest {
    /// Returns all messages as the client wrote them.
    fn as_written(messages: &[Message]) -> Self {
        let tail = messages.iter().map(|message| message.json().to_owned()).collect();
        Self { first: 0, tail, ..Self::nothing(0) }
    }

    /// Returns a request with no examined messages: all of them are sent in their known form.
    fn nothing(items: usize) -> Self {
        Self { system: None, lead: Vec::new(), first: items, tail: Vec::new(), marks: PlacedMarks::default() }
    }
}

/// Returns a system prompt in the form used where marks are placed: a text is a list of one block.
fn in_blocks(system: Cow<'_, str>) -> Cow<'_, str> {
    match RawJson(&system).as_text() {
        Some(text) if !text.trim().is_empty() => {
            Cow::Owned(["[{\"type\":\"text\",\"text\":", system.trim(), "}]"].concat())
        }
        _ => system,
    }
}

fn request_bytes(request: &Request) -> usize {
    request.members().map(|(name, value)| name.len() + value.0.len() + 8).sum()
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
