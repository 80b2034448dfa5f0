//! `throughline chat`: an agent at the terminal that manages its own context.
//!
//! Parts: `args` the arguments; `setup` turns settings into a session; `first_run` helps when no model is configured;
//! `named_model` finds the endpoint of a model that the user names; `repl` is the interactive loop, `one_shot` one question
//! for scripts; `approval_prompt` asks before a tool runs; `screen` shows progress and answers, with `markdown` and
//! `highlight`; `editor` is the input line, `keyboard` the keys typed during an answer; `slash` parses slash commands and
//! `commands` runs them; `status_line` has the lines at the start and under each answer.
//!
//! Not for: rules about context, which are in the engine, or about tools, which are in the agent.

mod approval_prompt;
mod args;
mod commands;
mod context_view;
mod editor;
mod error;
mod first_run;
mod highlight;
mod interrupts;
mod keyboard;
mod markdown;
mod named_model;
mod one_shot;
mod repl;
mod screen;
mod setup;
mod slash;
mod status_line;

use std::io::{self, IsTerminal as _, Read as _};
use std::sync::Arc;

pub(crate) use args::ChatArgs;

use crate::app::App;
use crate::error::{CliError, Exit, io_words};
use crate::model_client::boxed;
use setup::{ChatSetup, RunCommand};

/// The most bytes read from a pipe.
const MAX_PIPED_BYTES: u64 = 4_000_000;

/// Runs the command.
pub(crate) fn run(args: &ChatArgs, app: &App, run_command: RunCommand) -> Result<(), CliError> {
    let piped = piped()?;
    let question = match (&args.question, piped) {
        (Some(question), Some(piped)) => Some(format!("{question}\n\n{piped}")),
        (Some(question), None) => Some(question.clone()),
        (None, piped) => piped,
    };
    if let Some(question) = &question
        && question.trim().is_empty()
    {
        return Err(CliError::new(Exit::Usage, "there is no question")
            .because("the text is empty")
            .hint("for example: throughline chat -q \"what is in this folder?\""));
    }
    if args.json && question.is_none() {
        return Err(
            CliError::new(Exit::Usage, "--json needs a question").hint("give one with -q, or pipe it in")
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| {
        CliError::new(Exit::Internal, "cannot start the async runtime").because(io_words(&error))
    })?;
    let app = Arc::new(app.clone());
    let setup = ChatSetup::open(&app, args, run_command)?;
    let ended = match question {
        Some(question) => runtime.block_on(boxed(one_shot::run(&setup, args, &question))),
        None => repl::run(setup, args, &runtime),
    };
    // Background tasks are not waited for.
    runtime.shutdown_background();
    ended
}

/// Reads piped input, if stdin is not a terminal.
fn piped() -> Result<Option<String>, CliError> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = stdin.lock().take(MAX_PIPED_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| {
        CliError::new(Exit::InputUnreadable, "cannot read stdin").because(io_words(&error))
    })?;
    if bytes.len() as u64 > MAX_PIPED_BYTES {
        return Err(CliError::new(Exit::BadInput, "the piped input is too long for a question")
            .because(format!("it has more than {} bytes", crate::ui::text::thousands(MAX_PIPED_BYTES)))
            .hint("put it into a file in this folder and ask about the file"));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        CliError::new(Exit::BadInput, "the piped input is not UTF-8 text")
            .hint("put it into a file in this folder and ask about the file")
    })?;
    Ok((!text.trim().is_empty()).then_some(text))
}
