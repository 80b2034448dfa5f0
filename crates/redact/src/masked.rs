//! A text with its secrets masked, and the mapping of its offsets to those of the original.

use std::ops::Range;

use crate::mask;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its range in bytes, on character boundaries.
    pub range: Range<usize>,
    /// Its kind, the word in its mask: `[redacted:KIND]`.
    pub kind: &'static str,
    /// The rule that found it.
    pub rule: &'static str,
}

/// A masked text.
#[derive(Debug)]
pub(crate) struct Masked {
    pub(crate) text: String,
    /// The masked secrets, with ranges in the original.
    pub(crate) findings: Vec<Finding>,
    /// The range of each finding's mask in `text`.
    masks: Vec<Range<usize>>,
}

impl Masked {
    /// Masks `findings` (in order, without overlaps) in `original`; `None` if there are none.
    pub(crate) fn new(original: &str, findings: Vec<Finding>) -> Option<Self> {
        if findings.is_empty() {
            return None;
        }
        let mut text = String::with_capacity(original.len());
        let mut masks = Vec::with_capacity(findings.len());
        let mut copied = 0;
        for finding in &findings {
            text.push_str(&original[copied..finding.range.start]);
            let start = text.len();
            mask::write(&mut text, finding.kind);
            masks.push(start..text.len());
            copied = finding.range.end;
        }
        text.push_str(&original[copied..]);
        Some(Self { text, findings, masks })
    }

    /// Also masks secrets found in the masked text.
    pub(crate) fn with(self, original: &str, more: Vec<Finding>) -> Self {
        let mut merged: Vec<Finding> = Vec::with_capacity(self.findings.len() + more.len());
        let mut added = more
            .into_iter()
            .map(|finding| Finding { range: self.original_range(&finding.range), ..finding })
            .peekable();
        for earlier in &self.findings {
            while let Some(finding) = added.next_if(|finding| finding.range.start <= earlier.range.start) {
                push_merged(&mut merged, finding);
            }
            push_merged(&mut merged, earlier.clone());
        }
        added.for_each(|finding| push_merged(&mut merged, finding));
        Self::new(original, merged).unwrap_or(self)
    }

    /// Returns the range of the original that corresponds to `range` of the masked text; a mask that is cut counts as a whole.
    fn original_range(&self, range: &Range<usize>) -> Range<usize> {
        let before_start = self.masks.partition_point(|mask| mask.end <= range.start);
        let start = match self.masks.get(before_start) {
            Some(mask) if mask.start <= range.start => self.findings[before_start].range.start,
            _ => self.original_offset(before_start, range.start),
        };
        let before_end = self.masks.partition_point(|mask| mask.end <= range.end);
        let end = match self.masks.get(before_end) {
            Some(mask) if mask.start < range.end => self.findings[before_end].range.end,
            _ => self.original_offset(before_end, range.end),
        };
        start..end
    }

    /// Returns the original offset of `offset`, which is outside masks and has `masks_before` of them before it.
    fn original_offset(&self, masks_before: usize, offset: usize) -> usize {
        match masks_before.checked_sub(1) {
            Some(last) => self.findings[last].range.end + (offset - self.masks[last].end),
            None => offset,
        }
    }
}

/// Appends `finding`, or widens the last one if they overlap; the wider one names the kind.
fn push_merged(merged: &mut Vec<Finding>, finding: Finding) {
    match merged.last_mut() {
        Some(last) if finding.range.start < last.range.end => {
            if finding.range.len() > last.range.len() {
                (last.kind, last.rule) = (finding.kind, finding.rule);
            }
            last.range.end = last.range.end.max(finding.range.end);
        }
        _ => merged.push(finding),
    }
}

#[cfg(test)]
#[path = "masked_tests.rs"]
mod tests;
