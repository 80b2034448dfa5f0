//! Builds the hits of a result: the passage, its location, and the messages around it.

use std::collections::HashMap;
use std::rc::Rc;

use rusqlite::Connection;

use crate::artifacts::folder::ArtifactFolder;
use crate::ids::SessionId;
use crate::search::matching::Matcher;
use crate::search::rank::RankedHit;
use crate::search::request::{ArtifactLocation, Hit, MatchedWords, Neighbour, Snippet};
use crate::search::snippet::{beginning, passage};
use crate::sessions::chain::{LinePart, line};

use super::super::error::TxResult;
use super::super::fingerprint_index::ARTIFACT_ROWS;
use super::super::indexing::PieceText;
use super::super::rows::{find_session, int, members_of, session_at};
use super::candidates::{ArtifactReference, SearchRow, newest_reference, row_columns};
use super::scope::SearchScope;

/// Makes hits of what was ranked.
pub(super) struct HitBuilder<'a, 's> {
    pub(super) conn: &'a Connection,
    pub(super) artifacts: &'a ArtifactFolder,
    pub(super) scope: &'a mut SearchScope<'s>,
    conversations: ConversationCache,
}

/// Where a hit stands.
pub(super) struct HitLocation {
    pub(super) session: i64,
    pub(super) message: u64,
    pub(super) seq: u64,
    pub(super) role: &'static str,
    pub(super) tools: Vec<String>,
    pub(super) at_ms: i64,
}

/// What hits of the same conversation share, by its chain.
type ConversationCache = HashMap<u64, Rc<ConversationInfo>>;

pub(super) struct ConversationInfo {
    /// The title of its newest session that has one.
    title: Option<String>,
    /// In order; read only where neighbours are shown.
    pub(super) runs: Vec<RunOfSession>,
}

/// Messages of a session that belong to a conversation.
pub(super) struct RunOfSession {
    pub(super) session: i64,
    pub(super) first_seq: u64,
    pub(super) end_seq: u64,
}

/// What the order of the messages of a conversation is needed for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RunsOf {
    /// Messages beside a hit, where the question wants any.
    Context,
    /// Passages of several messages.
    Passages,
}

impl<'a, 's> HitBuilder<'a, 's> {
    pub(super) fn new(
        conn: &'a Connection,
        artifacts: &'a ArtifactFolder,
        scope: &'a mut SearchScope<'s>,
    ) -> Self {
        Self { conn, artifacts, scope, conversations: ConversationCache::new() }
    }

    /// Hits as they are shown.
    pub(super) fn hits(
        &mut self,
        ranked: &[RankedHit<i64>],
        matcher: &mut Matcher<'_>,
        matched: Option<MatchedWords>,
    ) -> TxResult<Vec<Hit>> {
        let mut hits = Vec::with_capacity(ranked.len());
        for hit in ranked {
            let shown = match hit.key < ARTIFACT_ROWS {
                true => self.message_hit(hit, matcher)?,
                false => self.artifact_hit(hit, matcher)?,
            };
            hits.extend(shown.map(|shown| Hit { matched, ..shown }));
        }
        Ok(hits)
    }

    fn message_hit(&mut self, ranked: &RankedHit<i64>, matcher: &mut Matcher<'_>) -> TxResult<Option<Hit>> {
        let mut statement = self.conn.prepare_cached(concat!(
            "SELECT ",
            row_columns!(),
            " FROM messages m WHERE m.id = ?1"
        ))?;
        let mut rows = statement.query([ranked.key])?;
        let Some(row) = rows.next()?.and_then(SearchRow::new) else { return Ok(None) };
        let Some(text) = row.text() else { return Ok(None) };
        let snippet = passage(&text, &matcher.places(&text));
        let place = HitLocation {
            session: row.session,
            message: u64::try_from(row.id).unwrap_or_default(),
            seq: row.seq,
            role: row.role.name(),
            tools: row.tools()?,
            at_ms: row.at_ms,
        };
        self.hit(place, ranked, snippet)
    }

    fn artifact_hit(&mut self, ranked: &RankedHit<i64>, matcher: &mut Matcher<'_>) -> TxResult<Option<Hit>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT p.artifact, p.first_line, a.name, p.first_byte, p.bytes
             FROM artifact_pieces p JOIN artifacts a ON a.n = p.artifact WHERE p.row = ?1",
        )?;
        let mut rows = statement.query([ranked.key])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let piece = PieceText::from_row(row, 2)?;
        let Ok(text) = piece.read(self.artifacts) else { return Ok(None) };
        let Some(reference) = newest_reference(self.conn, row.get(0)?, self.scope)? else { return Ok(None) };
        let marks = matcher.places(&text);
        let before = text.get(..marks.first().map_or(0, |mark| mark.start)).unwrap_or_default();
        let line = row.get::<_, u64>(1)? + memchr::memchr_iter(b'\n', before.as_bytes()).count() as u64;
        let ArtifactReference { session, message, seq, role, tools, at_ms } = reference;
        let place = HitLocation { session, message, seq, role: role.name(), tools, at_ms };
        let hit = self.hit(place, ranked, passage(&text, &marks))?;
        Ok(hit.map(|hit| Hit { artifact: Some(ArtifactLocation { id: piece.artifact, line }), ..hit }))
    }

    /// A passage as it is shown; `None` if its session is not the owner's.
    pub(super) fn hit(
        &mut self,
        place: HitLocation,
        ranked: &RankedHit<i64>,
        snippet: Snippet,
    ) -> TxResult<Option<Hit>> {
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

    /// What is known of a conversation by its chain.
    pub(super) fn conversation(&mut self, chain: u64, runs: RunsOf) -> TxResult<Rc<ConversationInfo>> {
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

    fn read_conversation(&self, chain: u64, needs_runs: bool) -> TxResult<ConversationInfo> {
        let members = members_of(self.conn, chain)?;
        let title = members.iter().rev().find_map(|member| member.title.clone());
        let mut runs = Vec::new();
        // Only neighbours are looked for in them.
        if needs_runs && let Some(tip) = members.last() {
            let at = |ordinal| match members.iter().find(|member| member.ordinal == ordinal) {
                Some(member) => Ok(Some(member.clone())),
                None => session_at(self.conn, ordinal),
            };
            let named = |id: &SessionId| find_session(self.conn, self.scope.owner(), id);
            for stretch in line(LinePart::through(tip), at, named)?.iter().rev() {
                let others =
                    if stretch.chain == chain { Vec::new() } else { members_of(self.conn, stretch.chain)? };
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

    /// Messages around a place in a conversation, in order.
    fn neighbours(
        &self,
        conversation: &ConversationInfo,
        seq: u64,
    ) -> TxResult<(Vec<Neighbour>, Vec<Neighbour>)> {
        let count = self.scope.query.neighbours as u64;
        let (first, end) = (seq.saturating_sub(count), seq.saturating_add(count).saturating_add(1));
        let mut statement = self.conn.prepare_cached(concat!(
            "SELECT ",
            row_columns!(),
            " FROM messages m WHERE m.session = ?1 AND m.seq >= ?2 AND m.seq < ?3 ORDER BY m.seq"
        ))?;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for run in conversation.runs.iter().filter(|run| run.end_seq > first && run.first_seq < end) {
            let mut rows = statement.query([run.session, int(first), int(end.min(run.end_seq))])?;
            while let Some(row) = rows.next()? {
                let Some(row) = SearchRow::new(row) else { continue };
                let beside = match row.seq.cmp(&seq) {
                    std::cmp::Ordering::Less => &mut before,
                    std::cmp::Ordering::Equal => continue,
                    std::cmp::Ordering::Greater => &mut after,
                };
                let text = beginning(&row.text().unwrap_or_default());
                beside.push(Neighbour { seq: row.seq, role: row.role.name(), text });
            }
        }
        Ok((before, after))
    }
}
