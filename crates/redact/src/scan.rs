//! The state of one pass over a text: the findings, and what was examined already.

use std::cmp::Reverse;
use std::ops::Range;

use crate::{boundary, mask};

/// The maximum length of a text before an ellipsis that is not masked.
const MAX_ELIDED_BYTES: usize = 24;

/// The reliability of a detector; if findings overlap, the kind is that of the most reliable one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// A random value near a word.
    Vicinity,
    /// A value next to a name, or a header.
    Context,
    /// A form shared by several vendors, with random content.
    LooseFormat,
    /// The form of one vendor.
    Format,
    /// A whole private key.
    Block,
    /// A value given by the caller.
    Known,
}

/// A finding before overlaps are resolved.
#[derive(Debug, Clone)]
pub(crate) struct SecretCandidate {
    pub(crate) range: Range<usize>,
    pub(crate) kind: &'static str,
    pub(crate) rule: &'static str,
    pub(crate) rank: Rank,
}

/// The end of the last measured run of characters, so that many hits within one run measure it once.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct RunMemo {
    start: usize,
    end: usize,
}

impl RunMemo {
    /// The end of the run at `at`, measured by `measure` unless already known.
    pub(crate) fn end_of(&mut self, at: usize, measure: impl FnOnce(usize) -> usize) -> usize {
        if !(self.start <= at && at < self.end) {
            *self = Self { start: at, end: measure(at) };
        }
        self.end
    }
}

/// The state of one pass.
#[derive(Debug)]
pub(crate) struct SecretScan<'t> {
    pub(crate) text: &'t str,
    /// The end of the last examined name: several keywords may occur in the same name.
    pub(crate) last_name_end: usize,
    /// The run of an unquoted value in code.
    pub(crate) value_run: RunMemo,
    /// The run of an unquoted value in an environment file.
    pub(crate) environment_run: RunMemo,
    /// The end of the examined parameters of an `Authorization` header.
    pub(crate) parameters_end: usize,
    /// The run of a URL.
    pub(crate) url_run: RunMemo,
    found: Vec<SecretCandidate>,
    masks: Vec<Range<usize>>,
}

impl<'t> SecretScan<'t> {
    /// Starts a pass over `text`. Allocates nothing.
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            last_name_end: 0,
            value_run: RunMemo::default(),
            environment_run: RunMemo::default(),
            parameters_end: 0,
            url_run: RunMemo::default(),
            found: Vec::new(),
            masks: Vec::new(),
        }
    }

    /// The text as bytes.
    pub(crate) fn bytes(&self) -> &'t [u8] {
        self.text.as_bytes()
    }

    /// Whether `at` is inside a finding of at least `rank`, so that examining it again is useless.
    pub(crate) fn is_covered(&self, at: usize, rank: Rank) -> bool {
        self.found.last().is_some_and(|last| last.range.contains(&at) && last.rank >= rank)
    }

    /// Adds a finding, unless it is a mask.
    pub(crate) fn push(&mut self, range: Range<usize>, kind: &'static str, rule: &'static str, rank: Rank) {
        let range = boundary::without_cut_escapes(self.bytes(), range);
        let Some(found) = self.text.get(range.clone()) else {
            return;
        };
        // A few characters and an ellipsis: the rest was already left out. A known secret is always complete.
        let after = &self.text[range.end..];
        let is_elided = rank != Rank::Known
            && found.len() < MAX_ELIDED_BYTES
            && (after.starts_with("...") || after.starts_with('…'));
        if !found.is_empty() && !is_elided && !mask::starts_with_mask(found) {
            self.found.push(SecretCandidate { range, kind, rule, rank });
        }
    }

    /// Records a mask of an earlier pass, if one starts at `at`.
    pub(crate) fn note_mask(&mut self, at: usize) {
        if let Some(length) = mask::length_at_start(&self.text[at..]) {
            self.masks.push(at..at + length);
        }
    }

    /// Whether `range` is entirely inside a mask.
    fn is_within_mask(&self, range: &Range<usize>) -> bool {
        let after = self.masks.partition_point(|mask| mask.start <= range.start);
        after.checked_sub(1).is_some_and(|index| self.masks[index].end >= range.end)
    }

    /// Returns all findings in order and without overlaps: overlapping candidates are merged, with the kind of the most reliable one.
    pub(crate) fn finish(mut self) -> Vec<SecretCandidate> {
        let mut found = std::mem::take(&mut self.found);
        found.retain(|candidate| !self.is_within_mask(&candidate.range));
        if found.len() < 2 {
            return found;
        }
        found.sort_by_key(|candidate| (candidate.range.start, Reverse(candidate.range.end)));
        let mut merged: Vec<SecretCandidate> = Vec::with_capacity(found.len());
        for candidate in found {
            match merged.last_mut() {
                Some(last) if candidate.range.start < last.range.end => {
                    last.range.end = last.range.end.max(candidate.range.end);
                    if candidate.rank > last.rank {
                        (last.kind, last.rule, last.rank) = (candidate.kind, candidate.rule, candidate.rank);
                    }
                }
                _ => merged.push(candidate),
            }
        }
        merged
    }
}
