//! Writes conversations of other programs into the record. Writing the same conversation again adds nothing.
//!
//! A conversation is found by its program and key. Its messages in the record are compared by hash with the program's messages. New ones at
//! the end are appended to the tip, whatever view the tip has by now. If the two differ, a branch begins at the first difference, under the
//! same key with a number. Positions in the record are then those in the program's list. Every step is a transaction, and is detected after
//! an interrupted import.

use serde_json::json;
use throughline_tokens::{Catalogue, ContentProfile, TokenModel};
use throughline_transcript::Message;

use crate::error::{Result, StoreError};
use crate::ids::{Millis, Owner, SessionId};
use crate::message::{CallNames, NewMessage, StoredMessage};
use crate::sessions::guard::{Guard, GuardScope, PREAMBLE_GUARD};
use crate::sessions::session::{EndReason, Link, LinkKind, NewSession, Origin, Session};
use crate::store::Store;
use crate::views::summary::Continuation;

use super::calls;
use super::conversation::{
    ForeignCompaction, ForeignConversation, ForeignMessage, ForeignParent, ParentPosition,
};
use super::report::ImportCounts;
use super::views;

/// The maximum number of messages in one transaction.
const BATCH: usize = 1_000;
/// How often a conversation is retried after another process changed it meanwhile.
const TRIES: usize = 3;

/// Writes to a record for an owner.
pub(super) struct Recorder<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) owner: Owner,
    pub(super) new_id: &'a mut dyn FnMut(Millis) -> SessionId,
    /// The prices of calls.
    pub(super) catalogue: Catalogue,
}

/// A recorded version of a conversation.
struct RecordedChain {
    /// Its chain, oldest first.
    chain: Vec<Session>,
    /// Number of messages that are equal in record and program.
    common: usize,
    /// Number of messages in the record.
    recorded: usize,
}

impl RecordedChain {
    /// Returns the member of the chain at which to branch off at a position.
    fn member_at(&self, place: usize) -> Option<&Session> {
        let place = place as u64;
        self.chain.iter().find(|member| (member.first_seq..=member.next_seq).contains(&place))
    }
}

impl Recorder<'_> {
    /// Records a conversation and counts the additions, including those before an error.
    pub(super) fn record(&mut self, foreign: &ForeignConversation, counts: &mut ImportCounts) -> Result<()> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_record(foreign, counts) {
                // Another process compacted or opened the conversation between reading and writing: try again; what was written is
                // detected.
                Err(StoreError::SessionEnded { .. } | StoreError::SessionExists { .. }) if tries < TRIES => {}
                outcome => return outcome,
            }
        }
    }

    /// Whether the record has a key of a program.
    pub(super) fn knows(&self, program: &str, key: &str) -> Result<bool> {
        Ok(self.store.session_by_origin(&self.owner, program, key)?.is_some())
    }

    fn try_record(&mut self, foreign: &ForeignConversation, counts: &mut ImportCounts) -> Result<()> {
        let (ways, free_key) = self.ways_of(foreign, &foreign.key)?;
        let said = foreign.messages.len();
        if let Some(whole) = ways.iter().find(|way| way.common == said) {
            let before = *counts;
            let grows = whole.recorded == said;
            let tip = whole.chain.last().cloned();
            if let Some(tip) = tip.filter(|_| grows) {
                self.extend(foreign, &whole.chain, tip, said, counts)?;
            }
            let grown = self.finish(foreign, &whole.chain, counts)?;
            match grown || *counts != before {
                true => counts.grown += 1,
                false => counts.unchanged += 1,
            }
            return Ok(());
        }
        let goes_on = ways.iter().filter(|way| way.common == way.recorded).max_by_key(|way| way.recorded);
        if let Some(way) = goes_on
            && let Some(tip) = way.chain.last().cloned()
        {
            self.extend(foreign, &way.chain, tip, way.common, counts)?;
            self.finish(foreign, &way.chain, counts)?;
            counts.grown += 1;
            return Ok(());
        }
        let from = match longest(ways) {
            Some(way) => Some(way),
            None => match &foreign.copied_from {
                Some(other) => longest(self.ways_of(foreign, other)?.0).filter(|way| way.common > 0),
                None => None,
            },
        };
        // A version whose shared beginning was deleted cannot be branched from there.
        let branch = from.as_ref().and_then(|way| Some((branch_link(way)?, way.common)));
        let is_branch = branch.is_some();
        let (link, common) = match branch {
            Some((link, common)) => (Some(link), common),
            None => (self.attached_link(foreign)?, 0),
        };
        let session = self.open(foreign, free_key, link)?;
        self.extend(foreign, std::slice::from_ref(&session), session.clone(), common, counts)?;
        self.finish(foreign, std::slice::from_ref(&session), counts)?;
        match is_branch {
            true => counts.branched += 1,
            false => counts.new += 1,
        }
        Ok(())
    }

    /// Returns every recorded version of the conversation with this key, and the next free key.
    fn ways_of(&self, foreign: &ForeignConversation, key: &str) -> Result<(Vec<RecordedChain>, String)> {
        let mut ways = Vec::new();
        loop {
            let number = ways.len() + 1;
            let key = if number == 1 { key.to_owned() } else { format!("{key}#{number}") };
            let Some(first) = self.store.session_by_origin(&self.owner, foreign.program, &key)? else {
                return Ok((ways, key));
            };
            let chain = self.store.chain(&self.owner, &first.id)?;
            let tip = chain.last().map_or(&first.id, |tip| &tip.id);
            let recorded = self.store.transcript(&self.owner, tip)?;
            let agree = |(ours, theirs): &(&StoredMessage, &ForeignMessage)| ours.hash == theirs.hash;
            let common = recorded.iter().zip(&foreign.messages).take_while(agree).count();
            ways.push(RecordedChain { chain, common, recorded: recorded.len() });
        }
    }

    /// Returns the link of a conversation that worked for another; `None` if the record does not have the other.
    fn attached_link(&self, foreign: &ForeignConversation) -> Result<Option<Link>> {
        let Some(ForeignParent { key, kind, place }) = &foreign.attached_to else { return Ok(None) };
        let Some(first) = self.store.session_by_origin(&self.owner, foreign.program, key)? else {
            return Ok(None);
        };
        let chain = self.store.chain(&self.owner, &first.id)?;
        let tip = chain.last().unwrap_or(&first);
        let place = match place {
            ParentPosition::Messages(place) => *place as u64,
            ParentPosition::Time(at_ms) => {
                let messages = self.store.transcript(&self.owner, &tip.id)?;
                messages.iter().rev().find(|message| message.at_ms <= *at_ms).map_or(0, |last| last.seq + 1)
            }
        };
        let parent = chain.iter().rev().find(|member| member.first_seq <= place).unwrap_or(&first);
        Ok(Some(Link { parent: parent.id.clone(), kind: *kind, leaves_at: place.min(tip.next_seq) }))
    }

    fn open(&mut self, foreign: &ForeignConversation, key: String, link: Option<Link>) -> Result<Session> {
        let origin =
            Origin { program: foreign.program.to_owned(), key: Some(key), project: foreign.project.clone() };
        self.open_as(foreign, origin, link, foreign.started_ms)
    }

    fn open_as(
        &mut self,
        foreign: &ForeignConversation,
        origin: Origin,
        link: Option<Link>,
        at_ms: Millis,
    ) -> Result<Session> {
        let mut tries = 0;
        loop {
            tries += 1;
            let id = (self.new_id)(at_ms);
            let new = NewSession {
                id: id.clone(),
                owner: self.owner.clone(),
                link: link.clone(),
                started_ms: at_ms,
                model: foreign.model.clone(),
                title: foreign.title.clone(),
                origin: origin.clone(),
                wire_format: foreign.wire_format,
            };
            match self.store.open_session(new, None) {
                // The random digits are taken: draw again.
                Err(StoreError::SessionExists { id: twin }) if twin == id && tries < TRIES => {}
                outcome => return outcome,
            }
        }
    }

    /// Appends the missing messages, with the program's own compactions at their positions.
    fn extend(
        &mut self,
        foreign: &ForeignConversation,
        chain: &[Session],
        mut tip: Session,
        from: usize,
        counts: &mut ImportCounts,
    ) -> Result<()> {
        // Compactions exactly at the end of the record may be in it already: they are the continuations that start there.
        let begins_here = |member: &&Session| {
            member.first_seq == from as u64
                && member.link.as_ref().is_some_and(|link| link.kind == LinkKind::Continuation)
        };
        let mut recorded_here = chain.iter().filter(begins_here).count();
        let mut names = CallNames::default();
        let tools: Vec<Vec<String>> =
            foreign.messages.iter().map(|said| names.tools_of(&said.message)).collect();
        let model =
            TokenModel::of(Catalogue::shipped_facts(foreign.model.as_deref().unwrap_or_default()).family);
        let mut done = from;
        for compaction in foreign.compactions.iter().filter(|compaction| compaction.at >= from) {
            if compaction.at == from && recorded_here > 0 {
                recorded_here -= 1;
                continue;
            }
            self.append(foreign, &mut tip, done..compaction.at, &tools, &model, counts)?;
            done = compaction.at;
            tip = self.compact(foreign, tip, compaction, &model)?;
        }
        self.append(foreign, &mut tip, done..foreign.messages.len(), &tools, &model, counts)
    }

    fn append(
        &mut self,
        foreign: &ForeignConversation,
        tip: &mut Session,
        range: std::ops::Range<usize>,
        tools: &[Vec<String>],
        model: &TokenModel,
        counts: &mut ImportCounts,
    ) -> Result<()> {
        let said = foreign.messages.get(range.clone()).unwrap_or_default();
        let tools = tools.get(range).unwrap_or_default();
        for (said, tools) in said.chunks(BATCH).zip(tools.chunks(BATCH)) {
            if tip.ended_ms.is_some() {
                *tip =
                    self.go_on(foreign, tip, said.first().map_or(foreign.started_ms, |said| said.at_ms))?;
            }
            let batch: Vec<NewMessage> = said
                .iter()
                .zip(tools)
                .map(|(said, tools)| NewMessage {
                    message: said.message.clone(),
                    tokens: tokens_of(&said.message, model),
                    at_ms: said.at_ms,
                    tools: tools.clone(),
                    rendition: said.sent.as_ref().map(|sent| views::rendition(sent, tokens_of(sent, model))),
                })
                .collect();
            let added = batch.len() as u64;
            tip.next_seq = self.store.append(&self.owner, &tip.id, batch)?.next_seq;
            counts.messages += added;
        }
        Ok(())
    }

    /// Continues an ended session in a new one with the same view.
    fn go_on(&mut self, foreign: &ForeignConversation, tip: &Session, at_ms: Millis) -> Result<Session> {
        let link = Link { parent: tip.id.clone(), kind: LinkKind::Continuation, leaves_at: tip.next_seq };
        let origin = Origin { key: None, ..tip.origin.clone() };
        self.open_as(foreign, origin, Some(link), at_ms)
    }

    /// Records a compaction of the program as a continuation.
    fn compact(
        &mut self,
        foreign: &ForeignConversation,
        tip: Session,
        compaction: &ForeignCompaction,
        model: &TokenModel,
    ) -> Result<Session> {
        let tip = if tip.ended_ms.is_some() { self.go_on(foreign, &tip, compaction.at_ms)? } else { tip };
        let (view, summary) = match compaction.view.is_empty() {
            true => (Vec::new(), None),
            false => views::view_of(self.store, &self.owner, foreign, &tip, compaction, &|message| {
                tokens_of(message, model)
            })?,
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let id = (self.new_id)(compaction.at_ms);
            let continuation = Continuation {
                lease: None,
                from: tip.id.clone(),
                id: id.clone(),
                reason: EndReason::COMPRESSION,
                at_ms: compaction.at_ms,
                made_at_seq: tip.next_seq,
                summary: summary.clone(),
                view: view.clone(),
            };
            match self.store.continue_session(&self.owner, continuation) {
                Err(StoreError::SessionExists { id: twin }) if twin == id && tries < TRIES => {}
                outcome => return outcome,
            }
        }
    }

    /// Records calls, adds missing properties of the conversation, and ends it if the program did. Returns whether anything except calls
    /// changed.
    fn finish(
        &mut self,
        foreign: &ForeignConversation,
        chain: &[Session],
        counts: &mut ImportCounts,
    ) -> Result<bool> {
        let Some(first) = chain.first() else { return Ok(false) };
        let chain = self.store.chain(&self.owner, &first.id)?;
        let Some(tip) = chain.last() else { return Ok(false) };
        let preamble = match &foreign.preamble {
            Some(preamble) => Some(self.store.put_preamble(preamble)?),
            None => None,
        };
        let mut changed = false;
        if let Some(preamble) = &preamble {
            let scope = GuardScope::Chain(self.owner.clone(), first.id.clone());
            let value = json!(preamble);
            let known = self.store.guard(&scope, PREAMBLE_GUARD, foreign.started_ms)?;
            if known.is_none_or(|known| known.value != value) {
                let name = PREAMBLE_GUARD.to_owned();
                let guard = Guard { name, value, set_ms: foreign.started_ms, expires_ms: None };
                self.store.set_guard(&scope, PREAMBLE_GUARD, Some(&guard))?;
            }
        }
        counts.calls +=
            calls::book_calls(self.store, &self.owner, foreign, &chain, preamble.as_ref(), &self.catalogue)?;
        if let Some(title) = &foreign.title
            && chain.iter().all(|member| member.title.is_none())
        {
            self.store.rename(&self.owner, &tip.id, Some(title))?;
            changed = true;
        }
        if let Some((reason, at_ms)) = &foreign.end
            && tip.ended_ms.is_none()
            && tip.next_seq == foreign.messages.len() as u64
        {
            self.store.end_session(&self.owner, &tip.id, reason, *at_ms)?;
            changed = true;
        }
        Ok(changed)
    }
}

/// Returns the link of a conversation that branches off a recorded version where the two differ.
fn branch_link(way: &RecordedChain) -> Option<Link> {
    let parent = way.member_at(way.common)?;
    Some(Link { parent: parent.id.clone(), kind: LinkKind::Branch, leaves_at: way.common as u64 })
}

/// Returns the version with the longest equal beginning; of several the oldest.
fn longest(ways: Vec<RecordedChain>) -> Option<RecordedChain> {
    ways.into_iter().reduce(|best, way| if way.common > best.common { way } else { best })
}

fn tokens_of(message: &Message, model: &TokenModel) -> u64 {
    model.estimate_content(&ContentProfile::of_message(message))
}
