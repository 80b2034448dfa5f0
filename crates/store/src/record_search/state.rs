//! The progress of a search, and its limits.

use std::collections::{HashMap, HashSet};

use throughline_search::matching::Matcher;
use throughline_search::query::{ParsedQuery, SearchMethod};
use throughline_search::rank::{HitSource, SearchCandidate};

use crate::record_search::prefilter::Prefilter;

use super::references::newest_reference;
use super::scope::SearchScope;
use super::source::{PieceRow, SearchRow, SearchSource, SourceResult, read_text};

/// The maximum number of hits that are ranked, the newest.
const MAX_RANKED: usize = 600;
/// The maximum number of rows examined to find them: their filters, and whether their JSON can match.
const MAX_LOOKED_AT: usize = 20_000;
/// The maximum number of texts read to find them.
const MAX_READ: usize = 4_000;
/// The maximum number of artifact pieces read: each is as long as a hundred messages.
const MAX_PIECES_READ: usize = 48;

/// The progress of a search.
pub(super) struct SearchState<'a> {
    pub(super) matcher: Matcher<'a>,
    prefilter: Prefilter,
    /// The last text that was read.
    text: String,
    pub(super) found: Vec<SearchCandidate<i64>>,
    /// Rows that need not be examined again.
    seen: HashSet<i64>,
    /// The index in `found` of the best piece of each artifact.
    artifacts: HashMap<String, usize>,
    /// Number of messages read.
    read: usize,
    pieces_seen: usize,
    pieces_read: usize,
    /// Whether a limit ended the search before everything was examined.
    pub(super) is_cut_short: bool,
}

impl<'a> SearchState<'a> {
    pub(super) fn new(query: &'a ParsedQuery, way: SearchMethod) -> Self {
        Self {
            matcher: Matcher::new(query, way),
            prefilter: Prefilter::new(query, way),
            text: String::new(),
            found: Vec::new(),
            seen: HashSet::new(),
            artifacts: HashMap::new(),
            read: 0,
            pieces_seen: 0,
            pieces_read: 0,
            is_cut_short: false,
        }
    }

    /// Whether another hit would be ranked.
    pub(super) fn has_room(&self) -> bool {
        self.found.len() < MAX_RANKED
    }

    /// Examines a message: its filters, then its text.
    pub(super) fn look_at<S: SearchSource>(
        &mut self,
        row: &SearchRow<'_>,
        scope: &mut SearchScope<'_, S>,
    ) -> SourceResult<S, ()> {
        if !self.seen.insert(row.id) {
            return Ok(());
        }
        if !scope.admits(row)? {
            return Ok(());
        }
        // Other checks report damage; an unreadable message cannot be found.
        let Some(json) = row.json() else {
            scope.cannot_see(row);
            return Ok(());
        };
        if !self.prefilter.passes(&json) {
            return Ok(());
        }
        self.read += 1;
        let fit = read_text(json, &mut self.text)
            .filter(|()| scope.query.admits_text(&self.text))
            .and_then(|()| self.matcher.fit(&self.text));
        self.found.extend(fit.map(|fit| SearchCandidate {
            key: row.id,
            content: row.hash,
            fit,
            speaker: row.speaker(),
            at_ms: row.at_ms,
        }));
        Ok(())
    }
}

/// Limits how many proposals of an index are examined.
pub(super) struct Bounds {
    looked_at: usize,
    read_before: usize,
}

impl Bounds {
    /// Starts counting.
    pub(super) fn new(gathered: &SearchState<'_>) -> Self {
        Self { looked_at: 0, read_before: gathered.read }
    }

    /// Whether another message may be examined; records it if not.
    pub(super) fn admit_another(&mut self, gathered: &mut SearchState<'_>) -> bool {
        let may = self.looked_at < MAX_LOOKED_AT
            && gathered.read - self.read_before < MAX_READ
            && gathered.has_room();
        self.looked_at += 1;
        gathered.is_cut_short |= !may;
        may
    }
}

impl SearchState<'_> {
    /// Whether another piece may be examined; records it if not.
    pub(super) fn may_read_piece(&mut self) -> bool {
        let may = self.pieces_read < MAX_PIECES_READ && self.pieces_seen < MAX_LOOKED_AT;
        self.is_cut_short |= !may;
        may
    }

    /// Examines a piece of an artifact: its references, then its text.
    pub(super) fn look_at_piece<S: SearchSource>(
        &mut self,
        source: &S,
        piece: &PieceRow,
        scope: &mut SearchScope<'_, S>,
    ) -> SourceResult<S, ()> {
        if !self.seen.insert(piece.key) {
            return Ok(());
        }
        self.pieces_seen += 1;
        let Some(reference) = newest_reference(source, piece.artifact, scope)? else { return Ok(()) };
        self.pieces_read += 1;
        let text = source.piece_text(piece)?.filter(|text| scope.query.admits_text(text));
        let Some(fit) = text.and_then(|text| self.matcher.fit(&text)) else { return Ok(()) };
        let name = piece.name.as_str();
        let mut content = [0; 32];
        content.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        let speaker = HitSource { role: reference.role, machine_written: false, in_artifact: true };
        let candidate = SearchCandidate { key: piece.key, content, fit, speaker, at_ms: reference.at_ms };
        match self.artifacts.get(name).and_then(|&at| self.found.get_mut(at)) {
            Some(known) if known.fit.outdoes(&candidate.fit) => {}
            Some(known) => *known = candidate,
            None => {
                self.artifacts.insert(name.to_owned(), self.found.len());
                self.found.push(candidate);
            }
        }
        Ok(())
    }
}
