//! The view of a session in memory: the messages that would be sent, with everything that a call needs already computed.
//!
//! Each message is parsed once, when it is added: its size, its hash, its bytes. A call only adds up and copies. The record
//! is authoritative; a view can always be loaded from it again.
//!
//! Not for: decisions.

use std::sync::Arc;

use throughline_provider::CachePolicy;
use throughline_store::{CallNames, Session, SessionId, StoreError, Summary, SummaryId, ViewMessage};
use throughline_tokens::{ContentProfile, TokenModel};
use throughline_transcript::{Message, SharedText, decode_message};

use crate::context_engine::outcome::NewItem;
use crate::prompt::envelope::SystemNote;
use crate::prompt::wire_form::{WireForm, WireForms};

/// The location of a view's item in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordLocation {
    /// A message.
    Message {
        /// The session it was appended to.
        session: SessionId,
        /// Its position.
        seq: u64,
        /// The changes to it; empty if it is shown unchanged.
        changes: Vec<String>,
    },
    /// A summary.
    Summary(SummaryId),
    /// A message that Throughline inserted, with its role.
    Synthetic(String),
}

/// A parsed item of a view.
#[derive(Clone, Debug)]
pub(crate) struct LiveItem {
    pub(crate) place: RecordLocation,
    /// Its content profile.
    pub(crate) profile: ContentProfile,
}

/// The messages that a model is shown, item by item.
#[derive(Clone, Debug)]
pub(crate) struct LiveView {
    session: Session,
    items: Vec<LiveItem>,
    forms: WireForms,
    messages: Arc<Vec<Message>>,
    sizes: Arc<Vec<u64>>,
    summaries: Vec<Summary>,
    token_model: TokenModel,
    estimated_tokens: u64,
    pub(crate) names: CallNames,
}

impl LiveView {
    /// Creates an empty view.
    pub(crate) fn new(session: Session, token_model: TokenModel, cache: CachePolicy) -> Self {
        Self {
            session,
            items: Vec::new(),
            forms: WireForms::new(cache),
            messages: Arc::default(),
            sizes: Arc::default(),
            summaries: Vec::new(),
            token_model,
            estimated_tokens: 0,
            names: CallNames::default(),
        }
    }

    /// Builds a view from the record; `summaries` are those that occur in it.
    pub(crate) fn load(
        session: Session,
        shown: Vec<ViewMessage>,
        summaries: Vec<Summary>,
        token_model: TokenModel,
        cache: CachePolicy,
    ) -> Result<Self, StoreError> {
        let mut view = Self { summaries, ..Self::new(session, token_model, cache) };
        for item in shown {
            let (place, message) = read_shown(item).ok_or_else(|| StoreError::Database {
                what: "to read a message of a view back",
                source: "its bytes are no message".into(),
            })?;
            view.push(place, message);
        }
        Ok(view)
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn items(&self) -> &[LiveItem] {
        &self.items
    }

    pub(crate) fn messages(&self) -> &Arc<Vec<Message>> {
        &self.messages
    }

    pub(crate) fn sizes(&self) -> &Arc<Vec<u64>> {
        &self.sizes
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the estimated tokens of all messages.
    pub(crate) fn estimated_tokens(&self) -> u64 {
        self.estimated_tokens
    }

    /// Returns the number of items before a position of the session.
    pub(crate) fn items_before(&self, to_seq: u64) -> usize {
        let is_later = |item: &LiveItem| {
            matches!(&item.place, RecordLocation::Message { session, seq, .. }
                if *session == self.session.id && *seq >= to_seq)
        };
        self.items.iter().position(is_later).unwrap_or(self.items.len())
    }

    /// Returns the messages as they are sent.
    pub(crate) fn forms(&self) -> &WireForms {
        &self.forms
    }

    /// Returns whether the system prompt has to mention a summary.
    pub(crate) fn note(&self) -> SystemNote {
        if self.summaries.is_empty() { SystemNote::None } else { SystemNote::Compacted }
    }

    /// Returns a summary in the view.
    pub(crate) fn summary(&self, id: SummaryId) -> Option<&Summary> {
        self.summaries.iter().find(|summary| summary.id == id)
    }

    /// Estimates the tokens of a message.
    pub(crate) fn estimate(&self, message: &Message) -> u64 {
        self.estimate_profile(&ContentProfile::of_message(message))
    }

    /// Estimates the tokens of parts other than messages, with the same estimator.
    pub(crate) fn estimate_profile(&self, profile: &ContentProfile) -> u64 {
        self.token_model.estimate_content(profile)
    }

    /// Appends an item.
    pub(crate) fn push(&mut self, place: RecordLocation, message: Message) {
        let profile = ContentProfile::of_message(&message);
        let form = self.forms.of(&message);
        self.names.tools_of(&message);
        self.push_read(LiveItem { place, profile }, form, message);
    }

    fn push_read(&mut self, item: LiveItem, form: WireForm, message: Message) {
        let size = self.token_model.estimate_content(&item.profile);
        self.estimated_tokens = self.estimated_tokens.saturating_add(size);
        self.items.push(item);
        self.forms.push(form);
        // These are shared only while a summary is being prepared, which keeps the conversation as it was.
        Arc::make_mut(&mut self.messages).push(message);
        Arc::make_mut(&mut self.sizes).push(size);
    }

    /// Removes the last items, so that `kept` remain.
    pub(crate) fn truncate(&mut self, kept: usize) {
        let gone: u64 = self.sizes.iter().skip(kept).sum();
        self.estimated_tokens = self.estimated_tokens.saturating_sub(gone);
        self.items.truncate(kept);
        self.forms.truncate(kept);
        Arc::make_mut(&mut self.messages).truncate(kept);
        Arc::make_mut(&mut self.sizes).truncate(kept);
    }

    /// Replaces all items from `from` on. Each entry names the item it replaces; items without an entry are removed, and items with
    /// unchanged text are not parsed again.
    pub(crate) fn reword(&mut self, from: usize, worded: Vec<(usize, Message)>) {
        let items = self.items.get(from..).unwrap_or_default().to_vec();
        let forms = self.forms.all().get(from..).unwrap_or_default().to_vec();
        let messages = self.messages.get(from..).unwrap_or_default().to_vec();
        self.truncate(from);
        for (item, message) in worded {
            let at = item.saturating_sub(from);
            let (Some(known), Some(form), Some(was)) = (items.get(at), forms.get(at), messages.get(at))
            else {
                continue;
            };
            if was.json() == message.json() {
                self.push_read(known.clone(), form.clone(), was.clone());
                continue;
            }
            let message = if was.is_machine_written() { message.marked_machine_written() } else { message };
            self.push(known.place.clone(), message);
        }
    }

    /// Sets the positions of items that were appended before they were recorded.
    pub(crate) fn placed(&mut self, first_item: usize, first_seq: u64) {
        let own = self.session.id.clone();
        for (seq, item) in (first_seq..).zip(self.items.iter_mut().skip(first_item)) {
            if let RecordLocation::Message { session, seq: place, .. } = &mut item.place {
                session.clone_from(&own);
                *place = seq;
            }
        }
    }

    /// Assigns the view to another session with the same content.
    pub(crate) fn set_session(&mut self, session: Session) {
        self.session = session;
    }

    /// Sets the position of the session's next message, as the record has it.
    pub(crate) fn set_next_seq(&mut self, next_seq: u64) {
        self.session.next_seq = next_seq;
    }

    /// Switches to another model: sizes are recomputed from the profiles, without parsing messages again.
    pub(crate) fn set_model(&mut self, token_model: TokenModel, cache: CachePolicy) {
        self.token_model = token_model;
        let sizes: Vec<u64> =
            self.items.iter().map(|item| self.token_model.estimate_content(&item.profile)).collect();
        self.estimated_tokens = sizes.iter().sum();
        self.sizes = Arc::new(sizes);
        self.forms.set_cache(cache, &self.messages);
    }

    /// Returns the view that a compaction made from this one, in its new session. Unchanged messages are not parsed again. `None` if an
    /// item is not a valid message.
    pub(crate) fn refolded(
        &self,
        session: Session,
        made: &[NewItem],
        summary: Option<Summary>,
    ) -> Option<Self> {
        let mut view = Self {
            names: self.names.clone(),
            ..Self::new(session, self.token_model.clone(), self.forms.cache())
        };
        for item in made {
            match item {
                NewItem::Kept { item } => {
                    let (known, message) = (self.items.get(*item)?, self.messages.get(*item)?);
                    let form = self.forms.all().get(*item)?.clone();
                    if let RecordLocation::Summary(id) = known.place {
                        view.summaries.extend(self.summary(id).cloned());
                    }
                    view.push_read(known.clone(), form, message.clone());
                }
                NewItem::Rewritten { item, changes, json } => {
                    let was = &self.items.get(*item)?.place;
                    let machine = self.messages.get(*item)?.is_machine_written();
                    let message = decode_message(SharedText::new(json.clone()))?;
                    let message = if machine { message.marked_machine_written() } else { message };
                    view.push(changed(was, changes), message);
                }
                NewItem::Summary { json } => {
                    let summary = summary.clone()?;
                    let message = decode_message(SharedText::new(json.clone()))?;
                    view.push(RecordLocation::Summary(summary.id), message);
                    view.summaries.push(summary);
                }
                NewItem::Synthetic { role, json } => {
                    let message = decode_message(SharedText::new(json.clone()))?;
                    view.push(RecordLocation::Synthetic(role.clone()), message);
                }
            }
        }
        Some(view)
    }
}

/// Returns a location with further changes added.
pub(crate) fn changed(place: &RecordLocation, further: &[String]) -> RecordLocation {
    match place {
        RecordLocation::Message { session, seq, changes } => {
            let mut all = changes.clone();
            for change in further {
                if !all.contains(change) {
                    all.push(change.clone());
                }
            }
            RecordLocation::Message { session: session.clone(), seq: *seq, changes: all }
        }
        other => other.clone(),
    }
}

pub(crate) fn read_shown(item: ViewMessage) -> Option<(RecordLocation, Message)> {
    let text = |json: String| decode_message(SharedText::new(json));
    Some(match item {
        ViewMessage::Verbatim(stored) => {
            let message = stored.decode()?;
            (
                RecordLocation::Message { session: stored.session, seq: stored.seq, changes: Vec::new() },
                message,
            )
        }
        ViewMessage::Rendition(stored, rendition) => {
            let message = text(rendition.json)?;
            let message = if stored.machine_written { message.marked_machine_written() } else { message };
            let place = RecordLocation::Message {
                session: stored.session,
                seq: stored.seq,
                changes: rendition.kinds,
            };
            (place, message)
        }
        ViewMessage::Summary { summary, json, .. } => (RecordLocation::Summary(summary), text(json)?),
        ViewMessage::Synthetic { kind, json, .. } => (RecordLocation::Synthetic(kind), text(json)?),
    })
}
