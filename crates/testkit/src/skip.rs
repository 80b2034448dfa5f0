//! Reports tests that cannot run on a machine, with a summary at the end.
//!
//! The standard test harness has no result for "skipped": a test that returns early counts as passed. A test that lacks something
//! therefore calls [`skip`], which prints one line past the harness and notes it in a file of this run of `cargo test`. The last test
//! program of the workspace (`crates/workspace`) reads the file and prints how many tests were skipped and what is missing. With
//! `THROUGHLINE_REQUIRE_ALL=1` a skipped test fails, except if recorded sessions are missing, which are never part of the repository and
//! cannot be installed.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A requirement of a test that the machine does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing<'a> {
    /// A program or a model that can be installed.
    Program {
        /// Its name.
        name: &'a str,
        /// What installs it: a script of this repository, or its source.
        installed_by: &'a str,
    },
    /// A folder of recorded sessions; see `THROUGHLINE_TEST_DATA` in CONTRIBUTING.md.
    RecordedSessions,
}

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { name, installed_by } => {
                write!(f, "{name} not found ({installed_by} installs it)")
            }
            Self::RecordedSessions => {
                f.write_str("recorded sessions not found (THROUGHLINE_TEST_DATA names their folder)")
            }
        }
    }
}

/// Reports that the calling test is skipped because something is missing. The test returns afterwards.
///
/// # Panics
///
/// With `THROUGHLINE_REQUIRE_ALL=1`, if the missing thing can be installed.
#[track_caller]
#[expect(clippy::panic, reason = "where everything has to run, a test that cannot run has to fail")]
pub fn skip(missing: &Missing<'_>) {
    let thread = std::thread::current();
    let place = std::panic::Location::caller();
    // The harness names threads after tests, unless it runs tests on the main thread.
    let test = match thread.name() {
        Some(name) if name != "main" && !name.starts_with("tokio") => name.to_owned(),
        _ => format!("{}:{}", place.file(), place.line()),
    };
    let can_be_installed = matches!(missing, Missing::Program { .. });
    if can_be_installed && must_run_all() {
        panic!("{missing}; with THROUGHLINE_REQUIRE_ALL=1 every test has to run");
    }
    // Bypasses the harness, which hides the output of passing tests.
    let _ = std::io::stderr().write_all(format!("skipped: {test}: {missing}\n").as_bytes());
    note(&skip_file(), &test, missing);
}

#[expect(clippy::disallowed_methods, reason = "whether everything has to run is said in the environment")]
fn must_run_all() -> bool {
    std::env::var("THROUGHLINE_REQUIRE_ALL").is_ok_and(|value| value == "1")
}

/// The file of this run of `cargo test`: all its test programs have the same parent process.
#[must_use]
pub fn skip_file() -> PathBuf {
    #[cfg(unix)]
    let run = std::os::unix::process::parent_id().to_string();
    #[cfg(not(unix))]
    let run = "last".to_owned();
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/skipped-tests").join(run)
}

/// Appends one line per skip. If that fails, the summary lacks the test, but the line on the screen does not.
fn note(file: &Path, test: &str, missing: &Missing<'_>) {
    let Some(folder) = file.parent() else { return };
    if std::fs::create_dir_all(folder).is_err() {
        return;
    }
    if let Ok(mut open) = std::fs::OpenOptions::new().create(true).append(true).open(file) {
        // A single write per line: the programs of a run follow one another, but tests of a program are concurrent.
        let _ = open.write_all(format!("{missing}\t{test}\n").as_bytes());
    }
}

/// The skipped tests, by the missing requirement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkipReport {
    by_reason: BTreeMap<String, Vec<String>>,
}

impl SkipReport {
    /// Reads the file of a run and removes it, so that no later run reads it again. A run without skips has no file.
    #[must_use]
    pub fn take(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let _ = std::fs::remove_file(file);
        let mut report = Self::default();
        for line in text.lines() {
            let Some((reason, test)) = line.split_once('\t') else { continue };
            let tests = report.by_reason.entry(reason.to_owned()).or_default();
            // A test may check the same requirement more than once.
            if !tests.iter().any(|known| known == test) {
                tests.push(test.to_owned());
            }
        }
        report
    }

    /// The number of skipped tests.
    #[must_use]
    pub fn tests(&self) -> usize {
        let tests: std::collections::BTreeSet<&str> =
            self.by_reason.values().flatten().map(String::as_str).collect();
        tests.len()
    }
}

impl fmt::Display for SkipReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tests() {
            0 => return f.write_str("skipped: no test; everything that tests need is installed"),
            1 => writeln!(f, "skipped: 1 test did not run and counts as passed above:")?,
            count => writeln!(f, "skipped: {count} tests did not run and count as passed above:")?,
        }
        for (reason, tests) in &self.by_reason {
            writeln!(f, "  {:>3}  {reason}", tests.len())?;
        }
        f.write_str("THROUGHLINE_REQUIRE_ALL=1 makes tests fail that miss what can be installed.")
    }
}

#[cfg(test)]
#[path = "skip_tests.rs"]
mod tests;
