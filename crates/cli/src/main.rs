//! The `throughline` binary: arguments, terminal, home directory, environment. The libraries use none of these.

#![cfg_attr(
    not(feature = "online"),
    expect(
        dead_code,
        unused_imports,
        reason = "the offline tools share their parts with the other commands"
    )
)]

#[cfg(feature = "online")]
mod access_token_file;
#[cfg(feature = "online")]
mod access_token_list;
mod agent_history;
mod app;
mod args;
#[cfg(feature = "online")]
mod chat;
mod cli;
#[cfg(feature = "online")]
mod clients;
mod commands;
mod context_breakdown;
#[cfg(feature = "online")]
mod diagnostics;
#[cfg(feature = "online")]
mod engines;
mod error;
mod files;
#[cfg(feature = "online")]
mod gateways;
mod home;
#[cfg(feature = "online")]
mod host;
mod input;
mod limits;
#[cfg(feature = "online")]
mod meaning;
mod model_catalogue;
#[cfg(feature = "online")]
mod model_client;
mod offered_session;
#[cfg(feature = "online")]
mod record;
#[cfg(not(feature = "online"))]
#[path = "no_record.rs"]
mod record;
#[cfg(feature = "online")]
mod serve;
#[cfg(feature = "online")]
mod service;
mod settings;
#[cfg(feature = "online")]
mod setup;
mod token_counter;
mod ui;
mod welcome;

use std::process::ExitCode;

use crate::app::{App, report_failure};
use crate::cli::{Cli, dispatch};
use crate::error::Exit;
use crate::offered_session::parse_or_offer;

fn main() -> ExitCode {
    let arguments = match parse_or_offer(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version also arrive here, with exit code 0; a closed pipe is not an error.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code()));
        }
    };
    // A panic is a defect and must not look like another documented exit code.
    let ending = std::panic::catch_unwind(|| run(arguments));
    ExitCode::from(ending.unwrap_or(Exit::Internal).code())
}

/// Runs the command and reports an error.
fn run(arguments: Cli) -> Exit {
    let Cli { global, command } = arguments;
    let app = match App::from_env(global.sets, global.colour) {
        Ok(app) => app,
        Err(failure) => {
            report_failure(&failure, None);
            return failure.exit();
        }
    };
    #[cfg(feature = "online")]
    if let Err(failure) = diagnostics::start(&app) {
        report_failure(&failure, Some(&app));
        return failure.exit();
    }
    match dispatch(&app, command) {
        Ok(()) => Exit::Ok,
        Err(failure) => {
            report_failure(&failure, Some(&app));
            failure.exit()
        }
    }
}
