//! `throughline insights`: totals by day, model, project and tool, and the savings by the provider's cache.

mod view;

use clap::Args;
use jiff::civil::Date;
use serde_json::json;
use throughline_store::{CallFilter, Store as _, ToolCount, UsageBy, UsageTotal};

use crate::app::App;
use crate::error::CliError;
use crate::record::{OpenRecord, refused};
use crate::ui::output::print_json;

/// Show totals by day, model, project and tool, and what the cache saved
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  throughline insights
  throughline insights --days 365
  throughline insights --days 7 --json | jq .total")]
pub(crate) struct InsightsArgs {
    /// How many days back, today included
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// How many models, projects and tools to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The data of the page.
#[derive(Default)]
pub(crate) struct Insights {
    pub(crate) first_day: Date,
    pub(crate) last_day: Date,
    pub(crate) total: UsageTotal,
    pub(crate) by_day: Vec<UsageTotal>,
    pub(crate) by_model: Vec<UsageTotal>,
    pub(crate) by_project: Vec<UsageTotal>,
    pub(crate) by_task: Vec<UsageTotal>,
    pub(crate) by_cache_miss: Vec<UsageTotal>,
    pub(crate) tools: Vec<ToolCount>,
    pub(crate) top: usize,
}

/// Runs the command.
pub(crate) fn run(args: &InsightsArgs, app: &App) -> Result<(), CliError> {
    let now = app.now();
    let mut insights = Insights {
        first_day: now.day_before(args.days - 1),
        last_day: now.day_before(0),
        top: args.top,
        ..Insights::default()
    };
    let record = OpenRecord::open_existing(app)?;
    if let Some(record) = &record {
        let since_ms = Some(now.start_of(insights.first_day));
        let filter = CallFilter { since_ms, ..CallFilter::default() };
        let totals = |by: UsageBy| record.store.usage(&record.owner, &filter, by).map_err(refused);
        insights.total = totals(UsageBy::Everything)?.into_iter().next().unwrap_or_default();
        insights.by_day = totals(UsageBy::Day { offset_minutes: now.offset_minutes() })?;
        insights.by_model = totals(UsageBy::Model)?;
        insights.by_project = totals(UsageBy::Project)?;
        insights.by_task = totals(UsageBy::Task)?;
        insights.by_cache_miss = UsageTotal::largest_misses(totals(UsageBy::CacheMiss)?);
        insights.tools = record.store.tool_counts(&record.owner, since_ms).map_err(refused)?;
    }
    if args.json {
        return print_json(app, &insights.json());
    }
    if record.is_none() {
        return Ok(());
    }
    app.print(&view::render(&insights, app.width))
}

impl Insights {
    fn json(&self) -> serde_json::Value {
        let saved = i128::from(self.total.uncached_micro_usd) - i128::from(self.total.cost_micro_usd);
        json!({
            "first_day": self.first_day.to_string(),
            "last_day": self.last_day.to_string(),
            "total": self.total,
            "cache_saved_micro_usd": i64::try_from(saved).unwrap_or(i64::MAX),
            "by_day": self.by_day,
            "by_model": self.by_model,
            "by_project": self.by_project,
            "by_task": self.by_task,
            "by_cache_miss": self.by_cache_miss,
            "tools": self.tools,
        })
    }
}
