//! Parses a tool's result: how the call ended, how long the output is, and the error message verbatim.

use super::envelope::{hits, unwrapped};
use super::family::ToolFamily;
use super::status::{CallAnswer, CallStatus, Evidence, read_status};
use super::text::{one_line, slice_end, slice_start};

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

/// A client's notice without an error mark is no longer than this.
const SHORT_NOTICE_BYTES: usize = 400;

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActOutcome {
    /// Characters of the answer.
    pub chars: u32,
    /// Lines of the answer.
    pub lines: u32,
    /// Hits of a search, if it reports them.
    pub hits: Option<u32>,
    /// Exit status of a command, if it is reported.
    pub exit: Option<i32>,
    /// How it ended, as far as the answer shows.
    pub status: CallStatus,
    /// The status is unknown because a pipe or `|| true` hides it; the line as a whole ended with zero.
    pub is_hidden_success: bool,
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
    /// Whether the answer shows that the call failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.status == CallStatus::Failed
    }

    /// Whether the call ran and nothing shows that it failed.
    #[must_use]
    pub fn shows_no_failure(&self) -> bool {
        !self.failed() && !self.not_run
    }

    /// Reads the answer that stands in `message`, in an envelope or not.
    #[must_use]
    pub fn read(answer: &CallAnswer<'_>, message: u32) -> Self {
        let unwrapped = unwrapped(answer.text);
        let printed = unwrapped.as_deref().unwrap_or(answer.text);
        let reading = read_status(answer, printed);
        let is_command = answer.family == ToolFamily::Run;
        let breaks = memchr::memchr_iter(b'\n', printed.as_bytes()).count();
        let lines = breaks + usize::from(!printed.is_empty() && !printed.ends_with('\n'));
        let mut outcome = Self {
            chars: u32::try_from(printed.chars().count()).unwrap_or(u32::MAX),
            lines: u32::try_from(lines).unwrap_or(u32::MAX),
            hits: (answer.family == ToolFamily::Search).then(|| hits(answer.text)).flatten(),
            exit: reading.exit,
            status: reading.status,
            is_hidden_success: reading.evidence == Some(Evidence::EndOfPipe),
            message,
            ..Self::default()
        };
        if (answer.is_error == Some(true)
            || reading.evidence == Some(Evidence::ErrorText)
            || printed.len() < SHORT_NOTICE_BYTES)
            && NOT_RUN.iter().any(|mark| slice_start(printed, 400).contains(mark))
        {
            // The tool never ran; there is no error to carry.
            outcome.not_run = true;
            return outcome;
        }
        if outcome.failed() {
            outcome.errors = error_lines(printed);
        }
        if is_command {
            outcome.verdict = verdict_line(printed);
        }
        outcome
    }
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
