//! Arguments of `throughline sessions` and its subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::args::parse_tokens;
use crate::args::time::{TimeArg, parse_time};

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
it ends, and a continuation takes over. Nothing is ever lost."
)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,
    #[command(flatten)]
    pub(crate) list: SessionListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List conversations, the most recently active first
    List(SessionListArgs),
    /// Show a conversation: all of it for people, or what a model would be sent
    Show(SessionShowArgs),
    /// Show the links between sessions: continuations, branches, sub-agents
    Tree(SessionTreeArgs),
    /// Write a conversation to a file
    Export(ExportArgs),
    /// Delete a conversation permanently
    Delete(DeleteArgs),
    /// Give a conversation a title
    Rename(RenameArgs),
    /// Go back to the view before the last compaction
    Undo(SelectArgs),
    /// Redo a compaction that was undone
    Redo(SelectArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SessionListArgs {
    /// List at most this many [default: 20]
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Only those active since then: 7d, 12h, today, 2026-11-15
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
    pub(crate) since: Option<TimeArg>,
    /// Only those of a program: claude-code, codex, hermes, chat, gateway
    #[arg(long, value_name = "NAME")]
    pub(crate) program: Option<String>,
    /// List all, without a limit and with sub-agents and side calls
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which side of a conversation to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewArg {
    /// The whole transcript, with a mark at each compaction
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
    /// The transcript or the view
    #[arg(long, value_name = "VIEW", value_enum, default_value_t)]
    pub(crate) view: ViewArg,
    /// Only message #N and the ten before and after it
    #[arg(long, value_name = "N", conflicts_with = "view")]
    pub(crate) around: Option<u64>,
    /// Show long tool output and arguments whole, not only their beginning
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
pub(crate) struct SessionTreeArgs {
    /// The session: an id, a unique prefix of one, a title, or last
    #[arg(value_name = "ID", default_value = "last")]
    pub(crate) id: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The form of an exported conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// A list of messages
    #[default]
    Messages,
    /// One message per line
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
    /// The output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: FormatArg,
    /// The whole transcript, or the view that a model would be sent
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
    /// Also delete sessions that depend on it: branches and sub-agents
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
    /// The new title; an empty one removes it
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
