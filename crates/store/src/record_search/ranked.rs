//! Passages for a question that need not have every word of it.
//!
//! A small conversation or record is read as a whole. In a large one, the index shows which blocks of rows contain which words, and the
//! blocks with the rarest words are read. The windows of these texts are weighted, short messages are completed with their neighbours, and
//! the best passages are returned.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use throughline_search::MatchedWords;
use throughline_search::meaning::Nearest;
use throughline_search::passages::{
    Commonness, MatchedWindow, PassageCandidate, Tally, WindowTallies, boost, choose, tally, tally_windows,
    tally_windows_and, word_set,
};
use throughline_search::question::Question;
use throughline_search::rank::{HitSource, RankedHit};
use throughline_search::snippet::one_line;
use throughline_search::windows::{PASSAGE_WORDS, count_words, first_words, last_words};
use throughline_transcript::Role;

use crate::artifacts::artifact::ArtifactId;
use crate::coding::int;
use crate::ids::Millis;
use crate::search::request::{ArtifactLocation, Hit};

use super::blocks::QuestionBlocks;
use super::hits::{HitBuilder, HitLocation, RunsOf};
use super::meaning;
use super::proposals::segments;
use super::references::newest_reference;
use super::source::{MessageRows, PieceRows, PlaceOrder, ScanStep, SearchRow, SearchSource, SourceResult};

/// The maximum number of messages read from a large record, and of their bytes: as many as take a few milliseconds.
const MAX_MESSAGES_READ: usize = 600;
const MAX_BYTES_READ: usize = 2 << 20;
/// The maximum number of rows whose filters are checked to find these.
const MAX_MESSAGES_SEEN: usize = 8_000;
/// The maximum number of artifact pieces read, 64 KB each.
const MAX_PIECES_READ: usize = 16;
/// The maximum number of pieces whose artifacts are checked to find these.
const MAX_PIECES_SEEN: usize = 1_000;
/// The minimum number of windows that are completed with adjacent messages: several times the number shown, because some overlap.
const MIN_COMPLETED: usize = 60;
/// The maximum number of messages read next to a short one to complete it.
const MAX_BESIDE: u64 = 8;

/// A search for passages.
pub(super) struct RankedSearch<'q, 'a, 's, S> {
    builder: HitBuilder<'a, 's, S>,
    question: &'q Question,
    /// Rows that are hits already.
    shown: &'q HashSet<i64>,
    texts: Vec<RankedText>,
    newest_ms: Millis,
}

/// A text with words of the question.
struct RankedText {
    row: i64,
    session: i64,
    message: u64,
    seq: u64,
    source: HitSource,
    tools: Vec<String>,
    at_ms: Millis,
    /// The text, if it has any of them.
    text: String,
    bytes: usize,
    windows: WindowTallies,
    /// The artifact it is a piece of, and the first line of the piece.
    artifact: Option<(ArtifactId, u64)>,
}

/// The start of a passage: the text, and the window in it.
type WindowPlace = (usize, usize);

/// A passage with its text.
struct BuiltPassage {
    at: usize,
    text: String,
    tally: Tally,
    cut_before: bool,
    cut_after: bool,
    similarity: Option<f64>,
}

impl<'q, 'a, 's, S: SearchSource> RankedSearch<'q, 'a, 's, S> {
    pub(super) fn new(
        builder: HitBuilder<'a, 's, S>,
        question: &'q Question,
        shown: &'q HashSet<i64>,
    ) -> Self {
        Self { builder, question, shown, texts: Vec::new(), newest_ms: 0 }
    }

    /// Returns the best passages, up to a limit. Messages of `blocks` are read; without blocks, everything. `nearest` are the passages
    /// nearest in meaning, if known.
    pub(super) fn hits(
        mut self,
        blocks: Option<&QuestionBlocks>,
        limit: usize,
        nearest: &Nearest,
    ) -> SourceResult<S, Vec<Hit>> {
        if (self.question.is_empty() && nearest.hits.is_empty()) || limit == 0 {
            return Ok(Vec::new());
        }
        match blocks {
            None => self.read_everything()?,
            Some(blocks) => self.read_proposed(blocks)?,
        }
        self.read_pieces()?;
        let commonness = self.commonness(blocks.map(QuestionBlocks::commonness));
        let weights = commonness.weights();
        let of = self.question.len();
        let mut windows: Vec<(f64, WindowPlace)> = Vec::new();
        for (at, text) in self.texts.iter().enumerate().filter(|(_, text)| !self.shown.contains(&text.row)) {
            for MatchedWindow { part, tally, .. } in &text.windows.held {
                let score = commonness.score(&weights, tally)
                    * boost(text.source, text.at_ms, self.newest_ms, tally.matched(), of);
                windows.push((score, (at, *part)));
            }
        }
        windows.sort_by(|(a, place), (b, other)| b.total_cmp(a).then(other.cmp(place)));
        windows.truncate(MIN_COMPLETED.max(limit.saturating_mul(3)));
        let mut candidates = Vec::with_capacity(windows.len());
        let mut places: HashMap<WindowPlace, usize> = HashMap::with_capacity(windows.len());
        for (_, place) in windows {
            if let Some(candidate) = self.candidate(place, &commonness, &weights)? {
                places.insert(place, candidates.len());
                candidates.push(candidate);
            }
        }
        if !nearest.hits.is_empty() {
            self.add_nearest(nearest, &commonness, &weights, &mut candidates, places)?;
        }
        let mut hits = Vec::new();
        for chosen in choose(candidates, limit) {
            hits.extend(self.hit(chosen.place, chosen.score)?);
        }
        Ok(hits)
    }

    /// Adds the passages nearest in meaning, and ranks all by both.
    fn add_nearest(
        &mut self,
        nearest: &Nearest,
        commonness: &Commonness,
        weights: &[f64],
        candidates: &mut Vec<PassageCandidate<BuiltPassage>>,
        mut places: HashMap<WindowPlace, usize>,
    ) -> SourceResult<S, ()> {
        let (words, messages) = self
            .texts
            .iter()
            .filter(|text| text.artifact.is_none() && text.source.is_dialogue())
            .fold((0, 0), |(words, messages), text| (words + text.windows.length, messages + 1));
        let rows: HashMap<i64, usize> =
            self.texts.iter().enumerate().map(|(at, text)| (text.row, at)).collect();
        let by_words = candidates.len();
        let mut near: HashMap<usize, usize> = HashMap::new();
        let mut rank = 0;
        for hit in nearest.hits.iter().take(MIN_COMPLETED) {
            if self.shown.contains(&hit.message) {
                continue;
            }
            let known = rows.get(&hit.message).copied().map(|at| (at, hit.part));
            let at = match known.and_then(|place| places.get(&place)) {
                Some(at) => *at,
                None => {
                    let Some(place) = self.read_near(hit.message, hit.part)? else { continue };
                    let Some(mut candidate) = self.candidate(place, commonness, weights)? else { continue };
                    if candidate.place.tally.matched() == 0 {
                        candidate.score = 0.0;
                    }
                    places.insert(place, candidates.len());
                    candidates.push(candidate);
                    candidates.len() - 1
                }
            };
            if let Some(candidate) = candidates.get_mut(at) {
                candidate.place.similarity = Some(hit.similarity);
            }
            near.entry(at).or_insert(rank);
            rank += 1;
        }
        let mean_words = words as f64 / f64::from(messages.max(1));
        meaning::fuse(candidates, by_words, &near, meaning::weight(mean_words));
        Ok(())
    }

    /// Reads a message for one of its windows, if it is in the scope.
    fn read_near(&mut self, row: i64, part: usize) -> SourceResult<S, Option<WindowPlace>> {
        let source = self.builder.source;
        let mut read = MessageReading::Refused;
        source.each_message(MessageRows::One(row), |row| {
            read = self.read_message_and(row, &[part])?;
            Ok(ScanStep::No)
        })?;
        let at = self.texts.len().saturating_sub(1);
        let holds = |text: &RankedText| text.windows.held.iter().any(|window| window.part == part);
        Ok((read == MessageReading::Added && self.texts.get(at).is_some_and(holds)).then_some((at, part)))
    }

    fn read_everything(&mut self) -> SourceResult<S, ()> {
        let source = self.builder.source;
        let chains = self.builder.scope.chains();
        let rows = chains.as_deref().map_or(MessageRows::All, MessageRows::OfChains);
        source.each_message(rows, |row| {
            self.read_message(row)?;
            Ok(ScanStep::Yes)
        })?;
        Ok(())
    }

    /// Reads a message, if it is in the scope; returns the number of bytes read.
    fn read_message(&mut self, row: &SearchRow<'_>) -> SourceResult<S, Option<usize>> {
        Ok(match self.read_message_and(row, &[])? {
            MessageReading::Refused => None,
            MessageReading::LeftOut { bytes } => Some(bytes),
            MessageReading::Added => self.texts.last().map(|text| text.bytes),
        })
    }

    /// Like [`read_message`](Self::read_message), and keeps these windows whatever words they have.
    fn read_message_and(&mut self, row: &SearchRow<'_>, parts: &[usize]) -> SourceResult<S, MessageReading> {
        if !self.builder.scope.admits(row)? {
            return Ok(MessageReading::Refused);
        }
        let Some(text) = row.text() else {
            self.builder.scope.cannot_see(row);
            return Ok(MessageReading::Refused);
        };
        let bytes = text.len();
        if !self.builder.scope.query.admits_text(&text) {
            return Ok(MessageReading::LeftOut { bytes });
        }
        let windows = tally_windows_and(self.question, &text, parts);
        self.newest_ms = self.newest_ms.max(row.at_ms);
        self.texts.push(RankedText {
            row: row.id,
            session: row.session,
            message: u64::try_from(row.id).unwrap_or_default(),
            seq: row.seq,
            source: row.speaker(),
            tools: if windows.held.is_empty() { Vec::new() } else { row.tools()? },
            at_ms: row.at_ms,
            bytes,
            text: if windows.held.is_empty() { String::new() } else { text },
            windows,
            artifact: None,
        });
        Ok(MessageReading::Added)
    }

    /// Reads the messages of the blocks with the most significant words.
    fn read_proposed(&mut self, blocks: &QuestionBlocks) -> SourceResult<S, ()> {
        let source = self.builder.source;
        let blocks = blocks.best();
        // Blocks are read completely: the limit is checked at the start of each.
        let (mut seen, mut read, mut bytes, mut at) = (0, 0, 0, 0);
        source.each_message(MessageRows::InOrder(&blocks), |row| {
            let is_in = |block: &Range<i64>| block.contains(&row.row);
            if !blocks.get(at).is_some_and(is_in) {
                if seen >= MAX_MESSAGES_SEEN || read >= MAX_MESSAGES_READ || bytes >= MAX_BYTES_READ {
                    return Ok(ScanStep::No);
                }
                at += blocks.iter().skip(at).position(is_in).unwrap_or_default();
            }
            seen += 1;
            if let Some(of_message) = self.read_message(row)? {
                read += 1;
                bytes += of_message;
            }
            Ok(ScanStep::Yes)
        })?;
        Ok(())
    }

    /// Reads pieces of artifacts with words of the question.
    fn read_pieces(&mut self) -> SourceResult<S, ()> {
        let source = self.builder.source;
        let segments = segments(source.piece_rows()?);
        if segments.is_empty() {
            return Ok(());
        }
        let mut blocks = QuestionBlocks::look_up(source, self.question, segments, &[])?.best();
        blocks.truncate(MAX_PIECES_SEEN);
        let mut read = 0;
        source.each_piece(PieceRows::InOrder(&blocks), |piece| {
            if read >= MAX_PIECES_READ {
                return Ok(ScanStep::No);
            }
            let Some(reference) = newest_reference(source, piece.artifact, self.builder.scope)? else {
                return Ok(ScanStep::Yes);
            };
            read += 1;
            let Some(text) = source.piece_text(piece)? else { return Ok(ScanStep::Yes) };
            if !self.builder.scope.query.admits_text(&text) {
                return Ok(ScanStep::Yes);
            }
            self.newest_ms = self.newest_ms.max(reference.at_ms);
            self.texts.push(RankedText {
                row: piece.key,
                session: reference.session,
                message: reference.message,
                seq: reference.seq,
                source: HitSource { role: reference.role, machine_written: false, in_artifact: true },
                tools: reference.tools,
                at_ms: reference.at_ms,
                windows: tally_windows(self.question, &text),
                bytes: text.len(),
                text,
                artifact: Some((piece.name.clone(), piece.first_line)),
            });
            Ok(ScanStep::Yes)
        })?;
        Ok(())
    }

    /// Returns the frequencies of the words: in the windows that were read, or from the index.
    fn commonness(&self, from_index: Option<&Commonness>) -> Commonness {
        let windows: usize = self.texts.iter().map(|text| text.windows.windows).sum();
        let length: u64 = self.texts.iter().map(|text| text.windows.length).sum();
        let mean_length = length as f64 / windows.max(1) as f64;
        if let Some(from_index) = from_index {
            return Commonness { mean_length, ..from_index.clone() };
        }
        let mut holding = vec![0.0; self.question.len()];
        for window in self.texts.iter().flat_map(|text| &text.windows.held) {
            for (holding, count) in holding.iter_mut().zip(&window.tally.counts) {
                *holding += f64::from(u8::from(*count > 0));
            }
        }
        Commonness { runs: windows as f64, holding, mean_length }
    }

    /// Completes a short window with adjacent messages, and computes its weight again.
    fn candidate(
        &mut self,
        (at, part): WindowPlace,
        commonness: &Commonness,
        weights: &[f64],
    ) -> SourceResult<S, Option<PassageCandidate<BuiltPassage>>> {
        let Some(own) = self.texts.get(at) else { return Ok(None) };
        let Some(window) = own.windows.held.iter().find(|window| window.part == part) else {
            return Ok(None);
        };
        let (range, row) = (window.range.clone(), own.row);
        let own_text = own.text.get(range.clone()).unwrap_or_default().to_owned();
        let role = own.source.role;
        let (mut cut_before, mut cut_after) = (range.start > 0, range.end < own.text.trim_end().len());
        // Every message except the first is introduced by its author: one word each.
        let mut room = PASSAGE_WORDS.saturating_sub(count_words(&own_text, PASSAGE_WORDS) + 1);
        let may_complete = own.artifact.is_none() && room > 1 && self.builder.scope.query.has_no_filters();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        if may_complete {
            let (session, seq) = (own.session, own.seq);
            if !cut_after {
                after = self.beside(session, seq, NeighbourSide::After, &mut room)?;
                cut_after = after.last().is_some_and(|part| part.is_cut);
            }
            if !cut_before {
                before = self.beside(session, seq, NeighbourSide::Before, &mut room)?;
                before.reverse();
                cut_before = before.first().is_some_and(|part| part.is_cut);
            }
        }
        let mut passage = BuiltPassage {
            at,
            text: String::new(),
            tally: Tally { counts: vec![0; self.question.len()], ..Tally::default() },
            cut_before,
            cut_after,
            similarity: None,
        };
        let has_more = !(before.is_empty() && after.is_empty());
        let own_part = TextPart { row, role, range, text: own_text, is_cut: false };
        let mut spans = Vec::new();
        for part in before.into_iter().chain([own_part]).chain(after) {
            if has_more {
                let gap = if passage.text.is_empty() { "" } else { "\n" };
                passage.text.push_str(&format!("{gap}[{}] ", part.role.name()));
            }
            let shift = passage.text.len();
            passage.text.push_str(&part.text);
            passage.tally.join(&tally(self.question, &part.text), shift);
            spans.push((part.row, part.range));
        }
        let Some(own) = self.texts.get(at) else { return Ok(None) };
        let (matched, of) = (passage.tally.matched(), self.question.len());
        let score = commonness.score(weights, &passage.tally)
            * boost(own.source, own.at_ms, self.newest_ms, matched, of);
        Ok(Some(PassageCandidate {
            score,
            holds_all: of > 1 && matched == of,
            spans,
            words: word_set(&passage.text),
            place: passage,
        }))
    }

    /// Returns messages directly before or after one, as far as they fit, the nearest first.
    fn beside(
        &mut self,
        session: i64,
        seq: u64,
        side: NeighbourSide,
        room: &mut usize,
    ) -> SourceResult<S, Vec<TextPart>> {
        let Some(chain) = self.builder.scope.session(session)?.map(|session| session.chain) else {
            return Ok(Vec::new());
        };
        let conversation = self.builder.conversation(chain, RunsOf::Passages)?;
        let source = self.builder.source;
        let (first, end) = match side {
            NeighbourSide::Before => (seq.saturating_sub(MAX_BESIDE), seq),
            NeighbourSide::After => (seq.saturating_add(1), seq.saturating_add(1 + MAX_BESIDE)),
        };
        let mut runs: Vec<(i64, u64, u64)> = conversation
            .runs
            .iter()
            .map(|run| (run.session, run.first_seq.max(first), run.end_seq.min(end)))
            .filter(|(_, first, end)| first < end)
            .collect();
        runs.sort_by_key(|(_, first, _)| *first);
        if side == NeighbourSide::Before {
            runs.reverse();
        }
        let mut parts = Vec::new();
        for (session, first, end) in runs {
            let seqs = int(first)..int(end);
            let order = match side {
                NeighbourSide::Before => PlaceOrder::Last,
                NeighbourSide::After => PlaceOrder::First,
            };
            let scope = &mut *self.builder.scope;
            let step = source.each_message(MessageRows::Places { session, seqs: &seqs, order }, |row| {
                if *room <= 1 || !scope.admits(row)? {
                    return Ok(ScanStep::No);
                }
                let Some(text) = row.text() else { return Ok(ScanStep::Yes) };
                let range = match side {
                    NeighbourSide::Before => last_words(&text, *room - 1),
                    NeighbourSide::After => first_words(&text, *room - 1),
                };
                if range.is_empty() {
                    return Ok(ScanStep::Yes);
                }
                let shown = text.get(range.clone()).unwrap_or_default().to_owned();
                *room = room.saturating_sub(count_words(&shown, PASSAGE_WORDS) + 1);
                let is_cut = shown.len() < text.trim().len();
                parts.push(TextPart { row: row.id, role: row.role, range, text: shown, is_cut });
                Ok(if is_cut { ScanStep::No } else { ScanStep::Yes })
            })?;
            if step == ScanStep::No {
                return Ok(parts);
            }
        }
        Ok(parts)
    }

    fn hit(&mut self, passage: BuiltPassage, score: f64) -> SourceResult<S, Option<Hit>> {
        let Some(text) = self.texts.get(passage.at) else { return Ok(None) };
        let place = HitLocation {
            session: text.session,
            message: text.message,
            seq: text.seq,
            role: text.source.role.name(),
            tools: text.tools.clone(),
            at_ms: text.at_ms,
        };
        let artifact = text.artifact.as_ref().map(|(id, first_line)| {
            let start = text.text.find(&passage.text).unwrap_or_default();
            let before = text.text.get(..start).unwrap_or_default();
            let line = first_line + memchr::memchr_iter(b'\n', before.as_bytes()).count() as u64;
            ArtifactLocation { id: id.clone(), line }
        });
        let ranked = RankedHit { key: text.row, score, repeats: 0 };
        let mut marks = passage.tally.marks.clone();
        marks.sort_unstable();
        let mut snippet = one_line(&passage.text, 0, passage.text.len(), &marks);
        (snippet.cut_before, snippet.cut_after) = (passage.cut_before, passage.cut_after);
        let matched = MatchedWords { words: passage.tally.matched(), of: self.question.len() };
        let hit = self.builder.hit(place, &ranked, snippet)?;
        let similarity = passage.similarity;
        Ok(hit.map(|hit| Hit { matched: Some(matched), similarity, artifact, ..hit }))
    }
}

/// The result of reading a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageReading {
    /// It is out of scope, or cannot be read.
    Refused,
    /// It was read, and the filters exclude it.
    LeftOut { bytes: usize },
    /// It was added as the last text.
    Added,
}

/// A side of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NeighbourSide {
    Before,
    After,
}

/// A part of a passage.
struct TextPart {
    row: i64,
    role: Role,
    range: Range<usize>,
    text: String,
    /// Whether the message continues on the far side.
    is_cut: bool,
}
