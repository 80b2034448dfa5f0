//! The blocks of rows that contain the words of a question, according to the index.
//!
//! In a large record, a sample of segments is looked up first. It shows how common each word is and which of its forms
//! occur; then only words that are rare enough are looked up in all segments, because most of the time of a question is
//! spent on look-ups.

use std::collections::BTreeMap;
use std::ops::Range;

use throughline_search::fingerprint::BlockSet;
use throughline_search::passages::Commonness;
use throughline_search::query::ParsedQuery;
use throughline_search::question::Question;
use throughline_search::segments::IndexSegment;

use super::source::{SearchSource, SegmentLookup, SourceResult};

/// A word in a larger share of the blocks proposes none: it is insignificant, and would propose most of the record.
const COMMON_SHARE: f64 = 0.25;
/// The most common words are not looked up in all segments while together they have at most this share of the total weight.
const LEFT_OUT_SHARE: f64 = 0.125;
/// In a large record, every such segment is looked up first, ...
const SAMPLED_EVERY: usize = 16;
/// ... if there are at least this many of them.
const MIN_SAMPLED_SEGMENTS: usize = 4;
/// The maximum number of words looked up; each needs a read of every segment.
const MAX_WORDS: usize = 10;
/// The maximum number of words looked up in the sample. The rarest of them are looked up everywhere.
const MAX_SAMPLED_WORDS: usize = 20;
/// If at least this many sampled blocks have a word, it is looked up only by the forms that occur in them.
const MIN_HOLDERS: usize = 20;
/// The maximum number of blocks that are ordered: the messages of this many are examined.
const MAX_ORDERED: usize = 8_000;

/// The blocks with words of a question.
pub(super) struct QuestionBlocks {
    /// The frequencies of its words.
    commonness: Commonness,
    /// The numbers of words that were looked up in every segment.
    words: Vec<usize>,
    /// Segments with any of these words, in order, with the blocks that have each word.
    found: Vec<(IndexSegment, Vec<BlockSet>)>,
    /// The index of a segment in `found`.
    places: BTreeMap<IndexSegment, usize>,
}

/// A word to look up.
struct WordLookup {
    number: usize,
    /// Its forms, the original first.
    forms: Vec<WordForm>,
    /// The share of the sampled blocks that have it.
    share: f64,
}

#[derive(Clone, Copy)]
struct WordForm {
    fingerprint: u32,
    /// Its position in the sample's lookup.
    place: usize,
}

/// The blocks of the sampled segments that have each form.
type SampledForms = BTreeMap<IndexSegment, Vec<BlockSet>>;

impl QuestionBlocks {
    /// Looks up the index. Only blocks with at least one fingerprint of every set in `required` are used.
    pub(super) fn look_up<S: SearchSource>(
        source: &S,
        question: &Question,
        mut segments: Vec<IndexSegment>,
        required: &[Vec<u32>],
    ) -> SourceResult<S, Self> {
        let mut lookup = source.lookup()?;
        let mut admitted: BTreeMap<IndexSegment, BlockSet> = BTreeMap::new();
        if !required.is_empty() {
            for segment in &segments {
                admitted.insert(*segment, lookup.of(*segment, required)?);
            }
            segments.retain(|segment| admitted.get(segment).is_some_and(|blocks| !blocks.is_empty()));
        }
        let blocks_of =
            |segment: &IndexSegment| admitted.get(segment).map_or(segment.blocks(), BlockSet::len) as f64;
        let runs: f64 = segments.iter().map(blocks_of).sum();
        let mut commonness = Commonness { runs, holding: vec![0.0; question.len()], mean_length: 0.0 };
        let is_sampled = segments.len() >= MIN_SAMPLED_SEGMENTS * SAMPLED_EVERY;
        let mut words = word_lookups(question, if is_sampled { MAX_SAMPLED_WORDS } else { MAX_WORDS });
        let mut sampled = SampledForms::new();
        if is_sampled {
            sampled = sample(&mut lookup, &segments, &mut words)?;
            for word in leave_out_common(&mut words, runs) {
                if let Some(holding) = commonness.holding.get_mut(word.number) {
                    *holding = runs * word.share;
                }
            }
        }
        let fingerprints: Vec<Vec<u32>> =
            words.iter().map(|word| word.forms.iter().map(|form| form.fingerprint).collect()).collect();
        let mut found = Vec::with_capacity(segments.len());
        for segment in segments {
            let mut holders = match sampled.remove(&segment) {
                Some(by_form) => words.iter().map(|word| word.holders(&by_form)).collect(),
                None => lookup.by_word(segment, &fingerprints)?,
            };
            if let Some(admitted) = admitted.get(&segment) {
                holders.iter_mut().for_each(|holders| holders.keep(admitted));
            }
            for (word, holders) in words.iter().zip(&holders) {
                if let Some(holding) = commonness.holding.get_mut(word.number) {
                    *holding += holders.len() as f64;
                }
            }
            found.push((segment, holders));
        }
        let places = found.iter().enumerate().map(|(at, (segment, _))| (*segment, at)).collect();
        Ok(Self { commonness, words: words.into_iter().map(|word| word.number).collect(), found, places })
    }

    /// Returns the frequencies of the words of the question.
    pub(super) fn commonness(&self) -> &Commonness {
        &self.commonness
    }

    /// Whether any block of a segment has a word, which means that the segment is indexed.
    pub(super) fn knows(&self, segment: IndexSegment) -> bool {
        self.holders(segment).is_some_and(|holders| holders.iter().any(|blocks| !blocks.is_empty()))
    }

    /// Returns the blocks of a segment outside which no text has every word of a query: those with every word that was looked up and is
    /// required in this form. Texts that were not looked up may be anywhere.
    pub(super) fn with_all(&self, segment: IndexSegment, alone: &[usize]) -> BlockSet {
        let mut blocks = BlockSet::all();
        let Some(holders) = self.holders(segment) else { return BlockSet::none() };
        for (word, holders) in self.words.iter().zip(holders) {
            if alone.contains(word) {
                blocks.keep(holders);
            }
        }
        blocks
    }

    fn holders(&self, segment: IndexSegment) -> Option<&[BlockSet]> {
        self.places.get(&segment).and_then(|at| self.found.get(*at)).map(|(_, holders)| holders.as_slice())
    }

    /// Returns the rows of blocks with words of the question, those with the most significant words first; of equal ones the newer first.
    pub(super) fn best(&self) -> Vec<Range<i64>> {
        let weights = self.commonness.weights();
        let holding = |word: &usize| self.commonness.holding.get(*word).copied().unwrap_or_default();
        let is_common = |word: &usize| holding(word) > self.commonness.runs * COMMON_SHARE;
        // A word without blocks proposes nothing, however rare it is.
        let all_common = self.words.iter().filter(|word| holding(word) > 0.0).all(is_common);
        let mut blocks: Vec<(f64, i64, i64)> = Vec::new();
        for (segment, holders) in &self.found {
            let mut scores = vec![0.0_f64; segment.blocks()];
            let mut any = BlockSet::none();
            for (word, holders) in self.words.iter().zip(holders) {
                let weight = weights.get(*word).copied().unwrap_or_default();
                if all_common || !is_common(word) {
                    any.join(holders);
                }
                for block in holders.descending() {
                    if let Some(score) = scores.get_mut(block) {
                        *score += weight;
                    }
                }
            }
            for block in any.descending() {
                let rows = segment.rows_of(block);
                blocks.push((scores.get(block).copied().unwrap_or_default(), rows.start, rows.end));
            }
        }
        let better = |a: &(f64, i64, i64), b: &(f64, i64, i64)| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1));
        if blocks.len() > MAX_ORDERED {
            blocks.select_nth_unstable_by(MAX_ORDERED, better);
            blocks.truncate(MAX_ORDERED);
        }
        blocks.sort_unstable_by(better);
        blocks.into_iter().map(|(_, start, end)| start..end).collect()
    }
}

impl WordLookup {
    fn holders(&self, by_form: &[BlockSet]) -> BlockSet {
        let mut holders = BlockSet::none();
        self.forms.iter().filter_map(|form| by_form.get(form.place)).for_each(|blocks| holders.join(blocks));
        holders
    }
}

/// Returns the words of a question, the longest if there are too many.
fn word_lookups(question: &Question, most: usize) -> Vec<WordLookup> {
    let mut places = 0..;
    let look_ups = question.look_ups(most).into_iter();
    look_ups
        .map(|(number, fingerprints)| {
            let forms = fingerprints
                .into_iter()
                .zip(&mut places)
                .map(|(fingerprint, place)| WordForm { fingerprint, place })
                .collect();
            WordLookup { number, forms, share: 0.0 }
        })
        .collect()
}

/// Looks up every form in some segments. Sets the frequencies of words, and drops forms that rarely occur for common words.
fn sample<L: SegmentLookup>(
    lookup: &mut L,
    segments: &[IndexSegment],
    words: &mut [WordLookup],
) -> Result<SampledForms, L::Error> {
    let each: Vec<Vec<u32>> =
        words.iter().flat_map(|word| &word.forms).map(|form| vec![form.fingerprint]).collect();
    let mut sampled = SampledForms::new();
    let mut blocks = 0;
    for segment in segments.iter().step_by(SAMPLED_EVERY) {
        blocks += segment.blocks();
        sampled.insert(*segment, lookup.by_word(*segment, &each)?);
    }
    for word in words {
        let holders: usize = sampled.values().map(|by_form| word.holders(by_form).len()).sum();
        word.share = holders as f64 / blocks.max(1) as f64;
        if holders >= MIN_HOLDERS {
            let own = word.forms.first().map(|form| form.place);
            let occurs = |form: &WordForm| {
                sampled
                    .values()
                    .any(|by_form| by_form.get(form.place).is_some_and(|blocks| !blocks.is_empty()))
            };
            word.forms.retain(|form| Some(form.place) == own || occurs(form));
        }
    }
    Ok(sampled)
}

/// Removes the words that are not looked up further: those too common to propose anything, unless all are; the most common, while together
/// they are insignificant; and those beyond the limit. The order of the others is unchanged.
fn leave_out_common(words: &mut Vec<WordLookup>, runs: f64) -> Vec<WordLookup> {
    let shares =
        Commonness { runs, holding: words.iter().map(|word| runs * word.share).collect(), mean_length: 0.0 };
    let mut ranked: Vec<(f64, usize, f64)> =
        words.iter().zip(shares.weights()).map(|(word, weight)| (weight, word.number, word.share)).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = ranked.iter().map(|(weight, ..)| weight).sum();
    let all_common = ranked.iter().all(|(.., share)| *share > COMMON_SHARE);
    let count = ranked.len();
    let mut left = 0.0;
    let mut left_out = Vec::new();
    for (at, (weight, number, share)) in ranked.into_iter().enumerate() {
        left += weight;
        let is_too_common = share > COMMON_SHARE && !all_common;
        let is_too_much = count - at > MAX_WORDS;
        if is_too_common || is_too_much || left <= LEFT_OUT_SHARE * all {
            left_out.push(number);
        }
    }
    let (out, kept) = std::mem::take(words).into_iter().partition(|word| left_out.contains(&word.number));
    *words = kept;
    out
}

/// Returns the numbers of a question's words that a query requires as single words: a text with every word of the query has these, in this
/// form.
pub(super) fn wanted_alone(question: &Question, query: &ParsedQuery) -> Vec<usize> {
    query.single_words().filter_map(|word| question.number_of(word)).collect()
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
