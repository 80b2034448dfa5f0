//! `throughline status`: the running gateways, their clients, and the cost of today's calls.

use clap::Args;
use serde_json::json;
use throughline_store::{CallFilter, UsageOverview};

use crate::app::App;
use crate::args::time::TimeArg;
use crate::error::{CliError, Exit};
use crate::gateways::{self, RunningGateway};
use crate::record::{OpenRecord, refused};
use crate::ui::figures::cost_words;
use crate::ui::output::print_json;
use crate::ui::text::{counted, thousands};

/// Show whether a gateway runs, which clients use it, and what calls cost today
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline status
  throughline status --json")]
pub(crate) struct StatusArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print nothing; exit code 9 if no gateway answers (for health checks)
    #[arg(long, conflicts_with = "json")]
    check: bool,
}

/// Carries out the command.
pub(crate) fn run(args: &StatusArgs, app: &App) -> Result<(), CliError> {
    let gateways = gateways::running(app);
    if args.check {
        return match gateways.iter().any(RunningGateway::answers) {
            true => Ok(()),
            false => Err(CliError::new(Exit::Unanswered, "no gateway answers")
                .hint("`throughline serve` starts one, `throughline service install` one that stays")),
        };
    }
    let since_ms = TimeArg::DaysBefore(0).start(&app.now());
    let filter = CallFilter { since_ms: Some(since_ms), ..CallFilter::default() };
    let today = match OpenRecord::open_existing(app)? {
        Some(record) => UsageOverview::of(&record.store, &record.owner, &filter).map_err(refused)?,
        None => UsageOverview::default(),
    };
    if args.json {
        return print_json(app, &json!({ "gateways": gateways, "today": today }));
    }
    app.print(&page(app, &gateways, &today))
}

fn page(app: &App, gateways: &[RunningGateway], today: &UsageOverview) -> String {
    let now = app.now();
    let mut out = String::new();
    for gateway in gateways {
        let by = if gateway.for_runs.is_some() { "run" } else { "serve" };
        let upstream = gateway.upstream.as_ref().map(|url| format!(", upstream {url}")).unwrap_or_default();
        out.push_str(&format!(
            "Gateway   {} since {}, process {}, started by `throughline {by}`{upstream}\n",
            gateway.url,
            now.time_of_day(gateway.started_ms),
            gateway.process_id
        ));
    }
    if gateways.is_empty() {
        out.push_str("Gateway   none; `throughline run claude` starts one with Claude Code, `throughline serve` one that stays\n");
    }
    let total = &today.total;
    if total.calls == 0 {
        out.push_str("Today     no calls\n");
        return out;
    }
    let tokens = total.usage.input + total.usage.cache_read + total.usage.cache_write + total.usage.output;
    out.push_str(&format!(
        "Today     {}, {} tokens, {}\n",
        counted(total.calls, "call", "calls"),
        thousands(tokens),
        cost_words(total.cost_micro_usd, total.calls, total.unpriced)
    ));
    let clients: Vec<String> = today
        .by_program
        .iter()
        .map(|total| format!("{} ({})", total.group, counted(total.calls, "call", "calls")))
        .collect();
    out.push_str(&format!("Clients   {}\n", clients.join(", ")));
    out
}
