//! Passages for display: a line around a match, and the beginning of a message on one line. People recognise a text by
//! them; no decision depends on them.

use crate::Snippet;
use crate::matching::MatchSpan;

/// Characters of a passage.
const SNIPPET_CHARACTERS: usize = 180;
/// Of these, so many stand before what was found, where there are that many.
const LEAD_CHARACTERS: usize = 50;
/// Characters of a neighbour.
const BEGINNING_CHARACTERS: usize = 120;
/// An end is moved by this much at most so as not to part a word.
const WORD_SLACK_CHARACTERS: usize = 16;

impl Snippet {
    /// The passage around the first of some marks.
    pub fn passage(text: &str, marks: &[MatchSpan]) -> Self {
        let start_at = marks.first().map_or(0, |mark| mark.start);
        let start = word_start(text, back(text, start_at, LEAD_CHARACTERS), start_at);
        let shown = marks.iter().filter(|mark| mark.start >= start);
        let first_end = marks.first().map_or(start, |mark| mark.end);
        let limit = forward(text, start, SNIPPET_CHARACTERS);
        let end = word_end(text, limit, first_end.min(limit));
        let mut ranges: Vec<(usize, usize)> =
            shown.filter(|mark| mark.start < end).map(|mark| (mark.start, mark.end.min(end))).collect();
        ranges.sort_unstable();
        Self::one_line(text, start, end, &ranges)
    }

    /// The beginning of a text, on one line.
    pub fn beginning(text: &str) -> String {
        let text = text.trim_start();
        let limit = forward(text, 0, BEGINNING_CHARACTERS);
        let end = word_end(text, limit, 0);
        let mut line = Self::one_line(text, 0, end, &[]).text;
        if end < text.trim_end().len() {
            line.push('…');
        }
        line
    }

    /// Writes a piece of a text on one line, with the marks moved along. Marks that touch or overlap become one.
    pub fn one_line(text: &str, start: usize, end: usize, ranges: &[(usize, usize)]) -> Self {
        let mut line = String::with_capacity(end - start);
        let mut marks: Vec<(usize, usize)> = Vec::new();
        let mut next = 0;
        let mut open_until = None;
        for (offset, c) in text.get(start..end).unwrap_or_default().char_indices() {
            let at = start + offset;
            if open_until.is_some_and(|until| at >= until) {
                close(&mut marks, line.len());
                open_until = None;
            }
            let is_blank = c.is_whitespace() || c.is_control();
            let is_written = !is_blank || !(line.is_empty() || line.ends_with(' '));
            while let Some(&(from, to)) = ranges.get(next).filter(|(from, _)| *from <= at) {
                next += 1;
                if to <= at {
                    continue;
                }
                match open_until {
                    Some(until) => open_until = Some(to.max(until)),
                    None => {
                        open_until = Some(to);
                        match marks.last() {
                            // Side by side, as the characters of a word without spaces are.
                            Some(&(_, last)) if last == line.len() && from == at && last > 0 => {}
                            _ => marks.push((line.len(), line.len())),
                        }
                    }
                }
            }
            if is_written {
                line.push(if is_blank { ' ' } else { c });
            }
        }
        if open_until.is_some() {
            close(&mut marks, line.len());
        }
        let kept = line.trim_end().len();
        line.truncate(kept);
        for mark in &mut marks {
            mark.1 = mark.1.min(kept);
        }
        marks.retain(|(from, to)| from < to);
        Self {
            text: line,
            marks,
            cut_before: !text.get(..start).unwrap_or_default().trim().is_empty(),
            cut_after: !text.get(end..).unwrap_or_default().trim().is_empty(),
        }
    }
}

fn close(marks: &mut [(usize, usize)], at: usize) {
    if let Some(last) = marks.last_mut() {
        last.1 = at;
    }
}

/// The place so many characters before another.
fn back(text: &str, from: usize, characters: usize) -> usize {
    let before = text.get(..from).unwrap_or_default();
    before.char_indices().rev().nth(characters.saturating_sub(1)).map_or(0, |(at, _)| at)
}

/// The place so many characters after another.
fn forward(text: &str, from: usize, characters: usize) -> usize {
    let after = text.get(from..).unwrap_or_default();
    after.char_indices().nth(characters).map_or(text.len(), |(at, _)| from + at)
}

/// Moves the beginning of a passage on to the beginning of a word, if one is near and before `before`.
fn word_start(text: &str, at: usize, before: usize) -> usize {
    if at == 0 {
        return 0;
    }
    text.get(at..before)
        .unwrap_or_default()
        .char_indices()
        .take(WORD_SLACK_CHARACTERS)
        .find(|(_, c)| c.is_whitespace())
        .map_or(at, |(offset, c)| at + offset + c.len_utf8())
}

/// Moves the end of a passage back to the end of a word, if one is near and after `after`.
fn word_end(text: &str, at: usize, after: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    text.get(after..at)
        .unwrap_or_default()
        .char_indices()
        .rev()
        .take(WORD_SLACK_CHARACTERS)
        .find(|(_, c)| c.is_whitespace())
        .map_or(at, |(offset, _)| after + offset)
}

#[cfg(test)]
#[path = "snippet_tests.rs"]
mod tests;
