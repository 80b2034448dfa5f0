//! `throughline sessions show`: everything that was said, or what a model would be sent.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use throughline_store::{LinkKind, Session, SessionId, Shown, Store as _, StoredMessage, Summary, SummaryId};

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::message_view::Amount;
use crate::output::print_json;
use crate::record::{Record, refused};
use crate::sessions_cmd::{ShowArgs, ViewArg};
use crate::sessions_show_view::{self, HumanPage, ModelPage, Turning};

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
    let lineage = lineage(record, session)?;
    let summaries = summaries(record, &lineage)?;
    if args.json {
        let turnings = turnings(record, &lineage, &summaries)?;
        let messages = transcript.iter().map(message_json).collect::<Result<Vec<_>, _>>()?;
        return print_json(context, &HumanJson { session, turnings: json!(turnings), messages });
    }
    let page = HumanPage {
        session: &Session { title: record.name_of(session)?, ..session.clone() },
        turnings: &turnings(record, &lineage, &summaries)?,
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
        return print_raw(context, shown.iter().map(Shown::json));
    }
    if args.json {
        let items = shown.iter().map(item_json).collect::<Result<Vec<_>, _>>()?;
        let tokens = shown.iter().map(Shown::tokens).sum();
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

/// The sessions a transcript went through, oldest first: up the links that share what was said.
fn lineage(record: &Record<'_>, session: &Session) -> Result<Vec<Session>, Failure> {
    let mut lineage = vec![session.clone()];
    let mut seen: HashSet<SessionId> = HashSet::from([session.id.clone()]);
    while let Some(link) = lineage.last().and_then(|session| session.link.clone()) {
        if !matches!(link.kind, LinkKind::Continuation | LinkKind::Branch)
            || !seen.insert(link.parent.clone())
        {
            break;
        }
        match record.store.session(&record.owner, &link.parent) {
            Ok(parent) => lineage.push(parent),
            // It may have been deleted; what is left is shown.
            Err(throughline_store::StoreError::UnknownSession { .. }) => break,
            Err(error) => return Err(refused(error)),
        }
    }
    lineage.reverse();
    Ok(lineage)
}

/// Summaries made anywhere along a lineage.
fn summaries(record: &Record<'_>, lineage: &[Session]) -> Result<Vec<Summary>, Failure> {
    let mut chains: HashSet<u64> = HashSet::new();
    let mut summaries = Vec::new();
    for session in lineage.iter().filter(|session| chains.insert(session.chain)) {
        summaries.extend(record.store.summaries(&record.owner, &session.id).map_err(refused)?);
    }
    Ok(summaries)
}

/// Where a lineage turned. A compaction whose figures nobody kept is measured by the views before and after it.
fn turnings(
    record: &Record<'_>,
    lineage: &[Session],
    summaries: &[Summary],
) -> Result<Vec<Turning>, Failure> {
    let mut turnings = sessions_show_view::turnings(lineage, summaries);
    let pairs = lineage.iter().zip(lineage.iter().skip(1));
    for (turning, (before, after)) in turnings.iter_mut().zip(pairs) {
        if turning.needs_figures() {
            let view = |session: &Session, until: Option<u64>| {
                record.store.view(&record.owner, &session.id, until).map_err(refused)
            };
            turning.measure(&view(before, None)?, &view(after, Some(after.first_seq))?);
        }
    }
    Ok(turnings)
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
    turnings: serde_json::Value,
    messages: Vec<MessageJson<'a>>,
}

#[derive(Serialize)]
struct MessageJson<'a> {
    seq: u64,
    session: &'a SessionId,
    role: &'static str,
    at_ms: i64,
    tokens: u64,
    tools: &'a [String],
    machine_written: bool,
    message: &'a RawValue,
}

fn message_json(message: &StoredMessage) -> Result<MessageJson<'_>, Failure> {
    Ok(MessageJson {
        seq: message.seq,
        session: &message.session,
        role: message.role.name(),
        at_ms: message.at_ms,
        tokens: message.tokens,
        tools: &message.tools,
        machine_written: message.machine_written,
        message: raw(message.json.as_str())?,
    })
}

#[derive(Serialize)]
struct ModelJson<'a> {
    session: &'a Session,
    tokens: u64,
    items: Vec<ItemJson<'a>>,
}

#[derive(Serialize)]
struct ItemJson<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renditions: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<SummaryId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    synthetic: Option<&'a str>,
    tokens: u64,
    message: &'a RawValue,
}

fn item_json(item: &Shown) -> Result<ItemJson<'_>, Failure> {
    let mut json = ItemJson {
        kind: "verbatim",
        session: item.message().map(|message| &message.session),
        seq: item.message().map(|message| message.seq),
        renditions: None,
        summary: None,
        synthetic: None,
        tokens: item.tokens(),
        message: raw(item.json())?,
    };
    match item {
        Shown::Verbatim(_) => {}
        Shown::Rendition(_, rendition) => {
            json.kind = "rendition";
            json.renditions = Some(&rendition.kinds);
        }
        Shown::Summary { summary, .. } => {
            json.kind = "summary";
            json.summary = Some(*summary);
        }
        Shown::Synthetic { kind, .. } => {
            json.kind = "synthetic";
            json.synthetic = Some(kind);
        }
    }
    Ok(json)
}

fn raw(json: &str) -> Result<&RawValue, Failure> {
    serde_json::from_str(json).map_err(|error| {
        Failure::new(Exit::RecordUnusable, "a recorded message is not valid JSON")
            .because(error.to_string())
            .hint("`throughline doctor` examines the record")
    })
}
