//! `throughline status`: the running gateways, their clients, and what today's calls cost and saved.

use clap::Args;
use serde_json::json;
use throughline_store::{CallFilter, Savings, SavingsTotal, UsageOverview};

use crate::app::App;
use crate::args::time::TimeArg;
use crate::error::{CliError, Exit};
use crate::gateways::{self, RunningGateway};
use crate::model_catalogue::catalogue;
use crate::record::{OpenRecord, refused};
use crate::ui::figures::{cost_words, dollars, signed_dollars};
use crate::ui::output::print_json;
use crate::ui::text::{counted, thousands};

/// Show whether a gateway runs, which clients use it, and what calls cost and saved today
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

/// Runs the command.
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
    let (today, saved) = match OpenRecord::open_existing(app)? {
        Some(record) => {
            let today = UsageOverview::of(&record.store, &record.owner, &filter).map_err(refused)?;
            let saved = Savings::of(&record.store, &record.owner, &filter, &catalogue(app)?);
            (today, saved.map_err(refused)?.total)
        }
        None => <(UsageOverview, SavingsTotal)>::default(),
    };
    if args.json {
        let saved_micro_usd = saved.saved_micro_usd();
        return print_json(
            app,
            &json!({ "gateways": gateways, "today": today, "saved_micro_usd": saved_micro_usd, "savings": saved }),
        );
    }
    app.print(&page(app, &gateways, &today, &saved))
}

fn page(app: &App, gateways: &[RunningGateway], today: &UsageOverview, saved: &SavingsTotal) -> String {
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
    // Without prices, savings are unknown.
    if total.unpriced < total.calls {
        out.push_str(&format!(
            "Saved     {} by Throughline, by estimate (`throughline savings`); {} by the provider's cache\n",
            signed_dollars(saved.saved_micro_usd()),
            dollars(total.uncached_micro_usd.saturating_sub(total.cost_micro_usd))
        ));
    }
    let clients: Vec<String> = today
        .by_program
        .iter()
        .map(|total| {
            // The record's name for programs that do not identify themselves.
            let name = if total.group == "gateway" { "other programs" } else { &total.group };
            format!("{name} ({})", counted(total.calls, "call", "calls"))
        })
        .collect();
    out.push_str(&format!("Clients   {}\n", clients.join(", ")));
    out
}
