//! The throughline binary: arguments, terminal, home directory, environment. Nothing else knows those.

mod args;
mod backup_cmd;
mod census;
mod chat;
mod compress;
mod compress_view;
mod config_cmd;
mod context;
mod doctor_cmd;
mod doctor_view;
mod engine_cmd;
mod engines;
mod failure;
mod figures;
mod files;
mod gauge;
mod home;
mod host;
mod import_cmd;
mod import_view;
mod input;
mod insights_cmd;
mod insights_view;
mod inspect;
mod inspect_view;
mod lcm_cmd;
mod lock;
mod mcp_cmd;
mod mcp_tools;
mod meanwhile;
mod message_view;
mod meter;
mod models_cmd;
mod models_view;
mod online;
mod output;
mod plugins_check;
mod plugins_cmd;
mod process;
mod record;
#[cfg(test)]
mod record_samples;
mod recorded;
mod replay_cmd;
mod replay_view;
mod search_cmd;
mod search_view;
mod serve;
mod services;
mod sessions_change;
mod sessions_cmd;
mod sessions_export;
mod sessions_list_view;
mod sessions_show;
mod sessions_show_view;
mod sessions_tree_view;
mod situation;
mod table;
mod text;
mod token;
mod token_file;
mod usage_cmd;
mod usage_view;
mod when;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::args::{Arguments, Command, WELCOME};
use crate::context::{Context, report_failure};
use crate::failure::{Exit, Failure};

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
        Some(Command::Compress(arguments)) => compress::run(&arguments, context),
        Some(Command::Inspect(arguments)) => inspect::run(&arguments, context),
        Some(Command::Replay(arguments)) => replay_cmd::run(&arguments, context),
        Some(Command::Import(arguments)) => import_cmd::run(&arguments, context),
        Some(Command::Sessions(arguments)) => sessions_cmd::run(&arguments, context),
        Some(Command::Search(arguments)) => search_cmd::run(&arguments, context),
        Some(Command::Lcm(arguments)) => lcm_cmd::run(&arguments, context),
        Some(Command::Usage(arguments)) => usage_cmd::run(&arguments, context),
        Some(Command::Insights(arguments)) => insights_cmd::run(&arguments, context),
        Some(Command::Doctor(arguments)) => doctor_cmd::run(&arguments, context),
        Some(Command::Backup(arguments)) => backup_cmd::run(&arguments, context),
        Some(Command::Models(arguments)) => models_cmd::run(&arguments, context),
        Some(Command::Serve(arguments)) => serve::run(&arguments, context),
        Some(Command::Token(arguments)) => token::run(&arguments, context),
        Some(Command::Plugins(arguments)) => plugins_cmd::run(&arguments, context),
        Some(Command::Engine(arguments)) => engine_cmd::run(&arguments, context),
        Some(Command::Mcp(arguments)) => mcp_cmd::run(&arguments, context),
        Some(Command::Config(arguments)) => config_cmd::run(arguments, context),
        Some(Command::Completions(arguments)) => {
            let mut script = Vec::new();
            clap_complete::generate(arguments.shell, &mut Arguments::command(), "throughline", &mut script);
            context.print_bytes(&script)
        }
    }
}
