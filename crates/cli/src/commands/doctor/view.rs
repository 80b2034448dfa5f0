//! The output of `doctor` for people: each finding, its meaning and the remedy.

use std::fmt::Write as _;
use std::path::Path;

use owo_colors::OwoColorize;
use throughline_store::{Depth, Diagnosis, RecordProblem, Remedy, RepairReport, Severity};

use crate::error::path_words;
use crate::ui::text::{bytes_words, counted, on_one_line, shorten, thousands, wrap};

/// The width of the severity labels, in columns.
const LABEL_COLUMNS: usize = 9;
/// The most objects that are named for a finding.
const MAX_NAMED: usize = 5;

/// Formats the result of a check.
pub(crate) fn diagnosis(diagnosis: &Diagnosis, path: &Path, depth: Depth, width: usize) -> String {
    let mut out = String::new();
    if let [RecordProblem::NoRecord { .. }] = diagnosis.findings.as_slice() {
        let _ = writeln!(out, "There is no record yet: {}", path_words(path));
        return out;
    }
    // A record of another version was recognised but not checked, so nothing is said about its state.
    if let [RecordProblem::OldSchema { .. } | RecordProblem::FutureSchema { .. }] =
        diagnosis.findings.as_slice()
    {
        title(&mut out, &format!("The record is of another version: {}", path_words(path)), width);
        findings(&mut out, &diagnosis.findings, width);
        return out;
    }
    let worst = diagnosis.findings.iter().map(RecordProblem::severity).max();
    let verdict = match worst {
        None => "The record is healthy".to_owned(),
        Some(Severity::Notice) => "The record is healthy, with something to note".to_owned(),
        Some(_) => "The record has problems".to_owned(),
    };
    title(&mut out, &format!("{verdict}: {}", path_words(path)), width);
    let looked = match depth {
        Depth::Quick => "messages and artifacts were not read",
        Depth::Thorough if worst == Some(Severity::Serious) => "read as far as that is possible",
        Depth::Thorough => "every one was read and compared with its hash",
    };
    let figures = format!(
        "{}, {}, {}, {} on disk; {looked}",
        counted(diagnosis.sessions, "session", "sessions"),
        counted(diagnosis.messages, "message", "messages"),
        counted(diagnosis.artifacts, "artifact", "artifacts"),
        bytes_words(diagnosis.database_bytes),
    );
    for line in wrap(&figures, width.saturating_sub(2), 0).lines() {
        let _ = writeln!(out, "  {line}");
    }
    findings(&mut out, &diagnosis.findings, width);
    out
}

/// Formats the result of a repair.
pub(crate) fn mended(report: &RepairReport, path: &Path, width: usize) -> String {
    let mut out = String::new();
    let words = |findings: &[RecordProblem]| findings.iter().map(ToString::to_string).collect::<Vec<_>>();
    let after = words(&report.after);
    let gone: Vec<&RecordProblem> =
        report.before.iter().filter(|finding| !after.contains(&finding.to_string())).collect();
    if gone.is_empty() && report.backup.is_none() {
        let verdict =
            if report.after.is_empty() { "Nothing to repair" } else { "Nothing here can be repaired" };
        title(&mut out, &format!("{verdict}: {}", path_words(path)), width);
        findings(&mut out, &report.after, width);
        return out;
    }
    title(
        &mut out,
        &format!("Repaired {}: {}", counted(gone.len() as u64, "thing", "things"), path_words(path)),
        width,
    );
    let before = report.backup.as_ref().map(|backup| format!("as it was before: {}", path_words(backup)));
    let before = before.map(|words| wrap(&words, width.saturating_sub(2), 2)).unwrap_or_default();
    for line in before.lines() {
        let _ = writeln!(out, "  {line}");
    }
    for finding in gone {
        labelled(
            &mut out,
            &"mended".green().to_string(),
            "mended",
            &on_one_line(&finding.to_string()),
            width,
        );
        if let Remedy::Mend(how) = finding.remedy() {
            labelled(&mut out, "", "", how, width);
        }
    }
    if let Some(salvaged) = &report.salvaged {
        let tables: Vec<String> = salvaged
            .tables
            .iter()
            .map(|table| {
                let losses = if table.has_losses { ", some lost" } else { "" };
                format!("{} {}{losses}", table.name, thousands(table.rows))
            })
            .collect();
        let words = format!("rows copied into a new database: {}", tables.join("; "));
        labelled(&mut out, &"saved".green().to_string(), "saved", &words, width);
        labelled(&mut out, "", "", &format!("the damaged file: {}", path_words(&salvaged.damaged)), width);
    }
    if !report.after.is_empty() {
        out.push('\n');
        out.push_str(&format!("{}\n", "Left as it is".bold()));
        findings(&mut out, &report.after, width);
    }
    out
}

fn title(out: &mut String, words: &str, width: usize) {
    let _ = writeln!(out, "{}", wrap(words, width, 2).trim_end().bold());
}

fn findings(out: &mut String, findings: &[RecordProblem], width: usize) {
    for finding in findings {
        out.push('\n');
        let (label, styled) = match finding.severity() {
            Severity::Serious => ("serious", "serious".red().bold().to_string()),
            Severity::Warning => ("warning", "warning".yellow().bold().to_string()),
            Severity::Notice => ("notice", "notice".cyan().bold().to_string()),
        };
        labelled(out, &styled, label, &on_one_line(&finding.to_string()), width);
        labelled(out, "", "", finding.meaning(), width);
        let remedy = match finding.remedy() {
            Remedy::Mend(how) => format!("with --fix: {how}"),
            Remedy::ByHand(how) => format!("by hand: {how}"),
            Remedy::Nothing(why) => why.to_owned(),
        };
        labelled(out, "", "", &remedy, width);
        let names = names(finding);
        for name in names.iter().take(MAX_NAMED) {
            let name = shorten(&on_one_line(name), width.saturating_sub(LABEL_COLUMNS + 2));
            let _ = writeln!(out, "{:LABEL_COLUMNS$}- {name}", "");
        }
        if names.len() > MAX_NAMED {
            let _ = writeln!(out, "{:LABEL_COLUMNS$}and more; --json names them", "");
        }
    }
}

/// Writes a label and its text, with further lines aligned below the first.
fn labelled(out: &mut String, styled: &str, label: &str, text: &str, width: usize) {
    for (index, line) in wrap(text, width.saturating_sub(LABEL_COLUMNS), 0).lines().enumerate() {
        if index == 0 && !label.is_empty() {
            let space = LABEL_COLUMNS.saturating_sub(label.len());
            let _ = writeln!(out, "{styled}{:space$}{line}", "");
        } else {
            let _ = writeln!(out, "{:LABEL_COLUMNS$}{line}", "");
        }
    }
}

/// The names of the objects that a finding concerns.
fn names(finding: &RecordProblem) -> Vec<String> {
    match finding {
        RecordProblem::Damage { problems } => problems.clone(),
        RecordProblem::OpenToOthers { paths, .. }
        | RecordProblem::AbandonedFiles { paths }
        | RecordProblem::StrangeFiles { paths } => paths.iter().map(|path| path_words(path)).collect(),
        RecordProblem::LostArtifacts { artifacts, .. } => artifacts
            .iter()
            .map(|lost| {
                format!("{} is {}, {}", lost.id, lost.problem, counted(lost.messages, "message", "messages"))
            })
            .collect(),
        RecordProblem::OrphanedArtifacts { artifacts, .. } => {
            artifacts.iter().map(ToString::to_string).collect()
        }
        RecordProblem::DeadEnds { sessions, .. }
        | RecordProblem::LostParents { sessions, .. }
        | RecordProblem::WrongLinks { sessions, .. }
        | RecordProblem::BrokenViews { sessions, .. }
        | RecordProblem::WrongCounters { sessions, .. }
        | RecordProblem::LostMessages { sessions, .. }
        | RecordProblem::DoubledMessages { sessions, .. } => {
            sessions.iter().map(ToString::to_string).collect()
        }
        RecordProblem::UnreadableMessages { places, .. } => {
            places.iter().map(|place| format!("message {} of {}", place.seq, place.session)).collect()
        }
        RecordProblem::StaleLocks { locks } => locks.iter().map(|lock| lock.holder.to_string()).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
