//! `throughline sessions`: lists, shows and changes recorded sessions.

mod args;
mod change;
mod export;
mod list_view;
mod show;
mod show_view;
mod tree_view;

use serde_json::json;
use throughline_store::{Conversation, ListCursor, SessionFilter, Store as _};

pub(crate) use args::SessionsArgs;
use args::{SessionListArgs, SessionTreeArgs, SessionsCommand};

use crate::app::App;
use crate::error::CliError;
use crate::record::{OpenRecord, refused};
use crate::ui::output::print_json;

/// The default number of listed conversations.
const DEFAULT_LISTED: usize = 20;

/// Runs the command.
pub(crate) fn run(args: &SessionsArgs, app: &App) -> Result<(), CliError> {
    match &args.command {
        None => list(&args.list, app),
        Some(SessionsCommand::List(args)) => list(args, app),
        Some(SessionsCommand::Show(args)) => show::run(args, app),
        Some(SessionsCommand::Tree(args)) => tree(args, app),
        Some(SessionsCommand::Export(args)) => export::run(args, app),
        Some(SessionsCommand::Delete(args)) => change::delete(args, app),
        Some(SessionsCommand::Rename(args)) => change::rename(args, app),
        Some(SessionsCommand::Undo(args)) => change::undo(args, app),
        Some(SessionsCommand::Redo(args)) => change::redo(args, app),
    }
}

fn list(args: &SessionListArgs, app: &App) -> Result<(), CliError> {
    let record = OpenRecord::open_existing(app)?;
    let limit = match (args.limit, args.all) {
        (Some(limit), _) => Some(limit),
        (None, true) => None,
        (None, false) => Some(DEFAULT_LISTED),
    };
    let now = app.now();
    let filter = SessionFilter {
        since_ms: args.since.map(|moment| moment.start(&now)),
        program: args.program.clone(),
        include_attached: args.all,
        after: None,
        // One more than the list shows, to find out whether there are more.
        limit: limit.map(|limit| limit.saturating_add(1)),
        ..SessionFilter::default()
    };
    let mut conversations = match &record {
        Some(record) if args.all => record.store.conversations(&record.owner, &filter).map_err(refused)?,
        Some(record) => begun(record, filter)?,
        None => Vec::new(),
    };
    let more = limit.is_some_and(|limit| conversations.len() > limit);
    if let Some(limit) = limit {
        conversations.truncate(limit);
    }
    if args.json {
        return print_json(app, &json!({ "sessions": conversations, "more": more }));
    }
    if let Some(record) = &record {
        for conversation in conversations.iter_mut().filter(|conversation| conversation.title.is_none()) {
            let root = record.store.session(&record.owner, &conversation.root).map_err(refused)?;
            conversation.title = record.first_words(&root)?;
        }
    }
    app.print(&list_view::render(&conversations, &now, app.width))?;
    if record.is_some() && conversations.is_empty() {
        app.note(if args.since.is_some() || args.program.is_some() {
            "no recorded session matches"
        } else {
            "nothing is recorded yet; `throughline import` reads the histories of Claude Code, Codex and Hermes"
        });
    }
    if more {
        app.note("there are more; --limit N or --all shows them");
    }
    Ok(())
}

/// Returns conversations with messages. Sessions that were only opened are left out.
fn begun(record: &OpenRecord<'_>, mut filter: SessionFilter) -> Result<Vec<Conversation>, CliError> {
    let wanted = filter.limit.unwrap_or(usize::MAX);
    let mut begun = Vec::new();
    loop {
        let page = record.store.conversations(&record.owner, &filter).map_err(refused)?;
        let is_last = filter.limit.is_none_or(|limit| page.len() < limit);
        filter.after = page.last().map(ListCursor::of);
        begun.extend(page.into_iter().filter(|conversation| conversation.totals.messages > 0));
        if is_last || begun.len() >= wanted {
            begun.truncate(wanted);
            return Ok(begun);
        }
    }
}

fn tree(args: &SessionTreeArgs, app: &App) -> Result<(), CliError> {
    let record = OpenRecord::open_to_read(app, &args.id)?;
    let session = record.session(&args.id)?;
    let mut family = record.store.family(&record.owner, &session.id).map_err(refused)?;
    if args.json {
        return print_json(app, &json!({ "asked": session.id, "sessions": family }));
    }
    if let Some(first) = family.first_mut() {
        first.title = record.name_of(first)?;
    }
    app.print(&tree_view::render(&family, &session.id, &record.now, app.width))
}
