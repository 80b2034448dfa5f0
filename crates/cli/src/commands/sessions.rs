//! `throughline sessions`: what is recorded, and changing it.

mod change;
mod export;
mod list_view;
mod show;
mod show_view;
mod tree_view;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use serde_json::json;
use throughline_store::{Conversation, ListCursor, SessionFilter, Store as _};

use crate::app::App;
use crate::args::parse_tokens;
use crate::args::time::{TimeArg, parse_time};
use crate::error::CliError;
use crate::record::{OpenRecord, refused};
use crate::ui::output::print_json;

/// Conversations listed when nothing else is asked for.
const DEFAULT_LISTED: usize = 20;

/// List, show and change what is recorded
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  throughline sessions --since 7d
  throughline sessions show last
  throughline sessions show 20261115_09 --view model
  throughline sessions tree
  throughline sessions export last --out session.json --redact
  throughline sessions rename 20261115_09 \"Port the parser\"
  throughline sessions undo last

ID is an id, any unique prefix of one, a title, or `last` for the most recently
active session. A session is one window of a conversation: when it is compacted
it ends, and a continuation takes over. Nothing that was said is ever lost."
)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    command: Option<SessionsCommand>,
    #[command(flatten)]
    list: SessionListArgs,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List conversations, the most recently active first
    List(SessionListArgs),
    /// Show a conversation: all of it for people, or what a model would be sent
    Show(SessionShowArgs),
    /// Show how sessions hang together: continuations, branches, sub-agents
    Tree(SessionTreeArgs),
    /// Write a conversation to a file
    Export(ExportArgs),
    /// Delete a conversation for good
    Delete(DeleteArgs),
    /// Give a conversation a title
    Rename(RenameArgs),
    /// Go back to the view before the last compaction
    Undo(SelectArgs),
    /// Take up the compaction again that was undone
    Redo(SelectArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SessionListArgs {
    /// At most so many [default: 20]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Only those active since then: 7d, 12h, today, 2026-11-15
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
    since: Option<TimeArg>,
    /// Only those of a program: claude-code, codex, hermes, chat, gateway
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Everything: without a limit, sub-agents and side calls too
    #[arg(long)]
    all: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Which side of a conversation to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewArg {
    /// Everything that was said, with a mark where it was compacted
    #[default]
    Human,
    /// What a model would be sent now, item by item
    Model,
}

#[derive(Debug, Args)]
pub(crate) struct SessionShowArgs {
    /// The session: an id, a unique prefix of one, a title, or last
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Which side of it
    #[arg(long, value_name = "VIEW", value_enum, default_value_t)]
    pub(crate) view: ViewArg,
    /// Long tool output and arguments too, not only their beginning
    #[arg(long)]
    pub(crate) full: bool,
    /// The messages as JSON, byte for byte
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
struct SessionTreeArgs {
    /// The session: an id, a unique prefix of one, a title, or last
    #[arg(value_name = "ID", default_value = "last")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The form of an exported conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// A list of messages
    #[default]
    Messages,
    /// One message a line
    Jsonl,
    /// A request body: model, system prompt, tools, messages
    Body,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session: an id, a unique prefix of one, a title, or last
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Write to this file, replacing it as a whole; without it, to stdout
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// The form
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: FormatArg,
    /// Which side: everything that was said, or what a model would be sent
    #[arg(long, value_name = "VIEW", value_enum, default_value_t)]
    pub(crate) view: ViewArg,
    /// Mask secrets
    #[arg(long)]
    pub(crate) redact: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The session: an id, a unique prefix of one, a title, or last
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Also what hangs on it: branches and sub-agents
    #[arg(long)]
    pub(crate) with_dependants: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// The session: an id, a unique prefix of one, a title, or last
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The new title; an empty one takes it away
    #[arg(value_name = "TITLE", allow_hyphen_values = true)]
    pub(crate) title: String,
}

#[derive(Debug, Args)]
pub(crate) struct SelectArgs {
    /// The session: an id, a unique prefix of one, a title, or last
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The window the view has to fit, instead of the model's own
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub(crate) context_length: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Carries out the command.
pub(crate) fn run(args: &SessionsArgs, app: &App) -> Result<(), CliError> {
    match &args.command {
        None => list(&args.list, app),
        Some(SessionsCommand::List(args)) => list(args, app),
        Some(SessionsCommand::Show(args)) => show::run(args, app),
        Some(SessionsCommand::Tree(args)) => tree(args, app),
        Some(SessionsCommand::Export(args)) => export::run(args, app),
        Some(SessionsCommand::Delete(args)) => change::delete(args, app),
        Some(SessionsCommand::Rename(args)) => change::rename(args, app),
        Some(SessionsCommand::Undo(args)) => change::undo(args, app),
        Some(SessionsCommand::Redo(args)) => change::redo(args, app),
    }
}

fn list(args: &SessionListArgs, app: &App) -> Result<(), CliError> {
    let record = OpenRecord::open_existing(app)?;
    let limit = match (args.limit, args.all) {
        (Some(limit), _) => Some(limit),
        (None, true) => None,
        (None, false) => Some(DEFAULT_LISTED),
    };
    let now = app.now();
    let filter = SessionFilter {
        since_ms: args.since.map(|moment| moment.start(&now)),
        program: args.program.clone(),
        include_attached: args.all,
        after: None,
        // One more than is shown tells whether there are more.
        limit: limit.map(|limit| limit.saturating_add(1)),
    };
    let mut conversations = match &record {
        Some(record) if args.all => record.store.conversations(&record.owner, &filter).map_err(refused)?,
        Some(record) => begun(record, filter)?,
        None => Vec::new(),
    };
    let more = limit.is_some_and(|limit| conversations.len() > limit);
    if let Some(limit) = limit {
        conversations.truncate(limit);
    }
    if args.json {
        return print_json(app, &json!({ "sessions": conversations, "more": more }));
    }
    if let Some(record) = &record {
        for conversation in conversations.iter_mut().filter(|conversation| conversation.title.is_none()) {
            let root = record.store.session(&record.owner, &conversation.root).map_err(refused)?;
            conversation.title = record.first_words(&root)?;
        }
    }
    app.print(&list_view::render(&conversations, &now, app.width))?;
    if record.is_some() && conversations.is_empty() {
        app.note(if args.since.is_some() || args.program.is_some() {
            "no recorded session fits"
        } else {
            "nothing is recorded yet; `throughline import` reads the histories of Claude Code, Codex and Hermes"
        });
    }
    if more {
        app.note("there are more; --limit N or --all shows them");
    }
    Ok(())
}

/// Conversations in which something was said. One that was only opened tells nobody anything.
fn begun(record: &OpenRecord<'_>, mut filter: SessionFilter) -> Result<Vec<Conversation>, CliError> {
    let wanted = filter.limit.unwrap_or(usize::MAX);
    let mut begun = Vec::new();
    loop {
        let page = record.store.conversations(&record.owner, &filter).map_err(refused)?;
        let is_last = filter.limit.is_none_or(|limit| page.len() < limit);
        filter.after = page.last().map(ListCursor::of);
        begun.extend(page.into_iter().filter(|conversation| conversation.totals.messages > 0));
        if is_last || begun.len() >= wanted {
            begun.truncate(wanted);
            return Ok(begun);
        }
    }
}

fn tree(args: &SessionTreeArgs, app: &App) -> Result<(), CliError> {
    let record = OpenRecord::open_to_read(app, &args.id)?;
    let session = record.session(&args.id)?;
    let mut family = record.store.family(&record.owner, &session.id).map_err(refused)?;
    if args.json {
        return print_json(app, &json!({ "asked": session.id, "sessions": family }));
    }
    if let Some(first) = family.first_mut() {
        first.title = record.name_of(first)?;
    }
    app.print(&tree_view::render(&family, &session.id, &record.now, app.width))
}
