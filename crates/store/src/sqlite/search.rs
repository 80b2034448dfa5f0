//! Searching the record: the indexes propose, newest first; the texts decide; the best are shown.
//!
//! The work is bounded whatever is asked. Where an answer would need more, what was looked at is what is newest, and the
//! answer says so.

mod candidates;
mod hits;
mod proposals;
mod scope;
mod state;

use rusqlite::Connection;

use crate::artifacts::folder::ArtifactFolder;
use crate::ids::Owner;
use crate::search::query::{ParsedQuery, SearchMethod};
use crate::search::rank::best;
use crate::search::request::{SearchAnswer, SearchMode, SearchQuery};

use super::error::TxResult;
use hits::HitBuilder;
use proposals::{substring_candidates, word_candidates};
use scope::SearchScope;
use state::SearchState;

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
