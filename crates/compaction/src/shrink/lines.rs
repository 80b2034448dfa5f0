//! Text in lines: which lines report an error, which remain, and how gaps between them are marked.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::draft::{Draft, MARK};

/// Number of first and last lines of a log that remain: a command reports its task at the start and its result at the end.
const FIRST_LINES: usize = 10;
const LAST_LINES: usize = 15;
/// Lines that remain before and after one with an error.
const AROUND_ERROR: usize = 2;
/// The maximum number of lines of new kinds that remain.
const MOST_NEW_KINDS: usize = 40;
/// A longer line is reduced to its beginning and its end.
const LONG_LINE_BYTES: usize = 2_000;
const LONG_LINE_FIRST: usize = 600;
const LONG_LINE_LAST: usize = 200;
/// The length of the part around the error in a long line.
const LONG_ERROR_BYTES: usize = 1_000;

/// Matches a word that occurs only in lines with an error.
static ERROR: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(ERROR_WORDS).ok());
const ERROR_WORDS: &str = r"(?i-u)error|fail|panic|exception|fatal|traceback|denied|cannot|not found|no such|undefined|segfault|assert|abort";

/// The lines of a text.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut lines = Vec::with_capacity(text.len() / 32 + 1);
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
        lines.push(text.get(start..end).unwrap_or_default());
        start = end + 1;
    }
    lines.push(text.get(start..).unwrap_or_default());
    lines
}

/// Returns the position of the first error in a text.
pub(super) fn error_at(text: &str) -> Option<usize> {
    ERROR.as_ref()?.find(text).map(|found| found.start())
}

/// Whether a line reports an error.
pub(super) fn tells_of_error(line: &str) -> bool {
    ERROR.as_ref().is_some_and(|error| error.is_match(line))
}

/// Returns the lines that report an error, in one pass over the whole text.
pub(super) fn error_lines(lines: &[&str], text: &str) -> Vec<usize> {
    let base = text.as_ptr() as usize;
    let start_of = |index: usize| lines.get(index).map_or(text.len(), |line| line.as_ptr() as usize - base);
    let mut found = Vec::new();
    let Some(error) = ERROR.as_ref() else { return found };
    let (mut index, mut from) = (0, 0);
    while let Some(hit) = error.find_at(text, from) {
        // The next line starts after the match: between them there is at least this one.
        let ahead = lines.get(index..).unwrap_or_default();
        index += ahead.partition_point(|line| line.as_ptr() as usize - base <= hit.start()).saturating_sub(1);
        found.push(index);
        index += 1;
        if index >= lines.len() {
            break;
        }
        from = start_of(index);
    }
    found
}

/// The selection from a list of lines.
pub(super) struct LineChoice {
    keep: Vec<bool>,
}

impl LineChoice {
    pub(super) fn new(lines: usize) -> Self {
        Self { keep: vec![false; lines] }
    }

    pub(super) fn keep(&mut self, index: usize) {
        if let Some(kept) = self.keep.get_mut(index) {
            *kept = true;
        }
    }

    pub(super) fn keep_around(&mut self, index: usize, lines: usize) {
        for near in index.saturating_sub(lines)..=index.saturating_add(lines) {
            self.keep(near);
        }
    }

    pub(super) fn has(&self, index: usize) -> bool {
        self.keep.get(index).copied().unwrap_or(false)
    }

    /// Returns the chosen lines with a mark for each gap that is longer than its mark, and the number of lines left out.
    pub(super) fn render(&self, lines: &[&str]) -> (String, usize) {
        let mut out = String::new();
        let (mut left_out, mut at) = (0, 0);
        let push = |out: &mut String, line: &str| {
            out.push_str(line);
            out.push('\n');
        };
        while at < lines.len() {
            if self.has(at) {
                push(&mut out, &shortened(lines[at]));
                at += 1;
                continue;
            }
            let end = (at..lines.len()).find(|index| self.has(*index)).unwrap_or(lines.len());
            let gap = &lines[at..end];
            let mark = format!("{MARK}{}]", super::lines::counted(gap.len(), "line"));
            if gap.iter().map(|line| line.len() + 1).sum::<usize>() > mark.len() + 1 {
                push(&mut out, &mark);
                left_out += gap.len();
            } else {
                gap.iter().for_each(|line| push(&mut out, line));
            }
            at = end;
        }
        // The last line of a text has no line break after it.
        out.pop();
        (out, left_out)
    }
}

/// Shortens a log to its errors with their context, its beginning and end, and the first line of each kind.
pub(super) fn shrink_log(lines: &[&str], text: &str) -> Draft {
    let mut choice = LineChoice::new(lines.len());
    let last = lines.len().saturating_sub(LAST_LINES);
    (0..FIRST_LINES.min(lines.len())).chain(last..lines.len()).for_each(|index| choice.keep(index));
    let mut known_errors: HashMap<&str, ()> = HashMap::new();
    for index in error_lines(lines, text) {
        // A repeated line says nothing new.
        if known_errors.insert(lines[index], ()).is_none() {
            choice.keep_around(index, AROUND_ERROR);
        }
    }
    let mut kinds: HashMap<u64, ()> = HashMap::new();
    for (index, line) in lines.iter().enumerate() {
        if kinds.len() >= MOST_NEW_KINDS {
            break;
        }
        if kinds.insert(kind_of(line), ()).is_none() {
            choice.keep(index);
        }
    }
    let (text, left_out) = choice.render(lines);
    Draft { text, left_out: format!("{} of {}", counted(left_out, "line"), lines.len()) }
}

/// Returns the kind of a line: a hash of it without its numbers.
fn kind_of(line: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut was_digit = false;
    for byte in line.bytes() {
        let is_digit = byte.is_ascii_digit();
        if !(is_digit && was_digit) {
            let byte = if is_digit { b'0' } else { byte };
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        was_digit = is_digit;
    }
    hash
}

/// Returns a line of limited length: of a long one, the beginning and end, or the text around its error.
pub(super) fn shortened(line: &str) -> std::borrow::Cow<'_, str> {
    if line.len() <= LONG_LINE_BYTES {
        return line.into();
    }
    let (from, to) = match error_at(line) {
        Some(at) => (at.saturating_sub(LONG_ERROR_BYTES / 2), at + LONG_ERROR_BYTES / 2),
        None => (0, LONG_LINE_FIRST),
    };
    let from = line.floor_char_boundary(from);
    let to = line.floor_char_boundary(to.min(line.len()));
    let last = line.ceil_char_boundary(line.len().saturating_sub(LONG_LINE_LAST).max(to));
    let shown = line.get(from..to).unwrap_or_default();
    let end = line.get(last..).unwrap_or_default();
    let before = if from > 0 { format!("{MARK}{from} bytes]") } else { String::new() };
    let after = if last > to { format!("{MARK}{} bytes]", last - to) } else { String::new() };
    format!("{before}{shown}{after}{end}").into()
}

/// A count with its noun.
pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
