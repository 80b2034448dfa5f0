//! Who may do what: decided from what a call would do and from what a person answered before, never from anything a
//! model, a file or a command says.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::danger::Danger;
use crate::tool::{Effect, Proposal};

/// Whether people are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Before anything is written or run, and before anything outside the folder is read.
    Always,
    /// Never (`--yolo`).
    Never,
    /// Nobody is there to be asked: what would be asked is denied.
    Nobody,
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It may be done.
    Allowed,
    /// A person is asked.
    Ask(Question),
    /// It may not be done, because of this.
    Denied(String),
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// In one line: `run cargo test`.
    pub title: String,
    /// What exactly will happen, one piece each.
    pub details: Vec<String>,
    /// What makes it dangerous.
    pub dangers: Vec<Danger>,
    /// Whether it can be allowed for the whole session.
    pub for_session: bool,
    grants: Vec<Grant>,
}

impl Question {
    /// What else would not be asked any more if it were allowed for the session, in words.
    #[must_use]
    pub fn session_words(&self) -> String {
        let words = |grant: &Grant| match grant {
            Grant::WriteInside => "writing any file in the folder".to_owned(),
            Grant::Write(path) => format!("writing {}", path.display()),
            Grant::Read(folder) => format!("reading anything directly in {}", folder.display()),
            Grant::Run(..) => "this very command again, in the same folder".to_owned(),
        };
        self.grants.iter().map(words).collect::<Vec<_>>().join(", and ")
    }
}

/// What a person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This once.
    Once,
    /// This and everything of its kind until the session ends.
    Session,
    /// No.
    Deny,
}

/// Something that was allowed for a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Grant {
    /// Writing inside the folder.
    WriteInside,
    /// Writing one file outside.
    Write(PathBuf),
    /// Reading below a folder outside.
    Read(PathBuf),
    /// One command, word for word, in one folder.
    Run(String, PathBuf),
}

/// What was allowed so far.
#[derive(Clone, Debug)]
pub struct Approvals {
    asking: Asking,
    granted: HashSet<Grant>,
}

impl Approvals {
    /// Nothing is allowed yet.
    #[must_use]
    pub fn new(asking: Asking) -> Self {
        Self { asking, granted: HashSet::new() }
    }

    /// Whether a call may be made.
    #[must_use]
    pub fn judge(&self, proposal: &Proposal) -> Judgement {
        let open: Vec<(&Effect, Grant)> = proposal
            .effects
            .iter()
            .filter_map(|effect| Some((effect, needed(effect)?)))
            .filter(|(effect, grant)| !self.granted.contains(grant) || is_dangerous(effect))
            .collect();
        if open.is_empty() || self.asking == Asking::Never {
            return Judgement::Allowed;
        }
        if self.asking == Asking::Nobody {
            return Judgement::Denied(
                "it needs approval, and nobody is there to be asked; --yolo turns asking off".to_owned(),
            );
        }
        let dangers: Vec<Danger> = open.iter().filter_map(|(effect, _)| danger(effect)).collect();
        Judgement::Ask(Question {
            title: proposal.title.clone(),
            details: open.iter().map(|(effect, _)| details(effect)).collect(),
            for_session: dangers.is_empty(),
            dangers,
            grants: open.into_iter().map(|(_, grant)| grant).collect(),
        })
    }

    /// Notes what a person answered; whether the call may be made.
    pub fn answered(&mut self, question: &Question, answer: Answer) -> bool {
        match answer {
            Answer::Deny => false,
            Answer::Once => true,
            Answer::Session => {
                if question.for_session {
                    self.granted.extend(question.grants.iter().cloned());
                }
                true
            }
        }
    }
}

/// What has to be granted for an effect; reading inside needs nothing.
fn needed(effect: &Effect) -> Option<Grant> {
    match effect {
        Effect::Reads { inside: true, .. } => None,
        Effect::Reads { path, inside: false } => {
            Some(Grant::Read(path.parent().unwrap_or(path.as_path()).to_owned()))
        }
        Effect::Writes { inside: true, .. } => Some(Grant::WriteInside),
        Effect::Writes { path, inside: false, .. } => Some(Grant::Write(path.clone())),
        Effect::Runs { command, folder, .. } => Some(Grant::Run(command.clone(), folder.clone())),
    }
}

fn danger(effect: &Effect) -> Option<Danger> {
    match effect {
        Effect::Runs { danger, .. } => *danger,
        // Hooks and settings in there are run by git without a question.
        Effect::Writes { path, .. } if path.iter().any(|part| part.eq_ignore_ascii_case(".git")) => {
            Some(Danger::RunsLater)
        }
        Effect::Reads { .. } | Effect::Writes { .. } => None,
    }
}

fn is_dangerous(effect: &Effect) -> bool {
    danger(effect).is_some()
}

fn details(effect: &Effect) -> String {
    match effect {
        Effect::Reads { path, .. } => format!("read {}, outside the folder", path.display()),
        Effect::Writes { path, inside, difference } => {
            let place = if *inside { "" } else { ", outside the folder" };
            format!("write {}{place}\n{difference}", path.display())
        }
        Effect::Runs { command, folder, .. } => format!("in {}\n{command}", folder.display()),
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
