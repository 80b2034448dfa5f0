//! Reading prose: the pieces of a text, which of them only announce the next step, and which tell something.

use std::borrow::Cow;
use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use crate::anchors::{AnchorKind, scan_anchors};

/// A sentence of a text with the place it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sentence<'a> {
    /// The sentence, without list marks.
    pub(crate) text: &'a str,
    /// Whether it stands in a quote, a table, a block of code or looks like the line of a log.
    pub(crate) is_pasted: bool,
}

/// The lines of a text that are worth a line in notes: blocks of code shortened to their first lines, rules and empty
/// lines dropped. A heading stands before the line it heads, as in `Heading: line`.
pub(crate) fn units(text: &str) -> Vec<String> {
    const CODE_LINES: usize = 2;
    let mut out: Vec<String> = Vec::new();
    let mut heading: Option<&str> = None;
    let mut code: Option<usize> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            code = if code.is_some() { None } else { Some(0) };
            continue;
        }
        if let Some(lines) = &mut code {
            *lines += 1;
            if *lines <= CODE_LINES && trimmed.len() > 3 {
                out.push(format!("`{}`", trimmed.trim_matches('`')));
            }
            continue;
        }
        if let Some(title) = trimmed.strip_prefix('#') {
            heading = Some(title.trim_start_matches('#').trim());
            continue;
        }
        let is_rule = trimmed.bytes().all(|b| matches!(b, b'-' | b'=' | b'*' | b'_' | b'|' | b':' | b' '));
        if is_rule {
            continue;
        }
        let plain = without_marks(trimmed);
        if plain.is_empty() {
            continue;
        }
        match heading.take() {
            Some(title) if !title.is_empty() => out.push(format!("{}: {plain}", without_marks(title))),
            _ => out.push(plain),
        }
    }
    out
}

/// A line without list marks and bold type.
fn without_marks(line: &str) -> String {
    let bare = line.trim_start_matches(['-', '*', '•', '>', '+', ' ']).trim();
    let bare = bare.strip_prefix('|').map_or(bare, |row| row.trim_end_matches('|').trim());
    bare.replace("**", "")
}

/// Sentences of a text: by line, then by closing punctuation followed by space; list marks removed.
pub(crate) fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let mut out = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            in_code = !in_code;
            continue;
        }
        let is_pasted = in_code || trimmed.starts_with(['>', '|', '#']) || looks_like_log(trimmed);
        let bare = trimmed.trim_start_matches(['-', '*', '•', '>', '#', ' ']);
        let bare = without_number(bare);
        split_line(bare, |piece| {
            let text = piece.trim();
            if !text.is_empty() {
                out.push(Sentence { text, is_pasted });
            }
        });
    }
    out
}

/// Sentences that are the writer's own.
pub(crate) fn plain_sentences(text: &str) -> impl Iterator<Item = &str> {
    sentences(text).into_iter().filter(|sentence| !sentence.is_pasted).map(|sentence| sentence.text)
}

/// A line without the number of a list (`3. `, `2) `).
pub(super) fn without_number(line: &str) -> &str {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 3 {
        return line;
    }
    let rest = line.get(digits..).unwrap_or_default();
    match rest.strip_prefix(['.', ')']) {
        Some(after) if after.starts_with(' ') => after.trim_start(),
        _ => line,
    }
}

fn split_line<'a>(line: &'a str, mut piece: impl FnMut(&'a str)) {
    let mut start = 0;
    let mut marks = line.char_indices().peekable();
    while let Some((at, c)) = marks.next() {
        let ends = match c {
            '.' | '!' | '?' => marks.peek().is_none_or(|(_, next)| next.is_whitespace()),
            '。' | '！' | '？' => true,
            _ => false,
        };
        // `e.g. this` and `1. that` go on.
        let is_short = at - start < 4
            || line.get(..at).is_some_and(|before| before.ends_with("e.g") || before.ends_with("i.e"));
        if ends && !(c == '.' && is_short) {
            let end = at + c.len_utf8();
            piece(line.get(start..end).unwrap_or_default());
            start = end;
        }
    }
    piece(line.get(start..).unwrap_or_default());
}

/// Whether a line was printed by a program: a time, a level, a prompt, a place in a file, or hardly any words.
pub(super) fn looks_like_log(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    let digits = first.bytes().filter(u8::is_ascii_digit).count();
    let is_time =
        digits >= 4 && first.len() >= 8 && first.contains([':', '-', '.', '/']) && !first.contains("://");
    let is_level =
        ["error:", "fatal:", "warning:", "hint:", "ERROR", "WARN", "INFO", "DEBUG", "FAIL", "---", "+++"]
            .iter()
            .any(|level| line.starts_with(level));
    let is_prompt =
        ["$ ", "% ", "❯ ", "➜ ", "⏺ ", "⎿", "{\"", "at ", "|"].iter().any(|mark| line.starts_with(mark))
            || first.ends_with('%') && first.contains('@');
    let letters = line.chars().filter(|c| c.is_alphabetic()).count();
    let all = line.chars().filter(|c| !c.is_whitespace()).count();
    is_time || is_level || is_prompt || (all >= 12 && letters * 100 < all * 55)
}

/// Whether a sentence asks something.
pub(crate) fn is_question(sentence: &str) -> bool {
    sentence.trim_end().trim_end_matches(['"', '\'', ')', '*']).ends_with(['?', '？'])
}

/// How sentences begin that only announce what is done next, or cheer.
const ANNOUNCEMENTS: &[&str] = &[
    "let me ",
    "let's ",
    "now let",
    "now i",
    "now the ",
    "now ",
    "i'll ",
    "i will ",
    "i need to ",
    "i should ",
    "i'm going to ",
    "next,",
    "next ",
    "first,",
    "first let",
    "good",
    "great",
    "perfect",
    "excellent",
    "ok,",
    "okay",
    "alright",
    "here's ",
    "here is ",
    "sure",
];

/// Words that give a reason or a contrast: what they stand in tells more than the next step.
const REASONS: &[&str] = &[
    "because",
    "since ",
    "instead",
    "rather than",
    "so that",
    "but ",
    "however",
    "not ",
    "n't ",
    "root cause",
    "which means",
    "found ",
    "confirm",
    "turns out",
    "therefore",
    "weil",
    "statt",
    "sondern",
    "parce que",
    "porque",
    "потому",
    "因为",
    "なので",
];

/// Whether a sentence announces the next step.
pub(crate) fn announces(sentence: &str) -> bool {
    let lower = crate::act::slice_start(sentence, 80).to_lowercase();
    ANNOUNCEMENTS.iter().any(|opening| lower.starts_with(opening)) || sentence.trim_end().ends_with(':')
}

/// Whether a sentence only announces the next step, and gives no reason for it.
pub(crate) fn is_narration(sentence: &str) -> bool {
    let lower = crate::act::slice_start(sentence, 200).to_lowercase();
    let announces = ANNOUNCEMENTS.iter().any(|opening| lower.starts_with(opening));
    if !announces {
        return sentence.trim_end().ends_with(':') && sentence.len() < 90;
    }
    sentence.len() < 220 && !REASONS.iter().any(|reason| begins_word(&lower, reason))
}

/// How much a sentence of the agent tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Weight {
    /// Exact names, paths and numbers in it.
    pub(crate) names: u32,
    /// Whether it states a reason, a contrast or a finding.
    pub(crate) reasons: u32,
}

/// Words by which somebody decides, or states a finding.
const FINDINGS: &[&str] = &[
    "root cause",
    "the issue",
    "the problem",
    "the bug",
    "the fix",
    "fixed",
    "because",
    "instead",
    "rather than",
    "turns out",
    "confirmed",
    "found",
    "decided",
    "chose",
    "so that",
    "means ",
    "however",
    "already",
    "caused",
    "wrong",
    "correct",
    "passes",
    "passed",
    "failed",
    "fails",
    "all tests",
    "works",
    "keep ",
    "removed",
    "added",
    "changed",
    "replaced",
    "no longer",
    "weil",
    "sondern",
    "parce que",
    "porque",
    "потому",
    "因为",
    "所以",
    "原因",
];

/// Weighs a sentence.
pub(crate) fn weigh(sentence: &str) -> Weight {
    let mut names = 0;
    scan_anchors(sentence, |_, kind| names += u32::from(kind != AnchorKind::Number || sentence.len() < 160));
    Weight { names, reasons: findings_in(sentence) }
}

/// Cues by their first letter, each with its bit; and those of other letters, which count anywhere.
struct Findings {
    by_letter: [Vec<(u64, &'static str)>; 26],
    anywhere: Vec<&'static str>,
}

static BY_LETTER: LazyLock<Findings> = LazyLock::new(|| {
    let mut findings = Findings { by_letter: Default::default(), anywhere: Vec::new() };
    for (at, cue) in FINDINGS.iter().copied().enumerate() {
        let first = cue.bytes().next().filter(u8::is_ascii_lowercase);
        match first.and_then(|first| findings.by_letter.get_mut(usize::from(first - b'a'))) {
            Some(cues) => cues.push((1 << at, cue)),
            None => findings.anywhere.push(cue),
        }
    }
    findings
});

/// How many of the cues a sentence has. Its words are walked once, and only cues of their first letter are compared.
fn findings_in(sentence: &str) -> u32 {
    let lower: Cow<'_, str> =
        if sentence.is_ascii() { Cow::Borrowed(sentence) } else { Cow::Owned(sentence.to_lowercase()) };
    let text = lower.as_ref();
    let bytes = text.as_bytes();
    let mut found = 0_u64;
    let mut in_word = false;
    for (at, byte) in bytes.iter().enumerate() {
        let is_letter = byte.is_ascii_alphanumeric();
        if is_letter && !in_word {
            let cues = usize::from(byte.to_ascii_lowercase().wrapping_sub(b'a'));
            for (bit, cue) in BY_LETTER.by_letter.get(cues).into_iter().flatten() {
                let word = bytes.get(at..at + cue.len());
                if word.is_some_and(|word| word.eq_ignore_ascii_case(cue.as_bytes())) {
                    found |= bit;
                }
            }
        }
        // Past the last byte of another script's letter there is a word too.
        in_word = is_letter
            || (!byte.is_ascii()
                && text
                    .get(..=at)
                    .and_then(|before| before.chars().next_back())
                    .is_some_and(char::is_alphanumeric));
    }
    let others = if sentence.is_ascii() { &[] } else { BY_LETTER.anywhere.as_slice() };
    found.count_ones() + others.iter().map(|cue| u32::from(text.contains(cue))).sum::<u32>()
}

/// Words with which people forbid, in several languages. Looked for between word edges, in lower case.
const FORBIDDING: &[&str] = &[
    "don't",
    "dont",
    "do not",
    "never",
    "must not",
    "mustn't",
    "should not",
    "shouldn't",
    "not allowed",
    "no changes",
    "avoid",
    "let's not",
    "nicht",
    "niemals",
    "keine",
    "kein",
    "ne pas",
    "jamais",
    "nunca",
    "jamás",
    "não",
    "не",
    "нельзя",
    "никогда",
];
/// Words with which people demand something for good.
const DEMANDING: &[&str] = &[
    "always",
    "must",
    "keep",
    "make sure",
    "ensure",
    "from now on",
    "at most",
    "at least",
    "prefer",
    "stick to",
    "required",
    "i'd like",
    "i would like",
    "single source",
    "whatever you do",
    "whatever happens",
    "no matter",
    "without exception",
    "let's instead",
    "immer",
    "muss",
    "nur",
    "bitte",
    "toujours",
    "doit",
    "seulement",
    "siempre",
    "debe",
    "sempre",
    "deve",
    "всегда",
    "нужно",
    "должен",
    "только",
    "only use",
];
/// The same in scripts without spaces.
const ANYWHERE: &[&str] = &[
    "不要",
    "必须",
    "别",
    "总是",
    "只能",
    "请用",
    "不能",
    "禁止",
    "しないで",
    "必ず",
    "ないでください",
    "だけ",
    "하지 마",
    "반드시",
    "항상",
];
/// How sentences begin that state a rule within a longer document: there, a cue further on is mostly a description.
const RULE_OPENINGS: &[&str] = &[
    "no ",
    "(no ",
    "never ",
    "always ",
    "do not ",
    "don't ",
    "must ",
    "all ",
    "each ",
    "every ",
    "only ",
    "keep ",
    "run `",
    "avoid ",
    "nicht ",
    "immer ",
    "keine ",
    "nur ",
    "ne pas ",
    "toujours ",
    "nunca ",
    "siempre ",
    "никогда ",
    "всегда ",
];

struct Cues {
    words: FxHashSet<&'static str>,
    phrases: Vec<&'static str>,
}

fn cues(list: &'static [&'static str]) -> Cues {
    let (phrases, words): (Vec<_>, Vec<_>) = list.iter().copied().partition(|cue| cue.contains([' ', '\'']));
    Cues { words: words.into_iter().collect(), phrases }
}

static FORBID: LazyLock<Cues> = LazyLock::new(|| cues(FORBIDDING));
static DEMAND: LazyLock<Cues> = LazyLock::new(|| cues(DEMANDING));

impl Cues {
    fn stand_in(&self, lower: &str) -> bool {
        lower.split(|c: char| !c.is_alphanumeric()).any(|word| self.words.contains(word))
            || self.phrases.iter().any(|phrase| at_word_edge(lower, phrase))
    }
}

/// Whether a cue stands in a text at the beginning of a word, or anywhere where it is not made of letters.
pub(crate) fn begins_word(text: &str, cue: &str) -> bool {
    let anywhere = !cue.starts_with(|c: char| c.is_ascii_alphabetic());
    text.match_indices(cue).any(|(at, _)| {
        anywhere
            || !text
                .get(..at)
                .and_then(|before| before.chars().next_back())
                .is_some_and(char::is_alphanumeric)
    })
}

fn at_word_edge(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + phrase.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// How strongly a sentence of the person demands something for good: 0 for a sentence that does not, 3 for a prohibition.
pub(crate) fn is_rule(sentence: &str) -> u8 {
    let trimmed = sentence.trim_end();
    if is_question(trimmed) || trimmed.ends_with(':') {
        return 0;
    }
    let lower = sentence.to_lowercase().replace('\u{2019}', "'");
    if ANYWHERE.iter().any(|cue| lower.contains(cue)) {
        return 3;
    }
    if lower.starts_with("no ") && lower.len() > 12 || lower.contains("(no ") || FORBID.stand_in(&lower) {
        return 3;
    }
    if DEMAND.stand_in(&lower) || lower.ends_with("exactly.") || lower.ends_with("exactly") {
        return 2;
    }
    u8::from(RULE_OPENINGS.iter().any(|opening| lower.starts_with(opening)))
}

/// Words of politeness: they ask, and demand nothing for good.
const POLITE: &[&str] =
    &["i'd like", "i would like", "bitte", "please", "s'il te plaît", "s'il vous plaît", "por favor"];

/// Whether a sentence is a rule by its politeness alone.
pub(crate) fn asks_politely(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('\u{2019}', "'");
    let polite = POLITE.iter().find(|cue| begins_word(&lower, cue));
    polite.is_some_and(|cue| is_rule(&lower.replace(cue, " ")) == 0)
}

/// As [`is_rule`], for a sentence of a long document such as a plan.
pub(crate) fn is_rule_of_document(sentence: &str) -> u8 {
    let lower = sentence.to_lowercase();
    let bare = lower.trim_start_matches(['*', '`', '"', ' ']);
    let is_direct = RULE_OPENINGS.iter().any(|opening| bare.starts_with(opening))
        || lower.contains("(no ")
        || lower.trim_end_matches('.').ends_with("exactly")
        || lower.contains("single source");
    // `No explicit hook: ...` and `Pattern:** ...` describe; a rule is one clause.
    let describes = sentence.contains("**") || bare.contains("existing ") || bare.contains("still ");
    if is_direct && !describes { is_rule(sentence) } else { 0 }
}

#[cfg(test)]
#[path = "prose_tests.rs"]
mod tests;
