//! The throughline binary: arguments, terminal, home directory, environment. Nothing else knows those.

mod access_token_file;
mod app;
mod args;
mod chat;
mod commands;
mod context_breakdown;
mod engines;
mod error;
mod files;
mod home;
mod host;
mod input;
mod limits;
mod model_client;
mod recall_tools;
mod record;
mod serve;
mod token_counter;
mod ui;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::app::{App, report_failure};
use crate::args::{Cli, Command, WELCOME};
use crate::error::{CliError, Exit};

fn main() -> ExitCode {
    let arguments = match Cli::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version come this way too, with exit code 0; a closed pipe is no error here either.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code()));
        }
    };
    // A panic is a defect and must not look like any documented outcome but that.
    let ending = std::panic::catch_unwind(|| run(arguments));
    ExitCode::from(ending.unwrap_or(Exit::Internal).code())
}

/// MarkdownStyle around, carries out the command and reports how that went.
fn run(arguments: Cli) -> Exit {
    let Cli { global, command } = arguments;
    let app = match App::from_env(global.sets, global.colour) {
        Ok(app) => app,
        Err(failure) => {
            report_failure(&failure, None);
            return failure.exit();
        }
    };
    match dispatch(&app, command) {
        Ok(()) => Exit::Ok,
        Err(failure) => {
            report_failure(&failure, Some(&app));
            failure.exit()
        }
    }
}

fn dispatch(app: &App, command: Option<Command>) -> Result<(), CliError> {
    match command {
        // Whoever types the bare name at a terminal wants to talk; where there is nobody to talk to yet, that is helped.
        None if app.can_ask => chat::run(&chat::ChatArgs::default(), app),
        None => app.print(WELCOME),
        Some(Command::Chat(arguments)) => chat::run(&arguments, app),
        Some(Command::Compress(arguments)) => commands::compress::run(&arguments, app),
        Some(Command::Inspect(arguments)) => commands::inspect::run(&arguments, app),
        Some(Command::Replay(arguments)) => commands::replay::run(&arguments, app),
        Some(Command::Import(arguments)) => commands::import::run(&arguments, app),
        Some(Command::Sessions(arguments)) => commands::sessions::run(&arguments, app),
        Some(Command::Search(arguments)) => commands::search::run(&arguments, app),
        Some(Command::Lcm(arguments)) => commands::lcm::run(&arguments, app),
        Some(Command::Usage(arguments)) => commands::usage::run(&arguments, app),
        Some(Command::Insights(arguments)) => commands::insights::run(&arguments, app),
        Some(Command::Doctor(arguments)) => commands::doctor::run(&arguments, app),
        Some(Command::Backup(arguments)) => commands::backup::run(&arguments, app),
        Some(Command::Models(arguments)) => commands::models::run(&arguments, app),
        Some(Command::Serve(arguments)) => serve::run(&arguments, app),
        Some(Command::Token(arguments)) => commands::token::run(&arguments, app),
        Some(Command::Plugins(arguments)) => commands::plugins::run(&arguments, app),
        Some(Command::Engine(arguments)) => commands::engine::run(&arguments, app),
        Some(Command::Mcp(arguments)) => commands::mcp::run(&arguments, app),
        Some(Command::Config(arguments)) => commands::config::run(arguments, app),
        Some(Command::Completions(arguments)) => {
            let mut script = Vec::new();
            clap_complete::generate(arguments.shell, &mut Cli::command(), "throughline", &mut script);
            app.print_bytes(&script)
        }
    }
}
