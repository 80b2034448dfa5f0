//! The output of `usage` for people.

use std::fmt::Write as _;

use owo_colors::OwoColorize;
use throughline_engine::SizeBasis;
use throughline_store::{SavingsTotal, Session, UsageTotal};
use throughline_tokens::{PricedCall, Usage};

use crate::commands::usage::UsagePage;
use crate::limits::TranscriptLimits;
use crate::record::session_context::ContextUse;
use crate::record::title_words;
use crate::ui::figures::{cost_words, dollars, rounded};
use crate::ui::gauge::{Gauge, gauge_lines};
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{counted, on_one_line, percent, shorten, thousands, wrap};

const INDENT: usize = 2;
/// The widest column of names.
const MAX_NAME_COLUMNS: usize = 28;

/// Formats the page.
pub(crate) fn render(page: &UsagePage<'_>, width: usize) -> String {
    let mut out = String::new();
    match page.session {
        Some(session) => out.push_str(&title(session, width)),
        None => out.push_str(&format!("{}\n", "Everything recorded".bold())),
    }
    if let Some((in_use, situation)) = &page.context {
        out.push('\n');
        out.push_str(&context(in_use, situation, width));
    }
    out.push('\n');
    if page.calls.total.calls == 0 {
        out.push_str("No calls are recorded.\n");
        return out;
    }
    out.push_str(&tokens(&page.calls.total, width));
    out.push('\n');
    out.push_str(&format!("{}\n", "Cost".bold()));
    for line in cost_lines(&page.calls.total, &page.calls.by_model) {
        out.push_str(&indented(&line, width));
    }
    if let Some(line) = page.savings.as_ref().and_then(direct_words) {
        out.push_str(&indented(&line, width));
    }
    for (name, totals) in
        [("model", &page.calls.by_model), ("task", &page.calls.by_task), ("program", &page.calls.by_program)]
    {
        // A single group has the same figures as the total; the model's name is always shown.
        if totals.len() > 1 || (name == "model" && !totals.is_empty()) {
            let _ = write!(
                out,
                "\n{}\n{}",
                format!("By {name}").bold(),
                groups(name, totals).render(width, INDENT)
            );
        }
    }
    if !page.calls.by_cache_miss.is_empty() {
        let _ =
            write!(out, "\n{}\n{}", MISSES_HEADING.bold(), cache_misses(&page.calls.by_cache_miss, width));
    }
    out
}

/// The heading of the reasons for cache misses.
pub(crate) const MISSES_HEADING: &str = "Cache misses, by reason";

/// Lists why prompts missed the cache, how often, and how many tokens were sent uncached.
pub(crate) fn cache_misses(reasons: &[UsageTotal], width: usize) -> String {
    let mut table =
        TextTable::new(&[("reason", Side::Left), ("calls", Side::Right), ("tokens", Side::Right)]);
    for reason in reasons {
        table.row([
            shorten(&group_name(&reason.group), MAX_NAME_COLUMNS),
            thousands(reason.calls),
            rounded(reason.unread_tokens()),
        ]);
    }
    table.render(width, INDENT)
}

fn title(session: &Session, width: usize) -> String {
    let name = title_words(session.title.as_deref());
    let mut words = session.id.to_string();
    if let Some(model) = &session.model {
        let _ = write!(words, ", {}", on_one_line(model));
    }
    format!(
        "{}\n{}",
        wrap(&name, width, INDENT).trim_end().bold(),
        format_args!("\n{}", indented(&words, width)).to_string().trim_start_matches('\n')
    )
}

fn context(in_use: &ContextUse, situation: &TranscriptLimits, width: usize) -> String {
    let gauge = Gauge {
        tokens: in_use.tokens(),
        window_tokens: situation.window.value,
        threshold_tokens: situation.budgets.threshold_tokens,
    };
    let mut out = gauge_lines(&[("Context", gauge)], width);
    let fixed = in_use.fixed_tokens.map_or_else(
        || "system prompt and tools are not recorded".to_owned(),
        |tokens| format!("system prompt and tools as last sent {}", thousands(in_use.part(tokens))),
    );
    let whole = match in_use.basis() {
        SizeBasis::Estimated => "Estimated".to_owned(),
        SizeBasis::Measured { last_prompt_tokens, added_tokens } => format!(
            "Measured: the provider counted {}, and {} came since by estimate. Parts, estimated",
            thousands(last_prompt_tokens),
            thousands(added_tokens)
        ),
    };
    let words = format!(
        "{whole}: {} {}, {fixed}. {}",
        counted(in_use.messages, "message", "messages"),
        thousands(in_use.part(in_use.message_tokens)),
        situation.words()
    );
    out.push_str(&indented(&words, width));
    out
}

fn tokens(total: &UsageTotal, width: usize) -> String {
    let mut remarks = Vec::new();
    if total.failed > 0 {
        remarks.push(format!("{} failed", thousands(total.failed)));
    }
    if total.estimated > 0 {
        remarks.push(format!("{} with estimated tokens", thousands(total.estimated)));
    }
    let remarks = if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) };
    let heading = format!("Tokens of {}{remarks}", counted(total.calls, "call", "calls"));
    let usage = &total.usage;
    let prompt = usage.prompt();
    let mark = if total.estimated > 0 { "~" } else { "" };
    let mut table = TextTable::new(&[("bucket", Side::Left), ("tokens", Side::Right), ("", Side::Left)]);
    let mut row = |name: &str, tokens: u64, remark: String| {
        table.row([name.to_owned(), format!("{mark}{}", thousands(tokens)), remark]);
    };
    let of_prompt = |tokens: u64| format!("{} of the prompt", percent(tokens, prompt));
    row("input", usage.input, of_prompt(usage.input));
    row("cache read", usage.cache_read, of_prompt(usage.cache_read));
    row("cache write", usage.cache_write, of_prompt(usage.cache_write));
    row("prompt", prompt, "the three together".to_owned());
    let reasoning = if usage.reasoning > 0 {
        format!("{} of it reasoning", thousands(usage.reasoning))
    } else {
        String::new()
    };
    row("output", usage.output, reasoning);
    row("total", usage.total(), String::new());
    format!("{}\n{}", heading.bold(), table.render(width, INDENT))
}

/// The cost, and the savings by the cache. `by_model` contains the same calls by model.
pub(crate) fn cost_lines(total: &UsageTotal, by_model: &[UsageTotal]) -> Vec<String> {
    let priced = total.calls.saturating_sub(total.unpriced);
    let mut lines = Vec::new();
    if priced == 0 {
        lines.push(match by_model.iter().any(|model| has_list_price(&model.group)) {
            true => "unknown: the price list has these models, but not for the endpoint used".to_owned(),
            false => "unknown: the price list does not have these models".to_owned(),
        });
        return lines;
    }
    lines.push(format!("{} for {}", dollars(total.cost_micro_usd), counted(priced, "call", "calls")));
    if total.unpriced > 0 {
        lines.push(format!(
            "{} without a known price, not in the sum",
            counted(total.unpriced, "call", "calls")
        ));
    }
    lines.extend(saving_words(total));
    lines
}

/// The cost of the same requests without Throughline, if it differs.
fn direct_words(savings: &SavingsTotal) -> Option<String> {
    let (direct, saved) = (savings.direct_micro_usd, savings.saved_micro_usd());
    let without = format!("sent directly, the same requests would have cost about {}", dollars(direct));
    let amount = dollars(saved.unsigned_abs());
    match saved {
        0 => None,
        1.. => Some(format!("{without}: {amount} saved (`throughline savings` has the parts)")),
        _ => Some(format!("{without}: {amount} less (`throughline savings` has the parts)")),
    }
}

/// Whether a model has a list price.
fn has_list_price(model: &str) -> bool {
    let usage = Usage { input: 1, output: 1, ..Usage::default() };
    let now = PricedCall { model, provider: "", at_ms: i64::MAX, usage, cache_write_1h: 0 };
    now.list_cost().micro_usd.is_some()
}

/// The savings by the cache. Writing to a cache that is never read costs more than no cache.
pub(crate) fn saving_words(total: &UsageTotal) -> Option<String> {
    let (paid, uncached) = (total.cost_micro_usd, total.uncached_micro_usd);
    if uncached == 0 || uncached == paid {
        return None;
    }
    let without = format!("without a cache the same calls would have cost {}", dollars(uncached));
    Some(if uncached > paid {
        let saved = uncached - paid;
        format!("{without}: the cache saved {} ({})", dollars(saved), percent(saved, uncached))
    } else {
        format!("{without}: the cache cost {} more than it saved", dollars(paid - uncached))
    })
}

/// A table of groups of calls, the most expensive first.
pub(crate) fn groups(name: &str, totals: &[UsageTotal]) -> TextTable {
    let mut table = TextTable::new(&[
        (name, Side::Left),
        ("calls", Side::Right),
        ("prompt", Side::Right),
        ("cached", Side::Right),
        ("output", Side::Right),
        ("cost", Side::Right),
    ]);
    for total in sorted(totals) {
        table.row([
            shorten(&group_name(&total.group), MAX_NAME_COLUMNS),
            thousands(total.calls),
            rounded(total.usage.prompt()),
            percent(total.usage.cache_read, total.usage.prompt()),
            rounded(total.usage.output),
            cost_words(total.cost_micro_usd, total.calls, total.unpriced),
        ]);
    }
    table
}

/// Sorts groups by cost, then by tokens, in descending order.
pub(crate) fn sorted(totals: &[UsageTotal]) -> Vec<&UsageTotal> {
    let mut totals: Vec<&UsageTotal> = totals.iter().collect();
    totals.sort_by_key(|total| std::cmp::Reverse((total.cost_micro_usd, total.usage.total(), total.calls)));
    totals
}

/// The display name of a group.
pub(crate) fn group_name(group: &str) -> String {
    if group.is_empty() { "(unknown)".to_owned() } else { on_one_line(group) }
}

fn indented(words: &str, width: usize) -> String {
    wrap(words, width.saturating_sub(INDENT), 0)
        .lines()
        .map(|line| format!("{:INDENT$}{line}\n", ""))
        .collect()
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
