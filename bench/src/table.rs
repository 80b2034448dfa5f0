//! Tables of figures with their limits; the figures of several subjects in columns, as text or as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// A line of a table.
struct Line {
    what: String,
    target: Option<String>,
    measured: String,
    value: Option<f64>,
    holds: Option<bool>,
}

/// The lines of a benchmark, each with its target if it has one.
#[derive(Default)]
pub(crate) struct Table {
    lines: Vec<Line>,
}

impl Table {
    pub(crate) fn note(&mut self, what: impl Into<String>, measured: String) {
        self.lines.push(Line { what: what.into(), target: None, measured, value: None, holds: None });
    }

    pub(crate) fn at_most(&mut self, what: impl Into<String>, value: f64, limit: f64, unit: &str) {
        self.lines.push(Line {
            what: what.into(),
            target: Some(format!("<= {limit} {unit}")),
            measured: format!("{value:.2} {unit}"),
            value: Some(value),
            holds: Some(value <= limit),
        });
    }

    pub(crate) fn at_least(&mut self, what: impl Into<String>, value: f64, limit: f64, unit: &str) {
        self.lines.push(Line {
            what: what.into(),
            target: Some(format!(">= {limit} {unit}")),
            measured: format!("{value:.0} {unit}"),
            value: Some(value),
            holds: Some(value >= limit),
        });
    }

    pub(crate) fn print(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{:<52} {:>18} {:>26}", "", "target", "measured");
        for line in &self.lines {
            let target = line.target.as_deref().unwrap_or_default();
            let _ =
                writeln!(out, "{:<52} {target:>18} {:>26}{}", line.what, line.measured, verdict(line.holds));
        }
        out
    }

    /// Formats this table with the figures of another subject in a column before its own. The targets are those of this table.
    pub(crate) fn print_beside(&self, name: &str, other: &Self, other_name: &str) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{:<40} {:>36} {:>20} {:>36}", "", other_name, "target", name);
        for (at, line) in self.lines.iter().enumerate() {
            let target = line.target.as_deref().unwrap_or_default();
            // Lines below different headings may have the same text.
            let before = self.lines.iter().take(at).filter(|other| other.what == line.what).count();
            let theirs = other.lines.iter().filter(|other| other.what == line.what).nth(before);
            let theirs = theirs.map(|other| other.measured.as_str()).unwrap_or_default();
            let _ = writeln!(
                out,
                "{:<40} {theirs:>36} {target:>20} {:>36}{}",
                line.what,
                line.measured,
                verdict(line.holds)
            );
        }
        out
    }

    pub(crate) fn json(&self) -> Value {
        let lines = self.lines.iter().map(|line| {
            json!({
                "what": line.what.trim(),
                "measured": line.measured,
                "value": line.value,
                "target": line.target,
                "holds": line.holds,
            })
        });
        lines.collect()
    }
}

fn verdict(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "  holds",
        Some(false) => "  MISSED",
        None => "",
    }
}
