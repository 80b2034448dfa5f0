//! `throughline usage`: tokens by kind, calls, cost, cache share, and how full the window is.

pub(super) mod view;

use clap::Args;
use serde_json::json;
use throughline_store::{Savings, SavingsTotal, Session, UsageOverview};

use crate::app::App;
use crate::args::WindowArgs;
use crate::commands::call_scope::{CallScope, CallScopeArgs, TitleFor};
use crate::error::CliError;
use crate::limits::TranscriptLimits;
use crate::model_catalogue::catalogue;
use crate::record::refused;
use crate::record::session_context::{ContextUse, in_use};
use crate::ui::output::print_json;

/// Show the usage and cost of calls: tokens by bucket, cache share, money, context in use
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline usage
  throughline usage last
  throughline usage --since 7d --json

Tokens are those that the provider reported, or estimates that are marked as such.
Prices are those of the catalogue; calls of models without a price count as
unpriced.")]
pub(crate) struct UsageArgs {
    #[command(flatten)]
    calls: CallScopeArgs,
    #[command(flatten)]
    window: WindowArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The data of the page.
pub(crate) struct UsagePage<'a> {
    pub(crate) session: Option<&'a Session>,
    pub(crate) context: Option<(ContextUse, TranscriptLimits)>,
    pub(crate) calls: UsageOverview,
    /// For one conversation: the cost of the same requests without Throughline.
    pub(crate) savings: Option<SavingsTotal>,
}

/// Runs the command.
pub(crate) fn run(args: &UsageArgs, app: &App) -> Result<(), CliError> {
    let CallScope { record, tip, filter } = args.calls.open(app, TitleFor::json(args.json))?;
    let calls = match &record {
        Some(record) => UsageOverview::of(&record.store, &record.owner, &filter).map_err(refused)?,
        None => UsageOverview::default(),
    };
    let page = UsagePage {
        context: match (&record, &tip) {
            (Some(record), Some(tip)) => Some(in_use(app, record, tip, &args.window)?),
            _ => None,
        },
        savings: match (&record, &tip) {
            (Some(record), Some(_)) => {
                let catalogue = catalogue(app)?;
                let savings = Savings::of(&record.store, &record.owner, &filter, &catalogue);
                Some(savings.map_err(refused)?.total)
            }
            _ => None,
        },
        session: tip.as_ref(),
        calls,
    };
    if args.json {
        return print_json(app, &page.json());
    }
    app.print(&view::render(&page, app.width))
}

impl UsagePage<'_> {
    fn json(&self) -> serde_json::Value {
        let in_use = self.context.as_ref().map(|(in_use, situation)| {
            json!({
                "messages": in_use.messages,
                "message_tokens": in_use.part(in_use.message_tokens),
                "fixed_tokens": in_use.fixed_tokens.map(|tokens| in_use.part(tokens)),
                "tokens": in_use.tokens(),
                "basis": in_use.basis(),
                "window": situation.window_json(),
                "counting": situation.counter.json(),
                "limits": situation.limits_json(),
            })
        });
        json!({
            "session": self.session,
            "context": in_use,
            "total": self.calls.total,
            "by_model": self.calls.by_model,
            "by_task": self.calls.by_task,
            "by_program": self.calls.by_program,
            "by_cache_miss": self.calls.by_cache_miss,
            "savings": self.savings,
        })
    }
}
