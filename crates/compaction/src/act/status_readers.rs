//! The formats in which agents, shells, test runners and build tools report how a command ended: one reader each.
//!
//! A reader takes text and returns what it reports. It knows nothing of the other readers; `status.rs` weighs them.

use throughline_transcript::RawJson;

use super::result::{slice_end, slice_start};

/// What a reader found. Both flags may be set: a run of several programs can report both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// A failure is reported.
    pub(super) failed: bool,
    /// A success is reported.
    pub(super) succeeded: bool,
    /// The exit status, where it is stated.
    pub(super) exit: Option<i32>,
}

impl Report {
    fn of_exit(code: i32) -> Self {
        Self { failed: code != 0, succeeded: code == 0, exit: Some(code) }
    }

    const FAILED: Self = Self { failed: true, succeeded: false, exit: None };
    const SUCCEEDED: Self = Self { failed: false, succeeded: true, exit: None };
}

/// A named way to read an answer.
pub(super) struct Reader {
    /// For messages of tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests name the reader that went wrong"))]
    pub(super) name: &'static str,
    pub(super) read: fn(&str) -> Report,
}

/// A JSON object around the output, as Hermes, Codex, opencode and many MCP servers send it.
pub(super) const ENVELOPE: Reader = Reader { name: "envelope", read: envelope };
/// A line that states an exit status.
pub(super) const EXIT_STATEMENT: Reader = Reader { name: "exit statement", read: exit_statement };
/// Summaries of test runners and last lines of build tools.
pub(super) const TEST_AND_BUILD: Reader = Reader { name: "test and build summaries", read: test_and_build };
/// An answer that begins by saying that it is an error.
pub(super) const ERROR_TEXT: Reader = Reader { name: "error text", read: error_text };
/// Words near the end of an output that programs print when they fail.
pub(super) const LOOSE_ERROR: Reader = Reader { name: "words of failure", read: loose_error };

/// Statuses are stated at the very beginning or end of an answer.
const STATEMENT_WINDOW_BYTES: usize = 400;
/// A summary is looked for in this much of the beginning and of the end of an output.
const SUMMARY_WINDOW_BYTES: usize = 16 * 1024;
/// A longer line is no summary.
const MAX_SUMMARY_LINE_BYTES: usize = 240;

// ---------------------------------------------------------------------------------------------------------------------
// Envelopes

/// Members that hold an exit status.
const EXIT_KEYS: &[&str] =
    &["exit_code", "exitCode", "exit_status", "exitStatus", "returncode", "return_code", "returnCode"];
/// Members that hold one where the object also has an output; elsewhere they hold anything.
const LOOSE_EXIT_KEYS: &[&str] = &["rc", "exit", "code", "status"];
/// Members that hold what a command printed.
const OUTPUT_KEYS: &[&str] = &["output", "stdout", "stderr"];
/// Members that hold further members about the run.
const INNER_KEYS: &[&str] = &["metadata", "result", "data"];

fn envelope(answer: &str) -> Report {
    let object = RawJson(answer.trim());
    if !object.0.starts_with('{') {
        return Report::default();
    }
    let member = |key: &str| object.get(key);
    let is =
        |keys: &[&str], word: &str| keys.iter().any(|key| member(key).is_some_and(|value| value.0 == word));
    let has_output = OUTPUT_KEYS.iter().any(|key| member(key).is_some());
    let has_error = member("error").and_then(RawJson::as_text).is_some_and(|text| !text.trim().is_empty());
    let status = member("status").filter(|_| has_output || has_error).and_then(RawJson::as_text);
    let status_is = |words: &[&str]| {
        status.as_ref().is_some_and(|status| words.iter().any(|word| status.eq_ignore_ascii_case(word)))
    };
    let inner = || {
        let objects =
            INNER_KEYS.iter().filter_map(|key| member(key)).filter(|inner| inner.0.starts_with('{'));
        objects.filter_map(|inner| exit_member(inner, has_output)).next()
    };
    let exit = exit_member(object, has_output).or_else(inner);
    // Beside a status of zero, words in `error` are a warning.
    let says_error = has_error || status_is(&["error", "failed", "failure", "timeout", "timed_out"]);
    Report {
        failed: is(&["success", "ok"], "false")
            || is(&["is_error", "isError", "timed_out", "timedOut"], "true")
            || exit.map_or(says_error, |code| code != 0),
        succeeded: is(&["success", "ok"], "true")
            || is(&["is_error", "isError"], "false")
            || exit == Some(0)
            || status_is(&["success", "succeeded", "ok"]),
        exit,
    }
}

fn exit_member(object: RawJson<'_>, has_output: bool) -> Option<i32> {
    let loose = if has_output { LOOSE_EXIT_KEYS } else { &[] };
    EXIT_KEYS.iter().chain(loose).find_map(|key| object.get(key)?.0.parse().ok())
}

// ---------------------------------------------------------------------------------------------------------------------
// Exit statements

/// What stands before a status, in lower case. Longer ones first: the first that fits is taken.
const EXIT_PHRASES: &[&str] = &[
    "exited with status code",
    "exited with exit code",
    "exited with code",
    "exited with status",
    "exited with",
    "exit_code",
    "exit-code",
    "exit code",
    "exitcode",
    "exit_status",
    "exit status",
    "exit",
    "return_code",
    "return code",
    "returncode",
    "rc",
];
/// Phrases that are ordinary words too: only a sign or a bracket makes a statement of them (`[exit: 1]`, `rc=1`).
const SHORT_PHRASES: &[&str] = &["exit", "rc"];
/// Lines looked at from the beginning and from the end: agents put a header of a few lines before an output.
const STATEMENT_LINES: usize = 6;
/// Words that may stand before a statement on its line (`Process exited with code 1`).
const MAX_WORDS_BEFORE: usize = 6;

/// The status stated by a line of its own, at the beginning or at the end; failing that, a status other than zero that
/// is mentioned within a line there.
fn exit_statement(text: &str) -> Report {
    let head = slice_start(text, STATEMENT_WINDOW_BYTES);
    let tail = slice_end(text, STATEMENT_WINDOW_BYTES);
    let may_state = |place: &str| {
        ["xit", "XIT", "eturn", "ETURN", "rc", "RC"]
            .iter()
            .any(|letters| memchr::memmem::find(place.as_bytes(), letters.as_bytes()).is_some())
    };
    if !may_state(head) && (text.len() <= STATEMENT_WINDOW_BYTES || !may_state(tail)) {
        return Report::default();
    }
    let lines = || head.lines().take(STATEMENT_LINES).chain(tail.lines().rev().take(STATEMENT_LINES));
    let mut stated: Option<i32> = None;
    let mut mentioned: Option<i32> = None;
    let mut failed = false;
    for line in lines() {
        match statement(line) {
            Some((code, Form::OwnLine)) => {
                failed |= code != 0;
                stated = stated.or(Some(code));
            }
            Some((code, Form::Mention)) if code != 0 => mentioned = mentioned.or(Some(code)),
            _ => {}
        }
    }
    match (stated, mentioned) {
        (Some(code), _) => Report { failed, ..Report::of_exit(code) },
        (None, Some(code)) => Report::of_exit(code),
        (None, None) => Report::default(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The line says nothing else.
    OwnLine,
    /// The line also says something else; it may speak of another program.
    Mention,
}

/// The status in a line.
fn statement(line: &str) -> Option<(i32, Form)> {
    let line = line.trim();
    let bytes = line.as_bytes();
    let mut from = 0;
    while let Some(found) = memchr::memchr2_iter(b'e', b'r', bytes.get(from..)?)
        .chain(memchr::memchr2_iter(b'E', b'R', bytes.get(from..)?))
        .min()
    {
        let at = from + found;
        from = at + 1;
        let starts_word =
            at == 0 || bytes.get(at - 1).is_some_and(|b| !b.is_ascii_alphanumeric() && *b != b'_');
        if !starts_word {
            continue;
        }
        let rest = bytes.get(at..)?;
        let phrase = EXIT_PHRASES.iter().find(|phrase| {
            rest.get(..phrase.len()).is_some_and(|start| start.eq_ignore_ascii_case(phrase.as_bytes()))
        });
        let Some(phrase) = phrase else { continue };
        let before = line.get(..at).unwrap_or_default();
        let after = line.get(at + phrase.len()..).unwrap_or_default();
        let sign = after.bytes().find(|b| *b != b' ');
        let is_marked = matches!(sign, Some(b':' | b'=')) || before.ends_with(['[', '(', '<']);
        if SHORT_PHRASES.contains(phrase) && !is_marked {
            continue;
        }
        let Some((code, end)) = number_after(after) else { continue };
        let ends = end.bytes().all(|b| b.is_ascii_punctuation() || b == b' ');
        if (SHORT_PHRASES.contains(phrase) && !ends) || is_prose(end) {
            continue;
        }
        return Some((code, form(before, end)));
    }
    None
}

/// The number behind a phrase and what follows it.
fn number_after(text: &str) -> Option<(i32, &str)> {
    // `: `, ` = `, `">`: never more than four characters.
    let skip =
        text.bytes().take_while(|b| matches!(b, b' ' | b'\t' | b':' | b'=' | b'"' | b'\'' | b'>')).count();
    if skip == 0 || skip > 4 {
        return None;
    }
    let rest = text.get(skip..)?;
    let sign = usize::from(rest.starts_with('-'));
    let digits = rest.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
    let number = rest.get(..sign + digits).filter(|_| digits > 0)?;
    let end = rest.get(sign + digits..)?;
    let goes_on = end.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
        || (end.starts_with('.') && end.as_bytes().get(1).is_some_and(u8::is_ascii_digit));
    // A status above what a system can return is a failure all the same (`0xC0000005` as a number).
    (!goes_on).then(|| (number.parse().unwrap_or(i32::MAX), end))
}

/// Whether a sentence goes on behind the number: `Exit code 1 on failure` explains a program and reports nothing.
fn is_prose(after: &str) -> bool {
    let Some(word) = after.strip_prefix(' ').and_then(|rest| rest.split_whitespace().next()) else {
        return false;
    };
    let is_word = word.bytes().all(|b| b.is_ascii_alphabetic());
    is_word && !["after", "in", "from", "by", "and", "with"].contains(&word)
}

fn form(before: &str, after: &str) -> Form {
    let opening = before.trim_start_matches(['[', '(', '<', '{', '"', '\'', '*', '#', '`', ' ']);
    if opening.is_empty() {
        return Form::OwnLine;
    }
    let plain = |word: &str| word.bytes().all(|b| b.is_ascii_alphabetic());
    let words = opening.split_whitespace();
    let few = words.clone().count() <= MAX_WORDS_BEFORE && words.clone().all(plain);
    let ends = after.bytes().all(|b| b.is_ascii_punctuation() || b == b' ');
    if few && ends { Form::OwnLine } else { Form::Mention }
}

// ---------------------------------------------------------------------------------------------------------------------
// Summaries of test runners and build tools

/// What a summary counts, and whether a number above zero of it is a failure or shows that something passed.
const COUNTED: &[(&str, Counted)] = &[
    ("passed", Counted::Passed),
    ("pass", Counted::Passed),
    ("passing", Counted::Passed),
    ("passes", Counted::Passed),
    ("success", Counted::Passed),
    ("successes", Counted::Passed),
    ("succeeded", Counted::Passed),
    ("failed", Counted::Failed),
    ("fail", Counted::Failed),
    ("fails", Counted::Failed),
    ("failing", Counted::Failed),
    ("failure", Counted::Failed),
    ("failures", Counted::Failed),
    ("error", Counted::Failed),
    ("errors", Counted::Failed),
    ("broken", Counted::Failed),
    ("timeout", Counted::Failed),
    ("timeouts", Counted::Failed),
    ("skipped", Counted::Other),
    ("skip", Counted::Other),
    ("skips", Counted::Other),
    ("ignored", Counted::Other),
    ("measured", Counted::Other),
    ("filtered", Counted::Other),
    ("pending", Counted::Other),
    ("todo", Counted::Other),
    ("total", Counted::Other),
    ("warning", Counted::Other),
    ("warnings", Counted::Other),
    ("xfailed", Counted::Other),
    ("xpassed", Counted::Other),
    ("deselected", Counted::Other),
    ("rerun", Counted::Other),
    ("flaky", Counted::Other),
    ("slow", Counted::Other),
    ("cancelled", Counted::Other),
    ("leaky", Counted::Other),
    ("test", Counted::Items),
    ("tests", Counted::Items),
    ("testcases", Counted::Items),
    ("runs", Counted::Items),
    ("examples", Counted::Items),
    ("example", Counted::Items),
    ("assertion", Counted::Other),
    ("assertions", Counted::Other),
    ("suites", Counted::Items),
    ("subtests", Counted::Other),
    ("files", Counted::Other),
    ("problems", Counted::Other),
    ("problem", Counted::Other),
    ("expectations", Counted::Other),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Passed,
    Failed,
    /// How many were run: with no failures beside it, they passed.
    Items,
    Other,
}

/// Beginnings of lines by which tools say how they ended. They are compared with the line without leading white space.
const VERDICTS: &[(&str, Report)] = &[
    // go test
    ("--- FAIL: ", Report::FAILED),
    ("FAIL\t", Report::FAILED),
    ("ok  \t", Report::SUCCEEDED),
    // cargo
    ("test result: FAILED", Report::FAILED),
    ("test result: ok", Report::SUCCEEDED),
    ("error: could not compile", Report::FAILED),
    ("error: test failed", Report::FAILED),
    ("error: build failed", Report::FAILED),
    ("error: test run failed", Report::FAILED),
    ("Finished `", Report::SUCCEEDED),
    ("Finished dev", Report::SUCCEEDED),
    ("Finished release", Report::SUCCEEDED),
    ("Finished test", Report::SUCCEEDED),
    // Python's unittest
    ("FAILED (", Report::FAILED),
    ("OK (", Report::SUCCEEDED),
    // pytest
    ("FAILED ", Report::FAILED),
    // jest, vitest
    ("FAIL ", Report::FAILED),
    ("PASS ", Report::SUCCEEDED),
    // TAP and node --test
    ("not ok ", Report::FAILED),
    // Gradle, Maven, Ant, dotnet, Xcode
    ("BUILD FAILED", Report::FAILED),
    ("BUILD FAILURE", Report::FAILED),
    ("[INFO] BUILD FAILURE", Report::FAILED),
    ("BUILD SUCCESS", Report::SUCCEEDED),
    ("[INFO] BUILD SUCCESS", Report::SUCCEEDED),
    ("Build FAILED", Report::FAILED),
    ("Build succeeded", Report::SUCCEEDED),
    ("** BUILD FAILED **", Report::FAILED),
    ("** TEST FAILED **", Report::FAILED),
    ("** BUILD SUCCEEDED **", Report::SUCCEEDED),
    ("FAILURES!", Report::FAILED),
    // npm, yarn, pnpm
    ("npm ERR!", Report::FAILED),
    ("npm error", Report::FAILED),
    ("error Command failed", Report::FAILED),
    ("ELIFECYCLE", Report::FAILED),
    // make, ninja, CMake
    ("ninja: build stopped", Report::FAILED),
    ("-- Configuring incomplete, errors occurred", Report::FAILED),
    // linters and type checkers
    ("All checks passed", Report::SUCCEEDED),
    ("Success: no issues found", Report::SUCCEEDED),
    // shells and agents
    ("Segmentation fault", Report::FAILED),
    ("Command timed out", Report::FAILED),
    ("[Command timed out", Report::FAILED),
    ("[ended by ", Report::FAILED),
];

/// Lines that are a verdict as a whole.
const WHOLE_LINES: &[(&str, Report)] = &[
    ("FAIL", Report::FAILED),
    ("FAILED", Report::FAILED),
    ("PASS", Report::SUCCEEDED),
    ("OK", Report::SUCCEEDED),
    ("Killed", Report::FAILED),
];

/// Letters of which every line of interest has some; looking for them first is cheap.
const LETTERS: &[&str] = &[
    "] ",
    "ail",
    "AIL",
    "rror",
    "RROR",
    "ass",
    "PASS",
    "OK",
    "ok",
    "***",
    "Finished",
    "uccess",
    "UCCESS",
    "ucceeded",
    "UCCEEDED",
    "ault",
    "illed",
    "timed out",
    "ended by",
    "stopped",
    "ELIFECYCLE",
    "ERR",
    "roblem",
];

fn test_and_build(text: &str) -> Report {
    let (head, tail) = if text.len() > 2 * SUMMARY_WINDOW_BYTES {
        (slice_start(text, SUMMARY_WINDOW_BYTES), slice_end(text, SUMMARY_WINDOW_BYTES))
    } else {
        (text, "")
    };
    let mut report = Report::default();
    for window in [head, tail] {
        let holds = |letters: &&str| memchr::memmem::find(window.as_bytes(), letters.as_bytes()).is_some();
        if !LETTERS.iter().any(holds) {
            continue;
        }
        for line in window.lines() {
            let found = summary_line(line);
            report.failed |= found.failed;
            report.succeeded |= found.succeeded;
        }
    }
    report
}

/// What one line reports.
pub(super) fn summary_line(line: &str) -> Report {
    if line.len() > MAX_SUMMARY_LINE_BYTES {
        return Report::default();
    }
    let line = line.trim();
    if line.len() < 2 {
        return Report::default();
    }
    if let Some((_, report)) = WHOLE_LINES.iter().find(|(whole, _)| *whole == line) {
        return *report;
    }
    let first = line.as_bytes().first();
    let begins = |start: &str| start.as_bytes().first() == first && line.starts_with(start);
    if let Some((_, report)) = VERDICTS.iter().find(|(start, _)| begins(start)) {
        return *report;
    }
    if is_make_failure(line) {
        return Report::FAILED;
    }
    if is_git_commit(line) {
        return Report::SUCCEEDED;
    }
    counts(line)
}

/// Programs that end like make.
const MAKES: &[&str] = &["make", "gmake", "mingw32-make", "nmake", "bmake"];

/// `make: *** [Makefile:3: all] Error 2`, also of a make within a make.
fn is_make_failure(line: &str) -> bool {
    if !MAKES.iter().any(|name| line.starts_with(name)) {
        return false;
    }
    let program = line.split(": ***").next().unwrap_or_default();
    let name = program.split('[').next().unwrap_or_default();
    program.len() < line.len() && MAKES.contains(&name)
}

/// `[main 3f2a1bc] Count each row once`: what `git commit` prints for a commit it made.
fn is_git_commit(line: &str) -> bool {
    let Some((branch_and_hash, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) else {
        return false;
    };
    branch_and_hash.rsplit_once(' ').is_some_and(|(branch, hash)| {
        !branch.is_empty() && (7..=40).contains(&hash.len()) && hash.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// The counts of a summary: `1 failed, 3 passed in 0.12s`, `Tests: 1 failed, 4 total`, `Tests run: 5, Failures: 1`,
/// `10 examples, 2 failures`, `# fail 1`. Every item of the line has to be a count; other lines are no summary.
fn counts(line: &str) -> Report {
    if may_count(line) { read_counts(line) } else { Report::default() }
}

/// How the words of [`COUNTED`] begin by which something passed, failed or was run.
const STEMS: &[&[u8; 3]] = &[b"pas", b"suc", b"fai", b"err", b"bro", b"tim", b"tes", b"run", b"exa", b"sui"];

/// Whether a line has a number and a word that counts. Most lines have not, and one pass over their bytes shows it.
pub(super) fn may_count(line: &str) -> bool {
    let bytes = line.as_bytes();
    let (mut has_digit, mut has_word, mut in_word) = (false, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        has_digit |= byte.is_ascii_digit();
        let is_letter = byte.is_ascii_alphabetic();
        if is_letter && !in_word && !has_word {
            let start = bytes.get(at..at + 3).unwrap_or_default();
            has_word = STEMS.iter().any(|stem| start.eq_ignore_ascii_case(*stem));
        }
        in_word = is_letter;
        if has_digit && has_word {
            return true;
        }
    }
    false
}

pub(super) fn read_counts(line: &str) -> Report {
    // Rules around a summary, and the ticks, crosses and bullets of its line.
    let bare = line.trim_matches(|c: char| {
        c.is_whitespace() || (!c.is_ascii_alphanumeric() && !matches!(c, '(' | ')' | '.' | ':' | '!'))
    });
    let (mut failed, mut passed, mut items) = (0u64, 0u64, 0u64);
    let mut seen = 0;
    for item in after_label(bare).split([',', ';', '|']) {
        let Some((what, number)) = count_item(item) else {
            return Report::default();
        };
        seen += 1;
        match what {
            Counted::Failed => failed = failed.saturating_add(number),
            Counted::Passed => passed = passed.saturating_add(number),
            Counted::Items => items = items.saturating_add(number),
            Counted::Other => {}
        }
    }
    let ran = passed > 0 || items > 0;
    Report {
        failed: seen > 0 && failed > 0,
        succeeded: failed == 0 && ran && (passed > 0 || seen > 1),
        exit: None,
    }
}

/// A line without what names its summary: `Tests:  `, `test result: FAILED. `, `Summary [ 0.1s] 3 tests run: `.
fn after_label(line: &str) -> &str {
    for label in ["Tests run:", "Failed!", "Passed!"] {
        // These are counted items or verdicts themselves.
        if let Some(rest) = line.strip_prefix(label) {
            return if label.ends_with('!') { rest.trim_start_matches([' ', '-']) } else { line };
        }
    }
    if let Some((label, rest)) = line.split_once(':') {
        let is_name = label.len() <= 48 && !rest.trim().is_empty();
        // `Tests: 3, Failures: 1` counts tests; `Tests: 1 failed, 3 passed` is about them.
        let first = rest.split([',', ';', '|']).next().unwrap_or_default().trim();
        let names_a_count = count_word(label.trim()).is_some() && first.bytes().all(|b| b.is_ascii_digit());
        if is_name && !names_a_count && rest.bytes().any(|b| b.is_ascii_digit()) {
            let rest = rest.trim_start();
            return rest
                .split_once(". ")
                .filter(|(word, _)| word.len() <= 8)
                .map_or(rest, |(_, counts)| counts);
        }
    }
    for label in ["Test Files", "Test Suites", "Tests", "Suites", "Result"] {
        if let Some(rest) = line.strip_prefix(label).filter(|rest| rest.starts_with("  ")) {
            return rest;
        }
    }
    line
}

/// One count: `3 passed`, `Failures: 1`, `failures=1`, `fail 1`, with a time or a total behind it.
fn count_item(item: &str) -> Option<(Counted, u64)> {
    let item = item.trim().trim_end_matches(['.', '!']);
    let item = item.split_once(" in ").map_or(item, |(count, _)| count);
    let item = item.split_once('(').map_or(item, |(count, _)| count).trim();
    let digits = item.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        let number = item.get(..digits)?.parse().ok()?;
        let word = item.get(digits..)?.trim();
        let word = word.strip_suffix(" out").or_else(|| word.strip_suffix(" run")).unwrap_or(word);
        return Some((count_word(word)?, number));
    }
    let at = item.find([':', '=', ' '])?;
    let (word, rest) = item.split_at(at);
    let word = if word == "Tests" && rest.starts_with(" run") { "tests" } else { word };
    let rest = rest.strip_prefix(" run").unwrap_or(rest);
    let number = rest.trim_start_matches([':', '=', ' ']).parse().ok()?;
    Some((count_word(word)?, number))
}

fn count_word(word: &str) -> Option<Counted> {
    COUNTED.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, what)| *what)
}

// ---------------------------------------------------------------------------------------------------------------------
// Runs that are not over, and words of failure

/// How answers begin that say the command still runs.
const STILL_RUNNING: &[&str] =
    &["Command running in background", "Process running with session", "Command is still running"];

/// Whether the answer says that the command still runs or was moved to the background.
pub(super) fn is_not_finished(text: &str) -> bool {
    let head = slice_start(text, STATEMENT_WINDOW_BYTES);
    head.lines().take(STATEMENT_LINES).any(|line| {
        STILL_RUNNING.iter().any(|mark| line.trim_start_matches(['[', '<', ' ']).starts_with(mark))
    })
}

/// How an answer begins that says of itself that it is an error, on wires that have no other place for that.
const ERROR_OPENING: &str = "Error: ";
/// A longer answer that begins so is something that was read.
const LONGEST_PLAIN_ERROR: usize = 4_000;

fn error_text(text: &str) -> Report {
    let is_error = text.starts_with(ERROR_OPENING) && text.len() < LONGEST_PLAIN_ERROR;
    if is_error { Report::FAILED } else { Report::default() }
}

/// Words of failure are looked for in this much of the end of an output.
const LOOSE_WINDOW_BYTES: usize = 600;

fn loose_error(text: &str) -> Report {
    const WORDS: &[&str] = &[
        "FAIL",
        "error:",
        "Error:",
        "panicked at",
        "Traceback",
        "fatal:",
        "npm ERR!",
        "FAILED",
        "command not found",
        "No such file or directory",
        "Permission denied",
    ];
    let tail = slice_end(text, LOOSE_WINDOW_BYTES);
    let found = WORDS.iter().any(|word| memchr::memmem::find(tail.as_bytes(), word.as_bytes()).is_some());
    if found { Report::FAILED } else { Report::default() }
}
