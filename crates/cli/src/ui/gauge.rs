//! The gauge: the fill of a window, with the threshold marked. It is readable without colour.

use std::fmt::Write as _;

use owo_colors::OwoColorize;

use crate::ui::text::{columns, percent, shorten, thousands, wrap};

/// The widest bar, in cells.
const MAX_CELLS: usize = 48;
/// The narrowest bar, in cells, in which the threshold is visible.
const MIN_CELLS: usize = 16;

const FULL: char = '█';
const FREE: char = '░';
const MARK: char = '┃';

/// The values of a gauge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gauge {
    pub(crate) tokens: u64,
    pub(crate) window_tokens: u64,
    pub(crate) threshold_tokens: u64,
}

impl Gauge {
    /// Draws the bar alone, `cells` wide. The threshold is marked at the cell where compaction starts.
    pub(crate) fn bar(self, cells: usize) -> String {
        let full = self.cell_of(self.tokens, cells).max(usize::from(self.tokens > 0));
        let mark = self.cell_of(self.threshold_tokens, cells).min(cells.saturating_sub(1));
        let over = self.tokens >= self.threshold_tokens;
        let mut bar = String::new();
        for cell in 0..cells {
            let c = if cell == mark {
                MARK
            } else if cell < full {
                FULL
            } else {
                FREE
            };
            match c {
                FULL if self.tokens > self.window_tokens => bar.push_str(&c.red().to_string()),
                FULL if over => bar.push_str(&c.yellow().to_string()),
                FULL => bar.push_str(&c.green().to_string()),
                MARK => bar.push(c),
                _ => bar.push_str(&c.dimmed().to_string()),
            }
        }
        bar
    }

    fn cell_of(self, tokens: u64, cells: usize) -> usize {
        if self.window_tokens == 0 {
            return cells;
        }
        let share = tokens as f64 / self.window_tokens as f64;
        ((share * cells as f64).round() as usize).min(cells)
    }
}

/// Formats gauges below each other, with aligned labels and figures, in at most `width` columns.
pub(crate) fn gauge_lines(gauges: &[(&str, Gauge)], width: usize) -> String {
    let label_columns = gauges.iter().map(|(label, _)| columns(label)).max().unwrap_or(0);
    let figures: Vec<[String; 3]> = gauges
        .iter()
        .map(|(_, gauge)| {
            let Gauge { tokens, window_tokens, .. } = *gauge;
            [thousands(tokens), thousands(window_tokens), percent(tokens, window_tokens)]
        })
        .collect();
    let widest =
        |at: usize| figures.iter().map(|row| row.get(at).map_or(0, |text| columns(text))).max().unwrap_or(0);
    let (tokens_columns, percent_columns) = (widest(0), widest(2));
    let taken = label_columns
        + 2
        + 2
        + tokens_columns
        + " of ".len()
        + widest(1)
        + " tokens, ".len()
        + percent_columns;
    let mut out = String::new();
    let room = width.saturating_sub(taken);
    if room < MIN_CELLS {
        for ((label, gauge), [tokens, window, percent]) in gauges.iter().zip(&figures) {
            out.push_str(&narrow(label, *gauge, &format!("{tokens} of {window} tokens, {percent}"), width));
        }
        return out;
    }
    let cells = room.min(MAX_CELLS);
    for ((label, gauge), [tokens, window, percent]) in gauges.iter().zip(&figures) {
        let bar = gauge.bar(cells);
        let _ = writeln!(
            out,
            "{label:label_columns$}  {bar}  {tokens:>tokens_columns$} of {window} tokens, {percent:>percent_columns$}"
        );
    }
    out
}

/// Formats a gauge whose bar and figures do not fit on one line: the label, the bar and the figures on separate lines.
fn narrow(label: &str, gauge: Gauge, figures: &str, width: usize) -> String {
    let indent = columns(label) - columns(label.trim_start());
    let room = width.saturating_sub(indent).max(1);
    let mut out = format!("{}\n", shorten(label, width));
    let _ = writeln!(out, "{:indent$}{}", "", gauge.bar(room.min(MAX_CELLS)));
    for line in wrap(figures, room, 0).lines() {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
    out
}

#[cfg(test)]
#[path = "gauge_tests.rs"]
mod tests;
