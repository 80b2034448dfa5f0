//! Commands that change a recorded conversation: `delete`, `rename`, `undo`, `redo`.
//!
//! Each takes the lock of the conversation first.

use serde_json::json;
use throughline_store::{Dependants, Selection, Session, Store as _, ViewMessage, ViewSelection};

use super::args::{DeleteArgs, RenameArgs, SelectArgs};
use crate::app::App;
use crate::args::WindowArgs;
use crate::error::{CliError, Exit};
use crate::record::session_context::in_use;
use crate::record::{OpenRecord, refused, title_words};
use crate::ui::output::print_json;
use crate::ui::text::{counted, thousands, wrap};

/// The longest title, in characters.
const MAX_TITLE_CHARS: usize = 500;

/// `sessions delete`.
pub(crate) fn delete(args: &DeleteArgs, app: &App) -> Result<(), CliError> {
    let record = OpenRecord::open_to_change(app, &args.id)?;
    let session = record.session(&args.id)?;
    let chain = record.store.chain(&record.owner, &session.id).map_err(refused)?;
    if !args.yes {
        confirm(app, &record, &session, &chain)?;
    }
    let dependants = if args.with_dependants { Dependants::Delete } else { Dependants::Refuse };
    let gone = record.locked(&session, "sessions delete", |_| {
        record.store.delete(&record.owner, &session.id, dependants).map_err(refused)
    })?;
    if args.json {
        return print_json(app, &json!({ "deleted": gone }));
    }
    let ids: String = gone.iter().map(|id| format!("  {id}\n")).collect();
    app.print(&format!("Deleted {}:\n{ids}", counted(gone.len() as u64, "session", "sessions")))
}

/// Asks before a conversation is deleted permanently.
fn confirm(app: &App, record: &OpenRecord<'_>, session: &Session, chain: &[Session]) -> Result<(), CliError> {
    let messages: u64 = chain.iter().map(|session| session.counters.messages).sum();
    let what = format!(
        "\"{}\" ({}, last active {})",
        title_words(record.name_of(session)?.as_deref()),
        counted(messages, "message", "messages"),
        record.now.ago(chain.last().unwrap_or(session).active_ms)
    );
    if !app.can_ask {
        return Err(CliError::new(Exit::Usage, "nothing was deleted")
            .because(format!("this would delete {what} permanently, and there is no terminal to ask at"))
            .hint("--yes deletes without asking"));
    }
    let answer = app.ask(&format!("Delete {what} permanently? Type yes: "));
    match answer.as_deref() {
        Some("yes" | "y") => Ok(()),
        _ => Err(CliError::new(Exit::Usage, "nothing was deleted").because("the answer was not yes")),
    }
}

/// `sessions rename`.
pub(crate) fn rename(args: &RenameArgs, app: &App) -> Result<(), CliError> {
    let title = args.title.trim();
    if title.chars().count() > MAX_TITLE_CHARS {
        return Err(CliError::new(Exit::BadInput, "the title is too long")
            .because(format!("it may have at most {MAX_TITLE_CHARS} characters")));
    }
    let record = OpenRecord::open_to_change(app, &args.id)?;
    let session = record.session(&args.id)?;
    let title = Some(title).filter(|title| !title.is_empty());
    record.locked(&session, "sessions rename", |_| {
        record.store.rename(&record.owner, &session.id, title).map_err(refused)
    })?;
    app.note(&match title {
        Some(title) => format!("{} is now called {}", session.id, title_words(Some(title))),
        None => format!("{} has no title any more", session.id),
    });
    Ok(())
}

/// `sessions undo`.
pub(crate) fn undo(args: &SelectArgs, app: &App) -> Result<(), CliError> {
    select(args, app, Selection::Undo)
}

/// `sessions redo`.
pub(crate) fn redo(args: &SelectArgs, app: &App) -> Result<(), CliError> {
    select(args, app, Selection::Redo)
}

fn select(args: &SelectArgs, app: &App, selection: Selection) -> Result<(), CliError> {
    let record = OpenRecord::open_to_change(app, &args.id)?;
    let tip = record.tip(&args.id)?;
    let window = WindowArgs { context_length: args.context_length, model: None, max_output_tokens: None };
    let (before, situation) = in_use(app, &record, &tip, &window)?;
    let room = situation.window.value.saturating_sub(before.fixed_tokens.unwrap_or(0));
    let what = match selection {
        Selection::Undo => "sessions undo",
        Selection::Redo => "sessions redo",
    };
    let successor = record.locked(&tip, what, |lease| {
        record.with_new_id(|id| {
            let wanted = ViewSelection {
                session: tip.id.clone(),
                selection,
                successor: id,
                at_ms: record.now.ms,
                limit_tokens: room,
                lease: Some(lease.clone()),
            };
            record.store.select_view(&record.owner, wanted)
        })
    })?;
    let shown = record.store.view(&record.owner, &successor.id, None).map_err(refused)?;
    let tokens: u64 = shown.iter().map(ViewMessage::tokens).sum();
    if args.json {
        return print_json(
            app,
            &json!({
                "session": successor,
                "messages": { "before": before.messages, "after": shown.len() },
                "tokens": { "before": before.message_tokens, "after": tokens },
                "window": situation.window_json(),
            }),
        );
    }
    let done = match selection {
        Selection::Undo => "The last compaction is undone",
        Selection::Redo => "The compaction is redone",
    };
    let words = format!(
        "{done}: a model is sent {}, {} tokens (before: {}, {}), of a window of {}. \
         Everything said since is kept. The conversation continues in {}.",
        counted(shown.len() as u64, "message", "messages"),
        thousands(tokens),
        thousands(before.messages),
        thousands(before.message_tokens),
        thousands(situation.window.value),
        successor.id,
    );
    app.print(&wrap(&words, app.width, 0))
}
