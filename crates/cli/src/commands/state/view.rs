//! The output of `state` for people: entries by kind, each with its name, status and messages.

use std::fmt::Write as _;

use owo_colors::OwoColorize;
use throughline_compaction::{StateEntry, StateKind};
use throughline_engine::RecordedState;

use crate::ui::text::{columns, counted, shorten, wrap};

const INDENT: usize = 2;
/// The most open requests and items that a short summary names.
const MOST_NAMED: usize = 5;

/// Whether an entry is shown for these kinds; with `only_open`, only if it is open.
pub(super) fn is_shown(entry: &StateEntry, kinds: &[StateKind], only_open: bool) -> bool {
    (kinds.is_empty() || kinds.contains(&entry.kind)) && (!only_open || is_open(entry))
}

/// Whether an entry is still to be done or to be observed.
fn is_open(entry: &StateEntry) -> bool {
    entry.kind == StateKind::Constraint || matches!(entry.status, Some("open" | "in progress"))
}

fn heading(kind: StateKind) -> &'static str {
    match kind {
        StateKind::Request => "Requests",
        StateKind::Report => "Reports",
        StateKind::Todo => "To-do items",
        StateKind::Decision => "Decisions",
        StateKind::Constraint => "Constraints",
        StateKind::Run => "Runs, the newest of each command",
        StateKind::Edit => "Edits",
        StateKind::Error => "Errors",
        StateKind::Entity => "Names",
    }
}

/// A text on one line: line breaks and indents become single spaces, other control characters are written out.
fn on_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    crate::ui::text::on_one_line(&words.join(" "))
}

/// The page with all entries.
pub(super) struct StatePage<'a> {
    pub(super) session: String,
    pub(super) state: &'a RecordedState,
    pub(super) kinds: &'a [StateKind],
    pub(super) only_open: bool,
    pub(super) full: bool,
    pub(super) width: usize,
}

impl StatePage<'_> {
    pub(super) fn render(&self) -> String {
        let entries = &self.state.entries;
        let shown: Vec<&StateEntry> =
            entries.iter().filter(|entry| is_shown(entry, self.kinds, self.only_open)).collect();
        let mut out = format!("{}\n", format!("State of {}", self.session).bold());
        let names = shown.iter().map(|entry| entry.id.len()).max().unwrap_or(0);
        let statuses = shown.iter().map(|entry| entry.status.map_or(0, str::len)).max().unwrap_or(0);
        for kind in StateKind::ALL {
            let of_kind: Vec<&&StateEntry> = shown.iter().filter(|entry| entry.kind == kind).collect();
            if of_kind.is_empty() {
                continue;
            }
            let _ = writeln!(out, "\n{}", heading(kind).bold());
            for entry in of_kind {
                let status = entry.status.unwrap_or_default();
                let lead = format!("{:INDENT$}{:<names$}  {status:<statuses$}  ", "", entry.id);
                let also: String =
                    entry.messages.iter().skip(1).map(|message| format!(" (#{message})")).collect();
                let text = format!("{}{also}", on_one_line(&entry.text));
                if self.full {
                    out.push_str(&wrap(&format!("{lead}{text}"), self.width, columns(&lead)));
                } else {
                    let _ = writeln!(out, "{}", shorten(&format!("{lead}{text}"), self.width));
                }
            }
        }
        if !self.state.corrections.is_empty() && self.kinds.is_empty() {
            let _ = writeln!(out, "\n{}", "Dropped; --restore ENTRY brings one back".bold());
            for correction in &self.state.corrections {
                let text = format!(
                    "{:INDENT$}{}  {}",
                    "",
                    on_one_line(&correction.entry),
                    on_one_line(&correction.text)
                );
                let _ = writeln!(out, "{}", shorten(&text, self.width));
            }
        }
        if let Some(notes) = self.state.notes.as_ref().filter(|_| self.kinds.is_empty()) {
            let _ = writeln!(out, "\n{}", "After the last compaction".bold());
            out.push_str(&indented(&notes.to_string(), self.width));
        }
        out
    }
}

/// The state in a few lines, for other pages: what is open, and what the last compaction kept.
pub(crate) fn summary_lines(state: &RecordedState, width: usize) -> String {
    let count = |kind: StateKind| {
        state.entries.iter().filter(|entry| entry.kind == kind && is_open(entry)).count() as u64
    };
    let decisions = state.entries.iter().filter(|entry| entry.kind == StateKind::Decision).count() as u64;
    let mut out = format!(
        "state: {}, {}, {}, {}, {}\n",
        counted(count(StateKind::Request), "open request", "open requests"),
        counted(count(StateKind::Todo), "open item", "open items"),
        counted(count(StateKind::Error), "open error", "open errors"),
        counted(count(StateKind::Constraint), "constraint", "constraints"),
        counted(decisions, "decision", "decisions"),
    );
    let named = |entry: &&StateEntry| {
        matches!(entry.kind, StateKind::Request | StateKind::Todo | StateKind::Error) && is_open(entry)
    };
    for entry in state.entries.iter().filter(named).take(MOST_NAMED) {
        let line = format!("{:INDENT$}{}  {}", "", entry.id, on_one_line(&entry.text));
        let _ = writeln!(out, "{}", shorten(&line, width));
    }
    if let Some(notes) = &state.notes {
        out.push_str("after the last compaction\n");
        out.push_str(&indented(&notes.to_string(), width));
    }
    out
}

fn indented(words: &str, width: usize) -> String {
    let wrapped = wrap(words, width.saturating_sub(INDENT), 0);
    wrapped.lines().map(|line| format!("{:INDENT$}{line}\n", "")).collect()
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
