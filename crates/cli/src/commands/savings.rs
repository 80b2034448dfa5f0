//! `throughline savings`: what was paid, and what the same requests would have cost without Throughline.

mod view;

use clap::Args;
use serde_json::json;
use throughline_store::{CallFilter, Savings, Session};
use throughline_tokens::Cost;

use crate::app::App;
use crate::args::time::{TimeArg, parse_time};
use crate::error::CliError;
use crate::model_catalogue::catalogue;
use crate::record::{OpenRecord, refused};
use crate::ui::output::print_json;

/// Show what Throughline saved: what was paid, and what the same requests would have cost directly
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline savings
  throughline savings last
  throughline savings --since 7d --json

The amount paid is the usage that the provider reported, at list prices. The cost
of the same requests without Throughline is an estimate: it includes the messages
that were not sent, by the rules of the provider's cache. A request that would not
have fit the window is counted with the size of the window.")]
pub(crate) struct SavingsArgs {
    /// The conversation: an id, a unique prefix of one, a title, or last; without it, everything
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Only calls since then: 7d, 12h, today, 2026-11-15
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
    since: Option<TimeArg>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Carries out the command.
pub(crate) fn run(args: &SavingsArgs, app: &App) -> Result<(), CliError> {
    let record = match &args.id {
        Some(reference) => Some(OpenRecord::open_to_read(app, reference)?),
        None => OpenRecord::open_existing(app)?,
    };
    let tip = match (&record, &args.id) {
        (Some(record), Some(reference)) => {
            let tip = record.tip(reference)?;
            let title = if args.json { tip.title.clone() } else { record.name_of(&tip)? };
            Some(Session { title, ..tip })
        }
        _ => None,
    };
    let filter = CallFilter {
        chain_of: tip.as_ref().map(|tip| tip.id.clone()),
        since_ms: args.since.map(|moment| moment.start(&app.now())),
        until_ms: None,
    };
    let savings = match &record {
        Some(record) => {
            let catalogue = catalogue(app)?;
            Savings::of(&record.store, &record.owner, &filter, &catalogue).map_err(refused)?
        }
        None => Savings::default(),
    };
    if args.json {
        return print_json(
            app,
            &json!({
                "session": tip,
                "prices_as_of": Cost::prices_as_of(),
                "saved_micro_usd": savings.total.saved_micro_usd(),
                "total": savings.total,
                "by_day": savings.by_day,
                "by_model": savings.by_model,
                "by_program": savings.by_program,
                "by_access_token": savings.by_access_token,
            }),
        );
    }
    app.print(&view::render(tip.as_ref(), &savings, app.width))
}
