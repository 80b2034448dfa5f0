//! Searches the record: the index proposes texts, newest first; the texts are verified; the best are returned. Texts with all words of a
//! query are followed by passages with some of them, by rank.
//!
//! The work is bounded for every query. If the bound is reached, the newest texts were searched, and the result says so.

mod blocks;
mod hits;
mod meaning;
mod prefilter;
mod proposals;
mod ranked;
mod references;
mod scope;
pub(crate) mod source;
mod state;

use std::collections::HashSet;

use crate::search::request::{SearchAnswer, SearchQuery};

use blocks::{QuestionBlocks, wanted_alone};
use hits::HitBuilder;
use meaning::SearchMeaning;
use proposals::{is_small, note_unindexed, segments, substring_candidates, word_candidates};
use ranked::RankedSearch;
use scope::SearchScope;
use source::{SearchSource, SourceResult};
use state::SearchState;
use throughline_search::meaning::QuestionVector;
use throughline_search::query::{ParsedQuery, SearchMethod};
use throughline_search::question::Question;
use throughline_search::rank::best;
use throughline_search::{MatchedWords, SearchMode};

/// The minimum number of words in a full question, ...
const MIN_WHOLE: usize = 4;
/// ... and of its significant words.
const MIN_TELLING: usize = 3;

/// The vector of a question, or the reason why there is none.
pub(crate) struct QuestionMeaning {
    pub(crate) model: String,
    pub(crate) vector: Result<QuestionVector, String>,
}

/// Runs a search for an owner.
pub(crate) fn search<S: SearchSource>(
    source: &S,
    query: &SearchQuery,
    meaning: Option<&QuestionMeaning>,
) -> SourceResult<S, SearchAnswer> {
    let parsed = ParsedQuery::new(&query.text);
    let mut scope = SearchScope::new(source, query)?;
    // Only a ranked search needs the stems of the words and their forms.
    let question = (query.mode == SearchMode::Words).then(|| Question::new(&query.text));
    // Few texts have all words of a full question: the blocks of its words are known first, which saves lookups.
    let whole_question = question
        .as_ref()
        .filter(|question| parsed.wanted.len() >= MIN_WHOLE && question.len() >= MIN_TELLING);
    let mut blocks = match whole_question {
        Some(question) => question_blocks(source, &scope, question)?,
        None => None,
    };
    let alone = whole_question.map(|question| wanted_alone(question, &parsed)).unwrap_or_default();
    let mut answer = SearchAnswer::default();
    let mut shown = HashSet::new();
    for way in parsed.ways(query.mode) {
        let mut gathered = SearchState::new(&parsed, *way);
        match way {
            SearchMethod::Words => {
                let known = blocks.as_ref().map(|blocks| (blocks, alone.clone()));
                word_candidates(source, &parsed, &known, &mut scope, &mut gathered)?;
            }
            SearchMethod::Substring => substring_candidates(source, &parsed, &mut scope, &mut gathered)?,
        }
        answer.ranked_newest = gathered.is_cut_short.then_some(gathered.found.len() as u64);
        if !gathered.found.is_empty() {
            let ranked = best(&gathered.found, query.limit());
            let of = parsed.wanted.len();
            let matched = (*way == SearchMethod::Words).then_some(MatchedWords { words: of, of });
            shown = ranked.iter().map(|hit| hit.key).collect();
            answer.hits =
                HitBuilder::new(source, &mut scope).hits(&ranked, &mut gathered.matcher, matched)?;
            answer.as_substring = *way == SearchMethod::Substring && query.mode != SearchMode::Substring;
            break;
        }
    }
    let is_question = parsed.wanted.len() > 1 && !answer.as_substring;
    let wants_more = answer.hits.len() < query.limit() && (is_question || answer.hits.is_empty());
    if let Some(question) = question.as_ref().filter(|_| wants_more) {
        if blocks.is_none() {
            blocks = question_blocks(source, &scope, question)?;
        }
        let room = query.limit() - answer.hits.len();
        let meaning = match meaning {
            Some(meaning) => SearchMeaning::find(source, &scope, meaning)?,
            None => SearchMeaning::default(),
        };
        answer.meaning = meaning.report;
        let builder = HitBuilder::new(source, &mut scope);
        let ranked = RankedSearch::new(builder, question, &shown);
        answer.hits.extend(ranked.hits(blocks.as_ref(), room, &meaning.nearest)?);
    }
    note_unindexed(source, blocks.as_ref(), &mut scope)?;
    answer.unseen = scope.unseen()?;
    Ok(answer)
}

/// Returns the blocks of messages with words of a question; `None` if everything is read instead.
fn question_blocks<S: SearchSource>(
    source: &S,
    scope: &SearchScope<'_, S>,
    question: &Question,
) -> SourceResult<S, Option<QuestionBlocks>> {
    if is_small(source, scope)? {
        return Ok(None);
    }
    let segments = segments(source.message_rows()?);
    QuestionBlocks::look_up(source, question, segments, &scope.fingerprints()?).map(Some)
}
