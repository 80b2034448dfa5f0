//! Completed Actions: what was done, one entry an action; looking around is told in one breath.

use crate::act::{Act, ToolFamily, one_line, only_looks};
use crate::sections::Section;

use super::select::Candidate;

/// Looks collected into one entry at most.
const MAX_LOOKS: usize = 8;
/// A command that only looks is quoted up to this length.
const MAX_LOOK_CHARS: usize = 60;

/// Commands that change the world outside the files: worth more than a look at something.
const WEIGHTY: &[&str] = &[
    "git commit",
    "git push",
    "git checkout",
    "git merge",
    "git rebase",
    "git reset",
    "git revert",
    "git read-tree",
    "gh pr create",
    "gh pr edit",
    "gh issue create",
    "npm install",
    "pip install",
    "cargo add",
    "apt",
    "docker",
    "kubectl",
    "terraform",
    "rm ",
    "mv ",
    "psql",
    "migrate",
    "deploy",
];

fn is_look(act: &Act) -> bool {
    if act.outcome.as_ref().is_some_and(|outcome| outcome.failed() && !outcome.not_run) {
        return false;
    }
    match act.family {
        ToolFamily::Read | ToolFamily::Search => true,
        ToolFamily::Run => only_looks(&act.target),
        _ => false,
    }
}

/// Entries for a run of calls. `recent` is the message where the tail begins: nearer actions matter more, and so do
/// those on what the tail still speaks of.
pub(crate) fn actions(
    acts: &[Act],
    from: usize,
    recent: usize,
    in_tail: impl Fn(&Act) -> bool,
) -> Vec<Candidate> {
    let mut out: Vec<Candidate> = Vec::new();
    let mut looks: Vec<&Act> = Vec::new();
    let mut run: Option<EditRun<'_>> = None;
    for act in acts {
        if act.family == ToolFamily::Plan || act.outcome.as_ref().is_some_and(|outcome| outcome.not_run) {
            continue;
        }
        if let Some(open) = &mut run {
            if open.takes(act) {
                // Looks at the file between two edits of it are part of editing it.
                looks.clear();
                continue;
            }
            let looks_at_it =
                is_look(act) && (act.target == open.act.target || act.detail == open.act.target);
            if !looks_at_it || looks.len() >= MAX_LOOKS {
                let done = run.take().map(|finished| finished.entry(from, recent));
                out.extend(done);
            }
        }
        if is_look(act) {
            if looks.len() >= MAX_LOOKS {
                flush_looks(&mut looks, &mut out, from, recent);
            }
            looks.push(act);
        } else {
            flush_looks(&mut looks, &mut out, from, recent);
            match EditRun::start(act) {
                Some(started) => run = Some(started),
                None => {
                    let mut told = entry(act, from, recent);
                    told.value *= if in_tail(act) { 1.3 } else { 1.0 };
                    out.push(told);
                }
            }
        }
    }
    out.extend(run.map(|finished| finished.entry(from, recent)));
    flush_looks(&mut looks, &mut out, from, recent);
    out.sort_by_key(|candidate| candidate.order);
    out
}

/// Successive edits of one file, told as one action.
struct EditRun<'a> {
    act: &'a Act,
    times: u32,
    added: u64,
    removed: u64,
    last: u32,
}

impl<'a> EditRun<'a> {
    fn start(act: &'a Act) -> Option<Self> {
        let clean = act.family == ToolFamily::Edit
            && act.more_files.is_empty()
            && act.outcome.as_ref().is_some_and(|outcome| !outcome.failed());
        let (added, removed) = line_counts(&act.detail)?;
        clean.then_some(Self { act, times: 1, added, removed, last: act.message })
    }

    /// Takes one more edit of the same file.
    fn takes(&mut self, act: &'a Act) -> bool {
        let Some(next) = Self::start(act).filter(|next| next.act.target == self.act.target) else {
            return false;
        };
        self.times += 1;
        self.added += next.added;
        self.removed += next.removed;
        self.last = next.last;
        true
    }

    fn entry(&self, from: usize, recent: usize) -> Candidate {
        let times = if self.times > 1 { format!(" {} times", self.times) } else { String::new() };
        let text = format!(
            "edited {}{times} (+{} -{} lines)",
            short_path(&self.act.target),
            self.added,
            self.removed
        );
        let value = 6.0 * (0.4 + 0.6 * recency(self.last, from, recent));
        Candidate::new(Section::CompletedActions, self.last, value, text)
    }
}

/// `+6 -14 lines` as numbers.
fn line_counts(detail: &str) -> Option<(u64, u64)> {
    let mut words = detail.split_whitespace();
    let added = words.next()?.strip_prefix('+')?.parse().ok()?;
    let removed = words.next()?.strip_prefix('-')?.parse().ok()?;
    Some((added, removed))
}

fn recency(message: u32, from: usize, recent: usize) -> f32 {
    let span = recent.saturating_sub(from).max(1) as f32;
    let at = (message as usize).saturating_sub(from) as f32;
    (at / span).clamp(0.0, 1.0)
}

fn entry(act: &Act, from: usize, recent: usize) -> Candidate {
    let mut text = act.phrase();
    if !act.target.is_empty() && matches!(act.family, ToolFamily::Edit | ToolFamily::Write | ToolFamily::Read)
    {
        text = text.replacen(&act.target, short_path(&act.target), 1);
    }
    if matches!(act.family, ToolFamily::Other | ToolFamily::Web | ToolFamily::Delegate) {
        text = format!("[{}] {text}", act.tool);
    }
    let mut value = match act.family {
        ToolFamily::Edit | ToolFamily::Write => 6.0,
        ToolFamily::Run if WEIGHTY.iter().any(|word| act.target.contains(word)) => 6.0,
        ToolFamily::Run => 3.5,
        ToolFamily::Delegate | ToolFamily::Ask => 5.0,
        ToolFamily::Web => 3.0,
        _ => 2.0,
    };
    if let Some(outcome) = &act.outcome {
        let ending = act.outcome_words(outcome);
        if !ending.is_empty() {
            text.push_str(" -> ");
            text.push_str(&ending);
        }
        if outcome.failed() {
            value += 1.0;
            for error in outcome.errors.iter().take(2) {
                text.push_str(&format!("\n{}", one_line(error, 200)));
            }
        } else if let Some(verdict) = &outcome.verdict {
            text.push_str(&format!(": {verdict}"));
        }
    } else {
        text.push_str(" -> no result");
    }
    value *= 0.4 + 0.6 * recency(act.message, from, recent);
    Candidate::new(Section::CompletedActions, act.message, value, text)
}

fn flush_looks(looks: &mut Vec<&Act>, out: &mut Vec<Candidate>, from: usize, recent: usize) {
    let Some(last) = looks.last() else { return };
    let message = last.message;
    let (mut reads, mut searches, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    for act in looks.iter() {
        let (list, what): (&mut Vec<String>, String) = match act.family {
            ToolFamily::Search => {
                let place = if act.detail.is_empty() {
                    String::new()
                } else {
                    format!(" in {}", short_path(&act.detail))
                };
                (&mut searches, format!("{:?}{place}", one_line(&act.target, 40)))
            }
            ToolFamily::Run => (&mut commands, format!("`{}`", one_line(&act.target, MAX_LOOK_CHARS))),
            _ if act.detail.is_empty() => (&mut reads, short_path(&act.target).to_owned()),
            _ => (&mut reads, format!("{} {}", short_path(&act.target), act.detail)),
        };
        if !list.contains(&what) {
            list.push(what);
        }
    }
    let told: Vec<String> = [("read", reads), ("searched", searches), ("looked with", commands)]
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(verb, list)| format!("{verb} {}", list.join(", ")))
        .collect();
    let value = 1.2 * (0.3 + 0.7 * recency(message, from, recent));
    out.push(Candidate::new(Section::CompletedActions, message, value, told.join("; ")));
    looks.clear();
}

/// The last two segments of a path: the whole path stands under Relevant Files.
pub(crate) fn short_path(path: &str) -> &str {
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at);
    match slashes.nth(1) {
        Some(at) => path.get(at + 1..).unwrap_or(path),
        None => path,
    }
}
