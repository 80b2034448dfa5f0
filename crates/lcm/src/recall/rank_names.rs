//! Ranks the paths, identifiers, flags and hashes in some texts by how likely an agent is to write them next, given its last words.
//!
//! An agent's words before a call seldom contain the names it then writes, but names occur in groups: those of one file, one listing,
//! one error. Each text has a weight of 1, plus its relevance to the question, plus 1 if it names a file that is being worked on. Each
//! window of eighty words with words of the question has the square of its relevance as its weight, because a long text is seldom
//! about one subject. Texts and windows are scaled to the same total weight. A text or window divides its weight equally among its
//! names. A name's score is the sum over all places where it occurs, times 1 plus the share of its words that are in the question.

use std::collections::{HashMap, HashSet};

use throughline_compaction::AnchorKind;
use throughline_search::passages::{Commonness, Tally, WindowTallies};
use throughline_search::question::Question;

/// Shorter names are not listed.
const MIN_NAME_CHARS: usize = 3;

/// A text with its names.
#[derive(Clone, Debug)]
pub(crate) struct NamedText<'t> {
    /// The text.
    pub(crate) text: &'t str,
    /// Its exact names, each once.
    pub(crate) names: Vec<&'t str>,
}

/// A name and where it is from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RankedName<'t> {
    /// The name.
    pub(crate) name: &'t str,
    /// The text that adds most to its score; the last one of equals.
    pub(crate) text: usize,
}

/// Returns the names of some texts, the likeliest first. `current` contains the paths of files that are being worked on.
#[must_use]
pub(crate) fn rank_names<'t>(
    question: &str,
    texts: &[NamedText<'t>],
    current: &HashSet<&str>,
) -> Vec<RankedName<'t>> {
    let question = Question::new(question);
    let mut sums: HashMap<&'t str, NameSum> = HashMap::new();
    for places in [of_texts(&question, texts, current), of_windows(&question, texts)] {
        let all: f64 = places.iter().map(|place| place.weight).sum();
        for place in places.iter().filter(|place| all > 0.0 && !place.names.is_empty()) {
            let weight = place.weight / all / place.names.len() as f64;
            for name in &place.names {
                let sum = sums.entry(name).or_default();
                sum.weight += weight;
                if weight >= sum.most {
                    (sum.most, sum.text) = (weight, place.text);
                }
            }
        }
    }
    let mut ranked: Vec<(f64, RankedName<'t>)> = sums
        .into_iter()
        .map(|(name, sum)| {
            (sum.weight * (1.0 + shared(&question, name)), RankedName { name, text: sum.text })
        })
        .collect();
    ranked.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.name.cmp(other.name)));
    ranked.into_iter().map(|(_, name)| name).collect()
}

/// A text or window with its names and weight.
struct NamePlace<'t> {
    text: usize,
    names: Vec<&'t str>,
    weight: f64,
}

/// The score of a name while it is summed.
#[derive(Default)]
struct NameSum {
    weight: f64,
    /// The largest amount that one text adds.
    most: f64,
    text: usize,
}

/// Returns the whole texts with their weights.
fn of_texts<'t>(question: &Question, texts: &[NamedText<'t>], current: &HashSet<&str>) -> Vec<NamePlace<'t>> {
    let tallies: Vec<Tally> = texts.iter().map(|text| question.tally(text.text)).collect();
    let relevance = relevance(question, tallies.len(), &tallies.iter().collect::<Vec<_>>());
    let places = texts.iter().enumerate().zip(relevance).map(|((at, text), relevance)| {
        let is_current = text.names.iter().any(|name| current.contains(name));
        NamePlace {
            text: at,
            names: text.names.clone(),
            weight: 1.0 + relevance + f64::from(u8::from(is_current)),
        }
    });
    places.filter(|place| !place.names.is_empty()).collect()
}

/// Returns the windows that have words of the question, with their weights.
fn of_windows<'t>(question: &Question, texts: &[NamedText<'t>]) -> Vec<NamePlace<'t>> {
    let read: Vec<WindowTallies> = texts.iter().map(|text| question.tally_windows(text.text)).collect();
    let windows = read.iter().map(|text| text.windows).sum();
    let tallies: Vec<&Tally> = read.iter().flat_map(|text| &text.held).map(|window| &window.tally).collect();
    let held =
        read.iter().enumerate().flat_map(|(at, text)| text.held.iter().map(move |window| (at, window)));
    held.zip(relevance(question, windows, &tallies))
        .map(|((at, window), relevance)| NamePlace {
            text: at,
            names: texts
                .get(at)
                .and_then(|text| text.text.get(window.range.clone()))
                .map(names_of)
                .unwrap_or_default(),
            weight: relevance * relevance,
        })
        .filter(|place| !place.names.is_empty())
        .collect()
}

/// How well each run of text answers by its words, from 0 to 1; those without any of them are only counted.
fn relevance(question: &Question, runs: usize, tallies: &[&Tally]) -> Vec<f64> {
    let length: u64 = tallies.iter().map(|tally| u64::from(tally.length)).sum();
    let mut commonness = Commonness {
        runs: runs as f64,
        holding: vec![0.0; question.len()],
        mean_length: length as f64 / tallies.len().max(1) as f64,
    };
    for tally in tallies {
        for (holding, count) in commonness.holding.iter_mut().zip(&tally.counts) {
            *holding += f64::from(u8::from(*count > 0));
        }
    }
    let weights = commonness.weights();
    let mut scores: Vec<f64> = tallies.iter().map(|tally| commonness.score(&weights, tally)).collect();
    let best = scores.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    scores.iter_mut().for_each(|score| *score /= best);
    scores
}

/// The names of a text, each once, in order.
pub(crate) fn names_of(text: &str) -> Vec<&str> {
    let (mut names, mut known) = (Vec::new(), HashSet::new());
    AnchorKind::scan(text, |name, _| {
        if name.len() >= MIN_NAME_CHARS && known.insert(name) {
            names.push(name);
        }
    });
    names
}

/// Share of the words of a name that are words of the question.
fn shared(question: &Question, name: &str) -> f64 {
    let tally = question.tally(name);
    let held: u32 = tally.counts.iter().map(|count| u32::from(*count)).sum();
    (f64::from(held) / f64::from(tally.length.max(1))).min(1.0)
}

#[cfg(test)]
#[path = "rank_names_tests.rs"]
mod tests;
