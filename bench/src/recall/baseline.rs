//! The baselines of search: plain BM25 over windows of single messages or across messages, and the newest windows.

use std::collections::{HashMap, HashSet};

use rust_stemmers::{Algorithm, Stemmer};

use super::Shown;

const WINDOW_WORDS: usize = 80;
/// The usual parameters of BM25.
const SATURATION: f64 = 1.2;
const LENGTH_SHARE: f64 = 0.75;
const STOP_WORDS: &str = "a an the and or but if then of in on at to for from by with is are was were be been being do does did \
    have has had i you he she it we they them my your his her its our their this that these those there what which who whom \
    whose when where why how can could should would will may might must not no so as than";

/// The windows of a conversation's messages, in order.
pub(super) struct Windows {
    windows: Vec<(u64, String, HashMap<String, usize>)>,
    holding: HashMap<String, usize>,
    mean_length: f64,
    stemmer: Stemmer,
}

impl Windows {
    /// Creates windows of single messages.
    pub(super) fn new(texts: &[String]) -> Self {
        let of_message = |(seq, text): (usize, &String)| {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.chunks(WINDOW_WORDS).map(|window| (seq as u64, window.join(" "))).collect::<Vec<_>>()
        };
        Self::of(texts.iter().enumerate().flat_map(of_message))
    }

    /// Creates windows of the whole conversation, across messages.
    pub(super) fn across(texts: &[String]) -> Self {
        let words: Vec<(u64, &str)> = texts
            .iter()
            .enumerate()
            .flat_map(|(seq, text)| text.split_whitespace().map(move |word| (seq as u64, word)))
            .collect();
        Self::of(words.chunks(WINDOW_WORDS).map(|window| {
            let text: Vec<&str> = window.iter().map(|(_, word)| *word).collect();
            (window.first().map_or(0, |(seq, _)| *seq), text.join(" "))
        }))
    }

    fn of(texts: impl Iterator<Item = (u64, String)>) -> Self {
        let stemmer = Stemmer::create(Algorithm::English);
        let mut windows = Vec::new();
        let mut holding: HashMap<String, usize> = HashMap::new();
        let mut length = 0;
        for (seq, text) in texts {
            let mut counts: HashMap<String, usize> = HashMap::new();
            for term in terms(&text, &stemmer) {
                length += 1;
                *counts.entry(term).or_default() += 1;
            }
            counts.keys().for_each(|term| *holding.entry(term.clone()).or_default() += 1);
            windows.push((seq, text, counts));
        }
        let mean_length = f64::from(length) / windows.len().max(1) as f64;
        Self { windows, holding, mean_length, stemmer }
    }

    /// The windows that BM25 ranks first.
    pub(super) fn ranked(&self, question: &str, limit: usize) -> Vec<Shown> {
        let stop_words: HashSet<String> = terms(STOP_WORDS, &self.stemmer).collect();
        let wanted: HashSet<String> =
            terms(question, &self.stemmer).filter(|term| !stop_words.contains(term)).collect();
        let count = self.windows.len() as f64;
        let score = |counts: &HashMap<String, usize>| -> f64 {
            let length = counts.values().sum::<usize>() as f64 / self.mean_length.max(1.0);
            let of_term = |term: &String| {
                let frequency = counts.get(term).copied().unwrap_or_default() as f64;
                let holding = self.holding.get(term).copied().unwrap_or_default() as f64;
                let weight = (1.0 + (count - holding + 0.5) / (holding + 0.5)).ln();
                let dampening = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * length);
                weight * frequency * (SATURATION + 1.0) / (frequency + dampening)
            };
            wanted.iter().map(of_term).sum()
        };
        let mut ranked: Vec<(f64, usize)> =
            self.windows.iter().enumerate().map(|(at, (_, _, counts))| (score(counts), at)).collect();
        ranked.retain(|(score, _)| *score > 0.0);
        ranked.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first.cmp(second)));
        ranked.into_iter().take(limit).filter_map(|(_, at)| self.shown(at)).collect()
    }

    /// Whether any window that `holds` accepts shares a word with the question: no search by words finds the others.
    pub(super) fn shares_word(&self, question: &str, holds: impl Fn(&str) -> bool) -> bool {
        let stop_words: HashSet<String> = terms(STOP_WORDS, &self.stemmer).collect();
        let wanted: HashSet<String> =
            terms(question, &self.stemmer).filter(|term| !stop_words.contains(term)).collect();
        let mut windows = self.windows.iter();
        windows.any(|(_, text, counts)| wanted.iter().any(|term| counts.contains_key(term)) && holds(text))
    }

    /// The last windows, newest first.
    pub(super) fn newest(&self, limit: usize) -> Vec<Shown> {
        (0..self.windows.len()).rev().take(limit).filter_map(|at| self.shown(at)).collect()
    }

    fn shown(&self, at: usize) -> Option<Shown> {
        self.windows.get(at).map(|(seq, text, _)| Shown { seq: *seq, text: text.clone() })
    }
}

/// The stems of words and parts of identifiers, in lower case.
fn terms<'t>(text: &'t str, stemmer: &'t Stemmer) -> impl Iterator<Item = String> + 't {
    text.split(|c: char| !c.is_alphanumeric()).flat_map(parts).map(|part| {
        let part = part.to_lowercase();
        match part.len() >= 4 && part.chars().all(|c| c.is_ascii_alphabetic()) {
            true => stemmer.stem(&part).into_owned(),
            false => part,
        }
    })
}

/// The parts of a word in mixed case.
fn parts(word: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    let mut starts = vec![0];
    for (at, pair) in letters.windows(2).enumerate() {
        let [(_, before), (here, c)] = pair else { continue };
        let next_is_lower = letters.get(at + 2).is_some_and(|(_, next)| next.is_lowercase());
        let turns = before.is_lowercase() && c.is_uppercase()
            || before.is_uppercase() && c.is_uppercase() && next_is_lower
            || before.is_numeric() != c.is_numeric();
        if turns {
            starts.push(*here);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([word.len()]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(start, end)| word.get(*start..end))
        .filter(|part| !part.is_empty())
        .collect()
}
