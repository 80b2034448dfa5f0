//! Decides whether a tool call may run, from its effects and the user's earlier answers, never from text of a model, file or command.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::danger::Danger;
use crate::difference::added_lines;
use crate::tool::{Effect, Extent, Proposal};
use crate::visible::{Layout, Strictness, has_hidden, visible};
use crate::workspace::FolderIdentity;

/// Whether the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalMode {
    /// Before every write and command, and before reads outside the folder.
    Always,
    /// Never (`--yolo`).
    Never,
    /// There is no user: a call that would need an answer is denied.
    Nobody,
}

/// The decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The call may run.
    Allowed,
    /// The user must be asked.
    Ask(Question),
    /// The call must not run, for this reason.
    Denied(String),
}

/// A question for the user. Its texts are safe for a terminal: characters that are invisible or control the terminal are escaped, and
/// nothing is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The call on one line, such as `run cargo test`.
    pub title: String,
    /// The exact effects, one text each.
    pub details: Vec<String>,
    /// The reasons it is dangerous.
    pub dangers: Vec<Danger>,
    /// Whether the call can be allowed for the whole session.
    pub for_session: bool,
    grants: Vec<Grant>,
}

impl Question {
    /// Describes exactly what `Answer::Session` would allow.
    #[must_use]
    pub fn session_words(&self) -> String {
        self.grants.iter().map(Grant::words).collect::<Vec<_>>().join(", and ")
    }
}

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Allow this call.
    Once,
    /// Allow this call and equal ones until the session ends.
    Session,
    /// Do not allow the call.
    Deny,
}

/// A permission for a session. It covers equal effects only, and no parent, child or sibling path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Grant {
    /// Writing in the workspace.
    WriteInside,
    /// Writing one file outside the workspace.
    Write(PathBuf, Option<FolderIdentity>),
    /// Reading one file, listing one folder or searching one folder outside the workspace.
    Read(PathBuf, Extent, Option<FolderIdentity>),
    /// Running one command, character for character, in one folder.
    Run(String, PathBuf, Option<FolderIdentity>),
}

impl Grant {
    fn words(&self) -> String {
        match self {
            Self::WriteInside => "writing any file in the folder, except in a .git folder".to_owned(),
            Self::Write(path, _) => format!("writing {}, whatever the text", shown_path(path)),
            Self::Read(path, Extent::File, _) => format!("reading the file {}", shown_path(path)),
            Self::Read(path, Extent::Listing, _) => format!("listing the folder {}", shown_path(path)),
            Self::Read(path, Extent::Tree, _) => {
                format!("searching {} with everything below it, for anything", shown_path(path))
            }
            Self::Run(_, folder, _) => format!("this exact command in {}", shown_path(folder)),
        }
    }
}

/// The permissions of a session.
#[derive(Clone, Debug)]
pub struct Approvals {
    asking: ApprovalMode,
    granted: HashSet<Grant>,
}

impl Approvals {
    /// Starts without any permission.
    #[must_use]
    pub fn new(asking: ApprovalMode) -> Self {
        Self { asking, granted: HashSet::new() }
    }

    /// Decides whether a call may run.
    #[must_use]
    pub fn judge(&self, proposal: &Proposal) -> Judgement {
        let open: Vec<(&Effect, Grant)> = proposal
            .effects
            .iter()
            .filter_map(|effect| Some((effect, needed(effect)?)))
            .filter(|(effect, grant)| !self.granted.contains(grant) || is_dangerous(effect))
            .collect();
        if open.is_empty() || self.asking == ApprovalMode::Never {
            return Judgement::Allowed;
        }
        if self.asking == ApprovalMode::Nobody {
            return Judgement::Denied(
                "it needs approval, and there is no user to ask; --yolo turns asking off".to_owned(),
            );
        }
        let mut dangers: Vec<Danger> = Vec::new();
        if has_hidden(&proposal.title, Strictness::Exact) {
            dangers.push(Danger::Hidden);
        }
        for danger in open.iter().flat_map(|(effect, _)| dangers_of_effect(effect)) {
            if !dangers.contains(&danger) {
                dangers.push(danger);
            }
        }
        Judgement::Ask(Question {
            title: visible(&proposal.title, Layout::OneLine, Strictness::Exact).into_owned(),
            details: open.iter().map(|(effect, _)| details(effect)).collect(),
            for_session: dangers.is_empty(),
            dangers,
            grants: open.into_iter().map(|(_, grant)| grant).collect(),
        })
    }

    /// Stores the user's answer. Returns whether the call may run.
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

/// The permission that an effect needs; `None` for reads in the workspace.
fn needed(effect: &Effect) -> Option<Grant> {
    match effect {
        Effect::Reads { inside: true, .. } => None,
        Effect::Reads { path, inside: false, extent, folder } => {
            Some(Grant::Read(path.clone(), *extent, *folder))
        }
        Effect::Writes { inside: true, .. } => Some(Grant::WriteInside),
        Effect::Writes { path, inside: false, folder, .. } => Some(Grant::Write(path.clone(), *folder)),
        Effect::Runs { command, folder, identity, .. } => {
            Some(Grant::Run(command.clone(), folder.clone(), *identity))
        }
    }
}

fn dangers_of_effect(effect: &Effect) -> Vec<Danger> {
    let hides = |path: &Path| has_hidden(&path.to_string_lossy(), Strictness::Exact);
    let (is_hidden, mut dangers) = match effect {
        Effect::Reads { path, .. } => (hides(path), Vec::new()),
        Effect::Writes { path, difference, .. } => {
            // Git runs hooks and commands from its settings without asking.
            let is_git = path.iter().any(|part| part.eq_ignore_ascii_case(".git"));
            // A carriage return at the end of a line is harmless.
            let line_hides =
                |line: &str| has_hidden(line.strip_suffix('\r').unwrap_or(line), Strictness::Prose);
            let dangers = if is_git { vec![Danger::RunsLater] } else { Vec::new() };
            (hides(path) || added_lines(difference).any(line_hides), dangers)
        }
        Effect::Runs { command, folder, dangers, .. } => (
            has_hidden(command, Strictness::Exact) || is_pushed_away(command) || hides(folder),
            dangers.clone(),
        ),
    };
    if is_hidden {
        dangers.insert(0, Danger::Hidden);
    }
    dangers
}

/// Whether part of a command is so far to the right, or so far down, that the user may not see it.
fn is_pushed_away(command: &str) -> bool {
    /// More than any indentation, less than a row of a terminal.
    const BLANKS: usize = 64;
    /// Less than a screen.
    const LINES: usize = 16;
    let (mut blanks, mut lines) = (0, 0);
    for c in command.trim_end().chars() {
        match c {
            ' ' | '\t' => blanks += 1,
            '\n' => (blanks, lines) = (0, lines + 1),
            _ if blanks >= BLANKS || lines >= LINES => return true,
            _ => (blanks, lines) = (0, 0),
        }
    }
    false
}

fn is_dangerous(effect: &Effect) -> bool {
    !dangers_of_effect(effect).is_empty()
}

fn shown_path(path: &Path) -> String {
    visible(&path.to_string_lossy(), Layout::OneLine, Strictness::Exact).into_owned()
}

fn details(effect: &Effect) -> String {
    match effect {
        Effect::Reads { path, extent, .. } => {
            let what = match extent {
                Extent::File => "read the file",
                Extent::Listing => "list the folder",
                Extent::Tree => "search, with everything below it,",
            };
            format!("{what} {}, outside the folder", shown_path(path))
        }
        Effect::Writes { path, inside, difference, .. } => {
            let place = if *inside { "" } else { ", outside the folder" };
            let difference = visible(difference, Layout::Lines, Strictness::Prose);
            format!("write {}{place}\n{difference}", shown_path(path))
        }
        Effect::Runs { command, folder, .. } => {
            let command = visible(command, Layout::Lines, Strictness::Exact);
            format!("in {}\n{command}", shown_path(folder))
        }
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
