//! The output of `savings` for people.

use std::fmt::Write as _;

use owo_colors::OwoColorize;
use throughline_store::{Savings, SavingsTotal, Session};
use throughline_tokens::Cost;

use crate::ui::figures::{dollars, rounded, signed_dollars};
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{counted, on_one_line, percent, shorten, thousands, wrap};

const INDENT: usize = 2;
/// The widest column of names.
const MAX_NAME_COLUMNS: usize = 28;
/// The most days that are listed; `--json` has all.
const DAYS_SHOWN: usize = 14;

/// Formats the page.
pub(super) fn render(session: Option<&Session>, savings: &Savings, width: usize) -> String {
    let mut out = String::new();
    let name = session.and_then(|session| session.title.clone().or_else(|| Some(session.id.to_string())));
    let title = name.map_or_else(|| "Everything recorded".to_owned(), |name| on_one_line(&name));
    let _ = writeln!(out, "{}\n", shorten(&title, width).bold());
    let total = &savings.total;
    if total.calls == 0 {
        out.push_str("No calls are recorded.\n");
        return out;
    }
    out.push_str(&sums(total).render(width, INDENT));
    for (name, groups) in [
        ("day", &savings.by_day),
        ("model", &savings.by_model),
        ("program", &savings.by_program),
        ("access token", &savings.by_access_token),
    ] {
        if groups.len() > 1 {
            let newest = groups.len().saturating_sub(if name == "day" { DAYS_SHOWN } else { groups.len() });
            let shown = groups.get(newest..).unwrap_or_default();
            let _ = write!(
                out,
                "\n{}\n{}",
                format!("By {name}").bold(),
                table(name, shown).render(width, INDENT)
            );
        }
    }
    out.push('\n');
    for line in remarks(total) {
        for line in wrap(&line, width.saturating_sub(INDENT), 0).lines() {
            let _ = writeln!(out, "{:INDENT$}{line}", "");
        }
    }
    out
}

fn sums(total: &SavingsTotal) -> TextTable {
    let mut table = TextTable::new(&[("", Side::Left), ("", Side::Right), ("", Side::Right)]);
    let paid = if total.direct_micro_usd > 0 {
        percent(total.paid_micro_usd, total.direct_micro_usd)
    } else {
        String::new()
    };
    table.row(["directly, by estimate".to_owned(), dollars(total.direct_micro_usd), String::new()]);
    table.row(["paid".to_owned(), dollars(total.paid_micro_usd), paid]);
    table.row(["saved".to_owned(), signed_dollars(total.saved_micro_usd()), String::new()]);
    for (name, amount) in [
        ("  by compaction", total.compaction_micro_usd),
        ("  by shorter tool results", total.tool_results_micro_usd),
        ("  paid for notes by a model", total.notes_micro_usd),
    ] {
        if amount != 0 {
            table.row([name.to_owned(), signed_dollars(amount), String::new()]);
        }
    }
    table.row(["prompt tokens not sent".to_owned(), rounded(total.tokens_left_out), String::new()]);
    table
}

fn table(name: &str, groups: &[SavingsTotal]) -> TextTable {
    let mut table = TextTable::new(&[
        (name, Side::Left),
        ("calls", Side::Right),
        ("directly", Side::Right),
        ("paid", Side::Right),
        ("saved", Side::Right),
    ]);
    for group in groups {
        table.row([
            match group.group.as_str() {
                "" => "(none)".to_owned(),
                name => shorten(&on_one_line(name), MAX_NAME_COLUMNS),
            },
            thousands(group.calls),
            dollars(group.direct_micro_usd),
            dollars(group.paid_micro_usd),
            signed_dollars(group.saved_micro_usd()),
        ]);
    }
    table
}

/// Remarks on the reliability of the figures.
fn remarks(total: &SavingsTotal) -> Vec<String> {
    let mut remarks = vec![format!(
        "{}; the direct cost of {} of them is estimated, of the others it is what was paid. List prices as of {}.",
        counted(total.calls, "call", "calls"),
        thousands(total.estimated),
        Cost::prices_as_of(),
    )];
    if total.beyond_window > 0 {
        remarks.push(format!(
            "{} would not have fit the window and counted with the window.",
            counted(total.beyond_window, "request", "requests")
        ));
    }
    if total.unpriced > 0 {
        remarks.push(format!(
            "{} without a price {} in none of the amounts.",
            counted(total.unpriced, "call", "calls"),
            if total.unpriced == 1 { "is" } else { "are" }
        ));
    }
    remarks
}
