//! Passages of texts that are not in the index, with the same ranking as those of the record: for summaries and nodes,
//! which are few enough to be read for every question.

use crate::passages::{Commonness, PassageCandidate};
use crate::question::Question;
use crate::windows::TextWords;
use crate::{MatchedWords, Snippet};

/// A passage of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextPassage {
    /// Which of the texts.
    pub text: usize,
    /// How well it answers; larger is better.
    pub score: f64,
    /// How many words of the question it holds.
    pub matched: MatchedWords,
    /// The passage.
    pub snippet: Snippet,
}

impl TextPassage {
    /// The passages of some texts that answer a question best, at most so many, the best first. Any question is safe.
    ///
    /// ```
    /// let texts = ["The pool has 64 connections.", "We dropped the retry queue because workers retry."];
    /// let found = throughline_search::texts::TextPassage::rank("why was the queue for retries dropped?", texts, 5);
    /// assert_eq!((found[0].text, found[0].matched.words), (1, 3));
    /// ```
    #[must_use]
    pub fn rank<'t>(question: &str, texts: impl IntoIterator<Item = &'t str>, limit: usize) -> Vec<Self> {
        let question = Question::new(question);
        let texts: Vec<&str> = texts.into_iter().collect();
        let read: Vec<_> = texts.iter().map(|text| question.tally_windows(text)).collect();
        let windows: usize = read.iter().map(|text| text.windows).sum();
        let length: u64 = read.iter().map(|text| text.length).sum();
        let mut commonness = Commonness {
            runs: windows as f64,
            holding: vec![0.0; question.len()],
            mean_length: length as f64 / windows.max(1) as f64,
        };
        for window in read.iter().flat_map(|text| &text.held) {
            for (holding, count) in commonness.holding.iter_mut().zip(&window.tally.counts) {
                *holding += f64::from(u8::from(*count > 0));
            }
        }
        let weights = commonness.weights();
        let mut candidates = Vec::new();
        for (at, (text, read)) in texts.iter().zip(&read).enumerate() {
            for window in &read.held {
                let shown = text.get(window.range.clone()).unwrap_or_default();
                candidates.push(PassageCandidate {
                    place: (at, window.range.clone()),
                    score: commonness.score(&weights, &window.tally),
                    holds_all: question.len() > 1 && window.tally.matched() == question.len(),
                    spans: vec![(at as i64, window.range.clone())],
                    words: TextWords(shown).set(),
                });
            }
        }
        PassageCandidate::choose(candidates, limit)
            .into_iter()
            .filter_map(|chosen| {
                let (at, range) = chosen.place;
                let text = texts.get(at)?;
                let shown = text.get(range.clone())?;
                let tally = question.tally(shown);
                let mut snippet = Snippet::one_line(shown, 0, shown.len(), &tally.marks);
                (snippet.cut_before, snippet.cut_after) =
                    (range.start > 0, range.end < text.trim_end().len());
                let matched = MatchedWords { words: tally.matched(), of: question.len() };
                Some(Self { text: at, score: chosen.score, matched, snippet })
            })
            .collect()
    }
}
