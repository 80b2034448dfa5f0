//! The output of `replay` for people.

use std::fmt::Write as _;

use owo_colors::OwoColorize;
use throughline_provider::CacheTtl;
use throughline_replay::{Bill, SummaryCost};
use throughline_tokens::Cost;

use crate::commands::replay::{ReplayPage, ReplayedSession};
use crate::ui::figures::{cost_words, dollars};
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{counted, percent, shorten, thousands, wrap};

const INDENT: usize = 2;
/// The widest column of names.
const MAX_NAME_COLUMNS: usize = 34;

/// Formats the page: one conversation in detail, or one line for each and the sum.
pub(crate) fn render(page: &ReplayPage, width: usize) -> String {
    let mut out = String::new();
    if let [one] = page.conversations.as_slice() {
        let _ = writeln!(out, "{}", shorten(&one.name, width).bold());
        out.push_str(&indented(&terms(one), width));
    } else {
        let count = counted(page.conversations.len() as u64, "conversation", "conversations");
        let _ = writeln!(out, "{}\n", count.bold());
        out.push_str(&list(page).render(width, INDENT));
        let _ = writeln!(out, "\n{}", "Together".bold());
    }
    out.push('\n');
    out.push_str(&comparison(&page.without, &page.with).render(width, INDENT));
    out.push('\n');
    for line in remarks(page) {
        out.push_str(&indented(&line, width));
    }
    out
}

/// Describes the terms of a replay.
fn terms(one: &ReplayedSession) -> String {
    let model = if one.model.is_empty() { "no model is selected" } else { &one.model };
    let ttl = |ttl: CacheTtl| ttl.name();
    format!(
        "{model}, window {} ({}), compacted at {}. Prompts cached for {} as recorded, {} with Throughline.",
        thousands(one.window_tokens),
        one.window_origin,
        thousands(one.threshold_tokens),
        ttl(one.report.ttl_without),
        ttl(one.report.ttl_with),
    )
}

fn list(page: &ReplayPage) -> TextTable {
    let mut table = TextTable::new(&[
        ("conversation", Side::Left),
        ("calls", Side::Right),
        ("compacted", Side::Right),
        ("alone", Side::Right),
        ("through", Side::Right),
        ("share", Side::Right),
    ]);
    for one in &page.conversations {
        let (without, with) = (&one.report.without, &one.report.with);
        table.row([
            name_words(&one.name),
            both(thousands(without.calls), thousands(with.calls)),
            both(without.compactions.to_string(), with.compactions.to_string()),
            money(without),
            money(with),
            share(with, without),
        ]);
    }
    table
}

/// The file name without its folders, which are mostly the same.
fn name_words(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    shorten(name, MAX_NAME_COLUMNS)
}

fn both(without: String, with: String) -> String {
    if without == with { without } else { format!("{without} → {with}") }
}

/// Whether a row shows the share that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShareColumn {
    Shown,
    /// A share is not useful for small counts.
    None,
}

/// A row of a bill: its label, its value, and whether it shows a share.
type BillRow = (&'static str, fn(&Bill) -> u64, ShareColumn);

/// Compares two bills in columns.
fn comparison(without: &Bill, with: &Bill) -> TextTable {
    let mut table = TextTable::new(&[
        ("", Side::Left),
        ("as recorded", Side::Right),
        ("with Throughline", Side::Right),
        ("", Side::Right),
    ]);
    let rows: [BillRow; 11] = [
        ("calls", |bill| bill.calls, ShareColumn::Shown),
        ("  for summaries", |bill| bill.summary_calls, ShareColumn::None),
        ("  to read again", |bill| bill.reread_calls, ShareColumn::None),
        ("results set aside", |bill| bill.set_aside, ShareColumn::None),
        ("compactions", |bill| bill.compactions, ShareColumn::None),
        ("largest prompt", |bill| bill.largest_prompt_tokens, ShareColumn::Shown),
        ("prompt tokens", |bill| bill.usage.prompt(), ShareColumn::Shown),
        ("  read from the cache", |bill| bill.usage.cache_read, ShareColumn::Shown),
        ("  written to it", |bill| bill.usage.cache_write, ShareColumn::Shown),
        ("  neither", |bill| bill.usage.input, ShareColumn::Shown),
        ("answered tokens", |bill| bill.usage.output, ShareColumn::Shown),
    ];
    for (name, of, change) in rows {
        let (a, b) = (of(without), of(with));
        let change = if change == ShareColumn::Shown && a > 0 { percent(b, a) } else { String::new() };
        table.row([name.to_owned(), thousands(a), thousands(b), change]);
    }
    table.row(["cost".to_owned(), money(without), money(with), share(with, without)]);
    if with.summaries_micro_usd > 0 || without.summaries_micro_usd > 0 {
        table.row([
            "  of summaries".to_owned(),
            dollars(without.summaries_micro_usd),
            dollars(with.summaries_micro_usd),
            String::new(),
        ]);
    }
    table
}

fn money(bill: &Bill) -> String {
    cost_words(bill.micro_usd, bill.calls, bill.unpriced_calls)
}

/// The cost with Throughline as a share of the cost without.
fn share(with: &Bill, without: &Bill) -> String {
    let is_known = with.unpriced_calls == 0 && without.unpriced_calls == 0 && without.micro_usd > 0;
    if is_known { percent(with.micro_usd, without.micro_usd) } else { "?".to_owned() }
}

/// Remarks on the reliability of the figures.
fn remarks(page: &ReplayPage) -> Vec<String> {
    let mut remarks = vec![format!(
        "By list prices as of {}, estimated tokens and the published rules of prompt caches.",
        Cost::prices_as_of()
    )];
    remarks.push(match page.summaries {
        Some(SummaryCost::Free) => "Summaries are made by rules and cost nothing.".to_owned(),
        _ => "Summaries are billed as if the conversation's own model wrote them.".to_owned(),
    });
    if page.logged.calls > 0 && page.logged.unpriced_calls == 0 {
        remarks.push(format!(
            "What the logs themselves report of {} comes to {} by the same prices.",
            counted(page.logged.calls, "call", "calls"),
            dollars(page.logged.micro_usd),
        ));
    }
    if page.with.unpriced_calls > 0 {
        remarks.push("Calls of a model without a list price have no amount; --model names one.".to_owned());
    }
    remarks
}

fn indented(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in wrap(text, width.saturating_sub(INDENT), 0).lines() {
        let _ = writeln!(out, "{:INDENT$}{line}", "");
    }
    out
}
