//! Runs of commands: how they ended, and the lines of their output that tell it.

use serde::{Deserialize, Serialize};

use super::checks::check_of;
use super::prose::weigh;
use crate::act::{Act, ActOutcome, CallStatus, one_line, only_looks, slice_end, slice_start};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// The evidence says that it did what it should.
    Ok,
    /// The evidence says that it did not.
    Failed,
    /// The person did not let it run.
    Refused,
    /// Nothing says how it ended.
    Unknown,
}

/// A command that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The message that called it.
    pub message: u32,
    /// The message with its result.
    pub result: u32,
    /// The command, in one line.
    pub command: String,
    /// How it ended.
    pub outcome: RunOutcome,
    /// Whether it only shows something.
    pub looks: bool,
    /// The lines of its output that tell the result.
    pub lines: Vec<String>,
}

impl Run {
    /// Whether the person ran it and pasted what it printed.
    #[must_use]
    pub(crate) fn is_by_person(&self) -> bool {
        self.message == self.result
    }

    /// How it ended, in a word.
    #[must_use]
    pub fn outcome_word(&self) -> &'static str {
        match self.outcome {
            RunOutcome::Ok => "ok",
            RunOutcome::Failed => "failed",
            RunOutcome::Refused => "rejected by the person",
            RunOutcome::Unknown => "unknown",
        }
    }
}

/// Lines kept of one output.
const MAX_LINES: usize = 3;
/// Lines kept of what a command that only looks shows.
const SHOWN_LINES: usize = 8;
/// A line is cut here.
const MAX_LINE_CHARS: usize = 150;
/// Longer commands are cut in the state; the original has the rest.
const MAX_COMMAND_CHARS: usize = 200;
/// The beginning and the end of an output are looked at.
const WINDOW_BYTES: usize = 4 * 1024;

/// Reads a run.
pub(super) fn run(act: &Act, outcome: &ActOutcome, printed: &str) -> Run {
    let looks = only_looks(&act.target);
    let ended = ended(act, outcome, printed, looks);
    let lines = match ended {
        RunOutcome::Failed => failing_lines(outcome, printed),
        RunOutcome::Refused => Vec::new(),
        RunOutcome::Ok | RunOutcome::Unknown => telling_lines(outcome, printed, looks),
    };
    Run {
        message: act.message,
        result: outcome.message,
        command: one_line(&act.target, MAX_COMMAND_CHARS),
        outcome: ended,
        looks,
        lines,
    }
}

/// A command without what only cuts or redirects its output: `go test ./... 2>&1 | tail -5` tests what `go test ./...` does.
pub(crate) fn core_of(command: &str) -> &str {
    command.split(" | ").next().unwrap_or(command).trim_end_matches("2>&1").trim_end()
}

/// Of commands that are the same for so many characters only the newest is listed.
pub(crate) const SAME_START_CHARS: usize = 36;
/// A shorter command stands in other words by chance: `git gc` does not. One word has to be longer.
const LEAST_COMMAND_BYTES: usize = 6;
const LEAST_WORD_BYTES: usize = 12;

/// Whether a text names a command: its beginning where it is long, otherwise all of it, and not as part of a longer word.
pub(crate) fn names_command(text: &str, command: &str) -> bool {
    let core = core_of(command);
    let start = slice_start(core, SAME_START_CHARS);
    let least = if start.contains(' ') { LEAST_COMMAND_BYTES } else { LEAST_WORD_BYTES };
    if start.len() < least {
        return false;
    }
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/');
    text.match_indices(start).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + start.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_word) && (start.len() < core.len() || !after.is_some_and(is_word))
    })
}

/// Whether a line tells how a command ended: the same one, or where it is cut, one that begins alike.
pub(crate) fn tells_run(line: &str, command: &str) -> bool {
    let told = line.strip_prefix('`').and_then(|rest| rest.split('`').next()).unwrap_or_default();
    let start = slice_start(command, SAME_START_CHARS);
    core_of(told) == core_of(command) || (start.len() < command.len() && told.starts_with(start))
}

/// Whether a test whose output went through a pipe printed something that sums nothing up: the status of the pipe is that
/// of its last command, and what was printed may be any part of the output.
fn hides_verdict(command: &str, outcome: &ActOutcome, printed: &str) -> bool {
    command.contains(" | ")
        && check_of(command) == Some("test")
        && outcome.verdict.is_none()
        && !printed.trim().is_empty()
}

fn ended(act: &Act, outcome: &ActOutcome, printed: &str, looks: bool) -> RunOutcome {
    if outcome.not_run {
        return RunOutcome::Refused;
    }
    match outcome.status {
        CallStatus::Failed => return RunOutcome::Failed,
        CallStatus::Ok if fell_back(&act.target, printed) => return RunOutcome::Failed,
        CallStatus::Ok if hides_verdict(&act.target, outcome, printed) => return RunOutcome::Unknown,
        CallStatus::Ok => return RunOutcome::Ok,
        CallStatus::Unknown => {}
    }
    if looks && says_nothing_found(printed) {
        return RunOutcome::Failed;
    }
    if is_still_running(printed) {
        return RunOutcome::Unknown;
    }
    if fell_back(&act.target, printed) {
        return RunOutcome::Failed;
    }
    if !looks && windows(printed).iter().any(|window| window.lines().any(is_diagnostic)) {
        return RunOutcome::Failed;
    }
    // Behind a pipe, output without any sign of failure is evidence, unless it is part of the output of a test. Where no
    // status is stated at all, output is none.
    let is_told_by_output = outcome.is_hidden_success
        && printed.trim().len() > 1
        && !hides_verdict(&act.target, outcome, printed);
    if is_told_by_output { RunOutcome::Ok } else { RunOutcome::Unknown }
}

/// Whether an output says that the command goes on in the background.
pub(super) fn is_still_running(printed: &str) -> bool {
    slice_start(printed, 300).lines().take(3).any(|line| {
        let line = line.trim_start_matches(['[', '<', ' ']);
        [
            "Command running in background",
            "Process running with session",
            "Command is still running",
            "<retrieval_status>timeout",
        ]
        .iter()
        .any(|mark| line.starts_with(mark))
    })
}

/// Whether a command printed what it was to print in case it fails: `build || echo "no build"`.
fn fell_back(command: &str, printed: &str) -> bool {
    if command.contains("&& echo") {
        return false;
    }
    let Some((_, words)) = command.rsplit_once("|| echo ") else { return false };
    let words = words.trim().trim_matches(['"', '\'']);
    !words.is_empty() && printed.lines().next_back().is_some_and(|line| line.trim() == words)
}

/// Whether all that a command printed is that something is not there.
fn says_nothing_found(printed: &str) -> bool {
    let text = printed.trim();
    let lower = slice_start(text, 200).to_lowercase();
    text.len() < 160
        && ["not found", "no such file", "does not exist"].iter().any(|words| lower.contains(words))
}

fn windows(printed: &str) -> [&str; 2] {
    if printed.len() > 2 * WINDOW_BYTES {
        [slice_start(printed, WINDOW_BYTES), slice_end(printed, WINDOW_BYTES)]
    } else {
        [printed, ""]
    }
}

/// `src/main.go:12:5: undefined: x`: what compilers and linters print for a finding.
pub(super) fn is_diagnostic(line: &str) -> bool {
    let line = line.trim();
    let line = line.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(line, |(_, rest)| rest);
    let mut parts = line.splitn(4, ':');
    let (Some(file), Some(row), Some(column), Some(said)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let is_number =
        |text: &str| !text.is_empty() && text.len() <= 6 && text.bytes().all(|b| b.is_ascii_digit());
    let is_file = !file.contains(char::is_whitespace) && file.contains('.') && file.len() < 160;
    is_file && is_number(row) && is_number(column) && said.trim().len() > 3
}

/// Whether a line says what stands in the way of a merge.
pub(super) fn is_conflict(line: &str) -> bool {
    line.starts_with("CONFLICT (")
}

/// Prompts of shells. `>` also begins a quote, so that its command has to be one of a known program.
const PROMPTS: [&str; 5] = ["$ ", "% ", "❯ ", "➜ ", "> "];
const PROGRAMS: &[&str] = &[
    "git",
    "gh",
    "go",
    "cargo",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "make",
    "docker",
    "kubectl",
    "python",
    "python3",
    "pytest",
    "pip",
    "node",
    "mise",
    "terraform",
    "mvn",
    "gradle",
    "dotnet",
    "rails",
    "bundle",
];
/// How a line begins with which a program says that it failed.
const FAILURES: [&str; 6] = ["fatal:", "error:", "Error:", "ERROR", "panic:", "FAIL"];
/// Commands read from one message of the person.
const PASTED_RUNS: usize = 8;

/// Commands that the person ran and pasted with what they printed.
pub(super) fn pasted_runs(index: u32, words: &str) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for line in words.lines().map(str::trim) {
        if let Some(command) = pasted_command(line) {
            if out.len() >= PASTED_RUNS {
                break;
            }
            out.push(Run {
                message: index,
                result: index,
                command: one_line(command, MAX_COMMAND_CHARS),
                outcome: RunOutcome::Unknown,
                looks: only_looks(command),
                lines: Vec::new(),
            });
        } else if let Some(run) = out.last_mut()
            && FAILURES.iter().any(|mark| line.starts_with(mark))
        {
            run.outcome = RunOutcome::Failed;
        }
    }
    out
}

fn pasted_command(line: &str) -> Option<&str> {
    let (prompt, command) = PROMPTS.iter().find_map(|prompt| Some((*prompt, line.strip_prefix(prompt)?)))?;
    let program = command.split_whitespace().next()?;
    let is_known = PROGRAMS.contains(&program);
    (is_known || prompt != "> " && program.starts_with("./")).then_some(command.trim())
}

fn failing_lines(outcome: &ActOutcome, printed: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut push = |line: &str| {
        let line = one_line(line, MAX_LINE_CHARS);
        if !line.is_empty() && !out.contains(&line) && out.len() < MAX_LINES {
            out.push(line);
        }
    };
    for window in windows(printed) {
        window.lines().filter(|line| is_diagnostic(line) || is_conflict(line.trim())).for_each(&mut push);
    }
    let tells = |line: &&str| !line.starts_with("Exit code") && line.len() > 8;
    outcome.errors.iter().map(String::as_str).filter(tells).for_each(&mut push);
    out
}

/// Fewer words are no sentence: `"type": "assistant"`.
const LEAST_VALUE_WORDS: usize = 4;

/// A line as people read it: of a member of an object its value, if that is a sentence; nothing of other data and of what
/// only frames a change.
fn readable_line(line: &str) -> Option<&str> {
    // The number that a search prints before a line.
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let line = line
        .get(digits..)
        .and_then(|rest| rest.strip_prefix([':', '-']))
        .filter(|_| digits > 0)
        .unwrap_or(line);
    if let Some((_, value)) = line.strip_prefix('"').and_then(|rest| rest.split_once("\": \"")) {
        let value = value.trim_end_matches([',', '"']);
        return (value.split_whitespace().count() >= LEAST_VALUE_WORDS).then_some(value);
    }
    let frames = [
        "diff --git ",
        "index ",
        "@@ ",
        "+++ ",
        "--- ",
        "<!--",
        "<<<<<<< ",
        "=======",
        ">>>>>>> ",
        "-rw",
        "drwx",
        "total ",
    ];
    let is_data = line.starts_with(['{', '}', '"', '<'])
        || line.starts_with("[{")
        || line.starts_with("[\"")
        || line.matches("\":").count() > 1
        || matches!(line, "null" | "true" | "false");
    (!is_data && !frames.iter().any(|frame| line.starts_with(frame))).then_some(line)
}

/// Of what a command shows: how it begins, and the lines that tell most.
fn shown_lines(printed: &str) -> Vec<String> {
    let tells = |line: &&str| line.chars().filter(|c| c.is_alphanumeric()).count() > 3;
    let lines: Vec<&str> =
        printed.lines().map(str::trim).filter(tells).filter_map(readable_line).take(80).collect();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    let worth = |at: &usize| {
        let weight = lines.get(*at).map(|line| weigh(slice_start(line, 400))).unwrap_or_default();
        weight.names.min(3) + 2 * weight.reasons.min(2)
    };
    let worths: Vec<u32> = order.iter().map(worth).collect();
    order.sort_by_key(|at| (*at > 1, std::cmp::Reverse(worths.get(*at).copied().unwrap_or(0)), *at));
    order.truncate(SHOWN_LINES);
    order.sort_unstable();
    order.into_iter().filter_map(|at| lines.get(at)).map(|line| one_line(line, MAX_LINE_CHARS)).collect()
}

/// Lines that tell the result of a run that did not fail: what it sums up to, what it made, or how it begins.
fn telling_lines(outcome: &ActOutcome, printed: &str, looks: bool) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let tells = |line: &&str| line.chars().filter(|c| c.is_alphanumeric()).count() > 3;
    if looks {
        return shown_lines(slice_start(printed, WINDOW_BYTES));
    }
    for window in windows(printed) {
        let telling = |line: &&str| {
            let line = line.trim();
            line.starts_with('[') && line.contains("] ") && line.len() < 120
                || line.contains("://")
                || line.contains("->")
                || line.contains("changed,")
                || line.contains("0 issues")
        };
        out.extend(window.lines().filter(telling).take(MAX_LINES).map(|line| one_line(line, MAX_LINE_CHARS)));
    }
    out.extend(outcome.verdict.clone());
    out.dedup();
    out.truncate(MAX_LINES);
    if out.is_empty() {
        let last = printed.lines().rev().map(str::trim).find(tells);
        out.extend(last.map(|line| one_line(line, MAX_LINE_CHARS)));
    }
    out
}
