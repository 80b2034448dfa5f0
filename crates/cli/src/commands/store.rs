//! `throughline store`: what the record is kept in, and copying it from one engine to another.

use clap::{Args, Subcommand};
use throughline_store::StoreStatus;
#[cfg(feature = "postgres")]
use throughline_store::{CopyReport, StoreProgress};

use crate::app::App;
use crate::error::CliError;
use crate::record::{OpenRecord, RecordStore, refused};
use crate::ui::output::print_json;
use crate::ui::text::{bytes_words, counted, thousands};

/// What the record is kept in, and copying it to another engine
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    Status(StatusArgs),
    Copy(CopyArgs),
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

The record that the settings name stays as it is. Nobody may write to either
meanwhile. A copy that was interrupted goes on when the command is given again.
At the end everything is read back and compared.")]
struct CopyArgs {
    /// Where to: the address of a PostgreSQL database, or a file
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Carries out the command.
pub(crate) fn run(args: &StoreArgs, app: &App) -> Result<(), CliError> {
    match &args.command {
        StoreCommand::Status(args) => status(args, app),
        StoreCommand::Copy(args) => copy(args, app),
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

#[cfg(feature = "postgres")]
fn copy(args: &CopyArgs, app: &App) -> Result<(), CliError> {
    use std::time::Instant;
    use throughline_store::{PostgresStore, SqliteStore};

    use crate::error::Exit;
    use crate::record::RecordPlace;
    use crate::ui::progress::{ProgressLine, progress_words};

    let Some(record) = OpenRecord::open_existing(app)? else { return Ok(()) };
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
            let to = PostgresStore::open(&args.to, PostgresStore::CONNECTIONS);
            to.and_then(|to| to.copy_from(from, &mut follow))
        }
        (RecordStore::Postgres(from), false) => {
            let to = SqliteStore::open(std::path::Path::new(&args.to), app.now().ms);
            to.and_then(|to| from.copy_to(&to, &mut follow))
        }
        (RecordStore::Sqlite(_), false) | (RecordStore::Postgres(_), true) => {
            line.end();
            return Err(CliError::new(Exit::BadInput, "a record is copied from one engine to the other")
                .because(format!("the record is in {} already", RecordPlace::of(app)?.words()))
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
    let _ = (&args.to, args.json, app);
    Err(crate::record::without_postgres("a copy is made to or from PostgreSQL"))
}
