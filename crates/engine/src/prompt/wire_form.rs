//! Messages in the form in which they are sent, computed once: the bytes, their hash, and whose cache markers they have.
//!
//! If markers are used, a text is always written as a list of one block, with or without a marker, so that moving a marker
//! changes nothing else. The form of a message depends only on the message and on where it is sent.
//!
//! Not for: placing markers.

use std::borrow::Cow;

use throughline_provider::{CacheMarks, CachePolicy, MarkLayout, PieceHash};
use throughline_transcript::{Message, SharedText};

/// A message as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct WireForm {
    /// The bytes, without our marks.
    pub(crate) json: SharedText,
    /// Their hash.
    pub(crate) hash: PieceHash,
    /// Number of marks that a client placed on it.
    pub(crate) client_marks: usize,
}

/// A list of messages as they are sent.
#[derive(Clone, Debug)]
pub(crate) struct WireForms {
    cache: CachePolicy,
    all: Vec<WireForm>,
    bytes: u64,
    client_marks: usize,
}

impl WireForms {
    /// Creates an empty list.
    pub(crate) fn new(cache: CachePolicy) -> Self {
        Self { cache, all: Vec::new(), bytes: 0, client_marks: 0 }
    }

    /// Creates the forms of messages.
    pub(crate) fn of_messages(cache: CachePolicy, messages: &[Message]) -> Self {
        let mut forms = Self::new(cache);
        for message in messages {
            let form = forms.of(message);
            forms.push(form);
        }
        forms
    }

    /// Returns how prompts are cached at their destination.
    pub(crate) fn cache(&self) -> CachePolicy {
        self.cache
    }

    pub(crate) fn all(&self) -> &[WireForm] {
        &self.all
    }

    /// Returns the total size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a client marked any of them for caching.
    pub(crate) fn has_client_marks(&self) -> bool {
        self.client_marks > 0
    }

    /// Returns the form of a message.
    pub(crate) fn of(&self, message: &Message) -> WireForm {
        let client_marks = CacheMarks::count_in(message.json());
        let json = match self.cache {
            CachePolicy::Marks { layout, .. } if client_marks == 0 => {
                match CacheMarks::block_form(layout, message) {
                    Cow::Borrowed(_) => message.origin().clone(),
                    Cow::Owned(json) => SharedText::new(json),
                }
            }
            _ => message.origin().clone(),
        };
        let hash = PieceHash::of(json.as_str());
        WireForm { json, hash, client_marks }
    }

    pub(crate) fn push(&mut self, form: WireForm) {
        self.bytes = self.bytes.saturating_add(form.json.len() as u64);
        self.client_marks += form.client_marks;
        self.all.push(form);
    }

    /// Removes the last forms, so that `kept` remain.
    pub(crate) fn truncate(&mut self, kept: usize) {
        for form in self.all.iter().skip(kept) {
            self.bytes = self.bytes.saturating_sub(form.json.len() as u64);
            self.client_marks -= form.client_marks;
        }
        self.all.truncate(kept);
    }

    /// Recomputes the forms for another cache policy.
    pub(crate) fn set_cache(&mut self, cache: CachePolicy, messages: &[Message]) {
        if layout_of(self.cache) == layout_of(cache) {
            self.cache = cache;
        } else {
            *self = Self::of_messages(cache, messages);
        }
    }
}

fn layout_of(cache: CachePolicy) -> Option<MarkLayout> {
    match cache {
        CachePolicy::Marks { layout, .. } => Some(layout),
        CachePolicy::Key | CachePolicy::Unmarked => None,
    }
}
