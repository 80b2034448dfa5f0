//! `throughline run`: starts a client behind a gateway.
//!
//! The gateway is a separate process, shared by all runs with this home directory, and stops with the last of them. The client gets the
//! gateway's address in variables or arguments. None of its files change, and it uses the terminal directly.

mod client_command;
mod connection;
mod process;
mod totals;
mod version;

use std::ffi::OsString;

use clap::Args;

use crate::app::App;
use crate::clients;
use crate::commands::run::client_command::ClientCommand;
use crate::commands::run::connection::{GatewayConnection, Supervisor};
use crate::commands::run::version::VersionCheck;
use crate::error::CliError;

/// Start an agent with the gateway between it and its model
#[derive(Debug, Args)]
#[command(
    override_usage = "throughline run [OPTIONS] CLIENT [ARGUMENTS]...\n       throughline run [OPTIONS] -- COMMAND [ARGUMENTS]...",
    after_help = "\
Examples:
  throughline run claude                      Claude Code, as if started without it
  throughline run codex exec \"fix the tests\"  everything after the name is the client's
  throughline run -- python agent.py          any program that reads ANTHROPIC_BASE_URL
                                              or OPENAI_BASE_URL

If no gateway is running, one is started. All runs with this home directory share
it, and it stops with the last of them. It writes a log to ~/.throughline/gateways.
The exit code is the client's."
)]
pub(crate) struct RunArgs {
    /// One server for every wire format, whatever gateway.upstreams says
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Start the client without the gateway if the gateway cannot be started
    #[arg(long)]
    or_direct: bool,
    /// Print no summary at the end
    #[arg(long, short)]
    quiet: bool,
    /// Print the supported clients and how each works with the gateway
    #[arg(long, exclusive = true)]
    list: bool,
    /// The client or program, and its arguments
    #[arg(
        required_unless_present = "list",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CLIENT"
    )]
    command: Vec<OsString>,
}

/// Runs the command. Exits with the client's exit code if that is not zero.
pub(crate) fn run(args: &RunArgs, app: &App) -> Result<(), CliError> {
    if args.list {
        return app.print(&clients::described());
    }
    let command = ClientCommand::find(&args.command, app)?;
    let earlier = match &args.upstream {
        Some(_) => None,
        None => command.upstream(app)?,
    };
    let upstream = args.upstream.as_deref().or(earlier.as_ref().map(|earlier| earlier.url.as_str()));
    let connection = match GatewayConnection::open(app, upstream) {
        Ok(connection) => Some(connection),
        Err(error) if args.or_direct => {
            app.warn(&format!(
                "{}; {} is started without the gateway",
                error.whole_on_one_line(),
                command.title()
            ));
            None
        }
        Err(error) => return Err(error.hint("--or-direct starts the client without the gateway")),
    };
    let (name, began_ms) = (command.run_name(app.random_bits()), app.now().ms);
    let (mut child, copy) = match &connection {
        Some(connection) => {
            let url = format!("{}/run/{name}", connection.url());
            command.behind_gateway(app, &url, &name, earlier.as_ref())?
        }
        None => (command.to_process(), None),
    };
    let supervisor = connection.as_ref().map(|connection| connection.supervise(&name));
    let version = VersionCheck::start(&command, app);
    let ended = process::run(&mut child, &command.title());
    let tally = supervisor.map(Supervisor::finish);
    if let Some(copy) = copy {
        copy.finish(app);
    }
    let code = ended?;
    if let Some(tally) = tally.filter(|_| !args.quiet) {
        totals::print(app, tally, began_ms, &command.title());
        if let Some(version) = version {
            version.print(app);
        }
    }
    match code {
        0 => Ok(()),
        code => std::process::exit(code),
    }
}
