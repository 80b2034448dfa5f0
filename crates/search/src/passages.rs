//! Passages that answer a question: which windows of texts contain its words, how they are weighted (BM25), and which
//! are shown.
//!
//! Every function here is pure: texts are passed in, and identified by the caller's own keys. Weights were chosen on
//! recorded sessions (`throughline-bench recall`); the results hardly change between half and double of any of them.

use std::ops::Range;

use crate::question::Question;
use crate::rank::HitSource;
use crate::terms::{TermKind, cut};
use crate::windows::TextWords;

/// The two constants of BM25, as commonly chosen: how soon repetition stops counting, and how much length counts.
const SATURATION: f64 = 1.2;
const LENGTH_SHARE: f64 = 0.75;
/// What people and models write is a twentieth of a session and answers most questions about it; with 1.0 for all the
/// answer is among the first five passages 5 % less often.
const DIALOGUE_WEIGHT: f64 = 1.5;
/// How much a passage gains that holds all words of a question, against one that holds one of many.
const COVERAGE_WEIGHT: f64 = 0.5;
/// How much the newest gains against the oldest.
const RECENCY_WEIGHT: f64 = 0.1;
/// After so many days half of that is lost.
const RECENCY_HALF_DAYS: f64 = 30.0;
const MS_PER_DAY: f64 = 86_400_000.0;
/// Passages that share more of their words say the same.
const SAME_SHARE: f64 = 0.8;
/// Passages that share more of their text are one passage.
const OVERLAP_SHARE: f64 = 0.5;

/// What a run of text holds of a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// How often each word of the question occurs.
    pub counts: Vec<u16>,
    /// Words of the run.
    pub length: u32,
    /// Where words of the question stand, as byte ranges, in order.
    pub marks: Vec<(usize, usize)>,
}

impl Tally {
    fn new(words: usize) -> Self {
        Self { counts: vec![0; words], length: 0, marks: Vec::new() }
    }

    /// How many words of the question it holds.
    pub fn matched(&self) -> usize {
        self.counts.iter().filter(|count| **count > 0).count()
    }

    /// Adds that of another run, whose text begins at `shift` of the joined text.
    pub fn join(&mut self, other: &Self, shift: usize) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts
            .iter_mut()
            .zip(&other.counts)
            .for_each(|(count, more)| *count = count.saturating_add(*more));
        self.length += other.length;
        self.marks.extend(other.marks.iter().map(|(start, end)| (start + shift, end + shift)));
    }
}

/// Calls `each` with every term of a text that is a form of a word of the question, and with `None` for every other word.
fn each_match(question: &Question, text: &str, mut each: impl FnMut(Option<usize>, Range<usize>, Countable)) {
    let mut glyph: Option<(String, usize, u32)> = None;
    cut(text, |piece| {
        if piece.kind == TermKind::Glyph {
            each(None, piece.start..piece.end, Countable::Word);
            let mut pair = match glyph.take() {
                Some((before, start, next_atom)) if next_atom == piece.atom => (before, start),
                _ => (String::new(), piece.start),
            };
            let is_pair = !pair.0.is_empty();
            pair.0.push_str(piece.term);
            if is_pair && let Some(word) = question.word_of(&pair.0, true) {
                each(Some(word), pair.1..piece.end, Countable::PartOfOthers);
            }
            glyph = Some((piece.term.to_owned(), piece.start, piece.atom + 1));
            return;
        }
        let is_whole = piece.kind == TermKind::Compound || piece.atoms > 1;
        let countable = if is_whole { Countable::PartOfOthers } else { Countable::Word };
        let word = question.word_of(piece.term, is_whole);
        if word.is_some() || !is_whole {
            each(word, piece.start..piece.end, countable);
        }
    });
}

/// Whether a match adds to the length of its text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Countable {
    Word,
    /// Its parts are counted.
    PartOfOthers,
}

impl Question {
    /// What a text as a whole holds of a question.
    pub fn tally(&self, text: &str) -> Tally {
        let mut tally = Tally::new(self.len());
        each_match(self, text, |word, range, countable| add(&mut tally, word, range, countable));
        tally.marks.sort_unstable();
        tally
    }
}

fn add(tally: &mut Tally, word: Option<usize>, range: Range<usize>, countable: Countable) {
    tally.length += u32::from(countable == Countable::Word);
    if let Some(count) = word.and_then(|word| tally.counts.get_mut(word)) {
        *count = count.saturating_add(1);
        tally.marks.push((range.start, range.end));
    }
}

/// What the windows of a text hold of a question.
#[derive(Debug, Default)]
pub struct WindowTallies {
    /// Windows that hold any word.
    pub held: Vec<MatchedWindow>,
    /// How many windows the text has.
    pub windows: usize,
    /// How many words.
    pub length: u64,
}

/// A window that holds words of a question.
#[derive(Debug)]
pub struct MatchedWindow {
    /// Which window of the text it is.
    pub part: usize,
    /// Its bytes in the text.
    pub range: Range<usize>,
    /// What it holds, with the marks left out.
    pub tally: Tally,
}

impl Question {
    /// Reads a text window by window.
    pub fn tally_windows(&self, text: &str) -> WindowTallies {
        self.tally_windows_and(text, &[])
    }

    /// As [`Self::tally_windows`]; these windows are among the held ones whatever they hold.
    pub fn tally_windows_and(&self, text: &str, wanted: &[usize]) -> WindowTallies {
        let windows = TextWords(text).windows();
        let mut lengths = vec![0_u32; windows.len()];
        let mut held: Vec<Option<Tally>> = vec![None; windows.len()];
        each_match(self, text, |word, range, countable| {
            let window = windows.partition_point(|window| window.end <= range.start);
            if let Some(length) = lengths.get_mut(window) {
                *length += u32::from(countable == Countable::Word);
            }
            if let (Some(word), Some(held)) = (word, held.get_mut(window)) {
                let tally = held.get_or_insert_with(|| Tally::new(self.len()));
                if let Some(count) = tally.counts.get_mut(word) {
                    *count = count.saturating_add(1);
                }
            }
        });
        for window in wanted {
            if let Some(held) = held.get_mut(*window) {
                held.get_or_insert_with(|| Tally::new(self.len()));
            }
        }
        let length = lengths.iter().map(|length| u64::from(*length)).sum();
        let count = windows.len();
        let held = windows
            .into_iter()
            .zip(held)
            .zip(lengths)
            .enumerate()
            .filter_map(|(part, ((range, tally), length))| {
                Some(MatchedWindow { part, range, tally: Tally { length, ..tally? } })
            })
            .collect();
        WindowTallies { held, windows: count, length }
    }
}

/// How common the words of a question are in what is searched.
#[derive(Clone, Debug, Default)]
pub struct Commonness {
    /// How many runs of text there are.
    pub runs: f64,
    /// How many of them hold each word.
    pub holding: Vec<f64>,
    /// Words of a window on average.
    pub mean_length: f64,
}

impl Commonness {
    /// How much each word tells: the rarer, the more.
    pub fn weights(&self) -> Vec<f64> {
        let weight = |holding: &f64| (1.0 + (self.runs - holding + 0.5).max(0.0) / (holding + 0.5)).ln();
        self.holding.iter().map(weight).collect()
    }

    /// How well a run of text answers, by its words alone.
    pub fn score(&self, weights: &[f64], tally: &Tally) -> f64 {
        let relative = f64::from(tally.length) / self.mean_length.max(1.0);
        let dampening = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * relative);
        let of_word = |(weight, count): (&f64, &u16)| {
            let count = f64::from(*count);
            weight * count * (SATURATION + 1.0) / (count + dampening)
        };
        weights.iter().zip(&tally.counts).map(of_word).sum()
    }
}

impl HitSource {
    /// How much more a text counts for who wrote it, when, and how many words of the question it holds.
    pub fn boost(self, at_ms: i64, newest_ms: i64, matched: usize, of: usize) -> f64 {
        let age_days = newest_ms.saturating_sub(at_ms).max(0) as f64 / MS_PER_DAY;
        let recency = RECENCY_WEIGHT / (1.0 + age_days / RECENCY_HALF_DAYS);
        let coverage = COVERAGE_WEIGHT * matched as f64 / of.max(1) as f64;
        (if self.is_dialogue() { DIALOGUE_WEIGHT } else { 1.0 }) * (1.0 + coverage) * (1.0 + recency)
    }
}

/// A passage before it is chosen.
#[derive(Clone, Debug)]
pub struct PassageCandidate<P> {
    /// What the caller knows it by.
    pub place: P,
    /// How well it answers.
    pub score: f64,
    /// Whether it holds all words of the question, and these are several.
    pub holds_all: bool,
    /// Which bytes of which texts it shows.
    pub spans: Vec<(i64, Range<usize>)>,
    /// Its words, sorted, each once; see [`TextWords::set`].
    pub words: Vec<u64>,
}

impl TextWords<'_> {
    /// The words of a text as numbers, sorted, each once.
    pub fn set(self) -> Vec<u64> {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut words = Vec::new();
        cut(self.0, |piece| {
            let mut hasher = DefaultHasher::new();
            piece.term.hash(&mut hasher);
            words.push(hasher.finish());
        });
        words.sort_unstable();
        words.dedup();
        words
    }
}

impl<P> PassageCandidate<P> {
    /// The best passages, best first: those with all words of the question before others, none twice, and what says the same
    /// as a better one after everything else.
    pub fn choose(mut candidates: Vec<Self>, limit: usize) -> Vec<Self> {
        candidates.sort_by(|a, b| b.holds_all.cmp(&a.holds_all).then(b.score.total_cmp(&a.score)));
        let mut chosen: Vec<Self> = Vec::new();
        let mut repeating = Vec::new();
        for candidate in candidates {
            if chosen.len() >= limit {
                break;
            }
            if overlap(&candidate, &chosen) > OVERLAP_SHARE {
                continue;
            }
            match chosen.iter().any(|better| shared(&candidate.words, &better.words) > SAME_SHARE) {
                true => repeating.push(candidate),
                false => chosen.push(candidate),
            }
        }
        for candidate in repeating {
            if chosen.len() < limit && overlap(&candidate, &chosen) <= OVERLAP_SHARE {
                chosen.push(candidate);
            }
        }
        chosen
    }
}

/// Share of a passage's text that better passages show.
fn overlap<P>(candidate: &PassageCandidate<P>, chosen: &[PassageCandidate<P>]) -> f64 {
    let bytes: usize = candidate.spans.iter().map(|(_, span)| span.len()).sum();
    let shown: usize = candidate
        .spans
        .iter()
        .flat_map(|span| chosen.iter().flat_map(|better| &better.spans).map(move |other| (span, other)))
        .filter(|((row, _), (other, _))| row == other)
        .map(|((_, span), (_, other))| span.end.min(other.end).saturating_sub(span.start.max(other.start)))
        .sum();
    shown as f64 / bytes.max(1) as f64
}

/// Share of the words of the smaller set that are in the other.
fn shared(a: &[u64], b: &[u64]) -> f64 {
    let (small, large) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let both = small.iter().filter(|word| large.binary_search(word).is_ok()).count();
    both as f64 / small.len().max(1) as f64
}

#[cfg(test)]
#[path = "passages_tests.rs"]
mod tests;
