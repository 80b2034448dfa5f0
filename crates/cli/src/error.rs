//! The error type of the program: what happened, why, what to do next, and the exit code.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use owo_colors::OwoColorize;

/// The exit codes of the program. They are documented in `throughline --help` and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded.
    Ok = 0,
    /// A defect of the program.
    Internal = 1,
    /// The command line is invalid.
    Usage = 2,
    /// The input was read but is not a transcript, or cannot be processed within these limits.
    BadInput = 3,
    /// A setting is invalid, whatever its origin.
    BadConfig = 4,
    /// The output could not be written.
    OutputFailed = 5,
    /// The input does not exist or cannot be read.
    InputUnreadable = 6,
    /// The record is damaged, has a newer version, or is not a Throughline record.
    RecordUnusable = 7,
    /// Another process uses it; the command can be repeated later.
    Busy = 8,
    /// A model or its endpoint gave no answer.
    Unanswered = 9,
}

impl Exit {
    /// The numeric exit code.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

/// The error of a command: what happened, why, and what the user can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CliError {
    exit: Exit,
    what: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

impl CliError {
    /// Creates an error. `what` is one lower-case sentence without a full stop.
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), causes: Vec::new(), hints: Vec::new() }
    }

    /// Adds a reason.
    #[must_use]
    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds a hint: something the user can do.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns a copy with each hint passed through `words`.
    pub(crate) fn with_hints(&self, words: impl Fn(&str) -> String) -> Self {
        Self { hints: self.hints.iter().map(|hint| words(hint)).collect(), ..self.clone() }
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// The reasons on one line; what happened, if there are none.
    pub(crate) fn words(&self) -> String {
        let words = if self.causes.is_empty() { self.what.clone() } else { self.causes.join("; ") };
        crate::ui::text::on_one_line(&words)
    }

    /// What happened and why, on one line.
    pub(crate) fn whole_on_one_line(&self) -> String {
        let parts = std::iter::once(&self.what).chain(&self.causes);
        crate::ui::text::on_one_line(&parts.map(String::as_str).collect::<Vec<_>>().join(": "))
    }

    /// The message for stderr, with colours that the stream removes if they are off.
    pub(crate) fn render(&self) -> String {
        let mut out = String::new();
        section(&mut out, &"error".red().bold().to_string(), "error".len(), &self.what);
        for cause in &self.causes {
            section(&mut out, &"  why".bold().to_string(), "  why".len(), cause);
        }
        for hint in &self.hints {
            section(&mut out, &" hint".cyan().bold().to_string(), " hint".len(), hint);
        }
        out
    }
}

/// Writes a label and its text, with further lines aligned.
fn section(out: &mut String, label: &str, label_columns: usize, text: &str) {
    for (index, line) in text.lines().enumerate() {
        if index == 0 {
            let _ = writeln!(out, "{label}: {line}");
        } else {
            let _ = writeln!(out, "{:label_columns$}  {line}", "");
        }
    }
}

/// Describes an I/O error without the number of the operating system.
pub(crate) fn io_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::NotADirectory => "a part of the path is not a folder".to_owned(),
        io::ErrorKind::StorageFull => "there is no space left on the disk".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_lowercase()
        }
    }
}

/// A path for messages; control characters are written out.
pub(crate) fn path_words(path: &Path) -> String {
    crate::ui::text::on_one_line(&path.display().to_string())
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
