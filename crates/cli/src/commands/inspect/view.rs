//! The output of `inspect` for people: the gauge, and tables no wider than the terminal.

use std::fmt::Write as _;

use owo_colors::OwoColorize;
use throughline_transcript::Violation;

use crate::commands::inspect::Inspection;
use crate::context_breakdown::{ContentKind, ContextBreakdown};
use crate::input::source_words;
use crate::limits::{TranscriptLimits, limits_table};
use crate::ui::gauge::{Gauge, gauge_lines};
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{bytes_words, counted, on_one_line, percent, printable, shorten, thousands, wrap};

/// The most broken rules that are listed; the rest is counted.
const MAX_VIOLATIONS_SHOWN: usize = 20;
/// The widest column of tool names.
const MAX_TOOL_COLUMNS: usize = 24;
const INDENT: usize = 2;

/// Formats the page.
pub(crate) fn render(inspection: &Inspection<'_>, width: usize) -> String {
    let Inspection { input, situation, breakdown, violations, .. } = inspection;
    let mut out = String::new();
    let transcript = &input.transcript;
    let title = format!(
        "{}: {}, wire format {}, {}, {}",
        input.name,
        source_words(transcript.source),
        transcript.wire_format,
        counted(transcript.messages.len() as u64, "message", "messages"),
        bytes_words(input.bytes)
    );
    out.push_str(&wrap(&title, width, INDENT).trim_end().bold().to_string());
    out.push_str("\n\n");
    gauge(&mut out, situation, breakdown, width);
    section(&mut out, "By kind", &kinds(breakdown), width);
    section(&mut out, "By role (messages only)", &roles(breakdown), width);
    section(&mut out, "By tool (tokens of calls and results)", &tools(inspection), width);
    section(&mut out, "Groups (a step is one answer with all its results)", &groups(breakdown), width);
    section(&mut out, "Largest messages (numbered from 0)", &largest(inspection), width);
    broken(&mut out, violations, width);
    out
}

fn gauge(out: &mut String, situation: &TranscriptLimits, breakdown: &ContextBreakdown, width: usize) {
    let gauge = Gauge {
        tokens: breakdown.total_tokens,
        window_tokens: situation.window.value,
        threshold_tokens: situation.budgets.threshold_tokens,
    };
    out.push_str(&gauge_lines(&[("Context", gauge)], width));
    let words =
        format!("{} {} characters of text.", situation.words(), thousands(breakdown.total_characters));
    out.push_str(&indented(&wrap(&words, width - INDENT, 0)));
    out.push('\n');
    out.push_str(&heading("Limits"));
    out.push_str(&limits_table(situation).render(width, INDENT));
}

fn heading(title: &str) -> String {
    format!("{}\n", title.bold())
}

fn section(out: &mut String, title: &str, table: &TextTable, width: usize) {
    if !table.is_empty() {
        out.push('\n');
        out.push_str(&heading(title));
        out.push_str(&table.render(width, INDENT));
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("{:INDENT$}{line}\n", "")).collect()
}

fn kinds(breakdown: &ContextBreakdown) -> TextTable {
    let mut table = TextTable::new(&[
        ("kind", Side::Left),
        ("tokens", Side::Right),
        ("share", Side::Right),
        ("characters", Side::Right),
        ("items", Side::Right),
    ]);
    let mut rows: Vec<_> = breakdown.kinds.iter().collect();
    rows.sort_by_key(|(kind, tally)| (std::cmp::Reverse(tally.tokens), **kind));
    for (kind, tally) in rows {
        let characters = match kind {
            ContentKind::Images | ContentKind::Framing => "-".to_owned(),
            _ => thousands(tally.characters),
        };
        table.row([
            kind.words().to_owned(),
            thousands(tally.tokens),
            percent(tally.tokens, breakdown.total_tokens),
            characters,
            thousands(tally.items),
        ]);
    }
    table
}

fn roles(breakdown: &ContextBreakdown) -> TextTable {
    let mut table = TextTable::new(&[
        ("role", Side::Left),
        ("messages", Side::Right),
        ("tokens", Side::Right),
        ("share", Side::Right),
        ("mean", Side::Right),
    ]);
    for (role, tally) in &breakdown.roles {
        table.row([
            role.name().to_owned(),
            thousands(tally.items),
            thousands(tally.tokens),
            percent(tally.tokens, breakdown.total_tokens),
            thousands(tally.tokens / tally.items.max(1)),
        ]);
    }
    table
}

fn tools(inspection: &Inspection<'_>) -> TextTable {
    let breakdown = &inspection.breakdown;
    let mut table = TextTable::new(&[
        ("tool", Side::Left),
        ("calls", Side::Right),
        ("failed", Side::Right),
        ("asked", Side::Right),
        ("answered", Side::Right),
        ("share", Side::Right),
        ("largest", Side::Right),
    ]);
    for tool in breakdown.tools.iter().take(inspection.top) {
        table.row([
            shorten(&on_one_line(&tool.name), MAX_TOOL_COLUMNS),
            thousands(tool.calls.items),
            thousands(tool.failed),
            thousands(tool.calls.tokens),
            thousands(tool.results.tokens),
            percent(tool.tokens(), breakdown.total_tokens),
            thousands(tool.largest_result_tokens),
        ]);
    }
    if let Some(rest) = breakdown.tools.get(inspection.top..).filter(|rest| !rest.is_empty()) {
        let sum = |of: fn(&crate::context_breakdown::ToolTally) -> u64| rest.iter().map(of).sum::<u64>();
        table.row([
            format!("({} more)", rest.len()),
            thousands(sum(|tool| tool.calls.items)),
            thousands(sum(|tool| tool.failed)),
            thousands(sum(|tool| tool.calls.tokens)),
            thousands(sum(|tool| tool.results.tokens)),
            percent(sum(crate::context_breakdown::ToolTally::tokens), breakdown.total_tokens),
            thousands(rest.iter().map(|tool| tool.largest_result_tokens).max().unwrap_or(0)),
        ]);
    }
    table
}

fn groups(breakdown: &ContextBreakdown) -> TextTable {
    let mut table = TextTable::new(&[
        ("kind", Side::Left),
        ("groups", Side::Right),
        ("messages", Side::Right),
        ("tokens", Side::Right),
        ("open", Side::Right),
        ("largest", Side::Left),
    ]);
    for group in &breakdown.groups {
        let (start, end) = group.largest;
        let place = if end == start + 1 {
            format!("message {start}")
        } else {
            format!("messages {start}-{}", end - 1)
        };
        table.row([
            group.kind.to_owned(),
            thousands(group.groups),
            thousands(group.messages),
            thousands(group.tokens),
            thousands(group.open_calls),
            format!("{}, {place}", thousands(group.largest_tokens)),
        ]);
    }
    table
}

fn largest(inspection: &Inspection<'_>) -> TextTable {
    let mut table = TextTable::new(&[
        ("message", Side::Right),
        ("role", Side::Left),
        ("tool", Side::Left),
        ("tokens", Side::Right),
        ("share", Side::Right),
        ("glimpse", Side::Left),
    ]);
    for large in &inspection.breakdown.largest {
        let tool = match large.tools.as_slice() {
            [] => String::new(),
            [one] => on_one_line(one),
            [first, more @ ..] => format!("{} +{}", on_one_line(first), more.len()),
        };
        table.row([
            large.message.to_string(),
            large.role.to_owned(),
            shorten(&tool, MAX_TOOL_COLUMNS),
            thousands(large.tokens),
            percent(large.tokens, inspection.breakdown.total_tokens),
            large.glimpse.clone(),
        ]);
    }
    table
}

fn broken(out: &mut String, violations: &[Violation], width: usize) {
    out.push('\n');
    out.push_str(&heading("Broken rules"));
    if violations.is_empty() {
        out.push_str("  none; a provider would accept this list\n");
        return;
    }
    for violation in violations.iter().take(MAX_VIOLATIONS_SHOWN) {
        out.push_str(&indented(&wrap(&printable(&violation.to_string()), width - INDENT, INDENT)));
    }
    if let Some(more) = violations.len().checked_sub(MAX_VIOLATIONS_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(out, "  and {} more; --json lists them all", thousands(more as u64));
    }
    out.push_str("  `throughline compress` repairs what it keeps and says so\n");
}
