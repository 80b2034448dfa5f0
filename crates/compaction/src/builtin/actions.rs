//! Completed Actions: what was done, one entry an action; looking around is told in one breath.

use crate::act::{Act, ToolFamily, one_line};
use crate::sections::Section;

use super::select::Candidate;

/// Looks collected into one entry at most.
const MAX_LOOKS: usize = 8;

/// Commands that change the world outside the files: worth more than a look at something.
const WEIGHTY: &[&str] = &[
    "git commit",
    "git push",
    "git checkout",
    "git merge",
    "git rebase",
    "git reset",
    "git revert",
    "gh pr",
    "gh issue",
    "npm install",
    "pip install",
    "cargo add",
    "apt",
    "docker",
    "kubectl",
    "terraform",
    "rm ",
    "mv ",
    "curl",
    "psql",
    "migrate",
    "deploy",
];

/// Entries for a run of calls. `recent` is the message where the tail begins: nearer actions matter more.
pub(crate) fn actions(acts: &[Act], from: usize, recent: usize) -> Vec<Candidate> {
    let mut out: Vec<Candidate> = Vec::new();
    let mut looks: Vec<&Act> = Vec::new();
    for act in acts {
        let is_look = matches!(act.family, ToolFamily::Read | ToolFamily::Search)
            && !act.outcome.as_ref().is_some_and(|o| o.failed);
        if is_look && looks.len() < MAX_LOOKS {
            looks.push(act);
            continue;
        }
        flush_looks(&mut looks, &mut out, from, recent);
        if is_look {
            looks.push(act);
        } else if !matches!(act.family, ToolFamily::Plan) {
            out.push(entry(act, from, recent));
        }
    }
    flush_looks(&mut looks, &mut out, from, recent);
    out
}

fn recency(message: u32, from: usize, recent: usize) -> f32 {
    let span = recent.saturating_sub(from).max(1) as f32;
    let at = (message as usize).saturating_sub(from) as f32;
    (at / span).clamp(0.0, 1.0)
}

fn entry(act: &Act, from: usize, recent: usize) -> Candidate {
    let mut text = format!("[{}] {}", act.tool, act.phrase());
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
        if outcome.failed {
            value += 2.0;
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
    let mut reads = Vec::new();
    let mut searches = Vec::new();
    for act in looks.iter() {
        let mut what = short_path(&act.target).to_owned();
        match act.family {
            ToolFamily::Search => {
                what = format!("{what:?}");
                if !act.detail.is_empty() {
                    what.push_str(&format!(" in {}", short_path(&act.detail)));
                }
                searches.push(what);
            }
            _ => {
                if !act.detail.is_empty() {
                    what.push_str(&format!(" {}", act.detail));
                }
                if !reads.contains(&what) {
                    reads.push(what);
                }
            }
        }
    }
    let mut pieces = Vec::new();
    if !reads.is_empty() {
        pieces.push(format!("read {}", reads.join(", ")));
    }
    if !searches.is_empty() {
        pieces.push(format!("searched {}", searches.join(", ")));
    }
    let value = 1.2 * (0.3 + 0.7 * recency(message, from, recent));
    out.push(Candidate::new(Section::CompletedActions, message, value, pieces.join("; ")));
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
