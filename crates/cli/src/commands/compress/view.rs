//! The output of `compress` for people: the report of an attempt, or the plan alone.

use std::fmt::Write as _;
use std::path::Path;

use owo_colors::OwoColorize;
use throughline_compaction::{
    Completion, Outcome, PlanReport, Quality, Repairs, Report, Section, Stretch, Timings,
};

use crate::commands::compress::Compaction;
use crate::error::path_words;
use crate::limits::limits_table;
use crate::ui::gauge::{Gauge, gauge_lines};
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{counted, percent, printable, shorten, thousands, wrap};

const INDENT: usize = 2;
/// The most files and requests that are listed; the rest is counted.
const MAX_LISTED: usize = 12;

const PREVIEWED: &str = "Nothing was changed. Leave out --preview to compact.";
const PREVIEWED_IN_CHAT: &str = "Nothing was changed. /compress without --preview does it.";

/// The line below the gauges and the map, unless details were requested.
const MORE: &str = "--details adds the limits, what was pruned, the exact facts, and the summary.";
const MORE_OF_NOTHING_DONE: &str = "--details adds the limits.";

/// How much of a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportExtent {
    /// The outcome alone.
    Outcome,
    /// The outcome, both gauges and the map: what fits a terminal.
    Result,
    /// Limits, figures and the summary too.
    Details,
}

/// Formats the report of an attempt, the outcome first.
pub(crate) fn report(
    compaction: &Compaction<'_>,
    out: Option<&Path>,
    extent: ReportExtent,
    width: usize,
) -> String {
    let mut page = ReportPage { text: String::new(), width };
    let report = &compaction.attempt.report;
    page.outcome(compaction);
    if let Some(path) = out {
        page.line(&format!("written to {}", path_words(path)));
    }
    if let Some(committed) = &compaction.committed {
        page.line(&format!(
            "Recorded: {} ended, the conversation continues in {}. `throughline sessions undo` reverts it.",
            committed.from, committed.to
        ));
    }
    if extent == ReportExtent::Outcome {
        return page.text;
    }
    page.gauges(compaction);
    if compaction.attempt.plan.is_some() {
        page.map(&report.plan, report, compaction.attempt.outcome.is_completed());
    }
    if extent == ReportExtent::Result {
        page.text.push('\n');
        let is_completed = compaction.attempt.outcome.is_completed();
        page.text.push_str(&wrap(if is_completed { MORE } else { MORE_OF_NOTHING_DONE }, width, 0));
        return page.text;
    }
    page.limits(compaction);
    if compaction.attempt.outcome.is_completed() {
        page.figures(report);
    }
    if let Some(document) = &compaction.attempt.summary {
        page.heading(&format!("Summary ({} tokens)", thousands(report.summary_tokens)));
        let text = printable(&document.to_markdown());
        page.text.push_str(&wrap(&text, width, INDENT));
    }
    page.text
}

/// Formats the plan alone: the messages that would stay, those that would be summarised, and the facts at stake.
pub(crate) fn plan(compaction: &Compaction<'_>, width: usize, in_chat: bool) -> String {
    let mut page = ReportPage { text: String::new(), width };
    let report = &compaction.attempt.report;
    match &compaction.attempt.outcome {
        Outcome::Completed(_) => {
            let after = report.tokens.after;
            page.title(&format!(
                "Would compact {}: {} -> {} tokens ({})",
                compaction.input.name,
                thousands(report.tokens.before),
                thousands(after),
                percent(after, report.tokens.before)
            ));
        }
        Outcome::NoOp { detail, .. } | Outcome::Aborted { detail, .. } => {
            page.title(&format!("Would leave {} as it is: {}", compaction.input.name, printable(detail)));
        }
    }
    page.gauges(compaction);
    if compaction.attempt.plan.is_some() {
        page.map(&report.plan, report, compaction.attempt.outcome.is_completed());
    }
    page.limits(compaction);
    if compaction.attempt.outcome.is_completed() {
        page.pruned(report);
        page.at_stake(compaction);
    }
    page.text.push('\n');
    page.text.push_str(&wrap(if in_chat { PREVIEWED_IN_CHAT } else { PREVIEWED }, width, 0));
    page.text
}

struct ReportPage {
    text: String,
    width: usize,
}

impl ReportPage {
    fn title(&mut self, words: &str) {
        self.text.push_str(&wrap(words, self.width, INDENT).trim_end().bold().to_string());
        self.text.push('\n');
    }

    fn heading(&mut self, words: &str) {
        let _ = writeln!(self.text, "\n{}", words.bold());
    }

    /// Writes a line below the last heading, wrapped if necessary.
    fn line(&mut self, words: &str) {
        for line in wrap(words, self.width - INDENT, 0).lines() {
            let _ = writeln!(self.text, "{:INDENT$}{line}", "");
        }
    }

    fn outcome(&mut self, compaction: &Compaction<'_>) {
        let report = &compaction.attempt.report;
        let name = &compaction.input.name;
        match &compaction.attempt.outcome {
            Outcome::Completed(Completion { quality, .. }) => {
                self.title(&format!(
                    "Compacted {name}: {} -> {} tokens ({}), {} -> {} messages",
                    thousands(report.tokens.before),
                    thousands(report.tokens.after),
                    percent(report.tokens.after, report.tokens.before),
                    thousands(report.messages.before),
                    thousands(report.messages.after),
                ));
                self.line(match quality {
                    Quality::Rules => "The summary was made by the built-in rules; no model was used.",
                    Quality::Model => "The summary was written by a model and checked against the record.",
                });
            }
            Outcome::NoOp { detail, .. } => {
                self.title(&format!("Left {name} as it is: {}", printable(detail)))
            }
            Outcome::Aborted { detail, .. } => {
                self.title(&format!("Could not compact {name}, which is unchanged: {}", printable(detail)));
            }
        }
    }

    fn gauges(&mut self, compaction: &Compaction<'_>) {
        let report = &compaction.attempt.report;
        let situation = compaction.situation;
        let gauge = |tokens| Gauge {
            tokens,
            window_tokens: situation.window.value,
            threshold_tokens: situation.threshold_tokens(),
        };
        self.text.push('\n');
        let gauges = if compaction.attempt.outcome.is_completed() {
            vec![("  before", gauge(report.tokens.before)), ("  after", gauge(report.tokens.after))]
        } else {
            vec![("  context", gauge(report.tokens.before))]
        };
        self.text.push_str(&gauge_lines(&gauges, self.width));
        self.line(&situation.words());
    }

    /// Shows head, middle and tail as a strip and as a table.
    fn map(&mut self, plan: &PlanReport, report: &Report, completed: bool) {
        self.heading("Map (messages are numbered from 0)");
        let fixed = report.fixed_tokens;
        let pinned = plan.pinned.map_or(0, |stretch| stretch.tokens);
        let before =
            [(fixed, '·'), (plan.head.tokens, 'h'), (plan.middle.tokens, 'm'), (plan.tail.tokens, 't')];
        let cells = self.width.saturating_sub(INDENT + "before  ".len()).min(64);
        let scale = report.tokens.before.max(1);
        let _ = writeln!(self.text, "  before  {}", strip(&before, scale, cells));
        if completed {
            let after = [
                (fixed, '·'),
                (plan.head.tokens, 'h'),
                (report.summary_tokens, 's'),
                (pinned, 'u'),
                (plan.tail.tokens, 't'),
            ];
            let _ = writeln!(self.text, "  after   {}", strip(&after, scale, cells));
        }
        let mut table = TextTable::new(&[
            ("", Side::Left),
            ("part", Side::Left),
            ("messages", Side::Left),
            ("count", Side::Right),
            ("tokens", Side::Right),
            ("", Side::Left),
        ]);
        let mut row = |mark: &str, part: &str, stretch: &Stretch, fate: String| {
            table.row([
                mark.to_owned(),
                part.to_owned(),
                span_words(stretch),
                thousands(stretch.messages as u64),
                thousands(stretch.tokens),
                fate,
            ]);
        };
        row("h", "head", &plan.head, "stays".to_owned());
        let fate = if completed {
            format!("summarised in {} tokens", thousands(report.summary_tokens))
        } else {
            "would be summarised".to_owned()
        };
        row("m", "middle", &plan.middle, fate);
        if let Some(pinned) = &plan.pinned {
            row("u", "latest request", pinned, "in the middle; stays, word for word".to_owned());
        }
        row("t", "tail", &plan.tail, "stays, byte for byte".to_owned());
        if fixed > 0 {
            table.row(
                ["·", "system, tools", "", "", &thousands(fixed), "outside the list; stays"]
                    .map(str::to_owned),
            );
        }
        self.text.push_str(&table.render(self.width, INDENT));
        if plan.updates_earlier_summary {
            self.line("An earlier summary was found in the middle and brought up to date.");
        }
    }

    fn limits(&mut self, compaction: &Compaction<'_>) {
        self.heading("Limits");
        let mut table = limits_table(compaction.situation);
        if compaction.attempt.plan.is_some() {
            let budget = thousands(compaction.attempt.report.plan.summary_budget_tokens);
            let reason = format!(
                "a fifth of the middle, at most {}",
                thousands(compaction.situation.budgets.summary_cap_tokens)
            );
            table.row(["summary, this time".to_owned(), String::new(), budget, reason]);
        }
        if let Some(sum) = &compaction.attempt.report.payback {
            let verdict = if sum.pays { "pays for itself" } else { "does not pay for itself" };
            let reason = format!(
                "{} of the request; this frees about {} and {verdict}",
                percent(sum.required_tokens, sum.before_tokens),
                thousands(sum.freed_tokens)
            );
            let required = thousands(sum.required_tokens);
            table.row(["freed, to pay".to_owned(), String::new(), required, reason]);
        }
        self.text.push_str(&table.render(self.width, INDENT));
    }

    fn figures(&mut self, report: &Report) {
        self.pruned(report);
        let facts = &report.facts;
        self.heading("Facts");
        self.line(&format!(
            "{} of the middle must not get lost: {} in the summary, {} attached, {} without room. \
             {} removed that no message contains, {} masked.",
            counted(facts.important as u64, "exact fact", "exact facts"),
            thousands(facts.kept as u64),
            thousands(facts.attached as u64),
            thousands(facts.left_out as u64),
            counted(facts.removed as u64, "string", "strings"),
            counted(facts.redacted as u64, "secret", "secrets"),
        ));
        if let Some(notes) = &report.notes {
            self.heading("Kept");
            self.line(&format!("{notes}."));
        }
        let repairs = report.repairs;
        if repairs != Repairs::default() {
            self.heading("Repairs");
            self.line(&format!(
                "{} without a call left out, {} moved next to its call, {} without a result given a stub.",
                counted(repairs.orphan_results as u64, "result", "results"),
                counted(repairs.moved_results as u64, "result", "results"),
                counted(repairs.stub_results as u64, "call", "calls"),
            ));
        }
        self.heading("Time");
        self.line(&timings(&report.timings_us));
    }

    fn pruned(&mut self, report: &Report) {
        let pruned = &report.pruned;
        self.heading("Pruned before the tail");
        self.line(&format!(
            "{} to one line each, {} to a reference, arguments of {} shortened, {} labelled.",
            counted(pruned.results as u64, "tool result", "tool results"),
            counted(pruned.duplicates as u64, "repeated result", "repeated results"),
            counted(pruned.arguments as u64, "call", "calls"),
            counted(pruned.images as u64, "image", "images"),
        ));
    }

    /// Lists the facts in the compacted messages that must not be lost.
    fn at_stake(&mut self, compaction: &Compaction<'_>) {
        let Some(plan) = &compaction.attempt.plan else { return };
        self.heading("At stake in the middle");
        let mut files: Vec<&str> = Vec::new();
        let acts = compaction.ledger.acts_between(plan.middle.start, plan.middle.end);
        for act in acts.iter().filter(|act| !act.came_to_nothing()) {
            for file in act.changed_files() {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        self.list("changed", "file", "files", &files);
        if let Some(summary) = &compaction.attempt.summary {
            for (section, one, many) in [
                (Section::Constraints, "rule of the user", "rules of the user"),
                (Section::PendingAsks, "open request", "open requests"),
                (Section::Blocked, "standing error", "standing errors"),
            ] {
                let entries: Vec<&str> =
                    summary.entries(section).iter().map(|entry| entry.text.as_str()).collect();
                self.list("", one, many, &entries);
            }
        }
        let facts = &compaction.attempt.report.facts;
        self.line(&format!(
            "{}, {} would be in the summary",
            counted(facts.important as u64, "exact fact", "exact facts"),
            thousands((facts.kept + facts.attached) as u64),
        ));
    }

    fn list(&mut self, lead: &str, one: &str, many: &str, entries: &[&str]) {
        let space = if lead.is_empty() { "" } else { " " };
        if entries.is_empty() {
            self.line(&format!("{lead}{space}no {many}"));
            return;
        }
        self.line(&format!("{lead}{space}{}:", counted(entries.len() as u64, one, many)));
        for entry in entries.iter().take(MAX_LISTED) {
            let first = printable(entry.lines().next().unwrap_or_default());
            self.line(&format!("  - {}", shorten(&first, self.width - INDENT - 4)));
        }
        if entries.len() > MAX_LISTED {
            self.line(&format!("  and {} more", entries.len() - MAX_LISTED));
        }
    }
}

/// Draws stretches to scale, one letter per cell and `cells` cells for the whole. Each stretch has at least one cell.
fn strip(parts: &[(u64, char)], scale: u64, cells: usize) -> String {
    let mut runs: Vec<(usize, char)> = parts
        .iter()
        .filter(|(tokens, _)| *tokens > 0)
        .map(|(tokens, mark)| {
            (((*tokens as f64 / scale as f64 * cells as f64).round() as usize).max(1), *mark)
        })
        .collect();
    // The extra cells of small parts are taken from the largest.
    let excess = runs.iter().map(|(run, _)| run).sum::<usize>().saturating_sub(cells);
    if let Some((largest, _)) = runs.iter_mut().max_by_key(|(run, _)| *run) {
        *largest = largest.saturating_sub(excess).max(1);
    }
    let mut out = String::new();
    for (run, mark) in runs {
        let letters: String = std::iter::repeat_n(mark, run).collect();
        out.push_str(&match mark {
            's' => letters.green().to_string(),
            'm' => letters.yellow().to_string(),
            _ => letters,
        });
    }
    out
}

fn span_words(stretch: &Stretch) -> String {
    match stretch.messages {
        0 => "-".to_owned(),
        1 => stretch.start.to_string(),
        _ => format!("{}-{}", stretch.start, stretch.end.saturating_sub(1)),
    }
}

fn timings(timings: &Timings) -> String {
    let Timings { facts, cut, prune, summarise, check, assemble } = *timings;
    let phases = [
        ("cut", cut),
        ("facts", facts),
        ("prune", prune),
        ("summarise", summarise),
        ("check", check),
        ("assemble", assemble),
    ];
    let total: u64 = phases.iter().map(|(_, time)| time).sum();
    let each: Vec<String> =
        phases.iter().map(|(phase, time)| format!("{phase} {}", duration(*time))).collect();
    format!("{} in all: {}", duration(total), each.join(", "))
}

/// The number and its unit are joined by a no-break space.
fn duration(microseconds: u64) -> String {
    match microseconds {
        0..1_000 => format!("{microseconds}\u{a0}µs"),
        1_000..1_000_000 => format!("{:.1}\u{a0}ms", microseconds as f64 / 1e3),
        _ => format!("{:.2}\u{a0}s", microseconds as f64 / 1e6),
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
