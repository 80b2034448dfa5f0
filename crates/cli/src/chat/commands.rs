//! What slash commands do. Most of them are commands of the program itself, carried out for this conversation.

use std::time::Duration;

use clap::Parser as _;
use owo_colors::OwoColorize as _;
use throughline_engine::{CompactionResult, ManualCompaction};
use throughline_store::{EndReason, Store as _, ViewItem};

use super::context_view;
use super::error::failure_of;
use super::named_model::{self, Naming};
use super::repl::Talk;
use super::slash::{COMMANDS, compress_wish};
use crate::app::Context;
use crate::args::Arguments;
use crate::commands::config::with_origins;
use crate::commands::models::what_is_wrong_with;
use crate::error::{Exit, Failure, path_words};
use crate::model_client::client;
use crate::record::refused;
use crate::ui::text::{columns, counted, labelled, printable, wrap};

/// Whether the conversation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    GoOn,
    Leave,
}

/// Carries out a command.
pub(super) async fn carry_out(talk: &mut Talk, name: &str, arguments: &str) -> Result<After, Failure> {
    let id = talk.agent.session().id().to_string();
    match name {
        "quit" => return Ok(After::Leave),
        "help" => talk.screen.say(&help(talk.kitchen.context.columns_now())),
        "status" => talk.show_status(),
        "compress" => compress(talk, arguments).await?,
        "undo" => {
            talk.agent.undo().await.map_err(failure_of)?;
            talk.screen
                .note("the model sees again what it saw before the last compaction, and everything since");
            talk.show_status();
        }
        "context" => {
            let width = talk.kitchen.context.columns_now();
            talk.screen.say(&context_view::render(&talk.agent, width));
        }
        "usage" => run_here(talk, &["usage", &id])?,
        "summary" => summary(talk)?,
        "retry" => return talk.retry().await,
        "insights" => run(talk, &insights_words(arguments))?,
        "sessions" => run(talk, &with_flags("sessions", arguments))?,
        "search" if arguments.is_empty() => talk.screen.note("say what to look for: /search WORDS"),
        "search" => run(talk, &search_words(arguments))?,
        "config" if arguments.is_empty() => run(talk, &["config", "show"])?,
        "config" => {
            let shown = with_origins(&talk.kitchen.context, arguments)?;
            talk.screen.say(&shown);
        }
        "export" if arguments.is_empty() => talk.screen.note("say where to: /export FILE"),
        "export" => export(talk, &id, arguments)?,
        "new" => {
            let old = talk.change(None).await?;
            // One in which nothing was said is gone already.
            if !old.session().messages().is_empty() {
                old.end(EndReason::NEW).await.map_err(failure_of)?;
            }
            if !arguments.is_empty() {
                rename(talk, arguments)?;
            }
        }
        "resume" if arguments.is_empty() => {
            run(talk, &["sessions"])?;
            talk.screen.note("/resume ID goes on with one of them");
        }
        "resume" => drop(talk.change(Some(arguments)).await?),
        "title" if arguments.is_empty() => {
            let session = talk.kitchen.store.session(&talk.kitchen.owner, talk.agent.session().id());
            let title = session.map_err(refused)?.title;
            talk.screen.note(
                &title.map_or_else(
                    || "it has no title yet: /title TITLE".to_owned(),
                    |title| printable(&title),
                ),
            );
        }
        "title" => rename(talk, arguments)?,
        "model" if arguments.is_empty() => {
            let model = talk.connected.at.model.clone();
            run(talk, &["models", &model])?;
        }
        "model" => switch_model(talk, arguments).await?,
        "memory" => memory(talk)?,
        "tools" => talk.screen.say(&tools(talk)),
        _ => {}
    }
    Ok(After::GoOn)
}

/// A command of the program with whatever stands behind it.
fn with_flags<'a>(command: &'a str, arguments: &'a str) -> Vec<&'a str> {
    std::iter::once(command).chain(arguments.split_whitespace()).collect()
}

/// `/insights 7 --top 20` as the program understands it: a bare word is how many days.
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

/// `/search WORDS --limit 50` as the program understands it: the words are one text, flags stand behind them.
fn search_words(arguments: &str) -> Vec<&str> {
    let (words, flags) = arguments.find(" --").map_or((arguments, ""), |at| arguments.split_at(at));
    ["search", words.trim()].into_iter().chain(flags.split_whitespace()).collect()
}

/// Shows what the model sees in place of what was folded.
fn summary(talk: &Talk) -> Result<(), Failure> {
    let (store, owner) = (&talk.kitchen.store, &talk.kitchen.owner);
    let items = store.view_items(owner, talk.agent.session().id()).map_err(refused)?;
    let ids = items.iter().filter_map(|item| match item {
        ViewItem::Summary { summary, .. } => Some(*summary),
        _ => None,
    });
    let width = talk.kitchen.context.columns_now();
    let mut out = String::new();
    for id in ids {
        let summary = store.summary(owner, id).map_err(refused)?;
        let messages = summary.sources.iter().map(|run| run.end_seq.saturating_sub(run.first_seq)).sum();
        let heading = format!(
            "in place of {}, by {}",
            counted(messages, "message", "messages"),
            printable(&summary.author)
        );
        out.push_str(&format!("{}\n", wrap(&heading, width, 0).trim_end().bold()));
        out.push_str(&wrap(&printable(summary.document.trim_end()), width, 2));
    }
    if out.is_empty() {
        talk.screen.note("there is no summary: the model sees everything that was said. /compress makes one");
        return Ok(());
    }
    talk.screen.say(&out);
    Ok(())
}

/// Carries out a command of the program.
fn run(talk: &Talk, words: &[&str]) -> Result<(), Failure> {
    run_in(&talk.kitchen.context, talk, words)
}

/// Carries out a command of the program with the model and the window of this conversation, whoever told them.
fn run_here(talk: &Talk, words: &[&str]) -> Result<(), Failure> {
    run_in(&talk.kitchen.context.held_with(Some(talk.in_force())), talk, words)
}

/// Writes the conversation to a file, and over one that is there only where that is asked for.
fn export(talk: &Talk, id: &str, arguments: &str) -> Result<(), Failure> {
    let forced = arguments.strip_prefix("--force").filter(|rest| rest.starts_with(' '));
    let named = forced.unwrap_or(arguments).trim();
    let home = talk.kitchen.context.user_home.as_ref();
    let path = match (named.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => talk.kitchen.folder.join(named),
    };
    if forced.is_none() && path.exists() {
        return Err(Failure::new(Exit::Usage, format!("{} is there already", path_words(&path)))
            .because("nothing was written")
            .hint(format!("/export --force {} replaces it", printable(named))));
    }
    run(talk, &["sessions", "export", id, "--out", &path.to_string_lossy()])
}

fn run_in(context: &Context, talk: &Talk, words: &[&str]) -> Result<(), Failure> {
    talk.screen.rest();
    let line = std::iter::once("throughline").chain(words.iter().copied());
    let parsed = Arguments::try_parse_from(line).map_err(|error| {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Failure::new(Exit::Usage, first)
    })?;
    // Some of them wait for the network in a way of their own.
    let context = context.resized().within_chat();
    tokio::task::block_in_place(|| crate::carry_out(&context, parsed.command))
}

async fn compress(talk: &mut Talk, arguments: &str) -> Result<(), Failure> {
    let wish = compress_wish(arguments).map_err(|wrong| Failure::new(Exit::Usage, wrong))?;
    if wish.preview {
        let id = talk.agent.session().id().to_string();
        let mut words = vec!["compress", "--session", &id, "--preview", "--force"];
        if let Some(focus) = &wish.focus {
            words.extend(["--focus", focus]);
        }
        let keep =
            wish.keep_exchanges.map(|exchanges| talk.agent.session().messages_of_last(exchanges).to_string());
        if let Some(keep) = &keep {
            words.extend(["--keep-exactly", keep]);
        }
        return run_here(talk, &words);
    }
    let manual =
        ManualCompaction { focus: wish.focus, keep_exchanges: wish.keep_exchanges, memory_context: None };
    let cancel = talk.stopping();
    talk.interrupts.forget();
    let result = {
        let compacting = talk.agent.compact(manual, &cancel);
        tokio::pin!(compacting);
        loop {
            tokio::select! {
                result = &mut compacting => break result,
                _ = talk.interrupts.next() => cancel.cancel(),
            }
        }
    };
    talk.screen.rest();
    match result {
        // What came of it was told as it happened.
        Some(CompactionResult::Completed(_)) => {
            talk.tell_of_fading();
            talk.show_status();
        }
        Some(_) => {}
        None => {
            talk.screen.note("stopped; the conversation is as it was");
            talk.take_queue_back("you stopped it");
        }
    }
    Ok(())
}

fn rename(talk: &Talk, title: &str) -> Result<(), Failure> {
    let id = talk.agent.session().id();
    talk.kitchen.store.rename(&talk.kitchen.owner, id, Some(title)).map_err(refused)?;
    talk.screen.note(&format!("this conversation is called {}", printable(title)));
    Ok(())
}

/// Whoever is asked for its models before one of them takes over has this long to answer.
const LIST_PATIENCE: Duration = Duration::from_secs(5);

/// A model that cannot take over, and what becomes of the conversation.
fn stays(talk: &Talk, failure: Failure, name: &str) -> Failure {
    let model = printable(&talk.connected.at.model);
    failure
        .because(format!("the conversation stays with {model}"))
        .hint(format!("/model {} --anyway takes it all the same", printable(name)))
}

async fn switch_model(talk: &mut Talk, arguments: &str) -> Result<(), Failure> {
    let wire = talk.agent.session().wire_format();
    let (name, anyway) = match arguments.strip_suffix("--anyway").map(str::trim_end) {
        Some(name) => (name, true),
        None => (arguments, false),
    };
    let mut wish = talk.kitchen.wish(Some(name));
    if !anyway && let Ok(endpoint) = talk.kitchen.endpoint(&wish) {
        let naming = Naming::of_name(name, &talk.kitchen);
        wish = named_model::placed(&talk.kitchen, wish, &endpoint, naming)
            .await
            .map_err(|failure| stays(talk, failure, name))?;
    }
    if !anyway && let Ok(endpoint) = talk.kitchen.endpoint(&wish) {
        let client = client(&talk.kitchen.context, &endpoint)?;
        let asked = tokio::time::timeout(LIST_PATIENCE, what_is_wrong_with(&wish.model, &endpoint, &client));
        if let Ok(Some(wrong)) = asked.await {
            return Err(stays(talk, Failure::new(Exit::BadInput, wrong), name));
        }
    }
    let connected = talk.kitchen.connect(&wish, Some(wire)).await.map_err(|failure| {
        failure
            .hint(format!("this conversation is held on the {wire} wire; /new can begin one with any model"))
    })?;
    let switched = talk.agent.switch_model(connected.target.clone(), connected.output_cap_tokens).await;
    switched.map_err(failure_of)?;
    let smaller = if talk.agent.session().has_switched_to_smaller() {
        "; its window is smaller, so the next call folds first if it must"
    } else {
        ""
    };
    talk.screen.note(&format!(
        "{} from here on, {} tokens of window ({}){smaller}",
        printable(&connected.at.model),
        crate::ui::text::thousands(connected.at.window.tokens),
        connected.at.window.source
    ));
    if let Some(unused) = &connected.at.unused_window {
        talk.screen.note(unused);
    }
    talk.connected = connected;
    talk.wish = wish;
    Ok(())
}

fn memory(talk: &Talk) -> Result<(), Failure> {
    let files = talk.kitchen.memory();
    let read = |text: Result<String, throughline_agent::ToolError>| {
        text.map_err(|error| Failure::new(Exit::InputUnreadable, error.to_string()))
    };
    let mut out = String::new();
    for (name, text) in [("MEMORY.md", read(files.memory())?), ("USER.md", read(files.user())?)] {
        out.push_str(&format!("{}\n", path_words(&talk.kitchen.context.home.join(name)).bold()));
        let text = printable(text.trim());
        out.push_str(if text.is_empty() { "  (empty)\n" } else { "" });
        for line in text.lines() {
            out.push_str(&format!("  {line}\n"));
        }
    }
    talk.screen.say(&out);
    Ok(())
}

fn tools(talk: &Talk) -> String {
    let width = talk.kitchen.context.columns_now();
    let mut out = String::new();
    for tool in talk.agent.tools() {
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
        let what = format!("{arguments}{}", command.what);
        out.push_str(&labelled(&name.bold().to_string(), widest, &what, width));
    }
    for line in [
        "Ctrl-C stops an answer, a tool or a compaction; everything said stays. On an empty line, twice in a row, it leaves.",
        "Enter during an answer queues the line: it is sent afterwards, commands too. Ctrl-C brings queued lines back into the input.",
    ] {
        out.push_str(&wrap(line, width, 0));
    }
    out
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod tests;
