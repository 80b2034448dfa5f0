//! Where things stood: the last runs and commits, what fails, and what was left to do.

use throughline_transcript::{Arguments, Message, Part, RawJson};

use crate::act::{Act, ActOutcome, ToolFamily, one_line};
use crate::sections::Section;

use super::select::{Candidate, ESSENTIAL};

/// Commands whose outcome tells the state of the work.
const CHECKS: &[&str] = &["test", "build", "lint", "clippy", "check", "tsc", "pytest", "make", "vet", "fmt"];

/// Last checks and version-control steps.
pub(crate) fn active_state(acts: &[Act]) -> Vec<Candidate> {
    let mut out: Vec<Candidate> = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for act in acts.iter().rev().filter(|act| act.family == ToolFamily::Run) {
        let Some(outcome) = act.outcome.as_ref().filter(|outcome| !outcome.not_run) else { continue };
        // The newest run of each kind of check tells the state; older ones are history.
        let words = || act.target.split(|c: char| !c.is_ascii_alphanumeric());
        let check = words().find_map(|word| CHECKS.iter().find(|check| **check == word));
        let is_git = ["git commit", "git checkout", "git push"].iter().any(|step| act.target.contains(step));
        let Some(kind) = check.copied().or(is_git.then_some("git")) else { continue };
        if told.contains(&kind) || told.len() >= 5 {
            continue;
        }
        told.push(kind);
        let mut text = format!("last `{}` -> {}", act.target, act.outcome_words(outcome));
        if let Some(verdict) = &outcome.verdict {
            text.push_str(&format!(": {verdict}"));
        }
        out.push(Candidate::new(Section::ActiveState, act.message, 8.0, text));
    }
    out
}

/// The first words of a command that make two runs of it comparable.
fn command_key(command: &str) -> String {
    let last = command.rsplit("&&").next().unwrap_or(command);
    last.split_whitespace().filter(|word| !word.starts_with('-')).take(3).collect::<Vec<_>>().join(" ")
}

/// Calls this far from the end of the conversation have been overtaken by events.
const RECENT_CALLS: usize = 60;

/// Failures among the last calls that no later run of the same command or edit of the same file made good.
pub(crate) fn blocked(acts: &[Act], all: &[Act]) -> Vec<Candidate> {
    let recent = all.get(all.len().saturating_sub(RECENT_CALLS)..).unwrap_or_default();
    let oldest = recent.first().map_or(0, |act| act.message);
    let key =
        |act: &Act| if act.family == ToolFamily::Run { command_key(&act.target) } else { act.target.clone() };
    let mut out = Vec::new();
    for act in acts.iter().filter(|act| act.message >= oldest) {
        let Some(outcome) = act.outcome.as_ref().filter(|o| o.failed() && !o.not_run && !o.errors.is_empty())
        else {
            continue;
        };
        let own_key = key(act);
        let made_good = recent.iter().any(|other| {
            other.message > act.message
                && key(other) == own_key
                && other.outcome.as_ref().is_some_and(ActOutcome::shows_no_failure)
        });
        if made_good {
            continue;
        }
        let errors = outcome.errors.iter().map(|e| one_line(e, 240)).collect::<Vec<_>>().join("\n");
        let text = format!("{}:\n{errors}", act.phrase());
        out.push(Candidate::new(Section::Blocked, act.message, 9.0, text));
    }
    out
}

/// Items of the newest to-do list, by whether they are under way or still to come.
pub(crate) fn to_do(messages: &[Message], before: usize) -> Vec<Candidate> {
    for (index, message) in messages.iter().enumerate().take(before).rev() {
        for part in message.parts() {
            let Part::ToolCall { name, arguments, .. } = part else { continue };
            if ToolFamily::of(&message.str(*name)) != ToolFamily::Plan {
                continue;
            }
            let text = message.arguments_text(*arguments);
            if matches!(arguments, Arguments::Absent) {
                continue;
            }
            let items = todo_items(&text);
            if !items.is_empty() {
                return items
                    .into_iter()
                    .enumerate()
                    .filter_map(|(at, (state, what))| {
                        let section = match state.as_str() {
                            "in_progress" => Section::InProgress,
                            "completed" | "done" | "cancelled" => return None,
                            _ => Section::RemainingWork,
                        };
                        let order = u32::try_from(index + at).unwrap_or(u32::MAX);
                        Some(Candidate::new(section, order, ESSENTIAL, one_line(&what, 300)))
                    })
                    .collect();
            }
        }
    }
    Vec::new()
}

fn todo_items(arguments: &str) -> Vec<(String, String)> {
    let root = RawJson(arguments);
    let Some(list) = ["todos", "plan", "items", "tasks"].iter().find_map(|key| root.get(key)) else {
        return Vec::new();
    };
    list.elements()
        .filter_map(|item| {
            let what = ["content", "step", "task", "title", "text", "description"]
                .iter()
                .find_map(|key| item.get(key).and_then(RawJson::as_text))
                .or_else(|| item.as_text())?;
            let state = item.get("status").or_else(|| item.get("state")).and_then(RawJson::as_text);
            Some((state.unwrap_or_default().into_owned(), what.into_owned()))
        })
        .collect()
}
