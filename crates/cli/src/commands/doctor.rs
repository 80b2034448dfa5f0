//! `throughline doctor`: finds problems of the record, and repairs them.

mod view;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use throughline_store::{
    Depth, Diagnosis, Examination, RecordProblem, RepairReport, StoreError, StoreProgress,
};

use crate::app::App;
use crate::error::{CliError, Exit};
use crate::host::process::is_alive;
use crate::record::{RecordPlace, RecordStore, artifact_place, refused};
use crate::ui::output::print_json;
use crate::ui::progress::{ProgressLine, progress_words};
use crate::ui::text::{counted, on_one_line};

/// Check the record: database, indexes, views, artifacts; repair what can be repaired
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline doctor
  throughline doctor --quick --json
  throughline doctor --fix

Without --fix nothing is changed. --fix first backs everything up, damaged or
not, into the home directory. On PostgreSQL, where pg_dump makes backups, it
puts right only what follows from other rows (links, counters, the index) and
removes nothing but locks that are over; others may use the record meanwhile.
Problems that cannot be repaired are reported with advice; the exit code is
then 7.")]
pub(crate) struct DoctorArgs {
    /// Repair what can be repaired, a file after a backup
    #[arg(long)]
    fix: bool,
    /// Skip reading every message and artifact, which takes long
    #[arg(long)]
    quick: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &DoctorArgs, app: &App) -> Result<(), CliError> {
    let place = RecordPlace::of(app)?;
    let artifacts = artifact_place(app)?;
    let examination = Examination {
        depth: if args.quick { Depth::Quick } else { Depth::Thorough },
        now_ms: app.now().ms,
        is_alive: &is_alive,
        artifacts: artifacts.as_ref(),
    };
    let mut line = ProgressLine::new(app);
    let mut follow = |progress: StoreProgress| {
        if line.is_due() {
            line.show(&progress_words(progress));
        }
    };
    if args.fix {
        let report = repair(app, &place, &examination, &mut follow);
        line.end();
        return tell_mended(args, app, &place, &report?);
    }
    let diagnosis = examine(app, &place, &examination, &mut follow);
    line.end();
    let diagnosis = diagnosis?;
    if args.json {
        print_json(app, &diagnosis_json(&diagnosis))?;
    } else {
        app.print(&view::diagnosis(&diagnosis, &place.path(), examination.depth, app.width))?;
    }
    unwell(&diagnosis.findings, "the record has problems", |mendable| match mendable {
        true => "`throughline doctor --fix` repairs what can be repaired, after a backup",
        false => "each finding says what can be done by hand",
    })
}

/// Checks the record, in a file or on a server.
pub(crate) fn examine(
    app: &App,
    place: &RecordPlace,
    examination: &Examination<'_>,
    follow: &mut dyn FnMut(StoreProgress),
) -> Result<Diagnosis, CliError> {
    match place {
        RecordPlace::File(path) => Diagnosis::of_file(path, examination, follow).map_err(beyond_help),
        #[cfg(feature = "postgres")]
        RecordPlace::Server(_) => match RecordStore::open_for_reading(app)? {
            RecordStore::Postgres(store) => store.examine(examination, follow).map_err(beyond_help),
            RecordStore::Sqlite(_) => Err(CliError::new(Exit::Internal, "the settings changed meanwhile")),
        },
        #[cfg(not(feature = "postgres"))]
        RecordPlace::Server(_) => RecordStore::open_for_reading(app).map(|_| Diagnosis::default()),
    }
}

/// Repairs the record: a file after a backup, a server without one.
fn repair(
    app: &App,
    place: &RecordPlace,
    examination: &Examination<'_>,
    follow: &mut dyn FnMut(StoreProgress),
) -> Result<RepairReport, CliError> {
    match place {
        RecordPlace::File(path) => {
            RepairReport::of_repair(path, examination, &backup_path(app), follow).map_err(beyond_help)
        }
        #[cfg(feature = "postgres")]
        RecordPlace::Server(_) => match RecordStore::open(app)? {
            RecordStore::Postgres(store) => store.repair(examination, follow).map_err(beyond_help),
            RecordStore::Sqlite(_) => Err(CliError::new(Exit::Internal, "the settings changed meanwhile")),
        },
        #[cfg(not(feature = "postgres"))]
        RecordPlace::Server(_) => RecordStore::open(app)
            .and(Err(CliError::new(Exit::Internal, "a record on PostgreSQL was opened without the feature"))),
    }
}

/// The error if the record cannot even be checked. The usual hint, to run the doctor, would not help here.
fn beyond_help(error: StoreError) -> CliError {
    match error {
        StoreError::Damaged { .. } | StoreError::Database { .. } => {
            let words = on_one_line(&error.to_string());
            CliError::new(Exit::RecordUnusable, words).hint("restore the record from a backup")
        }
        other => refused(other),
    }
}

/// The path of the backup that is made before a repair.
fn backup_path(app: &App) -> PathBuf {
    let stamp = app.now().stamp();
    let named = |number: u32| {
        let number = if number == 0 { String::new() } else { format!("_{number}") };
        app.home.join(format!("before_fix_{stamp}{number}.tar"))
    };
    (0..).map(named).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| named(0))
}

fn tell_mended(
    args: &DoctorArgs,
    app: &App,
    place: &RecordPlace,
    report: &RepairReport,
) -> Result<(), CliError> {
    if args.json {
        print_json(
            app,
            &json!({
                "before": findings_json(&report.before),
                "after": findings_json(&report.after),
                "backup": report.backup,
                "salvaged": report.salvaged,
                "well": is_well(&report.after),
            }),
        )?;
    } else {
        app.print(&view::mended(report, &place.path(), app.width))?;
    }
    // A second repair would have the same result.
    unwell(&report.after, "not everything could be repaired", |mendable| match mendable {
        true => "nothing was lost by trying; restore the record from a backup",
        false => "each finding says what can be done by hand",
    })
}

fn is_well(findings: &[RecordProblem]) -> bool {
    findings.iter().all(|finding| finding.severity() == throughline_store::Severity::Notice)
}

/// Reports findings by the exit code. The hint depends on whether anything can be repaired.
fn unwell(findings: &[RecordProblem], what: &str, hint: fn(bool) -> &'static str) -> Result<(), CliError> {
    if is_well(findings) {
        return Ok(());
    }
    Err(CliError::new(Exit::RecordUnusable, what)
        .because(format!("{} above", counted(findings.len() as u64, "finding", "findings")))
        .hint(hint(findings.iter().any(RecordProblem::is_mendable))))
}

/// The findings as JSON.
pub(crate) fn diagnosis_json(diagnosis: &Diagnosis) -> Value {
    json!({
        "well": diagnosis.is_well(),
        "findings": findings_json(&diagnosis.findings),
        "sessions": diagnosis.sessions,
        "messages": diagnosis.messages,
        "artifacts": diagnosis.artifacts,
        "database_bytes": diagnosis.database_bytes,
    })
}

/// Each finding with its meaning and its remedy, as JSON.
fn findings_json(findings: &[RecordProblem]) -> Value {
    let one = |finding: &RecordProblem| {
        json!({
            "severity": finding.severity(),
            "words": finding.to_string(),
            "meaning": finding.meaning(),
            "remedy": finding.remedy(),
            "details": finding,
        })
    };
    findings.iter().map(one).collect()
}
