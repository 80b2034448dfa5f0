//! The formats in which agents, shells, test runners and build tools report how a command ended: one reader each.
//!
//! A reader takes text and returns what it reports. It knows nothing of the other readers; `status.rs` weighs them.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use throughline_transcript::RawJson;

use super::text::{slice_end, slice_start};

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
    // Built once: building a search costs more than searching so little text.
    static LETTERS_OF_PHRASES: LazyLock<Vec<Finder<'static>>> =
        LazyLock::new(|| ["xit", "XIT", "eturn", "ETURN", "rc", "RC"].map(Finder::new).into());
    let may_state = |place: &str| LETTERS_OF_PHRASES.iter().any(|it| it.find(place.as_bytes()).is_some());
    let tail = slice_end(text, STATEMENT_WINDOW_BYTES);
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
    let line = trimmed(line);
    let bytes = line.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        // All phrases begin with one of these.
        if !matches!(byte | 0x20, b'e' | b'r') {
            continue;
        }
        let previous = at.checked_sub(1).and_then(|at| bytes.get(at));
        if previous.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
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
    // golangci-lint
    ("0 issues.", Report::SUCCEEDED),
    ("Killed", Report::FAILED),
];

/// Letters of which an output that reports something has some.
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
    "issues",
];

/// For every byte, which of [`VERDICTS`] begin with it: one bit each.
const VERDICTS_BY_BYTE: [u64; 256] = {
    assert!(VERDICTS.len() <= 64);
    let mut by_byte = [0; 256];
    let mut at = 0;
    while at < VERDICTS.len() {
        by_byte[VERDICTS[at].0.as_bytes()[0] as usize] |= 1 << at;
        at += 1;
    }
    by_byte
};

/// The first bytes of [`VERDICTS`], [`WHOLE_LINES`], [`MAKES`] and of what `git commit` prints. A line that begins
/// otherwise can only count.
const OPENS_VERDICT: [bool; 256] = {
    let mut opens = [false; 256];
    opens[b'[' as usize] = true;
    let mut at = 0;
    while at < opens.len() {
        opens[at] |= VERDICTS_BY_BYTE[at] != 0;
        at += 1;
    }
    at = 0;
    while at < WHOLE_LINES.len() {
        opens[WHOLE_LINES[at].0.as_bytes()[0] as usize] = true;
        at += 1;
    }
    at = 0;
    while at < MAKES.len() {
        opens[MAKES[at].as_bytes()[0] as usize] = true;
        at += 1;
    }
    opens
};

fn test_and_build(text: &str) -> Report {
    let (head, tail) = if text.len() > 2 * SUMMARY_WINDOW_BYTES {
        (slice_start(text, SUMMARY_WINDOW_BYTES), slice_end(text, SUMMARY_WINDOW_BYTES))
    } else {
        (text, "")
    };
    let mut report = Report::default();
    for window in [head, tail] {
        let mut found = Report::default();
        for line in lines_of(window) {
            let line = summary_line(line);
            found.failed |= line.failed;
            found.succeeded |= line.succeeded;
        }
        // Few windows report anything, so that this is looked at last.
        let holds = |letters: &&str| memchr::memmem::find(window.as_bytes(), letters.as_bytes()).is_some();
        if (found.failed || found.succeeded) && LETTERS.iter().any(holds) {
            report.failed |= found.failed;
            report.succeeded |= found.succeeded;
        }
    }
    report
}

/// The lines of a text, as [`str::lines`] has them, found by a faster search for their ends.
fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let ends =
        memchr::memchr_iter(b'\n', text.as_bytes()).chain((!text.ends_with('\n')).then_some(text.len()));
    let mut start = 0;
    ends.map(move |end| {
        let line = text.get(start..end).unwrap_or_default();
        start = end + 1;
        if end < text.len() { line.strip_suffix('\r').unwrap_or(line) } else { line }
    })
}

/// [`str::trim`], without decoding the characters of lines that begin and end with ASCII.
fn trimmed(line: &str) -> &str {
    let inner = line.trim_ascii();
    let needs_more = |byte: Option<&u8>| byte.is_some_and(|b| !b.is_ascii() || *b == b'\x0b');
    let bytes = inner.as_bytes();
    if needs_more(bytes.first()) || needs_more(bytes.last()) { inner.trim() } else { inner }
}

/// What one line reports.
pub(super) fn summary_line(line: &str) -> Report {
    if line.len() > MAX_SUMMARY_LINE_BYTES {
        return Report::default();
    }
    let line = trimmed(line);
    if line.len() < 2 {
        return Report::default();
    }
    let first = line.as_bytes().first().map_or(0, |first| usize::from(*first));
    if !OPENS_VERDICT[first] {
        return counts(line);
    }
    if let Some((_, report)) = WHOLE_LINES.iter().find(|(whole, _)| *whole == line) {
        return *report;
    }
    let mut left = VERDICTS_BY_BYTE[first];
    while left != 0 {
        let (start, report) = VERDICTS[left.trailing_zeros() as usize];
        if line.starts_with(start) {
            return report;
        }
        left &= left - 1;
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

/// Whether the last item of a line can be a count: it ends with a number or with a word that counts, before a time or a
/// bracket where it has one. Most lines do not, and a look at their ends shows it.
pub(super) fn may_count(line: &str) -> bool {
    let bytes = line.as_bytes();
    let from = memchr::memrchr3(b',', b';', b'|', trimmed_end(bytes)).map_or(0, |at| at + 1);
    let item = bytes.get(from..).unwrap_or_default();
    let ends_before = |at: usize| ends_like_count(item.get(..at).unwrap_or_default());
    ends_like_count(item)
        || memchr::memchr_iter(b'(', item).any(ends_before)
        || TIME.find_iter(item).any(ends_before)
}

/// What stands before the time that a run took. Built once: building a search costs more than searching a line.
static TIME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" in "));

/// A line without what can stand behind its last count: rules, ticks, stops.
fn trimmed_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|b| b.is_ascii_alphanumeric() || matches!(b, b'(' | b')'));
    line.get(..end.map_or(0, |end| end + 1)).unwrap_or_default()
}

fn ends_like_count(item: &[u8]) -> bool {
    let item = trimmed_end(item);
    let item = item.strip_suffix(b" out").or_else(|| item.strip_suffix(b" run")).unwrap_or(item);
    let item = trimmed_end(item);
    let letters = item.iter().rev().take_while(|b| b.is_ascii_alphabetic()).count();
    if letters == 0 {
        return item.last().is_some_and(u8::is_ascii_digit);
    }
    let word = item.get(item.len() - letters..).and_then(|word| std::str::from_utf8(word).ok());
    word.and_then(count_word).is_some()
}

pub(super) fn read_counts(line: &str) -> Report {
    // Rules around a summary, and the ticks, crosses and bullets of its line.
    let bare = line.trim_matches(|c: char| {
        c.is_whitespace() || (!c.is_ascii_alphanumeric() && !matches!(c, '(' | ')' | '.' | ':' | '!'))
    });
    let (mut failed, mut passed, mut items) = (0u64, 0u64, 0u64);
    let mut seen = 0;
    let counts = after_label(bare);
    let ends = memchr::memchr3_iter(b',', b';', b'|', counts.as_bytes()).chain([counts.len()]);
    let mut start = 0;
    for end in ends {
        let item = counts.get(start..end).unwrap_or_default();
        start = end + 1;
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
        // `Tests: 3, Failures: 1` counts tests; `Tests: 1 failed, 3 passed` is about them.
        let names_a_count = || {
            let first = rest.split([',', ';', '|']).next().unwrap_or_default().trim();
            first.bytes().all(|b| b.is_ascii_digit()) && count_word(label.trim()).is_some()
        };
        if label.len() <= 48 && rest.bytes().any(|b| b.is_ascii_digit()) && !names_a_count() {
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
    let time = TIME.find(item.as_bytes());
    let item = time.and_then(|at| item.get(..at)).unwrap_or(item);
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

/// What a word of a summary counts, and whether a number above zero of it is a failure or shows that something passed.
fn count_word(word: &str) -> Option<Counted> {
    let mut lower = [0; "expectations".len()];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"passed" | b"pass" | b"passing" | b"passes" | b"success" | b"successes" | b"succeeded" => {
            Counted::Passed
        }
        b"failed" | b"fail" | b"fails" | b"failing" | b"failure" | b"failures" | b"error" | b"errors"
        | b"broken" | b"timeout" | b"timeouts" => Counted::Failed,
        b"test" | b"tests" | b"testcases" | b"runs" | b"examples" | b"example" | b"suites" => Counted::Items,
        b"skipped" | b"skip" | b"skips" | b"ignored" | b"measured" | b"filtered" | b"pending" | b"todo"
        | b"total" | b"warning" | b"warnings" | b"xfailed" | b"xpassed" | b"deselected" | b"rerun"
        | b"flaky" | b"slow" | b"cancelled" | b"leaky" | b"assertion" | b"assertions" | b"subtests"
        | b"files" | b"problems" | b"problem" | b"expectations" => Counted::Other,
        _ => return None,
    })
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
        let start = line.bytes().position(|b| !matches!(b, b'[' | b'<' | b' ')).unwrap_or(line.len());
        let line = line.get(start..).unwrap_or_default();
        STILL_RUNNING.iter().any(|mark| line.starts_with(mark))
    })
}

/// How an answer begins that says of itself that it is an error, on wires that have no other place for that.
const ERROR_OPENINGS: [&str; 2] = ["Error: ", "<tool_use_error>"];
/// A longer answer that begins so is something that was read.
const LONGEST_PLAIN_ERROR: usize = 4_000;

fn error_text(text: &str) -> Report {
    let is_error =
        ERROR_OPENINGS.iter().any(|opening| text.starts_with(opening)) && text.len() < LONGEST_PLAIN_ERROR;
    if is_error { Report::FAILED } else { Report::default() }
}

/// Words of failure are looked for in this much of the end of an output.
const LOOSE_WINDOW_BYTES: usize = 600;

fn loose_error(text: &str) -> Report {
    // Built once: building a search costs more than searching so little text.
    static SEARCHES: LazyLock<Vec<Finder<'static>>> =
        LazyLock::new(|| LOOSE_WORDS.iter().map(Finder::new).collect());
    let tail = slice_end(text, LOOSE_WINDOW_BYTES).as_bytes();
    if SEARCHES.iter().any(|word| word.find(tail).is_some()) { Report::FAILED } else { Report::default() }
}

const LOOSE_WORDS: &[&str] = &[
    "FAIL",
    "error:",
    "Error:",
    "panicked at",
    "Traceback",
    "fatal:",
    "npm ERR!",
    "command not found",
    "No such file or directory",
    "Permission denied",
];
