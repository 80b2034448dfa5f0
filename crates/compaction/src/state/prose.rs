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

/// A line of a text that is worth a line in notes, with what it stands under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The heading, the line that leads to a list, or the names of a table's columns; empty where there is none.
    pub(crate) lead: String,
    /// The line, without list marks and bold type.
    pub(crate) text: String,
}

/// A lead is cut here.
const LEAD_CHARS: usize = 90;
/// A shorter lead says little without the heading above it: `Pros`.
const SHORT_LEAD_CHARS: usize = 24;
/// What stands before the last sentence of a line that leads on is a line of its own from this length: not `1. `.
const LEAST_TOLD_BYTES: usize = 12;
/// Lines kept of a block of code.
const CODE_LINES: usize = 2;

/// The lines of a text that are worth a line in notes: blocks of code shortened to their first lines, rules and empty
/// lines dropped. Each knows its heading or the line that leads to it, so that it can be told without its neighbours.
pub(crate) fn units(text: &str) -> Vec<Unit> {
    let mut reader = UnitReader::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let columns = lines.peek().is_some_and(|next| is_rule_of_table(next.trim()));
        reader.read(line, columns);
    }
    reader.flush();
    reader.out
}

#[derive(Default)]
struct UnitReader {
    out: Vec<Unit>,
    heading: String,
    /// The line that leads to a list, how far in it stands, and whether it is an item itself.
    lead: Option<(String, usize, bool)>,
    /// The same, until what follows shows that it leads to something.
    pending: Option<(String, usize, bool)>,
    /// The names of a table's columns.
    columns: String,
    /// Lines of the block of code that is being read.
    code: Option<usize>,
}

impl UnitReader {
    fn read(&mut self, line: &str, names_columns: bool) {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            self.code = if self.code.is_some() { None } else { Some(0) };
            self.lead = self.pending.take().or(self.lead.take());
            return;
        }
        if let Some(lines) = &mut self.code {
            *lines += 1;
            if *lines <= CODE_LINES && trimmed.len() > 3 {
                self.push(format!("`{}`", trimmed.trim_matches('`')));
            }
            return;
        }
        let is_row = trimmed.starts_with('|');
        if !is_row {
            self.columns.clear();
        }
        if let Some(title) = trimmed.strip_prefix('#') {
            self.flush();
            self.lead = None;
            self.heading =
                without_marks(title.trim_start_matches('#').trim()).trim_end_matches(':').to_owned();
            return;
        }
        let is_rule = trimmed.bytes().all(|b| matches!(b, b'-' | b'=' | b'*' | b'_' | b'|' | b':' | b' '));
        if is_rule {
            return;
        }
        let plain = if is_row { row(trimmed) } else { without_marks(trimmed) };
        if plain.is_empty() {
            return;
        }
        if is_row && names_columns {
            // Two columns explain themselves.
            self.columns = if plain.contains(" | ") { plain } else { String::new() };
            self.lead = self.pending.take().or(self.lead.take());
            return;
        }
        let indent = line.len() - line.trim_start().len();
        let is_item = trimmed.starts_with(['-', '*', '•', '+']) && !trimmed.starts_with("**")
            || without_number(trimmed).len() < trimmed.len();
        let is_bold = trimmed.starts_with("**") && trimmed.trim_end_matches(':').ends_with("**");
        if is_bold && !is_item && trimmed.matches("**").count() == 2 {
            self.flush();
            self.lead = None;
            self.heading = plain.trim_end_matches(':').to_owned();
            return;
        }
        if let Some((_, at, _)) = &self.pending {
            if is_item || is_row || indent > *at {
                self.lead = self.pending.take();
            } else {
                self.flush();
            }
        }
        let is_over = self.lead.as_ref().is_some_and(|(_, at, of_item)| {
            if *of_item { indent <= *at } else { !is_item && !is_row && indent <= *at }
        });
        if is_over {
            self.lead = None;
        }
        if plain.ends_with([':', '：']) {
            // Only the last sentence leads on.
            let (told, leads) = match plain.rfind(". ").map(|at| plain.split_at(at + 1)) {
                Some((told, leads)) if told.len() > LEAST_TOLD_BYTES => (told, leads.trim()),
                _ => ("", plain.as_str()),
            };
            if !told.is_empty() {
                self.push(told.to_owned());
            }
            self.pending = Some((leads.trim_end_matches([':', '：']).to_owned(), indent, is_item));
            return;
        }
        self.push(plain);
    }

    fn push(&mut self, text: String) {
        let lead = match (&self.lead, self.columns.as_str()) {
            (Some((lead, ..)), _) if announces(lead) => self.heading.clone(),
            (Some((lead, ..)), _) if lead.chars().count() < SHORT_LEAD_CHARS && !self.heading.is_empty() => {
                format!("{}, {lead}", self.heading)
            }
            (Some((lead, ..)), _) => lead.clone(),
            (None, "") => self.heading.clone(),
            (None, columns) if self.heading.is_empty() => columns.to_owned(),
            (None, columns) => format!("{} ({columns})", self.heading),
        };
        self.out.push(Unit { lead: crate::act::one_line(&lead, LEAD_CHARS), text });
    }

    /// A line that seemed to lead to a list and does not.
    fn flush(&mut self) {
        if let Some((text, ..)) = self.pending.take() {
            self.lead = None;
            self.push(format!("{text}:"));
        }
    }
}

/// The cells of a table's row; where there are two, the first names the second.
fn row(line: &str) -> String {
    let cells: Vec<String> =
        line.trim_matches('|').split('|').map(|cell| without_marks(cell.trim())).collect();
    match cells.as_slice() {
        [name, value] => format!("{name}: {value}"),
        cells => cells.join(" | "),
    }
}

/// `|---|:--|`: what stands between the names of columns and the rows.
fn is_rule_of_table(line: &str) -> bool {
    line.starts_with('|')
        && line.contains("--")
        && line.bytes().all(|b| matches!(b, b'|' | b'-' | b':' | b' '))
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
pub(crate) fn without_number(line: &str) -> &str {
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
pub(crate) fn looks_like_log(line: &str) -> bool {
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
    let leads = sentence.trim_end().ends_with([':', '：']);
    if !announces {
        return leads && sentence.len() < 90;
    }
    // `Now remove the variable since it is not used:` is carried out by the call that follows.
    let begins_step = leads || STEPS.iter().any(|opening| lower.starts_with(opening));
    let reasons = if begins_step { STEP_REASONS } else { REASONS };
    sentence.len() < 220 && !reasons.iter().any(|reason| begins_word(&lower, reason))
}

/// Announcements of a step that follows at once: only a finding or a choice in them tells more than the step.
const STEPS: &[&str] =
    &["let me ", "let's ", "now let", "now i", "i'll ", "i will ", "i need to ", "i should ", "first let"];
const STEP_REASONS: &[&str] = &[
    "because",
    "since we",
    "instead",
    "rather than",
    "root cause",
    "which means",
    "turns out",
    "weil",
    "statt",
    "sondern",
    "parce que",
    "porque",
    "потому",
    "因为",
    "なので",
];

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
