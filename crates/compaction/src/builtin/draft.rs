//! A document in the making: lines with their worth, each said once, chosen within a budget.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::act::slice_start;
use crate::state::looks_like_log;
use crate::summarise::CountTokens;

use super::story::Scope;

/// What a text costs, from its length. Counting thousands of short texts one by one would take longer than everything
/// else together; how many tokens a byte has is measured once on all of them, and the finished document is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    tokens_per_byte: f64,
}

/// A sample this long says enough.
const MAX_SAMPLE_BYTES: usize = 48 * 1024;

impl Price {
    /// Measures on a sample.
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>, count_tokens: CountTokens<'_>) -> Self {
        let mut sample = String::new();
        for text in texts {
            sample.push_str(slice_start(text, MAX_SAMPLE_BYTES));
            sample.push('\n');
            if sample.len() > MAX_SAMPLE_BYTES {
                break;
            }
        }
        let tokens_per_byte = count_tokens(&sample) as f64 / sample.len().max(1) as f64;
        Self { tokens_per_byte: if tokens_per_byte > 0.0 { tokens_per_byte } else { 0.3 } }
    }

    /// Tokens of a text, about.
    pub(super) fn tokens(self, text: &str) -> u64 {
        (text.len() as f64 * self.tokens_per_byte).ceil() as u64 + 2
    }

    /// Bytes that cost so many tokens, about.
    pub(super) fn bytes(self, tokens: u64) -> usize {
        (tokens as f64 / self.tokens_per_byte) as usize
    }
}

/// Sentences that stand in the notes already: nothing is said twice.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    known: FxHashSet<u64>,
}

impl Said {
    /// Notes a text; `false` when it was said before.
    pub(super) fn add(&mut self, text: &str) -> bool {
        self.known.insert(key(text))
    }

    /// Whether a text was said before.
    pub(super) fn has(&self, text: &str) -> bool {
        self.known.contains(&key(text))
    }
}

/// Letters by which a sentence is known again.
const KEY_LETTERS: usize = 60;

/// What makes two sentences the same: their letters and digits, up to a length, so that a shortened one is known again; as
/// a hash.
fn key(text: &str) -> u64 {
    let letters = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    let mut key = [0; KEY_LETTERS];
    let mut count = 0;
    for (place, letter) in key.iter_mut().zip(letters) {
        *place = u32::from(letter);
        count += 1;
    }
    FxBuildHasher.hash_one(key.get(..count).unwrap_or(&key))
}

/// A line with its worth.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The message it comes from; carried lines come before all new ones.
    pub(super) message: u32,
    /// What it says.
    pub(super) text: String,
    /// How much it matters.
    pub(super) value: f32,
}

/// Takes lines by worth until the budget is used; returns them in the order they came in, and what they cost.
pub(super) fn choose(lines: Vec<Line>, budget: u64, price: Price) -> (Vec<Line>, u64) {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|a, b| lines[*b].value.total_cmp(&lines[*a].value).then(b.cmp(a)));
    let mut taken = vec![false; lines.len()];
    let mut used = 0;
    for at in order {
        let cost = price.tokens(&lines[at].text);
        if used + cost <= budget {
            used += cost;
            taken[at] = true;
        }
    }
    let chosen = lines.into_iter().zip(taken).filter(|(_, taken)| *taken).map(|(line, _)| line).collect();
    (chosen, used)
}

/// As [`choose`], with a share of the room for what the focus is about, if there is one.
pub(super) fn choose_for(scope: &Scope<'_>, lines: Vec<Line>, budget: u64, price: Price) -> (Vec<Line>, u64) {
    if !scope.topic.is_set() {
        return choose(lines, budget, price);
    }
    let is_about: Vec<bool> = lines.iter().map(|line| scope.topic.matches(&line.text)).collect();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|a, b| lines[*b].value.total_cmp(&lines[*a].value).then(b.cmp(a)));
    let mut rooms = [budget * (100 - scope.focus_percent) / 100, budget * scope.focus_percent / 100];
    let mut taken = vec![false; lines.len()];
    let mut used = 0;
    for at in order {
        let cost = price.tokens(&lines[at].text);
        let room = &mut rooms[usize::from(is_about[at])];
        if cost <= *room {
            *room -= cost;
            used += cost;
            taken[at] = true;
        }
    }
    let chosen = lines.into_iter().zip(taken).filter(|(_, taken)| *taken).map(|(line, _)| line).collect();
    (chosen, used)
}

/// A person's words as they are, cut only when very long.
pub(super) fn quoted(words: &str, max_chars: usize) -> String {
    let trimmed = words.trim();
    let count = trimmed.chars().count();
    if count <= max_chars {
        return trimmed.to_owned();
    }
    let end = trimmed.char_indices().nth(max_chars).map_or(trimmed.len(), |(at, _)| at);
    format!("{}… ({} more characters in the original)", slice_start(trimmed, end), count - max_chars)
}

/// The beginning of a person's words within a length, up to the end of a line, a sentence or a word, and what follows it.
pub(super) fn split_words(words: &str, max_chars: usize) -> (&str, &str) {
    let trimmed = words.trim();
    let Some((end, _)) = trimmed.char_indices().nth(max_chars) else { return (trimmed, "") };
    let begin = slice_start(trimmed, end);
    let half = begin.len() / 2;
    let after = |mark: &str| begin.rfind(mark).map(|at| at + mark.trim_end().len()).filter(|at| *at > half);
    let at = after("\n").or_else(|| after(". ")).or_else(|| after(" ")).unwrap_or(begin.len());
    let (shown, rest) = trimmed.split_at_checked(at).unwrap_or((trimmed, ""));
    (shown.trim_end(), rest.trim())
}

/// Behind the beginning of words whose rest stands elsewhere in the notes.
pub(super) const GOES_ON: &str = "… (goes on under Completed Actions)";

/// Of more lines of a log or of code in a row only the first is quoted.
const PASTED_LINES: usize = 3;

/// A person's words with only the first line of a pasted log or of a block of code: where words have to be cut, the rest of
/// those goes first.
pub(super) fn without_paste(words: &str) -> String {
    let mut out = String::new();
    let mut pasted: Vec<&str> = Vec::new();
    let mut in_code = false;
    for line in words.lines().map(Some).chain([None]) {
        let is_fence = line.is_some_and(|line| line.trim().starts_with("```"));
        in_code ^= is_fence;
        if is_fence {
            continue;
        }
        if let Some(line) = line.filter(|line| in_code || looks_like_log(line.trim())) {
            pasted.push(line);
            continue;
        }
        let kept = if pasted.len() > PASTED_LINES { 1 } else { pasted.len() };
        for line in pasted.iter().take(kept) {
            out.push_str(line);
            out.push('\n');
        }
        if pasted.len() > kept {
            out.push_str(&format!("… ({} more lines)\n", pasted.len() - kept));
        }
        pasted.clear();
        if let Some(line) = line {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The last two segments of a path: the whole path stands under Relevant Files.
pub(super) fn short_path(path: &str) -> &str {
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at);
    match slashes.nth(1) {
        Some(at) => path.get(at + 1..).unwrap_or(path),
        None => path,
    }
}
