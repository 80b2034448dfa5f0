//! `throughline import`: imports the histories of other programs into the record.

mod view;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use serde_json::json;
use throughline_compaction::find_summary;
use throughline_store::{FileOutcome, FileReport, ImportEvent, ImportReport, Importer};
use throughline_transcript::Message;

use crate::agent_history::{AgentHistory, history_locations};
use crate::app::App;
use crate::error::{CliError, Exit, path_words};
use crate::model_catalogue::catalogue;
use crate::record::lock::{Lock, LockAttempt};
use crate::record::{OpenRecord, refused};
use crate::ui::output::print_json;
use crate::ui::text::{counted, on_one_line};
use view::ImportProgress;

/// The name of the lock for imports.
const IMPORT_LOCK: &str = "import";
/// How long an import waits for another one.
const MAX_WAIT: Duration = Duration::from_secs(15 * 60);
const WAIT_BETWEEN: Duration = Duration::from_millis(50);
/// The most notes, such as about broken lines, that are listed; the rest is counted.
const MAX_NOTES_TOLD: usize = 20;
/// The most failed files that are named.
const MAX_FAILURES_TOLD: usize = 10;

/// Import the histories of Claude Code, Codex and Hermes, and transcripts of any kind
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline import
  throughline import ~/.claude/projects/my-project
  throughline import session.jsonl.gz trajectories/ --json

Without a path, reads ~/.claude/projects, ~/.codex/sessions and ~/.hermes/state.db, or
the folders in CLAUDE_CONFIG_DIR, CODEX_HOME and HERMES_HOME. Importing again adds
only new messages. A broken line is reported and skipped; of a truncated file, the
part before the break is imported. One import waits for another.")]
pub(crate) struct ImportArgs {
    /// Files and folders; without any, the places where these programs keep their histories
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &ImportArgs, app: &App) -> Result<(), CliError> {
    let paths = if args.paths.is_empty() { default_paths(app)? } else { args.paths.clone() };
    for path in &paths {
        if let Err(error) = std::fs::metadata(path) {
            return Err(CliError::new(Exit::InputUnreadable, format!("cannot read {}", path_words(path)))
                .because(crate::error::io_words(&error))
                .hint("nothing was imported; check the spelling"));
        }
    }
    let record = OpenRecord::open(app)?;
    let mut lock = take_turns(&record, app)?;
    let mut progress = ImportProgress::new(app);
    let mut report = ImportReport::default();
    let mut new_id = |at_ms| app.new_session_id(at_ms);
    let find = |message: &Message| find_summary(message).map(|found| found.body);
    let importer = Importer::new(&record.store, record.owner.clone(), &mut new_id, find).at(record.now.ms);
    let mut importer = importer.priced_by(catalogue(app)?);
    let mut kept = Ok(());
    let done = paths.iter().try_for_each(|path| {
        importer.import_path(path, &mut report, &mut |event: ImportEvent<'_>| {
            progress.follow(&event);
            if kept.is_ok() {
                kept = lock.keep();
            }
        })
    });
    progress.end();
    let freed = lock.free();
    print_notes(app, &report);
    if args.json {
        print_json(
            app,
            &json!({
                "totals": report.totals(),
                "by_program": view::by_program(&report),
                "files": report.files,
            }),
        )?;
    } else {
        app.print(&view::render(&report, app.width))?;
    }
    // An import ends at once if the record cannot be written; the lines above show what was imported until then.
    done.map_err(refused)?;
    kept?;
    freed?;
    failed(&report)
}

/// Waits for the lock: two concurrent imports of the same files would each find that nothing is recorded yet.
fn take_turns<'r, 'a>(record: &'r OpenRecord<'a>, app: &App) -> Result<Lock<'r, 'a>, CliError> {
    let began = Instant::now();
    let mut has_told = false;
    loop {
        let held = match Lock::ask(record, IMPORT_LOCK.to_owned(), "import")? {
            LockAttempt::Taken(lock) => return Ok(lock),
            LockAttempt::HeldBy(held) => held,
        };
        let holder = on_one_line(&held.holder.to_string());
        if began.elapsed() >= MAX_WAIT {
            return Err(CliError::new(Exit::Busy, "another import is running")
                .because(format!("{holder}, since {}", record.now.time_of_day(held.since_ms)))
                .hint("import again when it is done"));
        }
        if !has_told {
            app.note(&format!("waiting for another import: {holder}"));
            has_told = true;
        }
        std::thread::sleep(WAIT_BETWEEN);
    }
}

/// Returns the folders of histories on this machine. Reports those that do not exist.
fn default_paths(app: &App) -> Result<Vec<PathBuf>, CliError> {
    let history_locations = history_locations(app);
    let (found, missing): (Vec<AgentHistory>, Vec<AgentHistory>) =
        history_locations.into_iter().partition(|place| place.path.exists());
    if found.is_empty() {
        let looked: Vec<String> =
            missing.iter().map(|place| format!("{}: {}", place.program, path_words(&place.path))).collect();
        return Err(CliError::new(Exit::InputUnreadable, "there is no history to import")
            .because(format!("looked for\n{}", looked.join("\n")))
            .hint("pass a file or a folder, for example `throughline import session.jsonl`"));
    }
    for place in &missing {
        app.note(&format!("no history of {} at {}", place.program, path_words(&place.path)));
    }
    for place in &found {
        app.note(&format!("importing the history of {} at {}", place.program, path_words(&place.path)));
    }
    Ok(found.into_iter().map(|place| place.path).collect())
}

/// Prints notes, such as about broken lines, with file and line number.
fn print_notes(app: &App, report: &ImportReport) {
    // Notes about a file that an earlier import reported are not repeated.
    let fresh =
        |file: &&FileReport| file.counts.messages > 0 || !matches!(file.outcome, FileOutcome::Imported);
    let files = report.files.iter().filter(fresh);
    let notes = files.flat_map(|file| file.notes.iter().map(move |note| (&file.path, note)));
    let mut told = 0;
    let mut more = 0;
    for (path, note) in notes {
        if told == MAX_NOTES_TOLD {
            more += 1;
            continue;
        }
        told += 1;
        let line = note.line.map(|line| format!(":{line}")).unwrap_or_default();
        app.note(&format!("{}{line}: {}", path_words(path), on_one_line(&note.text)));
    }
    if more > 0 {
        app.note(&format!("{}; --json lists them all", counted(more, "more note", "more notes")));
    }
}

/// The error if some files could not be read.
fn failed(report: &ImportReport) -> Result<(), CliError> {
    let failures: Vec<(&Path, &str)> = report.failures().collect();
    if failures.is_empty() {
        return Ok(());
    }
    let mut causes: Vec<String> = failures
        .iter()
        .take(MAX_FAILURES_TOLD)
        .map(|(path, reason)| format!("{}: {}", path_words(path), on_one_line(reason)))
        .collect();
    if failures.len() > MAX_FAILURES_TOLD {
        causes.push(format!("and {} more; --json lists them all", failures.len() - MAX_FAILURES_TOLD));
    }
    let count = counted(failures.len() as u64, "file", "files");
    Err(CliError::new(Exit::BadInput, format!("{count} could not be imported completely"))
        .because(causes.join("\n"))
        .hint("everything before the error is recorded; importing again adds the rest once the file is complete"))
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
