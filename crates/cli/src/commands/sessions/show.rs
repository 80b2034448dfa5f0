//! `throughline sessions show`: the whole transcript, or the view that a model would be sent.

use std::ops::Range;

use serde::Serialize;
use throughline_store::{
    ItemEntry, MessageEntry, Session, Store as _, StoredMessage, ViewChange, ViewMessage,
};

use super::args::{SessionShowArgs, ViewArg};
use crate::app::App;
use crate::commands::sessions::show_view::{HumanViewPage, ModelViewPage};
use crate::error::{CliError, Exit};
use crate::record::{OpenRecord, refused};
use crate::ui::messages::TextAmount;
use crate::ui::output::print_json;

/// The number of messages that `--around` shows before and after the given one: about two terminal screens.
const BESIDE: usize = 10;

/// Runs the command.
pub(crate) fn run(args: &SessionShowArgs, app: &App) -> Result<(), CliError> {
    let record = OpenRecord::open_to_read(app, &args.id)?;
    let session = record.session(&args.id)?;
    match args.view {
        ViewArg::Human => human(args, app, &record, &session),
        ViewArg::Model => model(args, app, &record, &session),
    }
}

fn amount(args: &SessionShowArgs) -> TextAmount {
    if args.full { TextAmount::Everything } else { TextAmount::Beginning }
}

fn human(
    args: &SessionShowArgs,
    app: &App,
    record: &OpenRecord<'_>,
    session: &Session,
) -> Result<(), CliError> {
    let transcript = record.store.transcript(&record.owner, &session.id).map_err(refused)?;
    let range = match args.around {
        Some(seq) => around(&transcript, seq)?,
        None => 0..transcript.len(),
    };
    let shown = &transcript[range.clone()];
    if args.raw {
        return print_raw(app, shown.iter().map(|message| message.json.as_str()));
    }
    let changes = ViewChange::all(&record.store, &record.owner, session).map_err(refused)?;
    if args.json {
        let messages = shown.iter().map(MessageEntry::of).collect::<Result<Vec<_>, _>>();
        let messages = messages.map_err(refused)?;
        return print_json(app, &HumanJson { session, changes, messages });
    }
    let page = HumanViewPage {
        session: &Session { title: record.name_of(session)?, ..session.clone() },
        changes: &changes,
        transcript: &transcript,
        range,
        amount: amount(args),
        now: &record.now,
        width: app.width,
    };
    app.print(&page.render())
}

/// The range of messages around the given one.
fn around(transcript: &[StoredMessage], seq: u64) -> Result<Range<usize>, CliError> {
    let Some(at) = transcript.iter().position(|message| message.seq == seq) else {
        let numbers = match (transcript.first(), transcript.last()) {
            (Some(first), Some(last)) => format!("its messages are #{} to #{}", first.seq, last.seq),
            _ => "it has no messages".to_owned(),
        };
        return Err(CliError::new(
            Exit::BadInput,
            format!("there is no message #{seq} in this conversation"),
        )
        .because(numbers));
    };
    Ok(at.saturating_sub(BESIDE)..transcript.len().min(at + BESIDE + 1))
}

fn model(
    args: &SessionShowArgs,
    app: &App,
    record: &OpenRecord<'_>,
    session: &Session,
) -> Result<(), CliError> {
    let shown = record.store.view(&record.owner, &session.id, None).map_err(refused)?;
    if args.raw {
        return print_raw(app, shown.iter().map(ViewMessage::json));
    }
    if args.json {
        let items = shown.iter().map(ItemEntry::of).collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let tokens = shown.iter().map(ViewMessage::tokens).sum();
        return print_json(app, &ModelJson { session, tokens, items });
    }
    let page = ModelViewPage {
        session: &Session { title: record.name_of(session)?, ..session.clone() },
        shown: &shown,
        amount: amount(args),
        now: &record.now,
        width: app.width,
    };
    app.print(&page.render())
}

/// Prints messages as a JSON list, one per line, with unchanged bytes.
fn print_raw<'a>(app: &App, messages: impl Iterator<Item = &'a str>) -> Result<(), CliError> {
    let mut out = String::from("[");
    for (index, message) in messages.enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.push_str(message);
    }
    out.push_str("\n]\n");
    app.print_bytes(out.as_bytes())
}

#[derive(Serialize)]
struct HumanJson<'a> {
    session: &'a Session,
    #[serde(rename = "turnings")]
    changes: Vec<ViewChange>,
    messages: Vec<MessageEntry<'a>>,
}

#[derive(Serialize)]
struct ModelJson<'a> {
    session: &'a Session,
    tokens: u64,
    items: Vec<ItemEntry<'a>>,
}
