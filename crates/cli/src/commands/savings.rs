//! `throughline savings`: what was paid, and what the same requests would have cost without Throughline.

mod view;

use clap::Args;
use serde_json::json;
use throughline_store::Savings;
use throughline_tokens::Cost;

use crate::app::App;
use crate::commands::call_scope::{CallScope, CallScopeArgs, TitleFor};
use crate::error::CliError;
use crate::model_catalogue::catalogue;
use crate::record::refused;
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
    #[command(flatten)]
    calls: CallScopeArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &SavingsArgs, app: &App) -> Result<(), CliError> {
    let CallScope { record, tip, filter } = args.calls.open(app, TitleFor::json(args.json))?;
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
