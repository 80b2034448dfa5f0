//! `throughline usage`: tokens by bucket, calls, cost, cache share, and how full the window is.

pub(super) mod view;

use clap::Args;
use serde_json::json;
use throughline_store::{CallFilter, Session, UsageOverview};

use crate::app::Context;
use crate::args::WindowArgs;
use crate::args::time::{Moment, parse_moment};
use crate::error::Failure;
use crate::limits::Situation;
use crate::record::session_context::{InUse, in_use};
use crate::record::{Record, refused};
use crate::ui::output::print_json;

/// Show what calls used and cost: tokens by bucket, cache share, money, context in use
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline usage
  throughline usage last
  throughline usage --since 7d --json

Tokens are as the provider reported them; where it did not, they are estimated,
and that is said. Prices are those of the catalogue; calls of models it does not
know count as unpriced.")]
pub(crate) struct UsageArgs {
    /// The conversation: an id, a unique prefix of one, a title, or last; without it, everything
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Only calls since then: 7d, 12h, today, 2026-11-15
    #[arg(long, value_name = "WHEN", value_parser = parse_moment)]
    since: Option<Moment>,
    #[command(flatten)]
    window: WindowArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Everything the command found out.
pub(crate) struct UsagePage<'a> {
    pub(crate) session: Option<&'a Session>,
    pub(crate) context: Option<(InUse, Situation)>,
    pub(crate) calls: UsageOverview,
}

/// Carries out the command.
pub(crate) fn run(args: &UsageArgs, context: &Context) -> Result<(), Failure> {
    let record = match &args.id {
        Some(reference) => Some(Record::open_to_read(context, reference)?),
        None => Record::open_existing(context)?,
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
        since_ms: args.since.map(|moment| moment.start(&context.now())),
        until_ms: None,
    };
    let calls = match &record {
        Some(record) => UsageOverview::of(&record.store, &record.owner, &filter).map_err(refused)?,
        None => UsageOverview::default(),
    };
    let page = UsagePage {
        context: match (&record, &tip) {
            (Some(record), Some(tip)) => Some(in_use(context, record, tip, &args.window)?),
            _ => None,
        },
        session: tip.as_ref(),
        calls,
    };
    if args.json {
        return print_json(context, &page.json());
    }
    context.print(&view::render(&page, context.width))
}

impl UsagePage<'_> {
    fn json(&self) -> serde_json::Value {
        let in_use = self.context.as_ref().map(|(in_use, situation)| {
            json!({
                "messages": in_use.messages,
                "message_tokens": in_use.message_tokens,
                "fixed_tokens": in_use.fixed_tokens,
                "tokens": in_use.tokens(),
                "basis": in_use.basis(),
                "window": situation.window_json(),
                "counting": situation.meter.json(),
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
        })
    }
}
