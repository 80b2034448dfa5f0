//! Searching the record: the indexes propose, newest first; the texts decide; the best are shown. After texts with all words of
//! a question come passages with some of them, by rank.
//!
//! The work is bounded whatever is asked. Where an answer would need more, what was looked at is what is newest, and the
//! answer says so.

mod candidates;
mod hits;
mod meaning;
mod proposals;
mod ranked;
mod scope;
mod state;

use std::collections::HashSet;

use rusqlite::Connection;

use crate::artifacts::folder::ArtifactFolder;
use crate::ids::Owner;
use crate::search::meaning::QuestionVector;
use crate::search::query::{ParsedQuery, SearchMethod};
use crate::search::question::Question;
use crate::search::rank::best;
use crate::search::request::{MatchedWords, SearchAnswer, SearchMode, SearchQuery};

use super::error::TxResult;
use hits::HitBuilder;
use meaning::SearchMeaning;
use proposals::{note_unindexed, substring_candidates, word_candidates};
use ranked::RankedSearch;
use scope::SearchScope;
use state::SearchState;

pub(in crate::sqlite) use candidates::{SearchRow, row_columns};

/// The vector of a question, or why there is none.
pub(super) struct QuestionMeaning {
    pub(super) model: String,
    pub(super) vector: Result<QuestionVector, String>,
}

/// Answers a question of an owner.
pub(super) fn search(
    conn: &Connection,
    artifacts: &ArtifactFolder,
    owner: &Owner,
    query: &SearchQuery,
    meaning: Option<&QuestionMeaning>,
) -> TxResult<SearchAnswer> {
    let parsed = ParsedQuery::new(&query.text);
    let mut scope = SearchScope::new(conn, owner, query)?;
    let mut answer = SearchAnswer::default();
    let mut shown = HashSet::new();
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
            let of = parsed.wanted.len();
            let matched = (*way == SearchMethod::Words).then_some(MatchedWords { words: of, of });
            shown = ranked.iter().map(|hit| hit.key).collect();
            answer.hits =
                HitBuilder::new(conn, artifacts, &mut scope).hits(&ranked, &mut gathered.matcher, matched)?;
            answer.as_substring = *way == SearchMethod::Substring && query.mode != SearchMode::Substring;
            break;
        }
    }
    let is_question = parsed.wanted.len() > 1 && !answer.as_substring;
    let wants_more = answer.hits.len() < query.limit() && (is_question || answer.hits.is_empty());
    if query.mode == SearchMode::Words && wants_more {
        let question = Question::new(&query.text);
        let room = query.limit() - answer.hits.len();
        let meaning = match meaning {
            Some(meaning) => SearchMeaning::find(conn, &scope, meaning)?,
            None => SearchMeaning::default(),
        };
        answer.meaning = meaning.report;
        let builder = HitBuilder::new(conn, artifacts, &mut scope);
        answer.hits.extend(RankedSearch::new(builder, &question, &shown).hits(room, &meaning.nearest)?);
    }
    note_unindexed(conn, &mut scope)?;
    answer.unseen = scope.unseen()?;
    Ok(answer)
}
