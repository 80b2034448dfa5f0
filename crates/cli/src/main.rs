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

use crate::app::{Context, report_failure};
use crate::args::{Arguments, Command, WELCOME};
use crate::error::{Exit, Failure};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
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

/// Looks around, carries out the command and reports how that went.
fn run(arguments: Arguments) -> Exit {
    let Arguments { global, command } = arguments;
    let context = match Context::look_around(global.sets, global.colour) {
        Ok(context) => context,
        Err(failure) => {
            report_failure(&failure, None);
            return failure.exit();
        }
    };
    match carry_out(&context, command) {
        Ok(()) => Exit::Ok,
        Err(failure) => {
            report_failure(&failure, Some(&context));
            failure.exit()
        }
    }
}

fn carry_out(context: &Context, command: Option<Command>) -> Result<(), Failure> {
    match command {
        // Whoever types the bare name at a terminal wants to talk; where there is nobody to talk to yet, that is helped.
        None if context.can_ask => chat::run(&chat::ChatArgs::default(), context),
        None => context.print(WELCOME),
        Some(Command::Chat(arguments)) => chat::run(&arguments, context),
        Some(Command::Compress(arguments)) => commands::compress::run(&arguments, context),
        Some(Command::Inspect(arguments)) => commands::inspect::run(&arguments, context),
        Some(Command::Replay(arguments)) => commands::replay::run(&arguments, context),
        Some(Command::Import(arguments)) => commands::import::run(&arguments, context),
        Some(Command::Sessions(arguments)) => commands::sessions::run(&arguments, context),
        Some(Command::Search(arguments)) => commands::search::run(&arguments, context),
        Some(Command::Lcm(arguments)) => commands::lcm::run(&arguments, context),
        Some(Command::Usage(arguments)) => commands::usage::run(&arguments, context),
        Some(Command::Insights(arguments)) => commands::insights::run(&arguments, context),
        Some(Command::Doctor(arguments)) => commands::doctor::run(&arguments, context),
        Some(Command::Backup(arguments)) => commands::backup::run(&arguments, context),
        Some(Command::Models(arguments)) => commands::models::run(&arguments, context),
        Some(Command::Serve(arguments)) => serve::run(&arguments, context),
        Some(Command::Token(arguments)) => commands::token::run(&arguments, context),
        Some(Command::Plugins(arguments)) => commands::plugins::run(&arguments, context),
        Some(Command::Engine(arguments)) => commands::engine::run(&arguments, context),
        Some(Command::Mcp(arguments)) => commands::mcp::run(&arguments, context),
        Some(Command::Config(arguments)) => commands::config::run(arguments, context),
        Some(Command::Completions(arguments)) => {
            let mut script = Vec::new();
            clap_complete::generate(arguments.shell, &mut Arguments::command(), "throughline", &mut script);
            context.print_bytes(&script)
        }
    }
}
