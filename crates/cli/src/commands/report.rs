//! `throughline report`: one conversation as a single HTML file without scripts, which needs no server.

mod chart;
mod page;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use throughline_redact::Redactor;
use throughline_store::{CallContext, Store as _, Summary, ViewChange};

use crate::app::App;
use crate::error::{CliError, path_words};
use crate::files::{STANDARD_STREAM, write_private};
use crate::record::{OpenRecord, refused};
use crate::ui::text::counted;

/// Write one conversation as a single HTML file: transcript, context over time, compactions, cost
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline report last --out report.html
  throughline report 20261115_093000_1f3a --redact --out ticket.html

The file needs no server and no network, contains no scripts, and can be printed.
Images are named, not shown. --redact masks keys and passwords, as in an export.")]
pub(crate) struct ReportArgs {
    /// The conversation: its id, the beginning of one, its title, or `last`
    #[arg(value_name = "ID")]
    id: String,
    /// The file to write; `-` is stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: PathBuf,
    /// Mask secrets
    #[arg(long)]
    redact: bool,
}

/// The contents of a report.
struct Report<'a> {
    conversation: throughline_store::Conversation,
    name: Option<String>,
    messages: Vec<throughline_store::StoredMessage>,
    changes: Vec<ViewChange>,
    summaries: Vec<Summary>,
    calls: Vec<CallContext>,
    now: &'a crate::args::time::Now,
    redactor: Option<Redactor>,
}

/// Runs the command.
pub(crate) fn run(args: &ReportArgs, app: &App) -> Result<(), CliError> {
    let record = OpenRecord::open_to_read(app, &args.id)?;
    let session = record.tip(&args.id)?;
    let (store, owner) = (&record.store, &record.owner);
    let chain = store.chain(owner, &session.id).map_err(refused)?;
    let report = Report {
        name: record.name_of(&session)?,
        messages: store.transcript(owner, &session.id).map_err(refused)?,
        changes: ViewChange::all(store, owner, &session).map_err(refused)?,
        summaries: store.summaries(owner, &session.id).map_err(refused)?,
        calls: CallContext::of_chain(store, owner, &session).map_err(refused)?,
        now: &record.now,
        redactor: args.redact.then(Redactor::new),
        conversation: conversation_of(session, &chain),
    };
    let html = page::render(&report);
    if args.out.as_os_str() == STANDARD_STREAM {
        return app.print_bytes(html.as_bytes());
    }
    write_private(&args.out, html.as_bytes())?;
    app.note(&format!(
        "wrote {} of {} to {}",
        counted(report.messages.len() as u64, "message", "messages"),
        report.conversation.tip.id,
        path_words(&args.out)
    ));
    Ok(())
}

/// Builds the list entry of a conversation from its chain.
fn conversation_of(
    tip: throughline_store::Session,
    chain: &[throughline_store::Session],
) -> throughline_store::Conversation {
    let mut totals = throughline_store::SessionCounters::default();
    for session in chain {
        let counters = &session.counters;
        totals.messages += counters.messages;
        totals.calls += counters.calls;
        totals.cost_micro_usd += counters.cost_micro_usd;
        totals.unpriced_calls += counters.unpriced_calls;
        totals.usage = throughline_tokens::Usage {
            input: totals.usage.input + counters.usage.input,
            output: totals.usage.output + counters.usage.output,
            cache_read: totals.usage.cache_read + counters.usage.cache_read,
            cache_write: totals.usage.cache_write + counters.usage.cache_write,
            reasoning: totals.usage.reasoning + counters.usage.reasoning,
        };
    }
    let root = chain.first().unwrap_or(&tip);
    throughline_store::Conversation {
        root: root.id.clone(),
        started_ms: root.started_ms,
        title: tip.title.clone(),
        sessions: chain.len() as u64,
        compactions: 0,
        totals,
        tip,
    }
}
