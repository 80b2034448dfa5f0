//! The root of the command line: the commands, the options that every command has, and the dispatch.

use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::app::{App, ColourChoice};
#[cfg(feature = "online")]
use crate::chat::{self, ChatArgs};
use crate::commands;
#[cfg(feature = "online")]
use crate::commands::backup::BackupArgs;
use crate::commands::completions::CompletionsArgs;
use crate::commands::compress::CompressArgs;
use crate::commands::config::ConfigArgs;
#[cfg(feature = "online")]
use crate::commands::doctor::DoctorArgs;
#[cfg(feature = "online")]
use crate::commands::engine::EngineArgs;
#[cfg(feature = "online")]
use crate::commands::import::ImportArgs;
#[cfg(feature = "online")]
use crate::commands::insights::InsightsArgs;
use crate::commands::inspect::InspectArgs;
#[cfg(feature = "online")]
use crate::commands::lcm::LcmArgs;
use crate::commands::man::ManArgs;
#[cfg(feature = "online")]
use crate::commands::mcp::McpArgs;
#[cfg(feature = "online")]
use crate::commands::models::ModelsArgs;
#[cfg(feature = "online")]
use crate::commands::plugins::PluginsArgs;
#[cfg(feature = "online")]
use crate::commands::replay::ReplayArgs;
#[cfg(feature = "online")]
use crate::commands::report::ReportArgs;
#[cfg(feature = "online")]
use crate::commands::run::RunArgs;
#[cfg(feature = "online")]
use crate::commands::savings::SavingsArgs;
#[cfg(feature = "online")]
use crate::commands::search::SearchArgs;
#[cfg(feature = "online")]
use crate::commands::sessions::SessionsArgs;
#[cfg(feature = "online")]
use crate::commands::state::StateArgs;
#[cfg(feature = "online")]
use crate::commands::status::StatusArgs;
#[cfg(feature = "online")]
use crate::commands::store::StoreArgs;
#[cfg(feature = "online")]
use crate::commands::token::TokenArgs;
#[cfg(feature = "online")]
use crate::commands::usage::UsageArgs;
#[cfg(feature = "online")]
use crate::commands::vectors::VectorsArgs;
use crate::error::{CliError, Exit};
#[cfg(feature = "online")]
use crate::serve::{self, ServeArgs, private::OpenArgs};
#[cfg(feature = "online")]
use crate::service::{self, ServiceArgs};
#[cfg(feature = "online")]
use crate::setup::{self, SetupArgs};
use crate::welcome;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  an internal error: a bug in Throughline
  2  the command line is invalid
  3  the input is not a transcript, does not fit the given limits, or names
     something that is not in the record
  4  a setting is wrong (file, variable or --set)
  5  the output could not be written
  6  the input is missing or cannot be read
  7  the record is damaged, of a newer version, or not ours
  8  in use by another process; try again later
  9  a model or its endpoint did not answer

Settings come from config.yaml in ~/.throughline (or $THROUGHLINE_HOME), from
variables such as THROUGHLINE_COMPRESSION__THRESHOLD, and from --set.
`throughline config show` lists them all with their origin.";

/// Keeps long agent conversations going.
///
/// Reads a conversation of any agent, measures it, and compacts it: old tool output becomes one line each, the middle
/// becomes a structured summary, the newest part stays word for word. Records whole conversations and searches them.
/// `chat` is an agent of its own, `serve` is a gateway between your agent and its model. Only these two, `models`
/// and a model for search by meaning use the network, and only the servers you configured.
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
        long_help = "When to use colours: auto, always or never. NO_COLOR is honoured; nothing is shown by colour alone"
    )]
    pub(crate) colour: ColourChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(feature = "online")]
    Run(RunArgs),
    #[cfg(feature = "online")]
    Chat(ChatArgs),
    Compress(CompressArgs),
    Inspect(InspectArgs),
    #[cfg(feature = "online")]
    Replay(ReplayArgs),
    #[cfg(feature = "online")]
    Import(ImportArgs),
    #[cfg(feature = "online")]
    Sessions(SessionsArgs),
    #[cfg(feature = "online")]
    State(StateArgs),
    #[cfg(feature = "online")]
    Search(SearchArgs),
    #[cfg(feature = "online")]
    Vectors(VectorsArgs),
    #[cfg(feature = "online")]
    Lcm(LcmArgs),
    #[cfg(feature = "online")]
    Usage(UsageArgs),
    #[cfg(feature = "online")]
    Savings(SavingsArgs),
    #[cfg(feature = "online")]
    Insights(InsightsArgs),
    #[cfg(feature = "online")]
    Doctor(DoctorArgs),
    #[cfg(feature = "online")]
    Store(StoreArgs),
    #[cfg(feature = "online")]
    Backup(BackupArgs),
    #[cfg(feature = "online")]
    Models(ModelsArgs),
    #[cfg(feature = "online")]
    Serve(ServeArgs),
    #[cfg(feature = "online")]
    Open(OpenArgs),
    #[cfg(feature = "online")]
    Report(ReportArgs),
    #[cfg(feature = "online")]
    Status(StatusArgs),
    #[cfg(feature = "online")]
    Setup(SetupArgs),
    #[cfg(feature = "online")]
    Service(ServiceArgs),
    #[cfg(feature = "online")]
    Token(TokenArgs),
    #[cfg(feature = "online")]
    Plugins(PluginsArgs),
    #[cfg(feature = "online")]
    Engine(EngineArgs),
    #[cfg(feature = "online")]
    Mcp(McpArgs),
    Config(ConfigArgs),
    Completions(CompletionsArgs),
    #[command(hide = true)]
    Man(ManArgs),
}

#[cfg(feature = "online")]
/// Runs a command line that is given without the program's name; the chat runs commands this way.
fn run_line(app: &App, words: &[&str]) -> Result<(), CliError> {
    let line = std::iter::once("throughline").chain(words.iter().copied());
    let parsed = Cli::try_parse_from(line).map_err(|error| {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        CliError::new(Exit::Usage, first)
    })?;
    dispatch(app, parsed.command)
}

/// Runs a parsed command.
pub(crate) fn dispatch(app: &App, command: Option<Command>) -> Result<(), CliError> {
    match command {
        None => welcome::run(app),
        #[cfg(feature = "online")]
        Some(Command::Run(arguments)) => commands::run::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Chat(arguments)) => chat::run(&arguments, app, run_line),
        Some(Command::Compress(arguments)) => commands::compress::run(&arguments, app),
        Some(Command::Inspect(arguments)) => commands::inspect::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Replay(arguments)) => commands::replay::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Import(arguments)) => commands::import::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Sessions(arguments)) => commands::sessions::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::State(arguments)) => commands::state::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Search(arguments)) => commands::search::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Vectors(arguments)) => commands::vectors::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Lcm(arguments)) => commands::lcm::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Usage(arguments)) => commands::usage::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Savings(arguments)) => commands::savings::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Insights(arguments)) => commands::insights::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Doctor(arguments)) => commands::doctor::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Store(arguments)) => commands::store::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Backup(arguments)) => commands::backup::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Models(arguments)) => commands::models::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Serve(arguments)) => serve::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Open(arguments)) => serve::private::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Report(arguments)) => commands::report::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Status(arguments)) => commands::status::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Setup(arguments)) => setup::run(&arguments, Cli::command(), app),
        #[cfg(feature = "online")]
        Some(Command::Service(arguments)) => service::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Token(arguments)) => commands::token::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Plugins(arguments)) => commands::plugins::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Engine(arguments)) => commands::engine::run(&arguments, app),
        #[cfg(feature = "online")]
        Some(Command::Mcp(arguments)) => commands::mcp::run(&arguments, app),
        Some(Command::Config(arguments)) => commands::config::run(arguments, app),
        Some(Command::Man(arguments)) => commands::man::run(&arguments, Cli::command(), app),
        Some(Command::Completions(arguments)) => commands::completions::run(&arguments, Cli::command(), app),
    }
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
