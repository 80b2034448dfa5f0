//! `throughline sessions show`: everything that was said, or what a model would be sent.

use serde::Serialize;
use throughline_store::{
    ItemEntry, MessageEntry, Session, Store as _, ViewChange, ViewMessage, view_changes,
};

use crate::app::Context;
use crate::commands::sessions::show_view::{HumanPage, ModelPage};
use crate::commands::sessions::{ShowArgs, ViewArg};
use crate::error::Failure;
use crate::record::{Record, refused};
use crate::ui::messages::Amount;
use crate::ui::output::print_json;

/// Carries out the command.
pub(crate) fn run(args: &ShowArgs, context: &Context) -> Result<(), Failure> {
    let record = Record::open_to_read(context, &args.id)?;
    let session = record.session(&args.id)?;
    match args.view {
        ViewArg::Human => human(args, context, &record, &session),
        ViewArg::Model => model(args, context, &record, &session),
    }
}

fn amount(args: &ShowArgs) -> Amount {
    if args.full { Amount::Everything } else { Amount::Beginning }
}

fn human(args: &ShowArgs, context: &Context, record: &Record<'_>, session: &Session) -> Result<(), Failure> {
    let transcript = record.store.transcript(&record.owner, &session.id).map_err(refused)?;
    if args.raw {
        return print_raw(context, transcript.iter().map(|message| message.json.as_str()));
    }
    let turnings = view_changes(&record.store, &record.owner, session).map_err(refused)?;
    if args.json {
        let messages = transcript.iter().map(MessageEntry::of).collect::<Result<Vec<_>, _>>();
        let messages = messages.map_err(refused)?;
        return print_json(context, &HumanJson { session, turnings, messages });
    }
    let page = HumanPage {
        session: &Session { title: record.name_of(session)?, ..session.clone() },
        turnings: &turnings,
        transcript: &transcript,
        amount: amount(args),
        now: &record.now,
        width: context.width,
    };
    context.print(&page.render())
}

fn model(args: &ShowArgs, context: &Context, record: &Record<'_>, session: &Session) -> Result<(), Failure> {
    let shown = record.store.view(&record.owner, &session.id, None).map_err(refused)?;
    if args.raw {
        return print_raw(context, shown.iter().map(ViewMessage::json));
    }
    if args.json {
        let items = shown.iter().map(ItemEntry::of).collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let tokens = shown.iter().map(ViewMessage::tokens).sum();
        return print_json(context, &ModelJson { session, tokens, items });
    }
    let page = ModelPage {
        session: &Session { title: record.name_of(session)?, ..session.clone() },
        shown: &shown,
        amount: amount(args),
        now: &record.now,
        width: context.width,
    };
    context.print(&page.render())
}

/// Messages as a JSON list, one a line, each byte for byte.
fn print_raw<'a>(context: &Context, messages: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let mut out = String::from("[");
    for (index, message) in messages.enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.push_str(message);
    }
    out.push_str("\n]\n");
    context.print_bytes(out.as_bytes())
}

#[derive(Serialize)]
struct HumanJson<'a> {
    session: &'a Session,
    turnings: Vec<ViewChange>,
    messages: Vec<MessageEntry<'a>>,
}

#[derive(Serialize)]
struct ModelJson<'a> {
    session: &'a Session,
    tokens: u64,
    items: Vec<ItemEntry<'a>>,
}
