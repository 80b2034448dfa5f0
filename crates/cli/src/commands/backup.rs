//! `throughline backup`: a consistent copy of the record, made while other processes use it.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use owo_colors::OwoColorize;
use throughline_store::BackupReport;

use crate::app::App;
use crate::error::{CliError, Exit, path_words};
use crate::record::{HOW_TO_BEGIN, OpenRecord, RecordPlace, refused};
use crate::ui::output::print_json;
use crate::ui::progress::{ProgressLine, progress_words};
use crate::ui::text::{bytes_words, counted, on_one_line, wrap};

/// How to back up a record on a server.
const INSTEAD: &str = "`pg_dump --format=custom` backs the database up, with its artifacts; docs/guide/fleet.md says how to restore it";

/// Copy the record, even while it is in use, into one file with its artifacts
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline backup ~/backups/throughline-2026-11-15.tar

The file is a plain tar archive that any `tar` unpacks, with instructions for
restoring the record. It gets its name only when it is complete and has been read
back and compared.")]
pub(crate) struct BackupArgs {
    /// The file to write; it must not be there yet
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &BackupArgs, app: &App) -> Result<(), CliError> {
    let path = RecordPlace::of(app)?.file("backup", INSTEAD)?;
    if !path.exists() {
        return Err(CliError::new(Exit::InputUnreadable, "there is no record to back up")
            .because(format!("{} does not exist", path_words(&path)))
            .hint(HOW_TO_BEGIN));
    }
    if args.file.symlink_metadata().is_ok() {
        return Err(CliError::new(Exit::OutputFailed, format!("cannot write {}", path_words(&args.file)))
            .because("it already exists, and a backup never replaces anything")
            .hint("choose another name"));
    }
    let record = OpenRecord::open_for_reading(app)?;
    let mut line = ProgressLine::new(app);
    let report = record
        .store
        .file("backup", INSTEAD)?
        .back_up(&args.file, record.now.ms, &mut |progress| line.show(&progress_words(progress)));
    line.end();
    let report = report.map_err(refused)?;
    for problem in &report.problems {
        app.warn(&on_one_line(problem));
    }
    if args.json {
        print_json(app, &report)?;
    } else {
        app.print(&render(&report, app.width))?;
    }
    unhealthy(&report)
}

fn render(report: &BackupReport, width: usize) -> String {
    let title = format!("Backed up to {}, {}", path_words(&report.path), bytes_words(report.bytes));
    let figures = format!(
        "  {}, {}, {}",
        counted(report.sessions, "session", "sessions"),
        counted(report.messages, "message", "messages"),
        counted(report.artifacts, "artifact", "artifacts"),
    );
    let elsewhere = match report.artifacts_elsewhere {
        0 => String::new(),
        count => format!(
            "  {} in `store.artifacts` not included: back that place up too\n",
            counted(count, "artifact", "artifacts")
        ),
    };
    format!("{}\n{figures}\n{elsewhere}", wrap(&title, width, 2).trim_end().bold())
}

/// A backup of a damaged record is kept, but the exit code reports the damage.
fn unhealthy(report: &BackupReport) -> Result<(), CliError> {
    let missing = report.missing_artifacts.len() as u64;
    if report.problems.is_empty() && missing == 0 {
        return Ok(());
    }
    let mut failure =
        CliError::new(Exit::RecordUnusable, "the record was backed up as it is, and it is damaged");
    if !report.problems.is_empty() {
        failure = failure.because(
            report.problems.iter().map(|problem| on_one_line(problem)).collect::<Vec<_>>().join("\n"),
        );
    }
    if missing > 0 {
        failure =
            failure.because(format!("files of {} are missing", counted(missing, "artifact", "artifacts")));
    }
    Err(failure.hint("`throughline doctor` says more"))
}
