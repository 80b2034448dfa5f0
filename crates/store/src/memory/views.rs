//! Messages and views of the record in memory: appending and reading.

use crate::artifacts::artifact::{ArtifactId, NewArtifact};
use crate::artifacts::extract::artifact_texts;
use crate::error::{Result, StoreError};
use crate::ids::{Owner, SessionId};
use crate::message::{AppendRange, MessageHead, NewMessage, StoredMessage, StoredRendition};
use crate::sessions::chain::{LinePart, ended};
use crate::sessions::session::Session;
use crate::sessions::version::{LastMessage, Version};
use crate::views::assembly::{closed, grown, push, visible_items};
use crate::views::item::{ViewItem, ViewMessage};

use super::state::MemoryState;

impl MemoryState {
    pub(super) fn append(
        &mut self,
        owner: &Owner,
        id: &SessionId,
        messages: Vec<NewMessage>,
    ) -> Result<AppendRange> {
        let session = self.find(owner, id)?;
        if session.ended_ms.is_some() {
            return Err(ended(session, self.tip(session.chain)));
        }
        let (ordinal, first_seq) = (session.ordinal, session.next_seq);
        let mut next_seq = first_seq;
        let mut renditions: Vec<(u64, StoredRendition)> = Vec::new();
        for new in messages {
            self.keep_artifacts(ordinal, id, self.last_message + 1, &new);
            renditions.extend(new.rendition.clone().map(|rendition| (next_seq, rendition)));
            self.keep_message(ordinal, id, next_seq, new);
            next_seq += 1;
        }
        if !renditions.is_empty() {
            let view = self.views.entry(ordinal).or_default();
            if let Some(ViewItem::Range { first_seq: run_first, .. }) = view.pop() {
                grown(id, run_first, renditions).into_iter().for_each(|item| push(view, item));
            }
        }
        Ok(AppendRange { first_seq, next_seq })
    }

    pub(super) fn version(&self, owner: &Owner, id: &SessionId) -> Result<Version> {
        let session = self.find(owner, id)?;
        let tip = self.tip(session.chain).unwrap_or(session);
        let last = self.run(tip.ordinal, tip.next_seq.saturating_sub(1), tip.next_seq).next();
        let last =
            last.map(|message| LastMessage { id: message.id, at_ms: message.at_ms, hash: message.hash });
        Ok(Version { tip: tip.id.clone(), next_seq: tip.next_seq, last })
    }

    pub(super) fn append_at(
        &mut self,
        owner: &Owner,
        version: &Version,
        messages: Vec<NewMessage>,
    ) -> Result<Version> {
        let now = self.version(owner, &version.tip)?;
        if now != *version {
            return Err(StoreError::VersionConflict { id: version.tip.clone(), tip: now.tip });
        }
        self.append(owner, &version.tip, messages)?;
        self.version(owner, &version.tip)
    }

    fn keep_message(&mut self, ordinal: u64, id: &SessionId, seq: u64, new: NewMessage) {
        self.last_message += 1;
        if let Some(session) = self.sessions.get_mut(&ordinal) {
            session.next_seq = seq + 1;
            session.active_ms = session.active_ms.max(new.at_ms);
            session.counters.messages += 1;
            session.counters.message_tokens = session.counters.message_tokens.saturating_add(new.tokens);
        }
        let stored = StoredMessage {
            id: self.last_message,
            session: id.clone(),
            seq,
            role: new.message.role(),
            at_ms: new.at_ms,
            tokens: new.tokens,
            hash: new.message.content_hash(),
            machine_written: new.message.is_machine_written(),
            tools: new.tools,
            json: new.message.origin().clone(),
        };
        self.places.insert((ordinal, seq), self.last_message);
        self.messages.insert(self.last_message, stored);
    }

    /// Stores the large tool results of a message as artifacts, as every record does.
    fn keep_artifacts(&mut self, ordinal: u64, id: &SessionId, number: u64, new: &NewMessage) {
        for text in artifact_texts(&new.message) {
            let label = new.tools.first().map_or("", String::as_str);
            let artifact = NewArtifact { session: id, text: &text.text, label, at_ms: new.at_ms };
            self.tie(&ArtifactId::of(text.text.as_bytes()), ordinal, Some(number), artifact);
        }
    }

    pub(super) fn messages(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>> {
        let session = self.find(owner, id)?;
        Ok(self.run(session.ordinal, 0, u64::MAX).cloned().collect())
    }

    pub(super) fn message_heads(&self, owner: &Owner, id: &SessionId) -> Result<Vec<MessageHead>> {
        let session = self.find(owner, id)?;
        let head = |message: &StoredMessage| MessageHead {
            seq: message.seq,
            speaker: message.speaker(),
            tokens: message.tokens,
            at_ms: message.at_ms,
        };
        Ok(self.run(session.ordinal, 0, u64::MAX).map(head).collect())
    }

    pub(super) fn transcript(&self, owner: &Owner, id: &SessionId) -> Result<Vec<StoredMessage>> {
        let session = self.find(owner, id)?;
        let line = self.line(owner, LinePart::through(session));
        let members = line.iter().rev().flat_map(|stretch| {
            self.members(stretch.chain).filter_map(|member| Some((member, stretch.end_in(member)?)))
        });
        Ok(members.flat_map(|(member, end)| self.run(member.ordinal, 0, end)).cloned().collect())
    }

    pub(super) fn view_items(&self, owner: &Owner, id: &SessionId) -> Result<Vec<ViewItem>> {
        let session = self.find(owner, id)?;
        Ok(visible_items(self.items_of(session), session))
    }

    pub(super) fn view(
        &self,
        owner: &Owner,
        id: &SessionId,
        to_seq: Option<u64>,
    ) -> Result<Vec<ViewMessage>> {
        let session = self.find(owner, id)?;
        let end = to_seq.map_or(session.next_seq, |to_seq| to_seq.min(session.next_seq));
        let mut shown = Vec::new();
        for item in closed(self.items_of(session), &session.id, end) {
            self.show(owner, item, &mut shown)?;
        }
        Ok(shown)
    }

    pub(super) fn items_of(&self, session: &Session) -> Vec<ViewItem> {
        self.views.get(&session.ordinal).cloned().unwrap_or_default()
    }

    /// Adds the messages of an item with their bytes.
    pub(super) fn show(&self, owner: &Owner, item: ViewItem, shown: &mut Vec<ViewMessage>) -> Result<()> {
        match item {
            ViewItem::Range { session: id, first_seq, end_seq } => {
                let session = self.find(owner, &id)?;
                let end_seq = end_seq.unwrap_or(session.next_seq);
                shown.extend(
                    self.run(session.ordinal, first_seq, end_seq).cloned().map(ViewMessage::Verbatim),
                );
            }
            ViewItem::Rendition { session: id, seq, rendition } => {
                let message = self.message_at(owner, &id, seq)?;
                shown.push(ViewMessage::Rendition(message.clone(), rendition));
            }
            ViewItem::Summary { summary, json, tokens } => {
                shown.push(ViewMessage::Summary { summary, json, tokens });
            }
            ViewItem::Synthetic { kind, json, tokens } => {
                shown.push(ViewMessage::Synthetic { kind, json, tokens });
            }
        }
        Ok(())
    }

    fn message_at(&self, owner: &Owner, id: &SessionId, seq: u64) -> Result<&StoredMessage> {
        let unknown = || StoreError::UnknownMessage { session: id.clone(), seq };
        let session = self.known(owner, id).ok_or_else(unknown)?;
        let number = self.places.get(&(session.ordinal, seq)).ok_or_else(unknown)?;
        self.messages.get(number).ok_or_else(unknown)
    }
}
