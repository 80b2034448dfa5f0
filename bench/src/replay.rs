//! The cost of recorded sessions through the managed call, compared with the prompts of their own client under the same rules: unchanged,
//! and with long tool results shortened.

use std::fmt::Write;
use std::path::Path;

use throughline_engine::ToolOutputPolicy;
use throughline_provider::CacheTtl;
use throughline_replay::{Bill, Recording, ReplayOptions, SummaryCost, replay};
use throughline_tokens::{Catalogue, LimitPolicy};

use crate::recorded::{Recorded, sessions};

/// The window of the recorded client.
const WINDOW_TOKENS: u64 = 200_000;
/// The length of a tool result, in characters, from which it is shortened in the second run.
const SHORT_RESULT_CHARS: u64 = 8_000;
/// The most that may be paid, in percent of the cost of the recorded client's prompts.
const MOST_PERCENT: f64 = 100.0;
const MOST_PERCENT_SHORT: f64 = 82.0;

/// The terms of a replay.
#[derive(Clone, Copy)]
struct Terms {
    /// The length of a tool result, in characters, from which it is shortened; `None` for the default.
    result_chars: Option<u64>,
    summaries: SummaryCost,
    /// The cache lifetime that Throughline requests; `None` for that of the recorded client.
    ttl: Option<CacheTtl>,
}

/// A session replayed on one set of terms.
struct Row {
    name: String,
    without: Bill,
    with: Bill,
    logged: Bill,
}

/// All sessions replayed on one set of terms.
#[derive(Default)]
struct Run {
    rows: Vec<Row>,
    without: Bill,
    with: Bill,
    logged: Bill,
}

impl Run {
    fn percent(&self) -> f64 {
        percent(&self.with, &self.without)
    }
}

/// Runs the benchmark and formats the tables.
pub(crate) fn run(folder: &Path) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(told)?;
    let sessions = sessions(folder)?;
    let on_terms = |terms: Terms| -> Result<Run, String> {
        let mut run = Run::default();
        for recorded in &sessions {
            run.add(runtime.block_on(replayed(recorded, terms))?);
        }
        Ok(run)
    };
    let usual = Terms { result_chars: None, summaries: SummaryCost::Free, ttl: Some(CacheTtl::FiveMinutes) };
    let short_results = Terms { result_chars: Some(SHORT_RESULT_CHARS), ..usual };
    let (plain, short) = (on_terms(usual)?, on_terms(short_results)?);
    let by_model = |terms| on_terms(Terms { summaries: SummaryCost::ByModel, ..terms });
    let (plain_by_model, short_by_model) = (by_model(usual)?, by_model(short_results)?);
    let as_recorded = |terms| on_terms(Terms { ttl: None, ..terms });
    let (plain_same_ttl, short_same_ttl) = (as_recorded(usual)?, as_recorded(short_results)?);
    let mut out = String::from("Recorded sessions, priced by the rules of the provider's cache\n\n");
    let _ = writeln!(
        out,
        "{:<12} {:>5} {:>8} {:>7} {:>8} {:>7} {:>6} {:>8} {:>7} {:>6}",
        "session", "calls", "alone", "read", "through", "folds", "cost", "short", "folds", "cost"
    );
    for (row, short) in plain.rows.iter().zip(&short.rows) {
        let _ = writeln!(
            out,
            "{:<12} {:>5} {:>8.2} {:>6.1}% {:>8.2} {:>7} {:>5.1}% {:>8.2} {:>7} {:>5.1}%",
            row.name,
            row.without.calls,
            usd(&row.without),
            row.without.cache_read_share() * 100.0,
            usd(&row.with),
            folds(row),
            percent(&row.with, &row.without),
            usd(&short.with),
            folds(short),
            percent(&short.with, &short.without),
        );
    }
    let _ =
        writeln!(out, "\n{:<46} {:>10} {:>8} {:>14} {:>8}", "in dollars", "by rules", "", "by the model", "");
    let _ = writeln!(
        out,
        "{:<46} {:>10.2} {:>8} {:>14.2}",
        "the recorded client's own prompts",
        usd(&plain.without),
        "",
        usd(&plain_by_model.without)
    );
    total(&mut out, "through Throughline", &plain, &plain_by_model);
    total(&mut out, "the same, results over 8,000 characters aside", &short, &short_by_model);
    let _ = writeln!(
        out,
        "By rules, cached for as long as the recorded client asked instead of 5 minutes: {:.1} %, {:.1} %.",
        plain_same_ttl.percent(),
        short_same_ttl.percent()
    );
    let _ = writeln!(
        out,
        "\nThe log's own figures: {:.2}, {:.1} % of all prompt tokens read from the cache; here {:.1} %.",
        usd(&plain.logged),
        plain.logged.cache_read_share() * 100.0,
        plain.without.cache_read_share() * 100.0
    );
    let _ = writeln!(
        out,
        "Set aside: {} results, {} calls to read again.",
        short.with.set_aside, short.with.reread_calls
    );
    let _ = writeln!(
        out,
        "Summaries by the model, long results aside: {} compactions, {} calls, {:.2}.",
        short_by_model.with.compactions,
        short_by_model.with.summary_calls,
        short_by_model.with.summaries_micro_usd as f64 / 1e6
    );
    let limits = [
        ("as they are", &plain, &plain_by_model, MOST_PERCENT),
        ("with long results aside", &short, &short_by_model, MOST_PERCENT_SHORT),
    ];
    for (what, by_rules, by_model, most) in limits {
        let dearer = by_rules.percent().max(by_model.percent());
        let verdict = if dearer <= most { "holds" } else { "MISSED" };
        let _ = writeln!(
            out,
            "At most {most:.0} % {what}: {:.1} % by rules, {:.1} % by the model, {verdict}",
            by_rules.percent(),
            by_model.percent()
        );
    }
    Ok(out)
}

impl Run {
    fn add(&mut self, rows: Vec<Row>) {
        for row in rows {
            self.without.add(&row.without);
            self.with.add(&row.with);
            self.logged.add(&row.logged);
            self.rows.push(row);
        }
    }
}

fn total(out: &mut String, what: &str, by_rules: &Run, by_model: &Run) {
    let _ = writeln!(
        out,
        "{what:<46} {:>10.2} {:>7.1}% {:>14.2} {:>7.1}%",
        usd(&by_rules.with),
        by_rules.percent(),
        usd(&by_model.with),
        by_model.percent()
    );
}

async fn replayed(recorded: &Recorded, terms: Terms) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (agent, talk) in Recording::all_of(&recorded.transcript) {
        let usual = LimitPolicy::for_window(WINDOW_TOKENS);
        let limits =
            LimitPolicy { tool_result_chars: terms.result_chars.unwrap_or(usual.tool_result_chars), ..usual };
        let options = ReplayOptions {
            model: talk.model.clone().unwrap_or_default(),
            limits,
            ttl: terms.ttl,
            tool_output: ToolOutputPolicy { exempt: Vec::new(), ..ToolOutputPolicy::default() },
            summaries: terms.summaries,
            catalogue: Catalogue::shipped(),
            summary_wait: None,
            client: None,
            own_tools: Vec::new(),
        };
        let report = replay(&talk, &options).await.map_err(|error| format!("{}: {error}", recorded.name))?;
        let name = recorded.name.split('.').next().unwrap_or_default();
        let name = agent.map_or_else(|| name.to_owned(), |agent| format!("{name}/{agent}"));
        rows.push(Row { name, without: report.without, with: report.with, logged: report.logged });
    }
    Ok(rows)
}

fn usd(bill: &Bill) -> f64 {
    bill.micro_usd as f64 / 1e6
}

fn percent(with: &Bill, without: &Bill) -> f64 {
    100.0 * with.micro_usd as f64 / without.micro_usd.max(1) as f64
}

fn folds(row: &Row) -> String {
    format!("{}/{}", row.without.compactions, row.with.compactions)
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
