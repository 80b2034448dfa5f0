//! How a call ended, as far as its result shows: ok, failed or unknown.
//!
//! [`read_status`] is a pure function of the result. Success needs evidence: a flag in the wire format, exit status
//! zero, or a test runner or build tool that reports success. That something was printed is no evidence, and the status of
//! a pipeline is that of its last command. A result without evidence is [`CallStatus::Unknown`], and one that reports a
//! failure is never [`CallStatus::Ok`], whatever else it says. The formats of agents and tools are in
//! `status_readers.rs`, one reader each; what an absent mark means is in `contract.rs`.

use super::contract::AbsentMark;
use super::family::ToolFamily;
use super::looking::{hides_status, only_looks};
use super::status_readers::{
    ENVELOPE, ERROR_TEXT, EXIT_STATEMENT, LOOSE_ERROR, Report, TEST_AND_BUILD, is_not_finished,
};

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It did what it should, by the evidence of its answer.
    Ok,
    /// It did not, by the evidence of its answer.
    Failed,
    /// The answer does not say, or says both.
    #[default]
    Unknown,
}

/// What a status was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Evidence {
    /// The wire's own mark on the result (`is_error`), or its absence where the tool marks every failure.
    Mark,
    /// Members of a JSON object around the output: `exit_code`, `success`, `error`.
    Envelope,
    /// A line of the answer that states an exit status.
    ExitStatement,
    /// The summary of a test runner or build tool.
    Summary,
    /// Words that programs end with when they fail, or an answer that begins with `Error: `.
    ErrorText,
    /// A success stated only for the last command of a pipe. The status stays unknown.
    EndOfPipe,
}

/// An answer, with what is needed to judge it.
#[derive(Clone, Copy, Debug)]
pub struct CallAnswer<'a> {
    /// What the tool does. Only the output of commands is searched for summaries and statuses.
    pub family: ToolFamily,
    /// The command, for [`ToolFamily::Run`]; empty where it is not known.
    pub command: &'a str,
    /// The answer, in its envelope or not.
    pub text: &'a str,
    /// What the wire marks: `Some(true)` for an error, `Some(false)` for an explicit success, `None` for nothing.
    pub is_error: Option<bool>,
    /// What `None` in `is_error` means.
    pub absent_mark: AbsentMark,
}

impl CallAnswer<'_> {
    /// Whether the mark of the wire, or its absence, says that the call succeeded.
    fn is_marked_success(&self) -> bool {
        match self.is_error {
            Some(is_error) => !is_error,
            None => self.absent_mark == AbsentMark::IsSuccess,
        }
    }
}

/// How a call ended, and how we know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StatusReading {
    /// How it ended.
    pub status: CallStatus,
    /// The exit status, where one is stated.
    pub exit: Option<i32>,
    /// What `status` was read from; `None` where nothing was found.
    pub evidence: Option<Evidence>,
}

impl StatusReading {
    fn new(status: CallStatus, exit: Option<i32>, evidence: Evidence) -> Self {
        Self { status, exit, evidence: Some(evidence) }
    }
}

/// Reads how a call ended from its answer. `printed` is what the tool printed: the answer itself, or the text inside
/// its envelope.
#[must_use]
pub(super) fn read_status(answer: &CallAnswer<'_>, printed: &str) -> StatusReading {
    let envelope = (ENVELOPE.read)(answer.text);
    let is_command = answer.family == ToolFamily::Run;
    let stated = if is_command { (EXIT_STATEMENT.read)(printed) } else { Report::default() };
    // Where the wire marks a success, a status in the output is that of another program.
    let stated_exit = stated.exit.filter(|code| *code == 0 || answer.is_error != Some(false));
    let exit = if is_command { envelope.exit.or(stated_exit) } else { None };

    // What the client or the tool itself says about this call is final when it is a failure.
    if answer.is_error == Some(true) {
        return StatusReading::new(CallStatus::Failed, exit, Evidence::Mark);
    }
    if envelope.failed {
        return StatusReading::new(CallStatus::Failed, exit, Evidence::Envelope);
    }
    if stated.failed && envelope.exit != Some(0) && answer.is_error != Some(false) {
        return StatusReading::new(CallStatus::Failed, exit, Evidence::ExitStatement);
    }
    let says_zero = exit == Some(0) || envelope.succeeded || answer.is_error == Some(false);
    if !says_zero && (ERROR_TEXT.read)(answer.text).failed {
        return StatusReading::new(CallStatus::Failed, exit, Evidence::ErrorText);
    }
    if !is_command {
        return positive(answer, &envelope, Report::default(), Report::default(), exit);
    }
    if is_not_finished(printed) {
        return StatusReading { exit, ..StatusReading::default() };
    }

    // What the output reports. A command that only shows files or logs may show the report of another run.
    let looks = only_looks(answer.command);
    let summary = (TEST_AND_BUILD.read)(printed);
    if summary.failed || stated.failed {
        let status = if looks { CallStatus::Unknown } else { CallStatus::Failed };
        return StatusReading::new(status, exit, Evidence::Summary);
    }
    // The status of a pipeline or list is that of its last command, so zero says little about the others.
    let says_zero = says_zero || answer.is_marked_success();
    let zero_is_final = says_zero && (looks || is_simple(answer.command));
    if !zero_is_final && (LOOSE_ERROR.read)(printed).failed {
        let status = if looks { CallStatus::Unknown } else { CallStatus::Failed };
        return StatusReading::new(status, exit, Evidence::ErrorText);
    }
    positive(answer, &envelope, stated, summary, exit)
}

/// The reading of an answer in which nothing reports a failure.
fn positive(
    answer: &CallAnswer<'_>,
    envelope: &Report,
    stated: Report,
    summary: Report,
    exit: Option<i32>,
) -> StatusReading {
    // What only looks shows what it found, and that is its result, cut by a pipe or not.
    let is_hidden = hides_status(answer.command) && !only_looks(answer.command);
    let evidence = [
        (!is_hidden && answer.is_marked_success(), Evidence::Mark),
        (!is_hidden && envelope.succeeded, Evidence::Envelope),
        (!is_hidden && stated.succeeded, Evidence::ExitStatement),
        (summary.succeeded, Evidence::Summary),
    ];
    let states_success = answer.is_marked_success() || envelope.succeeded || stated.succeeded;
    match evidence.iter().find(|(found, _)| *found) {
        Some((_, evidence)) => StatusReading::new(CallStatus::Ok, exit, *evidence),
        None if states_success => StatusReading::new(CallStatus::Unknown, exit, Evidence::EndOfPipe),
        None => StatusReading { exit, ..StatusReading::default() },
    }
}

/// Whether a command line is one command, whose status is the status of the line. A line that was shortened may have
/// more than it shows.
fn is_simple(command: &str) -> bool {
    !command.is_empty() && !command.contains(['|', ';', '\n', '…']) && !command.trim_end().ends_with('&')
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
