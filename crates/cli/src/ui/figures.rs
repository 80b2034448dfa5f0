//! Figures for people: money, rounded counts, bars and sparklines. All of them are readable without colour.

use crate::ui::text::thousands;

/// Eighths of a cell, from empty to full.
const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// Levels of a sparkline, from low to high.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The character for no value.
const NOTHING: char = '·';

/// Formats dollars from millionths: two decimals from one cent on, below that as many as the first significant digit needs.
pub(crate) fn dollars(micro_usd: u64) -> String {
    match micro_usd {
        0 => "$0".to_owned(),
        1..100 => "<$0.0001".to_owned(),
        100..10_000 => format!("${:.4}", micro_usd as f64 / 1e6),
        _ => {
            let cents = micro_usd.saturating_add(5_000) / 10_000;
            format!("${}.{:02}", thousands(cents / 100), cents % 100)
        }
    }
}

/// Formats an amount that may be negative.
pub(crate) fn signed_dollars(micro_usd: i64) -> String {
    let amount = dollars(micro_usd.unsigned_abs());
    if micro_usd < 0 { format!("-{amount}") } else { amount }
}

/// Formats a cost: `$1.20`, `$1.20+` if some calls have no price, `?` if none has.
pub(crate) fn cost_words(micro_usd: u64, calls: u64, unpriced: u64) -> String {
    if calls == 0 {
        "-".to_owned()
    } else if unpriced >= calls {
        "?".to_owned()
    } else if unpriced > 0 {
        format!("{}+", dollars(micro_usd))
    } else {
        dollars(micro_usd)
    }
}

/// Formats a count in at most five columns: `999`, `1.2k`, `182k`, `1.2M`.
pub(crate) fn rounded(count: u64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let suffix = UNITS.get(unit).copied().unwrap_or_default();
    if unit == 0 {
        count.to_string()
    } else if value < 9.95 {
        format!("{value:.1}{suffix}")
    } else {
        format!("{value:.0}{suffix}")
    }
}

/// Draws a bar of at most `cells` cells; the largest value fills them, and any value above zero is visible.
pub(crate) fn bar(value: u64, largest: u64, cells: usize) -> String {
    if value == 0 || largest == 0 || cells == 0 {
        return String::new();
    }
    let eighths = (value as f64 / largest as f64 * cells as f64 * 8.0).round() as usize;
    let eighths = eighths.clamp(1, cells.saturating_mul(8));
    let mut out = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        out.extend(EIGHTHS.get(eighths % 8));
    }
    out
}

/// Draws values as a sparkline, one cell each.
pub(crate) fn sparkline(values: &[u64]) -> String {
    let largest = values.iter().copied().max().unwrap_or(0);
    let cell = |value: &u64| {
        if *value == 0 {
            return NOTHING;
        }
        let level = (*value as f64 / largest as f64 * LEVELS.len() as f64).ceil() as usize;
        LEVELS.get(level.clamp(1, LEVELS.len()) - 1).copied().unwrap_or(NOTHING)
    };
    values.iter().map(cell).collect()
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
