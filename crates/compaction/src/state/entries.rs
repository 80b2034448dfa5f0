//! The state as people see it: one entry for each thing that is known, each with the messages it comes from; and
//! corrections by the person, which compactions honour.
//!
//! An entry is named by its kind and its message, so its name stays the same while the conversation goes on. A correction
//! also has the entry's words: a view after a compaction has other messages, and notes may carry the words on.

use serde::{Deserialize, Serialize};

use crate::document::SummaryDocument;
use crate::sections::Section;

use super::lists::TodoStatus;
use super::model::{Fate, State};
use super::prose::{is_narration, plain_sentences};

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateKind {
    /// Something the person asked for.
    Request,
    /// What the agent or a sub-agent reported, without announcements of the next step.
    Report,
    /// An item of a list of work.
    Todo,
    /// A question with its answer, or a sentence that chooses.
    Decision,
    /// A standing instruction of the person.
    Constraint,
    /// The newest run of a command.
    Run,
    /// A change of a file.
    Edit,
    /// Something that failed.
    Error,
    /// A person, a project or another name, with what was said of it first.
    Entity,
}

impl StateKind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::Request,
        Self::Report,
        Self::Todo,
        Self::Decision,
        Self::Constraint,
        Self::Run,
        Self::Edit,
        Self::Error,
        Self::Entity,
    ];

    /// Its name, with which entries begin.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Report => "report",
            Self::Todo => "todo",
            Self::Decision => "decision",
            Self::Constraint => "constraint",
            Self::Run => "run",
            Self::Edit => "edit",
            Self::Error => "error",
            Self::Entity => "entity",
        }
    }

    /// The sections in which notes tell of it.
    fn sections(self) -> &'static [Section] {
        match self {
            Self::Request => &[Section::ActiveTask, Section::InProgress, Section::PendingAsks],
            Self::Report => &[Section::CompletedActions, Section::InProgress, Section::Goal],
            Self::Todo => &[Section::RemainingWork, Section::InProgress],
            Self::Decision => &[Section::KeyDecisions, Section::ResolvedQuestions, Section::CompletedActions],
            Self::Constraint => &[Section::Constraints],
            Self::Run => &[Section::ActiveState, Section::CompletedActions],
            Self::Edit => &[Section::CompletedActions],
            Self::Error => &[Section::Blocked, Section::CompletedActions],
            Self::Entity => &[Section::CriticalContext],
        }
    }
}

/// One thing that is known of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StateEntry {
    /// Its name: `request-12`; `request-12.2` for the second one of a message.
    pub id: String,
    /// What it is about.
    pub kind: StateKind,
    /// What became of it: the fate of a request, the status of an item, the outcome of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// Its words.
    pub text: String,
    /// Numbers of the messages it comes from, the first of them the one it is named by.
    pub messages: Vec<u64>,
}

/// An entry that the person took out of the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// The name of the entry.
    pub entry: String,
    /// What it was about.
    pub kind: StateKind,
    /// Its words.
    pub text: String,
}

impl From<&StateEntry> for Correction {
    fn from(entry: &StateEntry) -> Self {
        Self { entry: entry.id.clone(), kind: entry.kind, text: entry.text.clone() }
    }
}

/// So many letters say what a text is, where one of two was shortened.
const LEAST_SHARED_LETTERS: usize = 48;

impl Correction {
    /// Whether it takes an entry out of the state.
    #[must_use]
    pub fn drops(&self, entry: &StateEntry) -> bool {
        self.kind == entry.kind && self.is_about(&entry.text)
    }

    /// Whether these are the words that were taken out, perhaps shortened.
    fn is_about(&self, text: &str) -> bool {
        let (own, other) = (letters(&self.text), letters(text));
        let shorter = own.len().min(other.len());
        own == other
            || shorter >= LEAST_SHARED_LETTERS && (own.starts_with(&other) || other.starts_with(&own))
    }

    /// Whether a line of notes says these words, and little else.
    fn is_said_by(&self, line: &str) -> bool {
        let words = line.split("… (").next().unwrap_or(line);
        let (own, said) = (letters(&self.text), letters(words));
        !own.is_empty() && (self.is_about(words) || said.contains(&own) && said.len() <= own.len() * 2)
    }
}

/// Takes what corrections name out of notes: whole entries, and single lines under an entry.
pub(crate) fn correct_notes(document: &mut SummaryDocument, corrections: &[Correction]) {
    for correction in corrections {
        for section in correction.kind.sections() {
            let entries = document.entries_mut(*section);
            entries.retain(|entry| !correction.is_said_by(&entry.text));
            for entry in entries.iter_mut().filter(|entry| entry.text.contains('\n')) {
                // The first line is the request the others belong to.
                let kept = entry.text.lines().enumerate();
                let kept = kept.filter(|(at, line)| *at == 0 || !correction.is_said_by(line));
                entry.text = kept.map(|(_, line)| line).collect::<Vec<_>>().join("\n");
            }
        }
    }
}

impl State {
    /// Everything that is known, by kind and in order. `decisions` are those that notes would list, with their messages;
    /// `number` gives the number of a message from its place.
    pub(crate) fn entries(
        &self,
        decisions: &[(u32, String)],
        number: &dyn Fn(u32) -> u64,
    ) -> Vec<StateEntry> {
        let mut list = EntryList { entries: Vec::new(), number };
        for request in &self.requests {
            let by = request.decided_by;
            list.push(StateKind::Request, Some(request.fate.word()), &request.words, request.message, by);
        }
        for statement in &self.statements {
            let told: Vec<&str> =
                plain_sentences(&statement.text).filter(|sentence| !is_narration(sentence)).collect();
            let status = statement.overturned_by.map(|_| "overturned");
            list.push(
                StateKind::Report,
                status,
                &told.join(" ").replace("**", ""),
                statement.message,
                statement.overturned_by,
            );
        }
        for report in &self.delegated {
            let text = format!("{}: {}", report.task, report.report);
            list.push(StateKind::Report, Some("by a sub-agent"), &text, report.message, None);
        }
        list.sort_from(StateKind::Report);
        for item in &self.todos {
            let status = match item.status {
                TodoStatus::Open => "open",
                TodoStatus::InProgress => "in progress",
                TodoStatus::Done => "done",
            };
            list.push(StateKind::Todo, Some(status), &item.text, item.message, item.changed_by);
        }
        for (message, text) in decisions {
            list.push(StateKind::Decision, None, text, *message, None);
        }
        for rule in &self.constraints {
            list.push(StateKind::Constraint, None, &rule.text, rule.message, None);
        }
        for run in self.newest_runs() {
            let outcome = Some(run.outcome_word());
            list.push(StateKind::Run, outcome, &run.command, run.message, Some(run.result));
        }
        for edit in &self.edits {
            let status = if edit.applied { "done" } else { "failed" };
            let lines = edit.new_lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("; ");
            let text = if lines.is_empty() { edit.path.clone() } else { format!("{}: {lines}", edit.path) };
            list.push(StateKind::Edit, Some(status), &text, edit.message, None);
        }
        for problem in &self.problems {
            let status = if problem.solved_by.is_some() { "solved" } else { "open" };
            list.push(StateKind::Error, Some(status), &problem.text, problem.message, problem.solved_by);
        }
        for entity in self.entities.iter().filter(|entity| entity.is_named) {
            let text = format!("{}: {}", entity.name, entity.said);
            list.push(StateKind::Entity, None, &text, entity.message, None);
        }
        list.entries
    }

    /// The state without what the person took out of it. A request that was taken out is withdrawn.
    pub(crate) fn correct(&mut self, corrections: &[Correction]) {
        for kind in StateKind::ALL {
            let of_kind: Vec<&Correction> = corrections.iter().filter(|c| c.kind == kind).collect();
            if of_kind.is_empty() {
                continue;
            }
            let stays = |text: &str| !of_kind.iter().any(|correction| correction.is_about(text));
            match kind {
                StateKind::Request => {
                    for request in self.requests.iter_mut().filter(|request| !stays(&request.words)) {
                        request.fate = Fate::Withdrawn;
                    }
                }
                StateKind::Report => {
                    self.statements.retain(|statement| {
                        let told: Vec<&str> =
                            plain_sentences(&statement.text).filter(|s| !is_narration(s)).collect();
                        stays(&told.join(" "))
                    });
                    self.delegated.retain(|report| stays(&format!("{}: {}", report.task, report.report)));
                }
                StateKind::Todo => self.todos.retain(|item| stays(&item.text)),
                StateKind::Decision => self.choices.retain(|choice| stays(&choice.to_line())),
                StateKind::Constraint => self.constraints.retain(|rule| stays(&rule.text)),
                StateKind::Run => self.runs.retain(|run| stays(&run.command)),
                StateKind::Edit => self.edits.retain(|edit| {
                    let lines = edit.new_lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("; ");
                    stays(&format!("{}: {lines}", edit.path)) && stays(&edit.path)
                }),
                StateKind::Error => self.problems.retain(|problem| stays(&problem.text)),
                StateKind::Entity => {
                    self.entities.retain(|entity| stays(&format!("{}: {}", entity.name, entity.said)));
                }
            }
        }
    }
}

struct EntryList<'a> {
    entries: Vec<StateEntry>,
    number: &'a dyn Fn(u32) -> u64,
}

impl EntryList<'_> {
    fn push(
        &mut self,
        kind: StateKind,
        status: Option<&'static str>,
        text: &str,
        message: u32,
        also: Option<u32>,
    ) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let number = (self.number)(message);
        let before = self.entries.iter().rev().take_while(|entry| entry.kind == kind);
        let same = before.filter(|entry| entry.messages.first() == Some(&number)).count();
        let id = match same {
            0 => format!("{}-{number}", kind.name()),
            others => format!("{}-{number}.{}", kind.name(), others + 1),
        };
        let also = also.map(|message| (self.number)(message)).filter(|also| *also != number);
        let messages = std::iter::once(number).chain(also).collect();
        self.entries.push(StateEntry { id, kind, status, text: text.to_owned(), messages });
    }

    /// Puts the entries of a kind, which come last, in the order of their messages.
    fn sort_from(&mut self, kind: StateKind) {
        let first = self.entries.iter().position(|entry| entry.kind == kind).unwrap_or(self.entries.len());
        if let Some(entries) = self.entries.get_mut(first..) {
            entries.sort_by_key(|entry| entry.messages.first().copied());
        }
    }
}

/// Letters and digits only, in small letters: quotes are compared by them.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
