//! The slash commands. Most of them run a command of the program on this conversation.

use std::time::Duration;

use owo_colors::OwoColorize as _;
use throughline_engine::{CompactionResult, ManualCompaction, RecordedState};
use throughline_redact::Redactor;
use throughline_store::{EndReason, ViewItem};

use super::context_view;
use super::error::failure_of;
use super::named_model::{self, ModelChoice};
use super::repl::Repl;
use super::slash::{COMMANDS, other_names, parse_compress_options};
use crate::app::App;
use crate::commands::config::with_origins;
use crate::commands::state::summary_lines;
use crate::error::{CliError, Exit, path_words};
use crate::model_client::client;
use crate::model_client::model_problem;
use crate::record::refused;
use crate::ui::text::{columns, counted, labelled, printable, wrap};

/// Whether the chat continues after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterCommand {
    GoOn,
    Leave,
}

/// Runs a slash command.
pub(super) async fn dispatch(repl: &mut Repl, name: &str, arguments: &str) -> Result<AfterCommand, CliError> {
    let id = repl.agent.session().id().to_string();
    match name {
        "quit" => return Ok(AfterCommand::Leave),
        "help" => repl.screen.say(&help(repl.setup.app.columns_now())),
        "status" => repl.show_status(),
        "compress" => compress(repl, arguments).await?,
        "undo" => {
            repl.agent.undo().await.map_err(failure_of)?;
            repl.screen
                .note("the last compaction is undone: the model sees the earlier messages again, and everything since");
            repl.show_status();
        }
        "context" => {
            let width = repl.setup.app.columns_now();
            let mut page = context_view::render(&repl.agent, width);
            page.push_str(&state_lines(repl, width)?);
            repl.screen.say(&page);
        }
        "state" => {
            let mut words = vec!["state", id.as_str()];
            words.extend(arguments.split_whitespace());
            run(repl, &words)?;
        }
        "usage" => run_here(repl, &["usage", &id])?,
        "summary" => summary(repl)?,
        "retry" => return repl.retry().await,
        "insights" => run(repl, &insights_words(arguments))?,
        "sessions" => run(repl, &with_flags("sessions", arguments))?,
        "search" if arguments.is_empty() => repl.screen.note("usage: /search WORDS"),
        "search" => run(repl, &search_words(arguments))?,
        "config" if arguments.is_empty() => run(repl, &["config", "show"])?,
        "config" => {
            let shown = with_origins(&repl.setup.app, arguments)?;
            repl.screen.say(&shown);
        }
        "export" if arguments.is_empty() => repl.screen.note("usage: /export FILE"),
        "export" => export(repl, &id, arguments)?,
        "new" => {
            let old = repl.change(None).await?;
            // A conversation without messages was already deleted.
            if !old.session().messages().is_empty() {
                old.end(EndReason::NEW).await.map_err(failure_of)?;
            }
            if !arguments.is_empty() {
                rename(repl, arguments)?;
            }
        }
        "resume" if arguments.is_empty() => {
            run(repl, &["sessions"])?;
            repl.screen.note("/resume ID continues one of them");
        }
        "resume" => drop(repl.change(Some(arguments)).await?),
        "title" if arguments.is_empty() => {
            let session = repl.setup.store.session(&repl.setup.owner, repl.agent.session().id());
            let title = session.map_err(refused)?.title;
            repl.screen.note(&title.map_or_else(
                || "no title yet: lists show the first words; /title TITLE sets one".to_owned(),
                |title| printable(&title),
            ));
        }
        "title" => rename(repl, arguments)?,
        "model" if arguments.is_empty() => {
            let model = repl.connected.at.model.clone();
            run(repl, &["models", &model])?;
        }
        "model" => switch_model(repl, arguments).await?,
        "memory" => memory(repl)?,
        "tools" => repl.screen.say(&tools(repl)),
        _ => {}
    }
    Ok(AfterCommand::GoOn)
}

/// Returns the arguments of a command of the program.
fn with_flags<'a>(command: &'a str, arguments: &'a str) -> Vec<&'a str> {
    std::iter::once(command).chain(arguments.split_whitespace()).collect()
}

/// Translates the arguments of `/insights 7 --top 20`: a bare number is the number of days.
fn insights_words(arguments: &str) -> Vec<&str> {
    let mut words = vec!["insights"];
    for word in arguments.split_whitespace() {
        let is_value = words.last().is_some_and(|last| last.starts_with("--"));
        if !is_value && !word.starts_with("--") {
            words.push("--days");
        }
        words.push(word);
    }
    words
}

/// Translates the arguments of `/search WORDS --limit 50`: the words are one argument, flags follow.
fn search_words(arguments: &str) -> Vec<&str> {
    let (words, flags) = arguments.find(" --").map_or((arguments, ""), |at| arguments.split_at(at));
    ["search", words.trim()].into_iter().chain(flags.split_whitespace()).collect()
}

/// Formats the state of the conversation in a few lines.
fn state_lines(repl: &Repl, width: usize) -> Result<String, CliError> {
    let redactor = repl.setup.settings.security.redact_secrets.then(Redactor::new);
    let (store, owner) = (&repl.setup.store, &repl.setup.owner);
    let (session, now_ms) = (repl.agent.session().id(), repl.setup.app.now().ms);
    let state = RecordedState::load(store.as_ref(), owner, session, redactor.as_ref(), now_ms);
    Ok(summary_lines(&state.map_err(refused)?, width))
}

/// Prints the summary that the model sees in place of compacted messages.
fn summary(repl: &Repl) -> Result<(), CliError> {
    let (store, owner) = (&repl.setup.store, &repl.setup.owner);
    let items = store.view_items(owner, repl.agent.session().id()).map_err(refused)?;
    let ids = items.iter().filter_map(|item| match item {
        ViewItem::Summary { summary, .. } => Some(*summary),
        _ => None,
    });
    let width = repl.setup.app.columns_now();
    let mut out = String::new();
    for id in ids {
        let summary = store.summary(owner, id).map_err(refused)?;
        let messages = summary.sources.iter().map(|run| run.end_seq.saturating_sub(run.first_seq)).sum();
        let heading = format!(
            "summary of {}, written by {}",
            counted(messages, "message", "messages"),
            printable(&summary.author)
        );
        out.push_str(&format!("{}\n", wrap(&heading, width, 0).trim_end().bold()));
        out.push_str(&wrap(&printable(summary.document.trim_end()), width, 2));
    }
    if out.is_empty() {
        repl.screen.note("no summary yet: the model sees the whole conversation. /compress writes one");
        return Ok(());
    }
    repl.screen.say(&out);
    Ok(())
}

/// Runs a command of the program.
fn run(repl: &Repl, words: &[&str]) -> Result<(), CliError> {
    run_in(&repl.setup.app, repl, words)
}

/// Runs a command of the program with the model and the window of this conversation.
fn run_here(repl: &Repl, words: &[&str]) -> Result<(), CliError> {
    run_in(&repl.setup.app.with_session(Some(repl.active_session())), repl, words)
}

/// Exports the conversation to a file. Overwrites an existing file only with `--force`.
fn export(repl: &Repl, id: &str, arguments: &str) -> Result<(), CliError> {
    let forced = arguments.strip_prefix("--force").filter(|rest| rest.starts_with(' '));
    let named = forced.unwrap_or(arguments).trim();
    let home = repl.setup.app.user_home.as_ref();
    let path = match (named.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => repl.setup.folder.join(named),
    };
    if forced.is_none() && path.exists() {
        return Err(CliError::new(Exit::Usage, format!("{} already exists", path_words(&path)))
            .because("nothing was written")
            .hint(format!("/export --force {} replaces it", printable(named))));
    }
    run(repl, &["sessions", "export", id, "--out", &path.to_string_lossy()])
}

fn run_in(app: &App, repl: &Repl, words: &[&str]) -> Result<(), CliError> {
    repl.screen.rest();
    // Some commands block on the network by themselves.
    let app = app.resized().within_chat();
    tokio::task::block_in_place(|| (repl.setup.run_command)(&app, words))
}

async fn compress(repl: &mut Repl, arguments: &str) -> Result<(), CliError> {
    let wish = parse_compress_options(arguments).map_err(|wrong| CliError::new(Exit::Usage, wrong))?;
    if wish.preview {
        let id = repl.agent.session().id().to_string();
        let mut words = vec!["compress", "--session", &id, "--preview", "--force"];
        if let Some(focus) = &wish.focus {
            words.extend(["--focus", focus]);
        }
        let keep =
            wish.keep_exchanges.map(|exchanges| repl.agent.session().messages_of_last(exchanges).to_string());
        if let Some(keep) = &keep {
            words.extend(["--keep-exactly", keep]);
        }
        return run_here(repl, &words);
    }
    let manual =
        ManualCompaction { focus: wish.focus, keep_exchanges: wish.keep_exchanges, memory_context: None };
    let cancel = repl.stopping();
    repl.interrupts.forget();
    let result = {
        let compacting = repl.agent.compact(manual, &cancel);
        tokio::pin!(compacting);
        loop {
            tokio::select! {
                result = &mut compacting => break result,
                _ = repl.interrupts.next() => cancel.cancel(),
            }
        }
    };
    repl.screen.rest();
    match result {
        // Events have already shown the result.
        Some(CompactionResult::Completed(_)) => {
            repl.warn_of_fading();
            repl.show_status();
        }
        Some(_) => {}
        None => {
            repl.screen.note("stopped; the conversation is unchanged");
            repl.take_queue_back("you stopped it");
        }
    }
    Ok(())
}

fn rename(repl: &Repl, title: &str) -> Result<(), CliError> {
    let id = repl.agent.session().id();
    repl.setup.store.rename(&repl.setup.owner, id, Some(title)).map_err(refused)?;
    repl.screen.note(&format!("the title is now {}", printable(title)));
    Ok(())
}

/// How long an endpoint may take to list its models.
const LIST_PATIENCE: Duration = Duration::from_secs(5);

/// The error if a model cannot be switched to, with the model that stays in use.
fn stays(repl: &Repl, failure: CliError, name: &str) -> CliError {
    let model = printable(&repl.connected.at.model);
    failure
        .because(format!("the conversation continues with {model}"))
        .hint(format!("/model {} --anyway uses it regardless", printable(name)))
}

async fn switch_model(repl: &mut Repl, arguments: &str) -> Result<(), CliError> {
    let wire = repl.agent.session().wire_format();
    let (name, anyway) = match arguments.strip_suffix("--anyway").map(str::trim_end) {
        Some(name) => (name, true),
        None => (arguments, false),
    };
    let mut wish = repl.setup.wish(Some(name));
    if !anyway && let Ok(endpoint) = repl.setup.endpoint(&wish) {
        let naming = ModelChoice::of_name(name, &repl.setup);
        wish = named_model::placed(&repl.setup, wish, &endpoint, naming)
            .await
            .map_err(|failure| stays(repl, failure, name))?;
    }
    if !anyway && let Ok(endpoint) = repl.setup.endpoint(&wish) {
        let client = client(&repl.setup.app, &endpoint)?;
        let asked = tokio::time::timeout(LIST_PATIENCE, model_problem(&wish.model, &endpoint, &client));
        if let Ok(Some(wrong)) = asked.await {
            return Err(stays(repl, CliError::new(Exit::BadInput, wrong), name));
        }
    }
    let connected = repl.setup.connect(&wish, Some(wire)).await.map_err(|failure| {
        failure.hint(format!("this conversation uses the {wire} wire format; /new starts one with any model"))
    })?;
    let switched = repl.agent.switch_model(connected.target.clone(), connected.output_cap_tokens).await;
    switched.map_err(failure_of)?;
    let smaller = if repl.agent.session().has_switched_to_smaller() {
        "; its window is smaller, so the conversation is compacted before the next call if needed"
    } else {
        ""
    };
    repl.screen.note(&format!(
        "now using {}, window {} tokens ({}){smaller}",
        printable(&connected.at.model),
        crate::ui::text::thousands(connected.at.window.tokens),
        connected.at.window.source
    ));
    if let Some(unused) = &connected.at.unused_window {
        repl.screen.note(unused);
    }
    repl.connected = connected;
    repl.wish = wish;
    Ok(())
}

fn memory(repl: &Repl) -> Result<(), CliError> {
    let files = repl.setup.memory();
    let read = |text: Result<String, throughline_agent::ToolError>| {
        text.map_err(|error| CliError::new(Exit::InputUnreadable, error.to_string()))
    };
    let mut out = String::new();
    for (name, text) in [("MEMORY.md", read(files.memory())?), ("USER.md", read(files.user())?)] {
        out.push_str(&format!("{}\n", path_words(&repl.setup.app.home.join(name)).bold()));
        let text = printable(text.trim());
        out.push_str(if text.is_empty() { "  (empty)\n" } else { "" });
        for line in text.lines() {
            out.push_str(&format!("  {line}\n"));
        }
    }
    repl.screen.say(&out);
    Ok(())
}

fn tools(repl: &Repl) -> String {
    let width = repl.setup.app.columns_now();
    let mut out = String::new();
    for tool in repl.agent.tools() {
        out.push_str(&labelled(&tool.name.bold().to_string(), 14, &printable(&tool.description), width));
    }
    out
}

fn help(width: usize) -> String {
    let mut out = String::new();
    let widest = COMMANDS.iter().map(|command| columns(command.name)).max().unwrap_or(0) + 3;
    for command in COMMANDS {
        let name = format!("/{}", command.name);
        let arguments =
            if command.arguments.is_empty() { String::new() } else { format!("{} - ", command.arguments) };
        let others = other_names(command.name);
        let others = if others.is_empty() { String::new() } else { format!("; also {}", others.join(", ")) };
        let what = format!("{arguments}{}{others}", command.what);
        out.push_str(&labelled(&name.bold().to_string(), widest, &what, width));
    }
    for line in [
        "Ctrl-C stops an answer, a tool or a compaction; nothing recorded is lost. Pressed twice on an empty line, it leaves.",
        "Enter during an answer queues the line: it is sent afterwards, commands too. Ctrl-C brings queued lines back into the input.",
    ] {
        out.push_str(&wrap(line, width, 0));
    }
    out
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod tests;
