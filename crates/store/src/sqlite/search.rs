//! Searching the record: the indexes propose, newest first; the texts decide; the best are shown.
//!
//! The work is bounded whatever is asked. Where an answer would need more, what was looked at is what is newest, and the
//! answer says so.

mod candidates;
mod hits;
mod proposals;
mod scope;

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use crate::artifacts::folder::ArtifactFolder;
use crate::ids::Owner;
use crate::search::matching::Matcher;
use crate::search::prefilter::Prefilter;
use crate::search::query::{ParsedQuery, SearchMethod};
use crate::search::rank::{SearchCandidate, best};
use crate::search::request::{SearchAnswer, SearchMode, SearchQuery};

use super::error::TxResult;
use candidates::{SearchRow, read_text};
use hits::HitBuilder;
use proposals::{substring_candidates, word_candidates};
use scope::SearchScope;

/// Hits that are ranked at most, the newest.
const MAX_RANKED: usize = 600;
/// Rows that are looked at to find them: their filters, and whether their JSON can hold what is wanted.
const MAX_LOOKED_AT: usize = 20_000;
/// Texts that are read to find them.
const MAX_READ: usize = 4_000;
/// Pieces of artifacts that are read: each is as long as a hundred messages.
const MAX_PIECES_READ: usize = 48;

/// What a search has seen so far.
struct SearchState<'a> {
    matcher: Matcher<'a>,
    prefilter: Prefilter,
    /// The text that was read last.
    text: String,
    found: Vec<SearchCandidate<i64>>,
    /// Rows that need no second look.
    seen: HashSet<i64>,
    /// The best piece of an artifact so far, by its place in `found`.
    artifacts: HashMap<String, usize>,
    /// Texts of messages that were read.
    read: usize,
    pieces_seen: usize,
    pieces_read: usize,
    /// Whether a bound ended the search before everything was seen.
    is_cut_short: bool,
}

impl<'a> SearchState<'a> {
    fn new(query: &'a ParsedQuery, way: SearchMethod) -> Self {
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
    fn has_room(&self) -> bool {
        self.found.len() < MAX_RANKED
    }

    /// Looks at a message: its filters, then its text.
    fn look_at(&mut self, row: &SearchRow<'_>, scope: &mut SearchScope<'_>) -> TxResult<()> {
        if !self.seen.insert(row.id) {
            return Ok(());
        }
        if !scope.admits(row)? {
            return Ok(());
        }
        // Damage is for others to report; what cannot be read cannot be found.
        let Some(json) = row.json() else { return Ok(()) };
        if !self.prefilter.passes(&json) {
            return Ok(());
        }
        self.read += 1;
        let fit = read_text(json, &mut self.text).and_then(|()| self.matcher.fit(&self.text));
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

/// Answers a question of an owner.
pub(super) fn search(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    owner: &Owner,
    query: &SearchQuery,
) -> TxResult<SearchAnswer> {
    let parsed = ParsedQuery::new(&query.text);
    let mut scope = SearchScope::new(conn, owner, query)?;
    let mut answer = SearchAnswer::default();
    for way in parsed.ways(query.mode) {
        let mut gathered = SearchState::new(&parsed, *way);
        match way {
            SearchMethod::Words => word_candidates(conn, artifacts, &parsed, &mut scope, &mut gathered)?,
            SearchMethod::Substring => {
                substring_candidates(conn, artifacts, &parsed, &mut scope, &mut gathered)?
            }
        }
        answer.ranked_newest = gathered.is_cut_short.then_some(gathered.found.len() as u64);
        if !gathered.found.is_empty() {
            let ranked = best(&gathered.found, query.limit());
            answer.hits = HitBuilder { conn, artifacts, scope: &mut scope, matcher: &mut gathered.matcher }
                .hits(&ranked)?;
            answer.as_substring = *way == SearchMethod::Substring && query.mode == SearchMode::Words;
            break;
        }
    }
    Ok(answer)
}
