//! The output of `import`: a progress line, and totals by program at the end.

use std::collections::BTreeMap;

use owo_colors::OwoColorize;
use serde::Serialize;
use throughline_store::{FileOutcome, ImportCounts, ImportEvent, ImportReport};

use crate::app::App;
use crate::error::path_words;
use crate::ui::progress::ProgressLine;
use crate::ui::table::{Side, TextTable};
use crate::ui::text::{columns, counted, shorten, thousands};

const INDENT: usize = 2;
/// Shows the progress of an import in a line that is redrawn.
pub(crate) struct ImportProgress<'a> {
    line: ProgressLine<'a>,
    width: usize,
    number: usize,
    of: usize,
    path: String,
}

impl<'a> ImportProgress<'a> {
    pub(crate) fn new(app: &'a App) -> Self {
        Self { line: ProgressLine::new(app), width: app.width, number: 0, of: 0, path: String::new() }
    }

    pub(crate) fn follow(&mut self, event: &ImportEvent<'_>) {
        let inside = match event {
            ImportEvent::Listed { files } => {
                self.of = *files;
                String::new()
            }
            ImportEvent::Began { path, number, of } => {
                (self.number, self.of) = (*number, *of);
                self.path = path_words(path);
                String::new()
            }
            ImportEvent::Recorded { conversations, of } => {
                format!(" ({} of {})", thousands(*conversations as u64), thousands(*of as u64))
            }
            ImportEvent::Ended(_) => return,
        };
        if self.line.is_due() {
            self.line.show(&progress_line(self.number, self.of, &self.path, &inside, self.width));
        }
    }

    /// Clears the line.
    pub(crate) fn end(&mut self) {
        self.line.end();
    }
}

/// Formats the progress, with the end of the path that is being read.
fn progress_line(number: usize, of: usize, path: &str, inside: &str, width: usize) -> String {
    let lead = format!("{} of {}{inside}  ", thousands(number as u64), thousands(of as u64));
    // A line of the full width would wrap.
    let room = width.saturating_sub(columns(&lead) + 1);
    let count = path.chars().count();
    let path = if columns(path) <= room {
        path.to_owned()
    } else {
        let tail: String = path.chars().skip(count.saturating_sub(room.saturating_sub(1) / 2 * 2)).collect();
        format!("…{tail}")
    };
    shorten(&format!("{lead}{path}"), width.saturating_sub(1))
}

/// The totals of one program.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct ProgramSums {
    files: u64,
    skipped: u64,
    failed: u64,
    #[serde(flatten)]
    counts: ImportCounts,
}

/// Sums by program; files of unknown programs are summed under their own name.
pub(crate) fn by_program(report: &ImportReport) -> BTreeMap<String, ProgramSums> {
    let mut sums: BTreeMap<String, ProgramSums> = BTreeMap::new();
    for file in &report.files {
        let sum = sums.entry(file.program.unwrap_or("unknown").to_owned()).or_default();
        match &file.outcome {
            FileOutcome::Imported => sum.files += 1,
            FileOutcome::Skipped(_) => sum.skipped += 1,
            FileOutcome::Failed(_) => sum.failed += 1,
        }
        sum.counts += file.counts;
    }
    sums
}

/// Formats the totals.
pub(crate) fn render(report: &ImportReport, width: usize) -> String {
    let totals = report.totals();
    let mut out = String::new();
    let title = if totals.messages == 0 && totals.calls == 0 {
        format!("Nothing new in {}", counted(report.files.len() as u64, "file", "files"))
    } else {
        format!(
            "Recorded {} and {} from {}",
            counted(totals.messages, "message", "messages"),
            counted(totals.calls, "call", "calls"),
            counted(report.files.len() as u64, "file", "files")
        )
    };
    out.push_str(&format!("{}\n", title.bold()));
    let mut table = TextTable::new(&[
        ("program", Side::Left),
        ("files", Side::Right),
        ("new", Side::Right),
        ("grown", Side::Right),
        ("branched", Side::Right),
        ("unchanged", Side::Right),
        ("messages", Side::Right),
        ("calls", Side::Right),
    ]);
    let sums = by_program(report);
    for (program, sum) in sums.iter().filter(|(_, sum)| sum.files + sum.failed > 0) {
        table.row([
            program.clone(),
            thousands(sum.files + sum.failed),
            thousands(sum.counts.new),
            thousands(sum.counts.grown),
            thousands(sum.counts.branched),
            thousands(sum.counts.unchanged),
            thousands(sum.counts.messages),
            thousands(sum.counts.calls),
        ]);
    }
    if !table.is_empty() {
        out.push_str(&table.render(width, INDENT));
    }
    let skipped = report.skipped() as u64;
    if skipped > 0 {
        out.push_str(&format!(
            "{:INDENT$}{} contained no conversation\n",
            "",
            counted(skipped, "file", "files")
        ));
    }
    if totals.held_back > 0 {
        out.push_str(&format!(
            "{:INDENT$}{} of answers still being written left for the next import\n",
            "",
            counted(totals.held_back, "message", "messages")
        ));
    }
    out
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
