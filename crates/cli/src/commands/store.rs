//! `throughline store`: what the record is kept in, copying it from one engine to another, and its upkeep.

mod upkeep;

use clap::{Args, Subcommand};
#[cfg(feature = "postgres")]
use throughline_store::CopyReport;
use throughline_store::{GarbageOptions, GarbageReport, StoreProgress, StoreStatus};

use crate::app::App;
use crate::args::time::duration_ms;
use crate::error::CliError;
use crate::record::{OpenRecord, RecordStore, refused};
use crate::ui::output::print_json;
use crate::ui::progress::{ProgressLine, progress_words};
use upkeep::{EraseOwnerArgs, ExpireArgs, ExportOwnerArgs, LogArgs};

use crate::ui::text::{bytes_words, counted, thousands};

/// Show the record's storage; copy, expire, export and erase it
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    Status(StatusArgs),
    Copy(CopyArgs),
    Gc(GcArgs),
    Expire(ExpireArgs),
    ExportOwner(ExportOwnerArgs),
    EraseOwner(EraseOwnerArgs),
    Log(LogArgs),
}

/// Show the engine, its schema version, size and connections
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline store status
  throughline store status --json")]
struct StatusArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Copy the record into an empty database, or from a database into a new file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline store copy --to postgres://throughline@db/throughline
  throughline store copy --to record-from-db.db
  throughline store copy --to from-db.db --artifacts file:///srv/large-texts

The record that the settings name is not changed. Nothing may write to either
record during the copy. Run the command again to continue an interrupted copy.
At the end everything is read back and compared.")]
struct CopyArgs {
    /// The target: the address of a PostgreSQL database, or a file
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// Where to store the copy's large texts; accepts the same values as `store.artifacts`
    #[arg(long, value_name = "URL")]
    artifacts: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Remove unreferenced large texts from `store.artifacts`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline store gc --dry-run
  throughline store gc --grace 30d

A text is kept for the grace period after it was stored, even if unreferenced.
Set it at least as long as backups of the database are kept: an older backup may
refer to texts that the present record does not. The record can stay in use.")]
struct GcArgs {
    /// How long to keep a text after it was stored, even if unreferenced
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_span)]
    grace: i64,
    /// Report what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &StoreArgs, app: &App) -> Result<(), CliError> {
    match &args.command {
        StoreCommand::Status(args) => status(args, app),
        StoreCommand::Copy(args) => copy(args, app),
        StoreCommand::Gc(args) => gc(args, app),
        StoreCommand::Expire(args) => upkeep::expire(args, app),
        StoreCommand::ExportOwner(args) => upkeep::export_owner(args, app),
        StoreCommand::EraseOwner(args) => upkeep::erase_owner(args, app),
        StoreCommand::Log(args) => upkeep::log(args, app),
    }
}

fn status(args: &StatusArgs, app: &App) -> Result<(), CliError> {
    let Some(record) = OpenRecord::open_existing(app)? else { return Ok(()) };
    let status = match &record.store {
        RecordStore::Sqlite(store) => store.status(),
        #[cfg(feature = "postgres")]
        RecordStore::Postgres(store) => store.status(),
    };
    let status = status.map_err(refused)?;
    if args.json {
        return print_json(app, &status);
    }
    app.print(&page(&status))
}

fn page(status: &StoreStatus) -> String {
    let engine = match &status.server {
        Some(server) => format!("PostgreSQL {}", server.version),
        None => "SQLite".to_owned(),
    };
    let mut out = format!(
        "Engine       {engine}\nPlace        {}\nSchema       version {}\nSize         {}",
        status.place,
        status.schema_version,
        bytes_words(status.database_bytes),
    );
    if status.artifact_bytes > 0 {
        out.push_str(&format!(", and {} of large texts", bytes_words(status.artifact_bytes)));
    }
    if let Some(place) = &status.artifacts_in {
        out.push_str(&format!("\nLarge texts  {place}"));
    }
    out.push_str(&format!(
        "\nHolds        {}, {}\n",
        counted(status.sessions, "session", "sessions"),
        counted(status.messages, "message", "messages")
    ));
    if let Some(server) = &status.server {
        out.push_str(&format!(
            "Connections  {} to this database; the server allows {}\n",
            thousands(server.connections),
            thousands(server.max_connections)
        ));
        let lag =
            server.lag_bytes.map_or_else(String::new, |lag| format!(", at most {} behind", bytes_words(lag)));
        out.push_str(&format!("Standbys     {}{lag}\n", thousands(server.standbys)));
    }
    out
}

fn gc(args: &GcArgs, app: &App) -> Result<(), CliError> {
    let record = OpenRecord::open(app)?;
    let options = GarbageOptions { now_ms: app.now().ms, grace_ms: args.grace, dry_run: args.dry_run };
    let mut line = ProgressLine::new(app);
    let mut follow = |progress: StoreProgress| {
        if line.is_due() {
            line.show(&progress_words(progress));
        }
    };
    let report = record.store.upkeep().collect_garbage(&options, &mut follow);
    line.end();
    let report = report.map_err(refused)?;
    if args.json {
        return print_json(app, &report);
    }
    app.print(&collected_words(&report, args.dry_run))
}

fn collected_words(report: &GarbageReport, is_dry_run: bool) -> String {
    let GarbageReport { objects, bytes, garbage, garbage_bytes, younger, removed } = report;
    let what = match is_dry_run {
        true => format!(
            "{} would be removed, {}",
            counted(*garbage, "large text", "large texts"),
            bytes_words(*garbage_bytes)
        ),
        false => {
            format!("Removed {} of {}", thousands(*removed), counted(*garbage, "large text", "large texts"))
        }
    };
    format!(
        "{what} that nothing refers to\n  {} stay for the grace period; the place held {}, {}\n",
        thousands(*younger),
        counted(*objects, "object", "objects"),
        bytes_words(*bytes)
    )
}

/// Parses a time span such as `36h` or `7d`; returns milliseconds.
fn parse_span(text: &str) -> Result<i64, String> {
    duration_ms(&text.trim().to_ascii_lowercase())
        .ok_or_else(|| "expected a time span such as 36h or 7d".to_owned())
}

#[cfg(feature = "postgres")]
fn copy(args: &CopyArgs, app: &App) -> Result<(), CliError> {
    use std::time::Instant;
    use throughline_store::{PostgresStore, SqliteStore};

    use crate::error::Exit;
    use crate::record::{RecordPlace, read_artifact_place};

    let Some(record) = OpenRecord::open_existing(app)? else { return Ok(()) };
    let artifacts = read_artifact_place(app, args.artifacts.as_deref().unwrap_or_default())?;
    let started = Instant::now();
    let mut line = ProgressLine::new(app);
    let mut follow = |progress: StoreProgress| {
        if line.is_due() {
            line.show(&progress_words(progress));
        }
    };
    let is_server = args.to.starts_with("postgres://") || args.to.starts_with("postgresql://");
    let copied = match (&record.store, is_server) {
        (RecordStore::Sqlite(from), true) => {
            let to = PostgresStore::open(&args.to, PostgresStore::CONNECTIONS)
                .and_then(|to| to.with_artifacts(artifacts.as_ref()));
            to.and_then(|to| to.copy_from(from, &mut follow))
        }
        (RecordStore::Postgres(from), false) => {
            let to = SqliteStore::open(std::path::Path::new(&args.to), app.now().ms)
                .and_then(|to| to.with_artifacts(artifacts.as_ref()));
            to.and_then(|to| from.copy_to(&to, &mut follow))
        }
        (RecordStore::Sqlite(_), false) | (RecordStore::Postgres(_), true) => {
            line.end();
            return Err(CliError::new(Exit::BadInput, "a record is copied from one engine to the other")
                .because(format!("the record is already in {}", RecordPlace::of(app)?.words()))
                .hint("a file is copied with `throughline backup`, a database with `pg_dump`"));
        }
    };
    line.end();
    let report = copied.map_err(refused)?;
    if args.json {
        return print_json(app, &report);
    }
    app.print(&copied_words(&report, started.elapsed().as_secs_f64()))
}

#[cfg(feature = "postgres")]
fn copied_words(report: &CopyReport, seconds: f64) -> String {
    let CopyReport { sessions, messages, resumed_messages, artifacts } = report;
    let rate = messages.saturating_sub(*resumed_messages) as f64 / seconds.max(0.001);
    let resumed = match resumed_messages {
        0 => String::new(),
        resumed => format!(", {} of them by an earlier attempt", thousands(*resumed)),
    };
    format!(
        "Copied and compared {}, {}{resumed} and {}\n  {} messages a second, reading back included\n",
        counted(*sessions, "session", "sessions"),
        counted(*messages, "message", "messages"),
        counted(*artifacts, "large text", "large texts"),
        thousands(rate as u64)
    )
}

#[cfg(not(feature = "postgres"))]
fn copy(args: &CopyArgs, app: &App) -> Result<(), CliError> {
    let _ = (&args.to, &args.artifacts, args.json, app);
    Err(crate::record::without_postgres("a copy is made to or from PostgreSQL"))
}
