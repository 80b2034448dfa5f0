//! Adds passages found by vectors to those found by words.
//!
//! Passages found by words come first. A passage gets `1 / (K + rank)` for its rank among those found by words, and the same times a weight
//! for its rank among the nearest vectors (reciprocal rank fusion). In conversations of short turns a vector describes a turn poorly, and
//! the weight is zero: passages found only by meaning then come after all that were found by words, and displace none of them.

use std::collections::HashMap;

use throughline_search::meaning::{MeaningReport, Nearest};
use throughline_search::passages::PassageCandidate;

use super::QuestionMeaning;
use super::scope::SearchScope;
use super::source::{SearchSource, SourceResult};

/// The smaller it is, the more the first ranks count. With the usual 60, a passage in the middle of both lists would precede the best of
/// one.
const RANK_OFFSET: f64 = 10.0;
/// The average number of words per message up to which vectors have no weight: a message shorter than half a passage is compared together
/// with the one before it.
const SHORT_TURN_WORDS: f64 = 40.0;
/// The average from which they have full weight: most messages fill a passage.
const LONG_TURN_WORDS: f64 = 80.0;

/// What a search continues with.
#[derive(Default)]
pub(super) struct SearchMeaning {
    pub(super) nearest: Nearest,
    pub(super) report: Option<MeaningReport>,
}

impl SearchMeaning {
    /// Returns the nearest passages in the scope.
    pub(super) fn find<S: SearchSource>(
        source: &S,
        scope: &SearchScope<'_, S>,
        meaning: &QuestionMeaning,
    ) -> SourceResult<S, Self> {
        let mut report = MeaningReport { model: meaning.model.clone(), ..MeaningReport::default() };
        let nearest = match &meaning.vector {
            Ok(vector) => source.nearest(&meaning.model, vector, scope.chains())?,
            Err(problem) => {
                report.problem = Some(problem.clone());
                Nearest::default()
            }
        };
        report.waiting = source.vectors_waiting(&meaning.model)?;
        (report.compared, report.newest_only) = (nearest.compared, nearest.newest_only);
        Ok(Self { nearest, report: Some(report) })
    }
}

/// Returns the weight of vectors for this average number of words per message.
pub(super) fn weight(mean_words: f64) -> f64 {
    ((mean_words - SHORT_TURN_WORDS) / (LONG_TURN_WORDS - SHORT_TURN_WORDS)).clamp(0.0, 1.0)
}

/// Combines the scores of both lists. `near` has the ranks of the nearest passages, by the keys of candidates; scores are those by words,
/// and zero for candidates without any. The first `by_words` candidates are those found by words: without weight, no other precedes them.
pub(super) fn fuse<P>(
    candidates: &mut [PassageCandidate<P>],
    by_words: usize,
    near: &HashMap<usize, usize>,
    weight: f64,
) {
    if weight <= 0.0 {
        for candidate in candidates.iter_mut().skip(by_words) {
            (candidate.score, candidate.holds_all) = (0.0, false);
        }
    }
    let mut by_words: Vec<(f64, bool, usize)> = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.score > 0.0)
        .map(|(at, candidate)| (candidate.score, candidate.holds_all, at))
        .collect();
    by_words.sort_by(|a, b| b.1.cmp(&a.1).then(b.0.total_cmp(&a.0)).then(a.2.cmp(&b.2)));
    let of_rank = |rank: usize| 1.0 / (RANK_OFFSET + 1.0 + rank as f64);
    let found = by_words.len();
    let mut scores = vec![0.0; candidates.len()];
    for (rank, (_, _, at)) in by_words.into_iter().enumerate() {
        if let Some(score) = scores.get_mut(at) {
            *score = of_rank(rank);
        }
    }
    for (at, rank) in near {
        let Some(score) = scores.get_mut(*at) else { continue };
        match (*score > 0.0, weight > 0.0) {
            (_, true) => *score += weight * of_rank(*rank),
            (true, false) => {}
            // After everything that was found by words.
            (false, false) => *score = of_rank(found + *rank),
        }
    }
    candidates.iter_mut().zip(scores).for_each(|(candidate, score)| candidate.score = score);
}

#[cfg(test)]
#[path = "meaning_tests.rs"]
mod tests;
