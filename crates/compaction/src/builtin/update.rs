//! Carrying an earlier summary forward: what still holds stays, what is done moves.

use crate::document::{Entry, SummaryDocument};
use crate::sections::Section;

use super::files::Files;
use super::select::{Candidate, ESSENTIAL};

/// What happened to the earlier summary's open request since it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EarlierTask {
    /// It was the request the conversation went on with, and is still open.
    StillOpen,
    /// It was answered since.
    Fulfilled,
}

/// Candidates from an earlier summary. They keep their numbers and come before anything new.
pub(crate) fn carried(earlier: &SummaryDocument, task: EarlierTask, files: &Files<'_>) -> Vec<Candidate> {
    let mut out = Vec::new();
    for section in Section::ALL {
        let entries = earlier.entries(section);
        let count = entries.len().max(1) as f32;
        for (at, entry) in entries.iter().enumerate() {
            let age = at as f32 / count;
            let Some((section, value, text)) = carry(section, entry, age, task, files) else { continue };
            // Everything carried stands before everything new: orders of new entries start above.
            let order = u32::try_from(at).unwrap_or(u32::MAX);
            let mut candidate = Candidate::new(section, order, value, text);
            candidate.number = entry.number.filter(|_| section == Section::CompletedActions);
            out.push(candidate);
        }
    }
    out
}

fn carry(
    section: Section,
    entry: &Entry,
    age: f32,
    task: EarlierTask,
    files: &Files<'_>,
) -> Option<(Section, f32, String)> {
    let text = entry.text.clone();
    match section {
        // The present is described anew; only what is still true of the past is carried.
        Section::ActiveTask => match task {
            EarlierTask::StillOpen => None,
            EarlierTask::Fulfilled => Some((Section::ResolvedQuestions, 4.0, format!("{text}\n(done)"))),
        },
        Section::Goal => Some((section, ESSENTIAL + 20.0, text)),
        Section::Constraints => Some((section, ESSENTIAL + 30.0, text)),
        Section::CompletedActions => Some((section, 1.0 + 2.0 * age, text)),
        Section::ActiveState | Section::InProgress => None,
        Section::Blocked => Some((section, 3.0, text)),
        Section::KeyDecisions => Some((section, 5.0 + age, text)),
        Section::ResolvedQuestions => Some((section, 2.0 + age, text)),
        Section::PendingAsks => match task {
            EarlierTask::StillOpen => Some((section, ESSENTIAL, text)),
            EarlierTask::Fulfilled => Some((section, 8.0, text)),
        },
        Section::RelevantFiles => {
            // A file that was touched again is told anew, with what its old entry knew of its content.
            let path = path_of(&text);
            let again = path.is_some_and(|path| files.contains_key(path));
            (!again).then_some((section, 6.0 + age, text))
        }
        Section::RemainingWork => Some((section, 6.0, text)),
        Section::CriticalContext => Some((section, 5.0 + age, text)),
    }
}

/// The path a Relevant Files entry is about.
pub(crate) fn path_of(entry: &str) -> Option<&str> {
    entry.strip_prefix('`')?.split('`').next()
}

/// What an earlier entry says a file holds.
pub(crate) fn holds_of(entry: &str) -> Option<&str> {
    entry.split_once("holds: ").map(|(_, names)| names.trim())
}
