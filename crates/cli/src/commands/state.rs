//! `throughline state`: the state of a conversation (tasks, decisions, requests), and corrections to it.

mod view;

use clap::Args;
use serde_json::json;
use throughline_compaction::StateKind;
use throughline_engine::RecordedState;
use throughline_redact::Redactor;

use crate::app::App;
use crate::error::{CliError, Exit};
use crate::record::{OpenRecord, refused};
use crate::settings::load_settings;
use crate::ui::output::print_json;
use crate::ui::text::on_one_line;

pub(crate) use view::summary_lines;

/// Show the state of a conversation: requests with their outcomes, to-do items, decisions, runs, errors
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline state last
  throughline state last --open
  throughline state 20261115_09 --kind decision --full
  throughline state last --drop constraint-12 --drop todo-40.2
  throughline state last --json | jq '.entries[] | select(.kind == \"request\")'

Every entry names the messages it comes from, which `throughline sessions show`
shows. A dropped entry stays in the record and is listed under corrections, but
new summaries leave it out. --restore undoes that.")]
pub(crate) struct StateArgs {
    /// The session: an id, a unique prefix of one, a title, or last
    #[arg(value_name = "ID", default_value = "last")]
    id: String,
    /// Only entries of this kind (repeatable)
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    kind: Vec<StateKind>,
    /// Show only open entries, entries in progress, and constraints
    #[arg(long)]
    open: bool,
    /// Whole texts, not only their beginning
    #[arg(long)]
    full: bool,
    /// Leave this entry out of summaries from now on (repeatable)
    #[arg(long, value_name = "ENTRY", conflicts_with_all = ["kind", "open", "restore"])]
    drop: Vec<String>,
    /// Undo a correction (repeatable)
    #[arg(long, value_name = "ENTRY", conflicts_with_all = ["kind", "open"])]
    restore: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn parse_kind(text: &str) -> Result<StateKind, String> {
    StateKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
        let names: Vec<&str> = StateKind::ALL.into_iter().map(StateKind::name).collect();
        format!("one of {}", names.join(", "))
    })
}

/// Runs the command.
pub(crate) fn run(args: &StateArgs, app: &App) -> Result<(), CliError> {
    let changes = !args.drop.is_empty() || !args.restore.is_empty();
    let record = if changes {
        OpenRecord::open_to_change(app, &args.id)?
    } else {
        OpenRecord::open_to_read(app, &args.id)?
    };
    let session = record.tip(&args.id)?;
    let settings = load_settings(app, &[])?.settings;
    let redactor = settings.security.redact_secrets.then(Redactor::new);
    let (store, owner, now_ms) = (&record.store, &record.owner, record.now.ms);
    let load = || RecordedState::load(store, owner, &session.id, redactor.as_ref(), now_ms).map_err(refused);
    if !args.restore.is_empty() {
        let unknown = RecordedState::restore_entries(store, owner, &session.id, &args.restore, now_ms);
        refuse_unknown(&unknown.map_err(refused)?, "correction", &session.id.to_string())?;
    }
    let mut state = load()?;
    if !args.drop.is_empty() {
        let unknown = state.drop_entries(store, owner, &session.id, &args.drop, now_ms).map_err(refused)?;
        refuse_unknown(&unknown, "entry", &session.id.to_string())?;
    }
    if args.json {
        let is_shown =
            |entry: &&throughline_compaction::StateEntry| view::is_shown(entry, &args.kind, args.open);
        let entries: Vec<_> = state.entries.iter().filter(is_shown).collect();
        return print_json(
            app,
            &json!({
                "session": session.id,
                "entries": entries,
                "corrections": state.corrections,
                "notes": state.notes,
            }),
        );
    }
    if changes {
        for name in &args.drop {
            app.note(&format!("{} is left out of summaries from now on", on_one_line(name)));
        }
        for name in &args.restore {
            app.note(&format!("{} is back", on_one_line(name)));
        }
        return Ok(());
    }
    let page = view::StatePage {
        session: session.id.to_string(),
        state: &state,
        kinds: &args.kind,
        only_open: args.open,
        full: args.full,
        width: app.width,
    };
    app.print(&page.render())?;
    if state.entries.is_empty() {
        app.note("nothing is known of this conversation yet");
    }
    Ok(())
}

/// The error for unknown names; in this case nothing was changed.
fn refuse_unknown(unknown: &[String], what: &str, session: &str) -> Result<(), CliError> {
    let Some(first) = unknown.first() else { return Ok(()) };
    let first = on_one_line(first);
    let hint = match what {
        "entry" => format!("nothing was changed; `throughline state {session}` lists them"),
        _ => format!("nothing was changed; `throughline state {session}` lists them at its end"),
    };
    let whole = format!("session {session} has no {what} `{first}`");
    Err(CliError::new(Exit::BadInput, whole).hint(hint))
}
