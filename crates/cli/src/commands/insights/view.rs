//! The output of `insights` for people: totals, a plot over time, and tables. Every bar has its number beside it.

use std::fmt::Write as _;

use jiff::ToSpan as _;
use jiff::civil::Date;
use owo_colors::OwoColorize;
use throughline_store::{ToolCount, UsageTotal};
use throughline_tokens::Usage;

use crate::commands::insights::Insights;
use crate::commands::usage::view::{MISSES_HEADING, cache_misses, cost_lines, group_name, sorted};
use crate::ui::figures::{cost_words, rounded, sparkline};
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{counted, on_one_line, percent, shorten, thousands, wrap};

const INDENT: usize = 2;
/// The most rows of the plot over time; for longer periods each row is the sum of several days.
const MAX_ROWS: i32 = 31;
/// The widest column of names.
const MAX_NAME_COLUMNS: usize = 30;
/// The most cells of a bar.
const MAX_BAR_CELLS: usize = 40;
/// The most cells of a bar in the plot over time, whose labels are short.
const MAX_PLOT_CELLS: usize = 60;

/// Formats the page.
pub(crate) fn render(insights: &Insights, width: usize) -> String {
    let mut out = String::new();
    let days = (insights.last_day - insights.first_day).get_days() + 1;
    let title = format!(
        "{}: {} to {}",
        if days == 1 { "Today".to_owned() } else { format!("The last {days} days") },
        insights.first_day,
        insights.last_day
    );
    let _ = writeln!(out, "{}", title.bold());
    if insights.total.calls == 0 && insights.tools.is_empty() {
        out.push_str(&format!("{:INDENT$}no calls are recorded in this time\n", ""));
        return out;
    }
    out.push_str(&sums(&insights.total, &insights.by_model, width));
    let measure = BarValue::of(&insights.total);
    let periods = periods(insights);
    if !periods.is_empty() {
        let per = if period_days(insights) == 1 { "By day" } else { "Over time" };
        heading(&mut out, &format!("{per} (bars: {})", measure.name()));
        let line: Vec<u64> = periods.iter().map(|period| measure.value(&period.total)).collect();
        if line.len() + INDENT <= width {
            let _ = writeln!(out, "{:INDENT$}{}", "", sparkline(&line));
        }
        out.push_str(&over_time(&periods, measure, width));
    }
    for (name, totals) in
        [("model", &insights.by_model), ("project", &insights.by_project), ("task", &insights.by_task)]
    {
        // A single task has the same figures as the total; names of models and projects are always shown.
        if totals.len() > usize::from(name == "task") {
            heading(&mut out, &format!("By {name} (bars: {})", measure.name()));
            out.push_str(&groups(name, totals, measure, insights.top, width));
        }
    }
    if !insights.by_cache_miss.is_empty() {
        heading(&mut out, MISSES_HEADING);
        out.push_str(&cache_misses(&insights.by_cache_miss, width));
    }
    if !insights.tools.is_empty() {
        heading(&mut out, "By tool (bars: tokens of calls and results)");
        out.push_str(&tools(&insights.tools, insights.top, width));
    }
    out
}

/// The value that bars show: the cost if any is known, otherwise tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BarValue {
    Cost,
    Tokens,
}

impl BarValue {
    fn of(total: &UsageTotal) -> Self {
        if total.cost_micro_usd > 0 { Self::Cost } else { Self::Tokens }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Tokens => "tokens",
        }
    }

    fn value(self, total: &UsageTotal) -> u64 {
        match self {
            Self::Cost => total.cost_micro_usd,
            Self::Tokens => total.usage.total(),
        }
    }
}

fn heading(out: &mut String, words: &str) {
    let _ = writeln!(out, "\n{}", words.bold());
}

fn sums(total: &UsageTotal, by_model: &[UsageTotal], width: usize) -> String {
    let Usage { cache_read, output, .. } = total.usage;
    let prompt = total.usage.prompt();
    let mut lines = vec![format!(
        "{} in {}: {} tokens sent, {} of them read from a cache; {} answered",
        counted(total.calls, "call", "calls"),
        counted(total.sessions, "session", "sessions"),
        thousands(prompt),
        percent(cache_read, prompt),
        thousands(output),
    )];
    if total.estimated > 0 {
        lines.push(format!("tokens of {} are estimated", counted(total.estimated, "call", "calls")));
    }
    lines.extend(cost_lines(total, by_model));
    lines
        .iter()
        .flat_map(|line| {
            wrap(line, width.saturating_sub(INDENT), 0)
                .lines()
                .map(|line| format!("{:INDENT$}{line}\n", ""))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The days of one row of the plot.
struct Period {
    first_day: Date,
    total: UsageTotal,
}

/// The first day with a call, where the plot begins: earlier days would only make its rows coarser.
fn first_day(insights: &Insights) -> Date {
    let days = insights.by_day.iter().filter(|day| day.calls > 0);
    let first = days.filter_map(|day| day.group.parse::<Date>().ok()).min();
    first.unwrap_or(insights.first_day).max(insights.first_day)
}

/// The number of days in a row of the plot: one, seven, or as many as necessary.
fn period_days(insights: &Insights) -> i32 {
    let days = (insights.last_day - first_day(insights)).get_days() + 1;
    match days {
        ..=MAX_ROWS => 1,
        _ if days <= MAX_ROWS * 7 => 7,
        _ => (days + MAX_ROWS - 1) / MAX_ROWS,
    }
}

/// The rows of the plot, from the first one with a call.
fn periods(insights: &Insights) -> Vec<Period> {
    let length = period_days(insights);
    let mut periods: Vec<Period> = Vec::new();
    let mut day = first_day(insights);
    while day <= insights.last_day {
        periods.push(Period { first_day: day, total: UsageTotal::default() });
        day = day.saturating_add(length.days());
        if day == Date::MAX {
            break;
        }
    }
    for total in &insights.by_day {
        let Ok(day) = total.group.parse::<Date>() else { continue };
        if let Some(period) = periods.iter_mut().rev().find(|period| period.first_day <= day) {
            add(&mut period.total, total);
        }
    }
    let first = periods.iter().position(|period| period.total.calls > 0).unwrap_or(periods.len());
    periods.drain(..first);
    periods
}

fn add(sum: &mut UsageTotal, total: &UsageTotal) {
    sum.calls += total.calls;
    sum.usage += total.usage;
    sum.cost_micro_usd += total.cost_micro_usd;
    sum.unpriced += total.unpriced;
}

fn over_time(periods: &[Period], measure: BarValue, width: usize) -> String {
    let mut table = TextTable::new(&[
        ("from", Side::Left),
        ("calls", Side::Right),
        ("tokens", Side::Right),
        ("cached", Side::Right),
        ("cost", Side::Right),
    ]);
    let mut values = Vec::new();
    // The line above shows the periods without calls; they need no row.
    for Period { first_day, total } in periods.iter().filter(|period| period.total.calls > 0) {
        table.row([
            first_day.to_string(),
            thousands(total.calls),
            rounded(total.usage.total()),
            percent(total.usage.cache_read, total.usage.prompt()),
            cost_words(total.cost_micro_usd, total.calls, total.unpriced),
        ]);
        values.push(measure.value(total));
    }
    table.bars(&values, width, INDENT, MAX_PLOT_CELLS);
    table.render(width, INDENT)
}

fn groups(name: &str, totals: &[UsageTotal], measure: BarValue, top: usize, width: usize) -> String {
    let mut table = TextTable::new(&[
        (name, Side::Left),
        ("calls", Side::Right),
        ("tokens", Side::Right),
        ("cached", Side::Right),
        ("cost", Side::Right),
    ]);
    let sorted = sorted(totals);
    let values: Vec<u64> = sorted.iter().take(top).map(|total| measure.value(total)).collect();
    for total in sorted.iter().take(top) {
        table.row([
            name_of(&total.group, width),
            thousands(total.calls),
            rounded(total.usage.total()),
            percent(total.usage.cache_read, total.usage.prompt()),
            cost_words(total.cost_micro_usd, total.calls, total.unpriced),
        ]);
    }
    table.bars(&values, width, INDENT, MAX_BAR_CELLS);
    table.render(width, INDENT) + &more(sorted.len(), top)
}

fn tools(tools: &[ToolCount], top: usize, width: usize) -> String {
    let mut table =
        TextTable::new(&[("tool", Side::Left), ("messages", Side::Right), ("tokens", Side::Right)]);
    let mut tools: Vec<&ToolCount> = tools.iter().collect();
    tools.sort_by_key(|tool| std::cmp::Reverse((tool.tokens, tool.messages)));
    let values: Vec<u64> = tools.iter().take(top).map(|tool| tool.tokens).collect();
    for tool in tools.iter().take(top) {
        table.row([
            shorten(&on_one_line(&tool.tool), MAX_NAME_COLUMNS),
            thousands(tool.messages),
            rounded(tool.tokens),
        ]);
    }
    table.bars(&values, width, INDENT, MAX_BAR_CELLS);
    table.render(width, INDENT) + &more(tools.len(), top)
}

/// The end of a project's path says more than its beginning.
fn name_of(group: &str, width: usize) -> String {
    let name = group_name(group);
    let room = MAX_NAME_COLUMNS.min(width / 3);
    let count = name.chars().count();
    if count <= room || !name.contains('/') {
        return shorten(&name, room);
    }
    let tail: String = name.chars().skip(count - (room - 1)).collect();
    format!("…{tail}")
}

fn more(count: usize, top: usize) -> String {
    match count.checked_sub(top).filter(|more| *more > 0) {
        Some(more) => format!("{:INDENT$}and {more} more; --top N lists them\n", ""),
        None => String::new(),
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
