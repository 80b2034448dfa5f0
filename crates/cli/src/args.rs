//! The command line: every option once, with the words that `--help` shows.

pub(crate) mod time;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use throughline_transcript::{DecodeOptions, WireFormat, WireFormatChoice};

use crate::app::ColourChoice;
use crate::chat::ChatArgs;
use crate::commands::backup::BackupArgs;
use crate::commands::config::ConfigArgs;
use crate::commands::doctor::DoctorArgs;
use crate::commands::engine::EngineArgs;
use crate::commands::import::ImportArgs;
use crate::commands::insights::InsightsArgs;
use crate::commands::lcm::LcmArgs;
use crate::commands::mcp::McpArgs;
use crate::commands::models::ModelsArgs;
use crate::commands::plugins::PluginsArgs;
use crate::commands::replay::ReplayArgs;
use crate::commands::search::SearchArgs;
use crate::commands::sessions::SessionsArgs;
use crate::commands::token::TokenArgs;
use crate::commands::usage::UsageArgs;
use crate::serve::ServeArgs;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a defect of Throughline itself
  2  the command line makes no sense
  3  the input is not a transcript, does not fit the given limits, or names
     something that is not in the record
  4  a setting is wrong (file, variable or --set)
  5  the output could not be written
  6  the input is missing or cannot be read
  7  the record is damaged, of a newer version, or not ours
  8  somebody else is at work on it; try again later
  9  a model or its endpoint gave no answer

Settings come from config.yaml in ~/.throughline (or $THROUGHLINE_HOME), from
variables such as THROUGHLINE_COMPRESSION__THRESHOLD, and from --set.
`throughline config show` lists them all with their origin.";

/// What a person sees who types the bare name.
pub(crate) const WELCOME: &str = "\
Throughline keeps long agent conversations going.

  throughline chat                      talk to an agent in this folder
  throughline inspect session.jsonl     what fills the context, what is broken
  throughline compress session.jsonl    compact it: what stays, what goes, why
  throughline compress session.jsonl --preview
                                        the plan only, nothing is changed
  throughline replay ~/.claude/projects what your sessions cost, and would cost
  throughline serve                     stand between your agent and its model
  throughline import                    record the histories of your agents
  throughline sessions                  what is recorded
  throughline search \"waiting list\"     everything that was ever said
  throughline insights                  calls, tokens, money, by day and model
  throughline models                    windows, prices and caching of models
  throughline config show               every setting and where it came from

A transcript is a file, or - for stdin; .gz is read too. It may be a list of
messages, a request body of Chat Completions, Responses or Anthropic Messages, a
Claude Code session log, or a Codex rollout log. No key and no network needed.

`throughline --help` says more, `throughline compress --help` says everything
about one command.
";

/// Keeps long agent conversations going.
///
/// Reads a conversation of any agent, measures it, and compacts it: old tool output becomes one line each, the middle
/// becomes a structured summary, the newest part stays word for word. Records conversations whole, and finds anything
/// that was ever said in them. `chat` is an agent of its own, `serve` stands between yours and its model. Only these two
/// and `models` talk to a server, the one you configured.
#[derive(Debug, Parser)]
#[command(name = "throughline", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Options that every command takes.
#[derive(Debug, Args)]
pub(crate) struct GlobalArgs {
    /// Override a setting for this run, for example --set compression.threshold=0.6 (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", global = true, display_order = 900)]
    pub(crate) sets: Vec<String>,

    /// When to use colours
    #[arg(
        long = "color",
        visible_alias = "colour",
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        global = true,
        display_order = 901,
        long_help = "When to use colours: auto, always or never. NO_COLOR is honoured; nothing is told by colour alone"
    )]
    pub(crate) colour: ColourChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Chat(ChatArgs),
    Compress(CompressArgs),
    Inspect(InspectArgs),
    Replay(ReplayArgs),
    Import(ImportArgs),
    Sessions(SessionsArgs),
    Search(SearchArgs),
    Lcm(LcmArgs),
    Usage(UsageArgs),
    Insights(InsightsArgs),
    Doctor(DoctorArgs),
    Backup(BackupArgs),
    Models(ModelsArgs),
    Serve(ServeArgs),
    Token(TokenArgs),
    Plugins(PluginsArgs),
    Engine(EngineArgs),
    Mcp(McpArgs),
    Config(ConfigArgs),
    Completions(CompletionsArgs),
}

/// Where the transcript is and how to read it.
#[derive(Debug, Args)]
pub(crate) struct TranscriptArgs {
    /// The transcript: a file, or - for stdin; gzip is detected
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "session")]
    pub(crate) file: Option<PathBuf>,

    /// Instead of a file: a recorded session, by its id, a unique prefix of one, its title, or last
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "wire_format", "pick", "since_compaction"])]
    pub(crate) session: Option<String>,

    /// Read it as this wire instead of detecting it
    #[arg(long = "dialect", value_name = "DIALECT", help_heading = "Reading")]
    pub(crate) wire_format: Option<WireFormatArg>,

    /// Take this conversation, counted from 1, of a file that holds several
    #[arg(long, value_name = "N", help_heading = "Reading")]
    pub(crate) pick: Option<usize>,

    /// Of a session log, read only what came after the client's own last compaction
    #[arg(long, help_heading = "Reading")]
    pub(crate) since_compaction: bool,
}

impl TranscriptArgs {
    /// The choices in the words of the reader.
    pub(crate) fn decode_options(&self) -> DecodeOptions {
        DecodeOptions {
            wire_format: self
                .wire_format
                .map_or(WireFormatChoice::Detect, |wire_format| WireFormatChoice::Forced(wire_format.into())),
            pick: self.pick,
            since_compaction: self.since_compaction,
        }
    }
}

/// The wires by the names users type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WireFormatArg {
    /// OpenAI Chat Completions
    Chat,
    /// OpenAI Responses
    Responses,
    /// Anthropic Messages
    Anthropic,
}

impl From<WireFormatArg> for WireFormat {
    fn from(arg: WireFormatArg) -> Self {
        match arg {
            WireFormatArg::Chat => Self::Chat,
            WireFormatArg::Responses => Self::Responses,
            WireFormatArg::Anthropic => Self::Anthropic,
        }
    }
}

/// What the transcript has to fit into.
#[derive(Debug, Args)]
pub(crate) struct WindowArgs {
    /// The model's window in tokens, such as 200000, 200k or 1m
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens, help_heading = "Limits")]
    pub(crate) context_length: Option<u64>,

    /// The model, when the transcript does not name it; its window is looked up
    #[arg(long, value_name = "NAME", help_heading = "Limits")]
    pub(crate) model: Option<String>,

    /// Tokens to keep free for the answer
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens, help_heading = "Limits")]
    pub(crate) max_output_tokens: Option<u64>,
}

/// Show what fills the context: size by role, tool and kind, groups, largest items, broken rules
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline inspect session.jsonl
  throughline inspect request.json --context-length 128k --top 20
  throughline inspect rollout.jsonl.gz --json | jq .tokens
  throughline inspect --session last
  cat messages.json | throughline inspect -")]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) transcript: TranscriptArgs,
    #[command(flatten)]
    pub(crate) window: WindowArgs,

    /// How many of the largest messages and tools to list
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(..=10_000))]
    pub(crate) top: u16,

    /// Count with the model's own tokenizer where it is known (OpenAI encodings) instead of estimating
    #[arg(long)]
    pub(crate) exact: bool,

    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// Compact a transcript: keep its head and tail, summarise the middle, report what happened
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline compress session.jsonl --context-length 200k
  throughline compress session.jsonl --preview
  throughline compress session.json --focus \"database schema\" --force
  throughline compress request.json --out compacted.json
  throughline compress - --json < messages.json | jq .report.tokens
  throughline compress --session last

Below the threshold nothing is done, unless --force is given. The output has the
dialect and form of the input; a log yields the message list of its wire. A
recorded session ends and a continuation takes over with the new view; nothing
that was said is lost, and `throughline sessions undo` goes back.")]
pub(crate) struct CompressArgs {
    #[command(flatten)]
    pub(crate) transcript: TranscriptArgs,
    #[command(flatten)]
    pub(crate) window: WindowArgs,

    /// Compact even below the threshold
    #[arg(long)]
    pub(crate) force: bool,

    /// Give this topic most of the summary's room
    #[arg(long, value_name = "TOPIC")]
    pub(crate) focus: Option<String>,

    /// Keep at least this many of the newest messages (for compression.protect_last_n)
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,

    /// Keep this many of the newest messages and no more, as a conversation that is being held does
    #[arg(long, value_name = "N", hide = true, conflicts_with = "keep")]
    pub(crate) keep_exactly: Option<usize>,

    /// Only show the plan: head, middle, tail, what would be pruned, what is at stake
    #[arg(long, conflicts_with = "out")]
    pub(crate) preview: bool,

    /// Write the compacted transcript here, replacing the file as a whole; - for stdout
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    /// Print one JSON object on stdout: outcome, report and messages
    #[arg(long)]
    pub(crate) json: bool,

    /// Leave the summary out of the report
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline completions bash > ~/.local/share/bash-completion/completions/throughline
  throughline completions zsh > ~/.zfunc/_throughline
  throughline completions fish > ~/.config/fish/completions/throughline.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Largest number of tokens that makes sense anywhere; the settings have the same bound.
const MAX_TOKENS: u64 = 100_000_000;

/// Reads `200000`, `200_000`, `200,000`, `200k` and `1.5m`.
pub(crate) fn parse_tokens(typed: &str) -> Result<u64, String> {
    let wanted =
        || format!("expected a number of tokens between 1 and {MAX_TOKENS}, such as 200000, 200k or 1m");
    let lower = typed.trim().to_ascii_lowercase().replace(['_', ','], "");
    let (digits, scale) = match lower.strip_suffix(['k', 'm']) {
        Some(digits) if lower.ends_with('k') => (digits, 1_000.0),
        Some(digits) => (digits, 1_000_000.0),
        None => (lower.as_str(), 1.0),
    };
    let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number: f64 = digits.parse().ok().filter(|_| is_plain).ok_or_else(wanted)?;
    let tokens = number * scale;
    if tokens.fract() != 0.0 || !(1.0..=MAX_TOKENS as f64).contains(&tokens) {
        return Err(wanted());
    }
    Ok(tokens as u64)
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
