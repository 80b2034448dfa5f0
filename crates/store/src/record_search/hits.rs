//! Builds the hits of a result: the passage, its location, and the messages around it.

use std::collections::HashMap;
use std::rc::Rc;

use throughline_search::matching::Matcher;
use throughline_search::rank::RankedHit;
use throughline_search::segments::SegmentLayout;
use throughline_search::{MatchedWords, Snippet};

use crate::coding::int;
use crate::ids::SessionId;
use crate::search::request::{ArtifactLocation, Hit, Neighbour};
use crate::sessions::chain::{LinePart, line};

use super::references::newest_reference;
use super::scope::SearchScope;
use super::source::{
    ArtifactReference, MessageRows, PieceRows, PlaceOrder, ScanStep, SearchSource, SourceResult,
};

/// Converts ranked passages to hits.
pub(super) struct HitBuilder<'a, 's, S> {
    pub(super) source: &'s S,
    pub(super) scope: &'a mut SearchScope<'s, S>,
    conversations: ConversationCache,
}

/// The location of a hit.
pub(super) struct HitLocation {
    pub(super) session: i64,
    pub(super) message: u64,
    pub(super) seq: u64,
    pub(super) role: &'static str,
    pub(super) tools: Vec<String>,
    pub(super) at_ms: i64,
}

/// Data shared by hits of the same conversation, by its chain.
type ConversationCache = HashMap<u64, Rc<ConversationInfo>>;

pub(super) struct ConversationInfo {
    /// The newest title of its sessions.
    title: Option<String>,
    /// In order; read only if neighbours are shown.
    pub(super) runs: Vec<RunOfSession>,
}

/// Messages of a session that belong to a conversation.
pub(super) struct RunOfSession {
    pub(super) session: i64,
    pub(super) first_seq: u64,
    pub(super) end_seq: u64,
}

/// The purpose for which the order of a conversation's messages is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RunsOf {
    /// Messages next to a hit, if requested.
    Context,
    /// Passages of several messages.
    Passages,
}

impl<'a, 's, S: SearchSource> HitBuilder<'a, 's, S> {
    pub(super) fn new(source: &'s S, scope: &'a mut SearchScope<'s, S>) -> Self {
        Self { source, scope, conversations: ConversationCache::new() }
    }

    /// Returns hits as they are shown.
    pub(super) fn hits(
        &mut self,
        ranked: &[RankedHit<i64>],
        matcher: &mut Matcher<'_>,
        matched: Option<MatchedWords>,
    ) -> SourceResult<S, Vec<Hit>> {
        let messages: Vec<i64> =
            ranked.iter().map(|hit| hit.key).filter(|key| *key < SegmentLayout::ARTIFACT_ROWS).collect();
        self.source.read_ahead(&messages, self.scope.query.neighbours as u64)?;
        let mut hits = Vec::with_capacity(ranked.len());
        for hit in ranked {
            let shown = match hit.key < SegmentLayout::ARTIFACT_ROWS {
                true => self.message_hit(hit, matcher)?,
                false => self.artifact_hit(hit, matcher)?,
            };
            hits.extend(shown.map(|shown| Hit { matched, ..shown }));
        }
        Ok(hits)
    }

    fn message_hit(
        &mut self,
        ranked: &RankedHit<i64>,
        matcher: &mut Matcher<'_>,
    ) -> SourceResult<S, Option<Hit>> {
        let mut found = None;
        self.source.each_message(MessageRows::One(ranked.key), |row| {
            let Some(text) = row.text() else { return Ok(ScanStep::No) };
            let place = HitLocation {
                session: row.session,
                message: u64::try_from(row.id).unwrap_or_default(),
                seq: row.seq,
                role: row.role.name(),
                tools: row.tools()?,
                at_ms: row.at_ms,
            };
            found = Some((place, Snippet::passage(&text, &matcher.places(&text))));
            Ok(ScanStep::No)
        })?;
        match found {
            Some((place, snippet)) => self.hit(place, ranked, snippet),
            None => Ok(None),
        }
    }

    fn artifact_hit(
        &mut self,
        ranked: &RankedHit<i64>,
        matcher: &mut Matcher<'_>,
    ) -> SourceResult<S, Option<Hit>> {
        let (source, scope) = (self.source, &mut *self.scope);
        let mut found = None;
        source.each_piece(PieceRows::One(ranked.key), |piece| {
            let Some(text) = source.piece_text(piece)? else { return Ok(ScanStep::No) };
            let Some(reference) = newest_reference(source, piece.artifact, scope)? else {
                return Ok(ScanStep::No);
            };
            let marks = matcher.places(&text);
            let before = text.get(..marks.first().map_or(0, |mark| mark.start)).unwrap_or_default();
            let line = piece.first_line + memchr::memchr_iter(b'\n', before.as_bytes()).count() as u64;
            let ArtifactReference { session, message, seq, role, tools, at_ms } = reference;
            let place = HitLocation { session, message, seq, role: role.name(), tools, at_ms };
            let location = ArtifactLocation { id: piece.name.clone(), line };
            found = Some((place, Snippet::passage(&text, &marks), location));
            Ok(ScanStep::No)
        })?;
        let Some((place, snippet, location)) = found else { return Ok(None) };
        let hit = self.hit(place, ranked, snippet)?;
        Ok(hit.map(|hit| Hit { artifact: Some(location), ..hit }))
    }

    /// Returns a passage as it is shown; `None` if its session is not the owner's.
    pub(super) fn hit(
        &mut self,
        place: HitLocation,
        ranked: &RankedHit<i64>,
        snippet: Snippet,
    ) -> SourceResult<S, Option<Hit>> {
        let Some(session) = self.scope.session(place.session)? else { return Ok(None) };
        let (id, chain) = (session.id.clone(), session.chain);
        let conversation = self.conversation(chain, RunsOf::Context)?;
        let (before, after) = self.neighbours(&conversation, place.seq)?;
        Ok(Some(Hit {
            session: id,
            title: conversation.title.clone(),
            seq: place.seq,
            message: place.message,
            role: place.role,
            tools: place.tools,
            at_ms: place.at_ms,
            score: ranked.score,
            matched: None,
            similarity: None,
            snippet,
            artifact: None,
            repeats: ranked.repeats,
            before,
            after,
        }))
    }

    /// Returns the data of a conversation by its chain.
    pub(super) fn conversation(&mut self, chain: u64, runs: RunsOf) -> SourceResult<S, Rc<ConversationInfo>> {
        let needs_runs = runs == RunsOf::Passages || self.scope.query.neighbours > 0;
        match self.conversations.get(&chain) {
            Some(known) if !needs_runs || !known.runs.is_empty() => Ok(Rc::clone(known)),
            _ => {
                let read = Rc::new(self.read_conversation(chain, needs_runs)?);
                self.conversations.insert(chain, Rc::clone(&read));
                Ok(read)
            }
        }
    }

    fn read_conversation(&self, chain: u64, needs_runs: bool) -> SourceResult<S, ConversationInfo> {
        let members = self.source.members_of(chain)?;
        let title = members.iter().rev().find_map(|member| member.title.clone());
        let mut runs = Vec::new();
        // Only neighbours are searched in them.
        if needs_runs && let Some(tip) = members.last() {
            let at = |ordinal| match members.iter().find(|member| member.ordinal == ordinal) {
                Some(member) => Ok(Some(member.clone())),
                None => self.source.session_at(ordinal),
            };
            let named = |id: &SessionId| self.source.find_session(id);
            for stretch in line(LinePart::through(tip), at, named)?.iter().rev() {
                let others = if stretch.chain == chain {
                    Vec::new()
                } else {
                    self.source.members_of(stretch.chain)?
                };
                for member in if stretch.chain == chain { &members } else { &others } {
                    runs.extend(stretch.end_in(member).map(|end| RunOfSession {
                        session: int(member.ordinal),
                        first_seq: member.first_seq,
                        end_seq: end.min(member.next_seq),
                    }));
                }
            }
        }
        Ok(ConversationInfo { title, runs })
    }

    /// Returns the messages around a position in a conversation, in order.
    fn neighbours(
        &self,
        conversation: &ConversationInfo,
        seq: u64,
    ) -> SourceResult<S, (Vec<Neighbour>, Vec<Neighbour>)> {
        let count = self.scope.query.neighbours as u64;
        let (first, end) = (seq.saturating_sub(count), seq.saturating_add(count).saturating_add(1));
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for run in conversation.runs.iter().filter(|run| run.end_seq > first && run.first_seq < end) {
            let seqs = int(first)..int(end.min(run.end_seq));
            let places = MessageRows::Places { session: run.session, seqs: &seqs, order: PlaceOrder::First };
            self.source.each_message(places, |row| {
                let beside = match row.seq.cmp(&seq) {
                    std::cmp::Ordering::Less => &mut before,
                    std::cmp::Ordering::Equal => return Ok(ScanStep::Yes),
                    std::cmp::Ordering::Greater => &mut after,
                };
                let text = Snippet::beginning(&row.text().unwrap_or_default());
                beside.push(Neighbour { seq: row.seq, role: row.role.name(), text });
                Ok(ScanStep::Yes)
            })?;
        }
        Ok((before, after))
    }
}
