//! Reading a tool's answer: how it ended, how much it was, and what went wrong, word for word.

use throughline_transcript::RawJson;

use super::call::one_line;
use super::envelope::{hits, says_failed, unwrapped};
use super::family::ToolFamily;

/// Error lines kept of one answer.
const MAX_ERROR_LINES: usize = 4;
/// A quoted error line is cut here.
const MAX_ERROR_CHARS: usize = 240;
/// Errors of a long output are looked for in its first and last bytes.
const ERROR_WINDOW_BYTES: usize = 16 * 1024;

/// Answers that clients give in place of a result when a call did not run.
const NOT_RUN: &[&str] = &[
    "Sibling tool call errored",
    "The tool use was rejected",
    "[Request interrupted by user",
    "File has not been read yet",
    "aborted by user",
    "The person did not allow this, and nothing was done",
    "The person stopped the turn before this was run",
    "This was not done: it needs approval",
];

/// How an answer begins that says of itself that it is an error, on wires that have no other place for that.
const ERROR_OPENING: &str = "Error: ";

/// A longer answer that begins so is something that was read.
const LONGEST_PLAIN_ERROR: usize = 4_000;

/// A client's notice without an error mark is no longer than this.
const SHORT_NOTICE_BYTES: usize = 400;

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActOutcome {
    /// Characters of the answer.
    pub chars: u32,
    /// Lines of the answer.
    pub lines: u32,
    /// Hits of a search, where they are told.
    pub hits: Option<u32>,
    /// Exit status of a command, where it is told.
    pub exit: Option<i32>,
    /// Whether it failed: marked so, or a non-zero exit.
    pub failed: bool,
    /// The lines that say what went wrong, as they stand.
    pub errors: Vec<String>,
    /// The last line that sums a run up (`12 passed, 1 failed`), as it stands.
    pub verdict: Option<String>,
    /// The call was refused or cancelled before it ran.
    pub not_run: bool,
    /// The message that carries the answer.
    pub message: u32,
}

impl ActOutcome {
    /// Whether the call ran and did what it should.
    #[must_use]
    pub fn is_success(&self) -> bool {
        !self.failed && !self.not_run
    }

    /// Reads an answer, in an envelope or not.
    #[must_use]
    pub fn read(family: ToolFamily, text: &str, is_error: bool, message: u32) -> Self {
        let is_error = is_error || says_error(family, text);
        let hits = (family == ToolFamily::Search).then(|| hits(text)).flatten();
        let told = text.trim_start().starts_with('{') && says_failed(text);
        let Some(printed) = unwrapped(text) else {
            return Self { hits, ..Self::read_printed(family, text, is_error || told, message) };
        };
        let exit = (family == ToolFamily::Run).then(|| exit_status(text)).flatten();
        let failed = is_error || exit.map_or(told, |code| code != 0);
        let mut outcome = Self { hits, ..Self::read_printed(family, &printed, failed, message) };
        outcome.exit = exit.or(outcome.exit);
        if exit == Some(0) && !is_error {
            // The status knows better than words at the end of the output.
            outcome.failed = false;
            outcome.errors.clear();
        }
        outcome
    }

    fn read_printed(family: ToolFamily, text: &str, is_error: bool, message: u32) -> Self {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let lines = breaks + usize::from(!text.is_empty() && !text.ends_with('\n'));
        let lines = u32::try_from(lines).unwrap_or(u32::MAX);
        let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let exit = (family == ToolFamily::Run).then(|| exit_status(text)).flatten();
        let failed = is_error || exit.is_some_and(|code| code != 0);
        let mut outcome = Self { chars, lines, exit, failed, message, ..Self::default() };
        if (is_error || text.len() < SHORT_NOTICE_BYTES)
            && NOT_RUN.iter().any(|mark| slice_start(text, 400).contains(mark))
        {
            // The tool never ran; there is no error to carry.
            outcome.not_run = true;
            return outcome;
        }
        if failed || (family == ToolFamily::Run && exit.is_none() && ends_badly(text)) {
            outcome.errors = error_lines(text);
            outcome.failed = failed || !outcome.errors.is_empty();
        }
        if family == ToolFamily::Run {
            outcome.verdict = verdict_line(text);
        }
        outcome
    }
}

/// Whether an answer without a mark says in plain words that it is an error. What a command printed says so by its status.
fn says_error(family: ToolFamily, text: &str) -> bool {
    text.starts_with(ERROR_OPENING)
        && text.len() < LONGEST_PLAIN_ERROR
        && (family != ToolFamily::Run || exit_status(text).is_none())
}

/// The exit status told in an answer, in the forms agents use.
fn exit_status(text: &str) -> Option<i32> {
    let head = slice_start(text, 400);
    let tail = slice_end(text, 400);
    if head.trim_start().starts_with('{') {
        let object = RawJson(text.trim());
        let direct =
            object.get("exit_code").or_else(|| object.get("metadata").and_then(|m| m.get("exit_code")));
        if let Some(code) = direct.and_then(|raw| raw.0.parse().ok()) {
            return Some(code);
        }
    }
    for place in [head, tail] {
        // Every form has these letters; looking for them first is cheap.
        if memchr::memmem::find(place.as_bytes(), b"xit").is_none() {
            continue;
        }
        for mark in
            ["Exit code ", "exit code ", "Exit code: ", "xited with code ", "exit status ", "exit_code: "]
        {
            if let Some(code) = place.rfind(mark).and_then(|at| leading_number(place.get(at + mark.len()..)?))
            {
                return Some(code);
            }
        }
    }
    None
}

fn leading_number(text: &str) -> Option<i32> {
    let digits: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == '-').take(6).collect();
    digits.parse().ok()
}

/// The first `bytes` bytes, cut at a character.
pub(crate) fn slice_start(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The last `bytes` bytes, cut at a character.
pub(crate) fn slice_end(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

/// Whether the end of a command's output speaks of failure although no status is told.
fn ends_badly(text: &str) -> bool {
    let tail = slice_end(text, 600);
    ["FAIL", "error:", "Error:", "panicked at", "Traceback", "fatal:", "npm ERR!", "FAILED"]
        .iter()
        .any(|mark| memchr::memmem::find(tail.as_bytes(), mark.as_bytes()).is_some())
}

/// Whether a line says what went wrong.
fn is_error_line(line: &str) -> bool {
    const MARKS: &[&str] = &[
        "error",
        "Error",
        "ERROR",
        "FAIL",
        "fail:",
        "failed",
        "panic",
        "exception",
        "Exception",
        "Traceback",
        "fatal",
        "not found",
        "No such file",
        "denied",
        "cannot ",
        "undefined",
        "mismatch",
        "expected",
        "timed out",
        "refused",
        "unable to",
        "invalid",
        "conflict",
    ];
    MARKS.iter().any(|mark| line.contains(mark))
}

/// `==== FAILURES ====` and the like say nothing that the lines below do not.
fn is_banner(line: &str) -> bool {
    line.starts_with("====") || line.starts_with("----") || line.starts_with("____")
}

fn error_lines(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (head, tail) = if text.len() > 2 * ERROR_WINDOW_BYTES {
        (slice_start(text, ERROR_WINDOW_BYTES), slice_end(text, ERROR_WINDOW_BYTES))
    } else {
        (text, "")
    };
    for line in head.lines().chain(tail.lines()) {
        let trimmed = line.trim();
        if trimmed.len() >= 4 && !is_banner(trimmed) && is_error_line(trimmed) {
            let quoted = one_line(trimmed, MAX_ERROR_CHARS);
            if !found.contains(&quoted) {
                found.push(quoted);
            }
            if found.len() >= MAX_ERROR_LINES {
                break;
            }
        }
    }
    if found.is_empty() {
        let first = text.lines().map(str::trim).find(|line| line.len() > 3 && !line.starts_with("Exit code"));
        found.extend(first.map(|line| one_line(line, MAX_ERROR_CHARS)));
    }
    found
}

/// The line near the end that sums up a test run or build.
fn verdict_line(text: &str) -> Option<String> {
    const WORDS: [&str; 9] =
        ["passed", "failed", "test result", "Finished", "ok  \t", "PASS", "FAIL", "Tests:", "0 issues"];
    let tail = slice_end(text, 700);
    let holds = |text: &str, word: &str| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some();
    // Few outputs sum anything up; one look at all lines is cheaper than one at each.
    if !WORDS.iter().any(|word| holds(tail, word)) {
        return None;
    }
    let sums_up = |line: &&str| {
        let has_count = line.bytes().any(|b| b.is_ascii_digit());
        has_count && line.len() < 200 && WORDS.iter().any(|word| holds(line, word))
    };
    tail.lines().rev().map(str::trim).find(sums_up).map(|line| one_line(line, 160))
}
