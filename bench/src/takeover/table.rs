//! The tables: sums over sessions, by row and column.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::score::Row;

/// The columns in the order of output; those of our own notes come before them.
const COLUMNS: [&str; 7] = ["client", "dialogue", "list", "prototype", "hermes", "model", "merged"];
/// The widths of names and of figures.
const NAME_WIDTH: usize = 40;
const FIGURE_WIDTH: usize = 16;

/// The sums over sessions.
#[derive(Default)]
pub(super) struct Tables {
    rows: Vec<(&'static str, Vec<Sum>)>,
    sizes: Vec<Sum>,
    views: Vec<(ViewRow, usize)>,
    sessions: Vec<(String, String, usize, usize)>,
}

/// The sum of one column.
struct Sum {
    column: String,
    hits: usize,
    of: usize,
}

/// A whole view of one session.
pub(super) struct ViewRow {
    pub(super) name: String,
    pub(super) tokens: usize,
    pub(super) hits: usize,
    pub(super) probes: usize,
}

fn add_to(sums: &mut Vec<Sum>, column: &str, hits: usize, of: usize) {
    match sums.iter_mut().find(|sum| sum.column == column) {
        Some(sum) => {
            sum.hits += hits;
            sum.of += of;
        }
        None => sums.push(Sum { column: column.to_owned(), hits, of }),
    }
}

impl Tables {
    /// Adds the scores of a session's notes.
    pub(super) fn add(&mut self, session: &str, column: &str, tokens: usize, rows: &[Row]) {
        add_to(&mut self.sizes, column, tokens, 1);
        for (name, hits, of) in rows {
            if *name == "probes answered by the notes" {
                self.sessions.push((session.to_owned(), column.to_owned(), *hits, *of));
            }
            let at = self.rows.iter().position(|row| row.0 == *name).unwrap_or_else(|| {
                self.rows.push((name, Vec::new()));
                self.rows.len() - 1
            });
            if let Some((_, sums)) = self.rows.get_mut(at) {
                add_to(sums, column, *hits, *of);
            }
        }
    }

    /// Adds a whole view of a session.
    pub(super) fn add_view(&mut self, row: ViewRow) {
        match self.views.iter_mut().find(|(known, _)| known.name == row.name) {
            Some((known, sessions)) => {
                known.tokens += row.tokens;
                known.hits += row.hits;
                known.probes += row.probes;
                *sessions += 1;
            }
            None => self.views.push((row, 1)),
        }
    }

    fn columns(&self) -> Vec<&str> {
        let named = |column: &&str| COLUMNS.contains(column);
        let all: Vec<&str> = self.sizes.iter().map(|sum| sum.column.as_str()).collect();
        let ours = all.iter().filter(|column| !named(column));
        let others = COLUMNS.iter().filter(|column| all.contains(column));
        ours.chain(others).copied().collect()
    }

    /// Formats the tables.
    pub(super) fn print(&self) -> String {
        let columns = self.columns();
        let mut out = format!("{:NAME_WIDTH$}", "percent (of so many)");
        columns.iter().for_each(|column| {
            let _ = write!(out, "{column:>FIGURE_WIDTH$}");
        });
        let _ = write!(out, "\n{:NAME_WIDTH$}", "tokens of the notes, mean");
        for column in &columns {
            let mean =
                self.sizes.iter().find(|sum| sum.column == *column).map_or(0, |sum| sum.hits / sum.of.max(1));
            let _ = write!(out, "{:>FIGURE_WIDTH$}", thousands(mean as u64));
        }
        out.push('\n');
        for (name, sums) in &self.rows {
            let _ = write!(out, "{name:NAME_WIDTH$}");
            for column in &columns {
                let figure = sums.iter().find(|sum| sum.column == *column);
                let figure = figure.map(|sum| format!("{:.1} ({:>6})", percent(sum.hits, sum.of), sum.of));
                let _ = write!(out, "{:>FIGURE_WIDTH$}", figure.unwrap_or_default());
            }
            out.push('\n');
        }
        let _ =
            writeln!(out, "\n{:NAME_WIDTH$}{:>10}{:>10}{:>10}", "whole view", "tokens", "probes", "sessions");
        for (row, sessions) in &self.views {
            let tokens = thousands((row.tokens / sessions) as u64);
            let probes = percent(row.hits, row.probes);
            let _ = writeln!(out, "{:NAME_WIDTH$}{tokens:>10}{probes:>10.1}{sessions:>10}", row.name);
        }
        let first = columns.first().copied().unwrap_or_default();
        let by_session = self.sessions.iter().filter(|(_, column, ..)| column == first);
        let by_session = by_session.map(|(session, _, hits, of)| format!("{session} {hits}/{of}"));
        let _ = writeln!(out, "\nprobes by session: {}", by_session.collect::<Vec<_>>().join(", "));
        out
    }

    /// The tables as JSON: `[hits, of]` for each row and column.
    pub(super) fn to_json(&self, floors: Option<Value>) -> String {
        let sums = |sums: &Vec<Sum>| -> Value {
            sums.iter()
                .map(|sum| (sum.column.clone(), json!([sum.hits, sum.of])))
                .collect::<Map<_, _>>()
                .into()
        };
        let notes: Map<String, Value> =
            self.rows.iter().map(|(name, row)| ((*name).to_owned(), sums(row))).collect();
        let views = self.views.iter().map(|(row, sessions)| {
            json!({ "view": row.name, "tokens": row.tokens / sessions, "sessions": sessions,
                    "probes": [row.hits, row.probes] })
        });
        let sessions = self.sessions.iter().map(|(session, column, hits, of)| {
            json!({ "session": session, "column": column, "probes": [hits, of] })
        });
        let sizes = self.sizes.iter().map(|sum| (sum.column.clone(), json!(sum.hits / sum.of.max(1))));
        json!({
            "notes": notes,
            "tokens": sizes.collect::<Map<_, _>>(),
            "views": views.collect::<Vec<_>>(),
            "sessions": sessions.collect::<Vec<_>>(),
            "floors": floors,
        })
        .to_string()
    }
}

fn percent(hits: usize, of: usize) -> f64 {
    100.0 * hits as f64 / of.max(1) as f64
}

/// Formats a number with commas.
pub(super) fn thousands(figure: u64) -> String {
    throughline_compaction::thousands(figure)
}
